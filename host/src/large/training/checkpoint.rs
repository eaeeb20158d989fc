//! Checkpoints: the whole state as safetensors, so that a run goes on bit for bit and other tools can read it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::Error;
use crate::large::device::Device;
use crate::large::fab::{Fab, Snapshot};
use crate::large::parameters::Layout;
use crate::scenario::Resolved;

/// Keys that may differ between a run and its continuation: how long it goes, how often it is looked at, and where it lies.
const FREE: [&str; 4] =
    ["training.epochs", "training.evaluate_every", "training.checkpoint_every", "output.out"];

/// The checkpoint of a run folder.
pub fn path(folder: &Path) -> PathBuf {
    folder.join("checkpoint.safetensors")
}

/// Replaces the checkpoint at `path`; the old one stays until the new one is complete.
///
/// # Errors
/// When a decision is no number any more, which leaves the old one in its place, or when it cannot be written.
pub fn save<D: Device<Scalar = f32>>(path: &Path, resolved: &Resolved, swarm: &Fab<D>) -> Result<(), Error> {
    let snapshot = swarm.snapshot()?;
    let decisions = snapshot.buffers.iter().filter(|(name, _)| name == "v");
    if decisions.flat_map(|(_, words)| words).any(|word| !word.is_finite()) {
        return Err(Error::diverged(snapshot.round, path));
    }
    let tensors = snapshot
        .buffers
        .iter()
        .map(|(name, words)| (name.to_string(), vec![words.len()], bytes(words)))
        .collect();
    let about = [("round", snapshot.round.to_string()), ("scenario", told(resolved))];
    write(path, tensors, about.map(|(key, value)| (key.to_owned(), value)).into())
}

/// Goes back to the checkpoint at `path`.
///
/// # Errors
/// When there is none, it is damaged, or it belongs to a run with other settings.
pub fn restore<D: Device<Scalar = f32>>(
    path: &Path,
    resolved: &Resolved,
    swarm: &mut Fab<D>,
) -> Result<(), Error> {
    let refuse = |what: String| Error::Checkpoint { path: path.to_owned(), what };
    let file =
        std::fs::read(path).map_err(|cause| refuse(format!("no checkpoint to resume from ({cause})")))?;
    let (_, metadata) =
        SafeTensors::read_metadata(&file).map_err(|cause| refuse(format!("damaged checkpoint ({cause})")))?;
    let about = metadata.metadata().clone().unwrap_or_default();
    let round = about
        .get("round")
        .and_then(|round| round.parse().ok())
        .ok_or_else(|| refuse("no round in it".to_owned()))?;
    let (there, here) = (about.get("scenario").cloned().unwrap_or_default(), told(resolved));
    if there != here {
        let other: Vec<&str> = there.lines().filter(|line| !here.lines().any(|own| own == *line)).collect();
        return Err(refuse(format!(
            "it belongs to a run of another scenario, with {}\nhelp: leave these keys as they are, or start a new run",
            other.join(", ")
        )));
    }
    let tensors =
        SafeTensors::deserialize(&file).map_err(|cause| refuse(format!("damaged checkpoint ({cause})")))?;
    let mut buffers = Vec::new();
    for (name, words) in swarm.snapshot_shape() {
        let tensor = tensors.tensor(&name).map_err(|_| refuse(format!("no tensor `{name}` in it")))?;
        if tensor.dtype() != Dtype::F32 || tensor.shape() != [words] {
            return Err(refuse(format!(
                "tensor `{name}` is {:?} {:?}, not F32 [{words}]",
                tensor.dtype(),
                tensor.shape()
            )));
        }
        buffers
            .push((name, tensor.data().as_chunks().0.iter().map(|word| f32::from_le_bytes(*word)).collect()));
    }
    swarm.restore(&Snapshot { round, buffers })?;
    Ok(())
}

/// Writes one model with its tensors by name.
///
/// # Errors
/// When it cannot be written.
pub fn save_model(path: &Path, layout: &Layout, packed: &[f32]) -> Result<(), Error> {
    let tensors = layout
        .tensors()
        .iter()
        .map(|tensor| {
            (
                tensor.name.clone(),
                tensor.shape.clone(),
                bytes(&packed[tensor.offset..tensor.offset + tensor.words()]),
            )
        })
        .collect();
    write(path, tensors, HashMap::new())
}

/// What must be equal for a run to go on, a line a key.
fn told(resolved: &Resolved) -> String {
    let fixed = resolved.values().filter(|(path, _)| !FREE.contains(path));
    fixed.map(|(path, value)| format!("{path} = {value}\n")).collect()
}

fn bytes(words: &[f32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn write(
    path: &Path,
    tensors: Vec<(String, Vec<usize>, Vec<u8>)>,
    about: HashMap<String, String>,
) -> Result<(), Error> {
    let part = path.with_extension("part");
    let failed = |path: &Path, cause: std::io::Error| Error::Write { path: path.to_owned(), cause };
    let views: Vec<(&str, TensorView<'_>)> = tensors
        .iter()
        .map(|(name, shape, bytes)| Ok((name.as_str(), TensorView::new(Dtype::F32, shape.clone(), bytes)?)))
        .collect::<Result<_, safetensors::SafeTensorError>>()
        .map_err(|cause| failed(path, std::io::Error::other(cause)))?;
    safetensors::serialize_to_file(views, Some(about), &part)
        .map_err(|cause| failed(&part, std::io::Error::other(cause)))?;
    std::fs::rename(&part, path).map_err(|cause| failed(path, cause))
}
