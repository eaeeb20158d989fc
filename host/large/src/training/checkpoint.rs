//! Checkpoints: the whole state as safetensors. A resumed run computes the same bits, and other tools can read the file.

use std::collections::HashMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::iter;
use std::path::{Path, PathBuf};

use crc::{CRC_32_ISCSI, Crc, Table};
use safetensors::tensor::{Dtype, Metadata, TensorInfo};

use super::Error;
use super::block::{to_bytes, to_words};
use super::report::SCENARIO_FILE;
use crate::device::Device;
use crate::fab::{Fab, StatePart, VectorPart};
use fabswarm_sim::record::RunFolder;
use fabswarm_sim::scenario::{self, ResolvedScenario, ScenarioCommand};

/// Keys that may differ between a run and its continuation: how long it goes, how often it is looked at, and where it lies.
const FREE: [&str; 4] =
    ["training.epochs", "training.evaluate_every", "training.checkpoint_every", "output.out"];

const FILE: &str = "checkpoint.safetensors";

/// Words that are on their way between device and file at once: a copy of the whole state would not be in the plan.
const PIECE: usize = 1 << 20;
/// The last tensor: the checksum of all bytes before it, one word.
const CHECKSUM: &str = "checksum";
static CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);
/// Bytes of the header's length, which comes before it.
const LENGTH_BYTES: usize = 8;

/// Checks that `folder` is one that a training run left, with a checkpoint.
///
/// # Errors
/// When it is not.
pub fn check_is_there(folder: &Path) -> Result<(), Error> {
    let refuse = |what: &str, remedy: String| Err(Error::resume(folder, what, remedy));
    let scenario = folder.join(SCENARIO_FILE);
    if !scenario.is_file() {
        let what = if folder.is_dir() { "it is not a run folder" } else { "there is no such folder" };
        let remedy = "name the run folder of a `fabswarm train`, such as runs/0001-train".to_owned();
        return refuse(what, remedy);
    }
    let resolved = scenario::resolve_for(ScenarioCommand::Train, Some(&scenario), &[]);
    if matches!(resolved, Err(scenario::Error::OtherCommand(_))) {
        let remedy = format!(
            "repeat it from its start with `fabswarm run {}`, which gives the same bytes",
            scenario.display()
        );
        return refuse("it is the folder of a `fabswarm run`, which keeps no checkpoints", remedy);
    }
    if !folder.join(FILE).is_file() {
        let remedy = format!("start again with `fabswarm train {}`", scenario.display());
        return refuse("no checkpoint was kept there", remedy);
    }
    Ok(())
}

/// Replaces the checkpoint of `folder`, and returns whether all decisions are finite; where they are not, or the file cannot
/// be written, the old one stays.
///
/// # Errors
/// When it cannot be written.
pub fn save<D: Device<Scalar = f32>>(
    folder: &RunFolder,
    resolved: &ResolvedScenario,
    data_digest: &str,
    swarm: &Fab<D>,
    seconds: f64,
) -> Result<bool, Error> {
    let parts = swarm.parts();
    let decisions = StatePart::Lower(VectorPart::Decisions);
    for &(part, words) in parts.iter().filter(|(part, _)| *part == decisions) {
        for (offset, words) in pieces(words) {
            if swarm.read_part(part, offset, words)?.iter().any(|word| !word.is_finite()) {
                return Ok(false);
            }
        }
    }
    let about = [
        ("round", swarm.rounds().to_string()),
        ("scenario", fixed_settings(resolved)),
        ("data", data_digest.to_owned()),
        ("seconds", seconds.to_string()),
    ];
    let header = header(&parts, about.map(|(key, value)| (key.to_owned(), value)).into());
    let state = parts.iter().flat_map(|&(part, words)| {
        pieces(words).map(move |(offset, words)| Ok(to_bytes(&swarm.read_part(part, offset, words)?)))
    });
    folder.write_pieces(FILE, with_checksum(iter::once(Ok::<_, Error>(header)).chain(state)))?;
    Ok(true)
}

