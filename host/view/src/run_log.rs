//! `run.mcap`: all messages of a run, for any tool that reads MCAP.

use crate::message::{RunMessage, Topic};
use fabswarm_sim::record::{Error, GrowingFile};
use mcap::records::MessageHeader;
use mcap::write::NoSeek;
use mcap::{McapError, WriteOptions, Writer};
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

/// The name of the log in a run folder.
pub const LOG_FILE: &str = "run.mcap";

/// The encoding of frames: the bytes that were on the air.
const FRAME_ENCODING: &str = "fabswarm.frame";

/// Prefix of the topics of frames, before the number of their sender.
pub(crate) const FRAME_TOPICS: &str = "/frames/";

/// Writes the log of a run in whole chunks, so that the log of a killed run can be read.
pub(crate) struct RunLog {
    /// `None` once it could no longer be written.
    writer: Option<Writer<NoSeek<GrowingFile>>>,
    channels: BTreeMap<Topic, u16>,
    /// The channel of each sender's frames.
    frame_channels: BTreeMap<u32, u16>,
    /// When the run began, since 1970.
    began: Duration,
    sequence: u32,
    flushed: Instant,
    failure: Option<Error>,
}

impl RunLog {
    /// A kill loses at most this much of the log.
    const FLUSH_AFTER: Duration = Duration::from_millis(900);

    pub(crate) fn create(file: GrowingFile, began: Duration) -> Result<Self, Error> {
        let unwritable = file.unwritable();
        let options = WriteOptions::new()
            .profile("")
            .library(concat!("fabswarm ", env!("CARGO_PKG_VERSION")))
            .compression(None)
            .disable_seeking(true);
        let open = || -> Result<_, McapError> {
            let mut writer = options.create(NoSeek::new(file))?;
            let mut channels = BTreeMap::new();
            for topic in Topic::ALL {
                let (name, schema) = schema(topic);
                let schema = writer.add_schema(name, "jsonschema", schema.as_bytes())?;
                channels.insert(topic, writer.add_channel(schema, topic.name(), "json", &BTreeMap::new())?);
            }
            Ok((writer, channels))
        };
        let (writer, channels) = open().map_err(|error| unwritable(io_error(error)))?;
        Ok(Self {
            writer: Some(writer),
            channels,
            frame_channels: BTreeMap::new(),
            began,
            sequence: 0,
            flushed: Instant::now(),
            failure: None,
        })
    }

    /// Adds a message. A failure is returned by `finish`: the run goes on.
    pub(crate) fn push(&mut self, message: &RunMessage) {
        let Some(&channel_id) = self.channels.get(&message.topic) else { return };
        self.sequence = self.sequence.wrapping_add(1);
        let time = self.time(message.elapsed);
        let header =
            MessageHeader { channel_id, sequence: self.sequence, log_time: time, publish_time: time };
        self.write(|writer| writer.write_to_known_channel(&header, message.json.as_bytes()));
        self.flush_if_due();
    }

    /// Adds a frame, as it was sent in `round`.
    pub(crate) fn push_frame(&mut self, sender: u32, round: u32, frame: &[u8], elapsed: Duration) {
        let time = self.time(elapsed);
        let known = self.frame_channels.get(&sender).copied();
        let mut channel = known;
        self.write(|writer| {
            let channel_id = match known {
                Some(known) => known,
                // Bytes have no schema.
                None => {
                    let topic = format!("{FRAME_TOPICS}{sender}");
                    writer.add_channel(0, &topic, FRAME_ENCODING, &BTreeMap::new())?
                }
            };
            channel = Some(channel_id);
            let header = MessageHeader { channel_id, sequence: round, log_time: time, publish_time: time };
            writer.write_to_known_channel(&header, frame)
        });
        self.frame_channels.extend(channel.map(|channel| (sender, channel)));
    }

    /// Nanoseconds since 1970.
    fn time(&self, elapsed: Duration) -> u64 {
        u64::try_from((self.began + elapsed).as_nanos()).unwrap_or(u64::MAX)
    }

    /// Flushes if the last flush was long enough ago.
    pub(crate) fn flush_if_due(&mut self) {
        if self.flushed.elapsed() >= Self::FLUSH_AFTER {
            self.flush();
        }
    }

    pub(crate) fn flush(&mut self) {
        self.write(Writer::flush);
        self.flushed = Instant::now();
    }

    fn write(&mut self, action: impl FnOnce(&mut Writer<NoSeek<GrowingFile>>) -> Result<(), McapError>) {
        let Some(writer) = &mut self.writer else { return };
        let Err(error) = action(writer) else { return };
        // Dropping a writer writes its end, which would fail in the same way.
        let file = self.writer.take().map(|writer| writer.into_inner().into_inner());
        self.failure = file.map(|file| file.unwritable()(io_error(error)));
    }

    /// Completes the file, unless it or an earlier message could not be written.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.write(|writer| writer.finish().map(drop));
        match (self.failure, self.writer) {
            (None, Some(writer)) => writer.into_inner().into_inner().complete(),
            (Some(failure), _) => Err(failure),
            (None, None) => Ok(()),
        }
    }
}

fn io_error(error: McapError) -> io::Error {
    match error {
        McapError::Io(error) => error,
        other => io::Error::other(other),
    }
}

/// The name and JSON schema of a topic's messages.
const fn schema(topic: Topic) -> (&'static str, &'static str) {
    match topic {
        Topic::Run => ("fabswarm.Run", include_str!("schemas/run.json")),
        Topic::Swarm => ("fabswarm.Swarm", include_str!("schemas/swarm.json")),
        Topic::Scene => ("foxglove.SceneUpdate", include_str!("schemas/scene.json")),
        Topic::Metrics => ("fabswarm.Metrics", include_str!("schemas/metrics.json")),
        Topic::Evaluation => ("fabswarm.Evaluation", include_str!("schemas/evaluation.json")),
        Topic::Log => ("foxglove.Log", include_str!("schemas/log.json")),
        Topic::End => ("fabswarm.End", include_str!("schemas/end.json")),
    }
}
