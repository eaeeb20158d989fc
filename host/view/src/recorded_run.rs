//! Reads the log of a run, whole or while it still grows.

use crate::message::{RunMessage, Topic};
use crate::run_log::{FRAME_TOPICS, LOG_FILE};
use fabswarm_diagnostic::Diagnostic;
use mcap::records::Record;
use mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The log of a run that may still be in progress.
pub struct LogTail {
    path: PathBuf,
    file: File,
    reader: LinearReader,
    topics: BTreeMap<u16, Topic>,
    /// The sender of the frames on each channel, if frames are read.
    senders: BTreeMap<u16, u32>,
    frames: Option<Vec<LoggedFrame>>,
    round: u64,
    is_complete: bool,
}

/// A frame in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoggedFrame {
    /// The round that ended when it was on the air.
    pub(crate) round: u32,
    pub(crate) sender: usize,
    pub(crate) bytes: Vec<u8>,
}

impl std::fmt::Debug for LogTail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogTail").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Fields that every message has.
#[derive(Deserialize)]
struct MessageStamp {
    #[serde(default)]
    round: u64,
    #[serde(default)]
    seconds: f64,
    summary: Option<SummaryStamp>,
}

#[derive(Deserialize)]
struct SummaryStamp {
    #[serde(default)]
    rounds: u64,
    #[serde(default)]
    seconds: f64,
}

impl LogTail {
    /// Records beyond this length are those of a damaged file.
    const LONGEST_RECORD: usize = 64 << 20;

    /// Opens the log in a run folder.
    ///
    /// # Errors
    /// Where there is none.
    pub fn open(folder: &Path) -> Result<Self, Diagnostic> {
        let whole = folder.join(LOG_FILE);
        let part = folder.join(format!("{LOG_FILE}.part"));
        // Both files exist where an ended run was resumed: then the part begins with the whole log.
        let opened = File::open(&part).map(|file| (part, file));
        let opened = opened.or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => File::open(&whole).map(|file| (whole, file)),
            _ => Err(error),
        });
        let (path, file) = opened.map_err(|error| {
            let what = format!("{} holds no log of a run: {error}", folder.display());
            Diagnostic::new(what, "name a folder that `fabswarm run` has made; `fabswarm runs` lists them")
        })?;
        let options = LinearReaderOptions::default()
            .with_skip_end_magic(true)
            .with_prevalidate_chunk_crcs(true)
            .with_record_length_limit(Self::LONGEST_RECORD);
        Ok(Self {
            path,
            file,
            reader: LinearReader::new_with_options(options),
            topics: BTreeMap::new(),
            senders: BTreeMap::new(),
            frames: None,
            round: 0,
            is_complete: false,
        })
    }

    /// Returns whether the log is complete.
    pub const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Reads the messages that have been written since the last call.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn read(&mut self) -> Result<Vec<RunMessage>, Diagnostic> {
        let mut messages = Vec::new();
        while let Some(event) = self.reader.next_event() {
            let damaged = |error: mcap::McapError| {
                let what = format!("{} is damaged after round {}: {error}", self.path.display(), self.round);
                Diagnostic::new(
                    what,
                    "what comes before is readable; take the file from a backup if there is one",
                )
            };
            match event.map_err(damaged)? {
                LinearReadEvent::ReadRequest(length) => {
                    let read = self.file.read(self.reader.insert(length)).map_err(|error| {
                        let what = format!("cannot read {}: {error}", self.path.display());
                        Diagnostic::new(what, "see that it may be read and its disk is still there")
                    })?;
                    if read == 0 {
                        // More may come; telling the reader of the end would end it.
                        return Ok(messages);
                    }
                    self.reader.notify_read(read);
                }
                LinearReadEvent::Record { opcode, data } => match mcap::parse_record(opcode, data) {
                    Ok(Record::Channel(channel)) => {
                        let topic = Topic::ALL.into_iter().find(|topic| topic.name() == channel.topic);
                        self.topics.extend(topic.map(|topic| (channel.id, topic)));
                        let sender =
                            channel.topic.strip_prefix(FRAME_TOPICS).and_then(|own| own.parse().ok());
                        self.senders.extend(sender.map(|sender| (channel.id, sender)));
                    }
                    Ok(Record::Message { header, data }) => {
                        let data = data.into_owned();
                        messages.extend(self.take(header.channel_id, header.sequence, data)?);
                    }
                    Ok(_) => {}
                    Err(source) => return Err(damaged(source)),
                },
            }
        }
        Ok(messages)
    }

    /// Takes a record: a frame is kept, anything else of ours is returned.
    fn take(&mut self, channel: u16, sequence: u32, data: Vec<u8>) -> Result<Option<RunMessage>, Diagnostic> {
        if let (Some(frames), Some(&sender)) = (&mut self.frames, self.senders.get(&channel)) {
            frames.push(LoggedFrame { round: sequence, sender: sender as usize, bytes: data });
            return Ok(None);
        }
        let Some(&topic) = self.topics.get(&channel) else { return Ok(None) };
        let message = message(topic, data).map_err(|reason| {
            let what =
                format!("a message of {} after round {} cannot be read: {reason}", topic.name(), self.round);
            let remedy = "name a log that this version of fabswarm has written; `fabswarm run` on the scenario.toml beside it runs it again";
            Diagnostic::of_file(&self.path, what, remedy)
        })?;
        self.round = message.round;
        self.is_complete |= topic == Topic::End;
        Ok(Some(message))
    }
}

fn message(topic: Topic, data: Vec<u8>) -> Result<RunMessage, String> {
    let json = String::from_utf8(data).map_err(|error| error.to_string())?;
    let stamp: MessageStamp = serde_json::from_str(&json).map_err(|error| error.to_string())?;
    let (round, seconds) = match stamp.summary {
        Some(summary) => (summary.rounds, summary.seconds),
        // The configured rounds of the first message share their name with nothing.
        None => (stamp.round, stamp.seconds),
    };
    let elapsed = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    Ok(RunMessage { topic, round, elapsed, json })
}

/// The log of a run, read in full.
#[derive(Clone, Debug, Default)]
pub struct RecordedRun {
    /// Its messages, in the order in which they were written.
    pub messages: Vec<RunMessage>,
    /// Whether the run has ended and the log is whole.
    pub is_complete: bool,
    /// The frames of its first rounds, where they were asked for.
    pub(crate) frames: Vec<LoggedFrame>,
}

impl RecordedRun {
    /// Reads the log in a run folder; of a run that was killed, as far as it got.
    ///
    /// # Errors
    /// When there is none, or it is damaged.
    pub fn read(folder: &Path) -> Result<Self, Diagnostic> {
        Self::read_from(LogTail::open(folder)?)
    }

    /// Reads the log with the frames of its first rounds.
    pub(crate) fn read_with_frames(folder: &Path) -> Result<Self, Diagnostic> {
        Self::read_from(LogTail { frames: Some(Vec::new()), ..LogTail::open(folder)? })
    }

    pub(crate) fn read_from(mut tail: LogTail) -> Result<Self, Diagnostic> {
        let messages = tail.read()?;
        Ok(Self { messages, is_complete: tail.is_complete(), frames: tail.frames.unwrap_or_default() })
    }

    /// The messages about `topic`.
    pub fn about(&self, topic: Topic) -> impl Iterator<Item = &RunMessage> {
        self.messages.iter().filter(move |message| message.topic == topic)
    }
}