/// A checkpoint that belongs to the run at hand.
#[derive(Debug)]
pub struct Checkpoint {
    folder: PathBuf,
    file: File,
    metadata: Metadata,
    /// Offset of the words in the file.
    words_at: u64,
    pub(super) round: u32,
    data_digest: String,
    /// Time it took to get there.
    pub(super) seconds: f64,
}

impl Checkpoint {
    /// Opens the checkpoint of `folder`, to go on with the run of `resolved`.
    ///
    /// # Errors
    /// When there is none, it is damaged, or it belongs to a run with other settings.
    pub fn open(folder: &Path, resolved: &ResolvedScenario) -> Result<Self, Error> {
        check_is_there(folder)?;
        let path = folder.join(FILE);
        let refuse = |what: String, remedy: &str| Error::resume(&path, what, remedy);
        let unreadable = |cause: std::io::Error| refuse(cause.to_string(), "check that the file can be read");
        let mut file = File::open(&path).map_err(unreadable)?;
        let file_bytes = file.metadata().map_err(unreadable)?.len();
        let damaged = |cause: &dyn Display| damaged(folder, cause);
        let mut length = [0; LENGTH_BYTES];
        file.read_exact(&mut length).map_err(|cause| damaged(&cause))?;
        let header_bytes = u64::from_le_bytes(length);
        if header_bytes > file_bytes {
            return Err(damaged(&"its header is longer than the file"));
        }
        let mut header = vec![0; header_bytes as usize];
        file.read_exact(&mut header).map_err(|cause| damaged(&cause))?;
        let metadata: Metadata = serde_json::from_slice(&header).map_err(|cause| damaged(&cause))?;
        let about = metadata.metadata().clone().unwrap_or_default();
        let (there, here) = (about.get("scenario").cloned().unwrap_or_default(), fixed_settings(resolved));
        if there != here {
            let other: Vec<&str> =
                there.lines().filter(|line| !here.lines().any(|own| own == *line)).collect();
            return Err(refuse(
                format!("it belongs to a run of another scenario, with {}", other.join(", ")),
                "leave these keys as they are, or start a new run",
            ));
        }
        let field = |name: &str| about.get(name).ok_or_else(|| damaged(&format!("no {name} in it")));
        let checkpoint = Checkpoint {
            round: field("round")?.parse().map_err(|cause| damaged(&cause))?,
            data_digest: field("data")?.clone(),
            seconds: field("seconds")?.parse().map_err(|cause| damaged(&cause))?,
            folder: folder.to_owned(),
            file,
            metadata,
            words_at: LENGTH_BYTES as u64 + header_bytes,
        };
        checkpoint.check_sum()?;
        Ok(checkpoint)
    }

    fn damaged(&self, what: impl Display) -> Error {
        damaged(&self.folder, &what)
    }

