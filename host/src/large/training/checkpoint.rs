//! Checkpoints: the whole state as safetensors, so that a run goes on bit for bit and other tools can read it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, View};

use super::Error;
use super::report::SCENARIO_FILE;
use crate::large::device::Device;
use crate::large::fab::{Fab, Snapshot};
use crate::large::parameters::Layout;
use crate::record::RunFolder;
use crate::scenario::Resolved;

/// Keys that may differ between a run and its continuation: how long it goes, how often it is looked at, and where it lies.
const FREE: [&str; 4] =
    ["training.epochs", "training.evaluate_every", "training.checkpoint_every", "output.out"];

const FILE: &str = "checkpoint.safetensors";

/// Checks that `folder` is one that a training run left, with a checkpoint.
///
/// # Errors
/// When it is not.
pub fn check_is_there(folder: &Path) -> Result<(), Error> {
    let refuse = |what: &str, remedy: String| {
        Err(Error::Resume { path: folder.to_owned(), what: what.to_owned(), remedy })
    };
    let scenario = folder.join(SCENARIO_FILE);
    if !scenario.is_file() {
        let what = if folder.is_dir() { "it is no run folder" } else { "there is no such folder" };
        let remedy = "name the run folder of a `fabswarm train`, such as runs/0001-train".to_owned();
        return refuse(what, remedy);
    }
    if !folder.join(FILE).is_file() {
        let remedy = format!("begin anew with `fabswarm train {}`", scenario.display());
        return refuse("no checkpoint was kept there", remedy);
    }
    Ok(())
}

/// Replaces the checkpoint of `folder`, and tells whether the decisions in it are numbers; where they are not, or it cannot be
/// written, the old one stays.
///
/// # Errors
/// When it cannot be written.
pub fn save<D: Device<Scalar = f32>>(
    folder: &RunFolder,
    resolved: &Resolved,
    swarm: &Fab<D>,
    seconds: f64,
) -> Result<bool, Error> {
    let snapshot = swarm.snapshot()?;
    let mut decisions = snapshot.buffers.iter().filter(|(name, _)| name == "v").flat_map(|(_, words)| words);
    if decisions.any(|word| !word.is_finite()) {
        return Ok(false);
    }
    let tensors = snapshot
        .buffers
        .iter()
        .map(|(name, words)| (name.clone(), Words { shape: vec![words.len()], words }))
        .collect();
    let about = [
        ("round", snapshot.round.to_string()),
        ("scenario", told(resolved)),
        ("seconds", seconds.to_string()),
    ];
    write(folder, FILE, tensors, about.map(|(key, value)| (key.to_owned(), value)).into())?;
    Ok(true)
}

/// Goes back to the checkpoint of `folder`, and gives the seconds it took to get there.
///
/// # Errors
/// When there is none, it is damaged, or it belongs to a run with other settings.
pub fn restore<D: Device<Scalar = f32>>(
    folder: &Path,
    resolved: &Resolved,
    swarm: &mut Fab<D>,
) -> Result<f64, Error> {
    check_is_there(folder)?;
    let path = folder.join(FILE);
    let refuse =
        |what: String, remedy: &str| Error::Resume { path: path.clone(), what, remedy: remedy.to_owned() };
    let damaged = |what: &dyn std::fmt::Display| {
        let remedy = format!("begin anew with `fabswarm train {}`", folder.join(SCENARIO_FILE).display());
        refuse(format!("it is damaged ({what})"), &remedy)
    };
    let file =
        std::fs::read(&path).map_err(|cause| refuse(cause.to_string(), "see that the file may be read"))?;
    let (_, metadata) = SafeTensors::read_metadata(&file).map_err(|cause| damaged(&cause))?;
    let about = metadata.metadata().clone().unwrap_or_default();
    let round =
        about.get("round").and_then(|round| round.parse().ok()).ok_or_else(|| damaged(&"no round in it"))?;
    let seconds = about
        .get("seconds")
        .and_then(|seconds| seconds.parse().ok())
        .ok_or_else(|| damaged(&"no seconds in it"))?;
    let (there, here) = (about.get("scenario").cloned().unwrap_or_default(), told(resolved));
    if there != here {
        let other: Vec<&str> = there.lines().filter(|line| !here.lines().any(|own| own == *line)).collect();
        return Err(refuse(
            format!("it belongs to a run of another scenario, with {}", other.join(", ")),
            "leave these keys as they are, or start a new run",
        ));
    }
    let tensors = SafeTensors::deserialize(&file).map_err(|cause| damaged(&cause))?;
    let mut buffers = Vec::new();
    for (name, words) in swarm.snapshot_shape() {
        let tensor = tensors.tensor(&name).map_err(|_| damaged(&format!("no tensor `{name}` in it")))?;
        if tensor.dtype() != Dtype::F32 || tensor.shape() != [words] {
            let (dtype, shape) = (tensor.dtype(), tensor.shape());
            return Err(damaged(&format!("tensor `{name}` is {dtype:?} {shape:?}, not F32 [{words}]")));
        }
        buffers
            .push((name, tensor.data().as_chunks().0.iter().map(|word| f32::from_le_bytes(*word)).collect()));
    }
    swarm.restore(&Snapshot { round, buffers })?;
    Ok(seconds)
}

/// Writes one model with its tensors by name.
///
/// # Errors
/// When it cannot be written.
pub fn save_model(folder: &RunFolder, layout: &Layout, packed: &[f32]) -> Result<(), Error> {
    let tensors = layout
        .tensors()
        .iter()
        .map(|tensor| {
            let words = &packed[tensor.offset..tensor.offset + tensor.words()];
            (tensor.name.clone(), Words { shape: tensor.shape.clone(), words })
        })
        .collect();
    write(folder, "model.safetensors", tensors, HashMap::new())
}

/// What must be equal for a run to go on, a line a key.
fn told(resolved: &Resolved) -> String {
    let fixed = resolved.values().filter(|(path, _)| !FREE.contains(path));
    fixed.map(|(path, value)| format!("{path} = {value}\n")).collect()
}

/// A tensor that becomes bytes when it is its turn.
struct Words<'a> {
    shape: Vec<usize>,
    words: &'a [f32],
}

impl View for Words<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn data_len(&self) -> usize {
        size_of_val(self.words)
    }
}

fn write(
    folder: &RunFolder,
    name: &str,
    tensors: Vec<(String, Words<'_>)>,
    about: HashMap<String, String>,
) -> Result<(), Error> {
    let file = safetensors::serialize(tensors, Some(about)).expect("tensors of f32 words serialise");
    Ok(folder.write(name, &file)?)
}
