//! Reads the log of a run, whole or while it still grows.

use crate::message::{Message, Topic};
use crate::run_log::{FRAME_TOPICS, LOG_FILE};
use mcap::McapError;
use mcap::records::Record;
use mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why the log of a run cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// There is no log.
    #[error("{path} holds no log of a run: {source}\nhelp: name a folder that `fabswarm run` has made; `fabswarm runs` lists them", path = path.display())]
    Missing {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be read.
    #[error("cannot read {path}: {source}\nhelp: see that it may be read and its disk is still there", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is damaged.
    #[error("{path} is damaged after round {round}: {source}\nhelp: what comes before is readable; take the file from a backup if there is one", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The last round that was read.
        round: u64,
        /// What is wrong.
        source: McapError,
    },
    /// A message in it is none of ours.
    #[error("{path}: a message of {topic} after round {round} cannot be read: {reason}\nhelp: name a log that this version of fabswarm has written; `fabswarm run` on the scenario.toml beside it runs it again", path = path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The message's topic.
        topic: &'static str,
        /// The last round that was read.
        round: u64,
        /// What is wrong.
        reason: String,
    },
}

/// The log of a run that may still be in progress.
pub struct LogTail {
    path: PathBuf,
    file: File,
    reader: LinearReader,
    topics: BTreeMap<u16, Topic>,
    /// Whose frames are on a channel, if frames are read.
    senders: BTreeMap<u16, u32>,
    frames: Option<Vec<RecordedFrame>>,
    round: u64,
    is_complete: bool,
}

/// A frame in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedFrame {
    /// The round that ended when it was on the air.
    pub round: u32,
    /// Whose it is.
    pub sender: usize,
    /// As it was on the air.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for LogTail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogTail").field("path", &self.path).finish_non_exhaustive()
    }
}

/// What every message has.
#[derive(Deserialize)]
struct MessageStamp {
    #[serde(default)]
    round: u64,
    #[serde(default)]
    seconds: f64,
    command: Option<String>,
    error_kind: Option<String>,
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
    /// [`ReadError::Missing`] where there is none.
    pub fn open(folder: &Path) -> Result<Self, ReadError> {
        let whole = folder.join(LOG_FILE);
        let part = folder.join(format!("{LOG_FILE}.part"));
        // Beside a part there is a whole log only where a run that had ended goes on: the part begins with all of it.
        let opened = File::open(&part).map(|file| (part, file));
        let opened = opened.or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => File::open(&whole).map(|file| (whole, file)),
            _ => Err(error),
        });
        let (path, file) = opened.map_err(|source| ReadError::Missing { path: folder.to_owned(), source })?;
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

    /// Whether the log has its end.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Reads the messages that have been written since the last call.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn read(&mut self) -> Result<Vec<Message>, ReadError> {
        let mut messages = Vec::new();
        while let Some(event) = self.reader.next_event() {
            let damaged = |source| ReadError::Damaged { path: self.path.clone(), round: self.round, source };
            match event.map_err(damaged)? {
                LinearReadEvent::ReadRequest(length) => {
                    let read = self.file.read(self.reader.insert(length));
                    let read =
                        read.map_err(|source| ReadError::Unreadable { path: self.path.clone(), source })?;
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
                        if let (Some(frames), Some(&sender)) =
                            (&mut self.frames, self.senders.get(&header.channel_id))
                        {
                            let (round, sender, bytes) =
                                (header.sequence, sender as usize, data.into_owned());
                            frames.push(RecordedFrame { round, sender, bytes });
                            continue;
                        }
                        let Some(&topic) = self.topics.get(&header.channel_id) else { continue };
                        let message = message(topic, &data).map_err(|reason| ReadError::Foreign {
                            path: self.path.clone(),
                            topic: topic.name(),
                            round: self.round,
                            reason,
                        })?;
                        self.round = message.round;
                        self.is_complete |= topic == Topic::End;
                        messages.push(message);
                    }
                    Ok(_) => {}
                    Err(source) => return Err(damaged(source)),
                },
            }
        }
        Ok(messages)
    }
}

fn message(topic: Topic, data: &[u8]) -> Result<Message, String> {
    let json = std::str::from_utf8(data).map_err(|error| error.to_string())?;
    let stamp: MessageStamp = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let is_training = stamp.command.as_deref() == Some("train");
    if topic == Topic::Run && stamp.error_kind.is_none() && !is_training {
        return Err("it does not say what the error of the run measures (`error_kind`)".to_owned());
    }
    let (round, seconds) = match stamp.summary {
        Some(summary) => (summary.rounds, summary.seconds),
        // The configured rounds of the first message share their name with nothing.
        None => (stamp.round, stamp.seconds),
    };
    let elapsed = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    Ok(Message { topic, round, elapsed, json: json.to_owned() })
}

/// The log of a run, read in full.
#[derive(Clone, Debug, Default)]
pub struct RecordedRun {
    /// Its messages, in the order in which they were written.
    pub messages: Vec<Message>,
    /// Whether the run has ended and the log is whole.
    pub is_complete: bool,
    /// The frames of its first rounds, where they were asked for.
    pub frames: Vec<RecordedFrame>,
}

impl RecordedRun {
    /// Reads the log in a run folder; of a run that was killed, as far as it got.
    ///
    /// # Errors
    /// When there is none, or it is damaged.
    pub fn read(folder: &Path) -> Result<Self, ReadError> {
        Self::read_from(LogTail::open(folder)?)
    }

    /// The same with the frames of its first rounds.
    ///
    /// # Errors
    /// When there is no log, or it is damaged.
    pub fn read_with_frames(folder: &Path) -> Result<Self, ReadError> {
        Self::read_from(LogTail { frames: Some(Vec::new()), ..LogTail::open(folder)? })
    }

    fn read_from(mut tail: LogTail) -> Result<Self, ReadError> {
        let messages = tail.read()?;
        Ok(Self { messages, is_complete: tail.is_complete(), frames: tail.frames.unwrap_or_default() })
    }

    /// The messages about `topic`.
    pub fn about(&self, topic: Topic) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(move |message| message.topic == topic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcap::records::MessageHeader;

    /// A log whose first message is `json`, in a folder of its own.
    fn log(json: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join(LOG_FILE)).unwrap();
        let mut writer = mcap::Writer::new(io::BufWriter::new(file)).unwrap();
        let channel_id = writer.add_channel(0, Topic::Run.name(), "json", &BTreeMap::new()).unwrap();
        let header = MessageHeader { channel_id, sequence: 1, log_time: 0, publish_time: 0 };
        writer.write_to_known_channel(&header, json.as_bytes()).unwrap();
        writer.finish().unwrap();
        folder
    }

    #[test]
    fn the_log_of_an_earlier_version_is_refused_with_a_remedy() {
        // As it was before metrics were named for what they measure.
        let folder = log(r#"{"command": "run", "agents": 10, "rounds": 100}"#);
        let told = RecordedRun::read(folder.path()).unwrap_err().to_string();
        for words in ["run.mcap: a message of /run", "(`error_kind`)", "help: name a log that this version"] {
            assert!(told.contains(words), "{told}");
        }
        let folder = log(r#"{"command": "run", "agents": 10, "error_kind": "gradient_norm"}"#);
        assert_eq!(RecordedRun::read(folder.path()).unwrap().about(Topic::Run).count(), 1);
    }
}