    /// Compares the checksum at the end of the file with the bytes before it.
    fn check_sum(&self) -> Result<(), Error> {
        let Some(TensorInfo { data_offsets: (start, end), .. }) = self.metadata.info(CHECKSUM) else {
            return Err(self.damaged("no checksum in it"));
        };
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0)).map_err(|cause| self.damaged(cause))?;
        let mut before = BufReader::with_capacity(PIECE, file.take(self.words_at + *start as u64));
        let mut found = CRC.digest();
        loop {
            let piece = before.fill_buf().map_err(|cause| self.damaged(cause))?;
            if piece.is_empty() {
                break;
            }
            found.update(piece);
            let bytes = piece.len();
            before.consume(bytes);
        }
        let mut there = vec![0; end - start];
        file.read_exact(&mut there).map_err(|cause| self.damaged(cause))?;
        if there != found.finalize().to_le_bytes() {
            return Err(self.damaged("its checksum differs from its bytes"));
        }
        Ok(())
    }

    /// Returns the offset of a part's words in the file.
    fn place(&self, part: StatePart, words: usize) -> Result<u64, Error> {
        let info = self.metadata.info(&part.to_string());
        let Some(TensorInfo { dtype, shape, data_offsets: (start, _) }) = info else {
            return Err(self.damaged(format!("no tensor `{part}` in it")));
        };
        if *dtype != Dtype::F32 || *shape != [words] {
            return Err(self.damaged(format!("tensor `{part}` is {dtype:?} {shape:?}, not F32 [{words}]")));
        }
        Ok(self.words_at + *start as u64)
    }

    fn words(&self, at: u64, words: usize) -> Result<Vec<f32>, Error> {
        let mut file = &self.file;
        let mut bytes = vec![0; words * size_of::<f32>()];
        let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut bytes));
        read.map_err(|cause| self.damaged(cause))?;
        Ok(to_words(&bytes))
    }

    /// Checks that the data are those of the run.
    ///
    /// # Errors
    /// When they are not.
    pub(super) fn check_data(&self, digest: &str) -> Result<(), Error> {
        if self.data_digest == digest {
            return Ok(());
        }
        let remedy =
            "put the files of training.data and training.model back as they were, or start a new run";
        Err(Error::resume(&self.folder.join(FILE), "it belongs to a run on other data", remedy))
    }

    /// Restores the state of `swarm`.
    ///
    /// # Errors
    /// When the file is damaged, or the device fails.
    pub fn restore<D: Device<Scalar = f32>>(&mut self, swarm: &mut Fab<D>) -> Result<(), Error> {
        swarm.set_rounds(self.round);
        for (part, words) in swarm.parts() {
            let start = self.place(part, words)?;
            for (offset, words) in pieces(words) {
                let words = self.words(start + (offset * size_of::<f32>()) as u64, words)?;
                swarm.write_part(part, offset, &words)?;
            }
        }
        Ok(())
    }
}

fn damaged(folder: &Path, what: &dyn Display) -> Error {
    let remedy = format!("start again with `fabswarm train {}`", folder.join(SCENARIO_FILE).display());
    Error::resume(&folder.join(FILE), format!("it is damaged ({what})"), remedy)
}

/// The settings that must be equal for a run to go on, one line per key.
fn fixed_settings(resolved: &ResolvedScenario) -> String {
    let fixed = resolved.values().filter(|(path, _)| !FREE.contains(path));
    fixed.map(|(path, value)| format!("{path} = {value}\n")).collect()
}

/// Offsets and lengths of the pieces of `words` words.
fn pieces(words: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..words).step_by(PIECE).map(move |offset| (offset, PIECE.min(words - offset)))
}

/// The pieces of a file, followed by their checksum.
fn with_checksum<E>(
    pieces: impl IntoIterator<Item = Result<Vec<u8>, E>>,
) -> impl Iterator<Item = Result<Vec<u8>, E>> {
    let (mut pieces, mut digest) = (pieces.into_iter(), Some(CRC.digest()));
    iter::from_fn(move || match pieces.next() {
        None => digest.take().map(|digest| Ok(digest.finalize().to_le_bytes().to_vec())),
        Some(piece) => {
            if let (Ok(bytes), Some(digest)) = (&piece, &mut digest) {
                digest.update(bytes);
            }
            Some(piece)
        }
    })
}

/// The header of a safetensors file with the words of `parts` and a checksum.
fn header(parts: &[(StatePart, usize)], about: HashMap<String, String>) -> Vec<u8> {
    let mut end = 0;
    let tensors = parts.iter().map(|(part, words)| {
        let start = end;
        end += words * size_of::<f32>();
        (part.to_string(), TensorInfo { dtype: Dtype::F32, shape: vec![*words], data_offsets: (start, end) })
    });
    let mut tensors: Vec<(String, TensorInfo)> = tensors.collect();
    let data_offsets = (end, end + size_of::<u32>());
    tensors.push((CHECKSUM.to_owned(), TensorInfo { dtype: Dtype::U32, shape: vec![1], data_offsets }));
    let metadata = Metadata::new(Some(about), tensors).expect("parts lie one behind the other");
    let mut header = serde_json::to_vec(&metadata).expect("plain numbers and strings serialise");
    header.resize(header.len().next_multiple_of(LENGTH_BYTES), b' ');
    [&(header.len() as u64).to_le_bytes()[..], &header].concat()
}
