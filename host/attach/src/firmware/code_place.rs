//! Translates addresses of an image into functions and lines: a board reports only numbers.

use super::boards_folder::boards_folder;
use addr2line::gimli::{self, EndianSlice, RunTimeEndian};
use object::{Object, ObjectSection};
use std::fmt;
use std::fs;
use std::path::Path;

/// The instruction before a return address: the call itself.
pub(crate) const fn before_return(address: u64) -> u64 {
    address.saturating_sub(1)
}

/// A function and a line of the sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodePlace {
    function: String,
    file: String,
    line: u32,
}

impl CodePlace {
    /// Whether it is in the sources of this project or of the user's problem, and neither in a library nor in the panic handler.
    fn is_ours(&self) -> bool {
        const LIBRARIES: [&str; 4] = ["/rustc/", "/rustlib/", "/registry/src/", "/git/checkouts/"];
        !self.function.ends_with("rust_begin_unwind")
            && !LIBRARIES.iter().any(|folder| self.file.contains(folder))
    }
}

impl fmt::Display for CodePlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { function, file, line } = self;
        write!(out, "{file}:{line}, in {function}")
    }
}

/// Finds the places of addresses in an image, innermost first, functions that were inlined included; only those outside of
/// libraries, if there are any. Empty without debug information.
pub(crate) fn places(image: &Path, addresses: &[u64]) -> Vec<CodePlace> {
    let Ok(bytes) = fs::read(image) else { return Vec::new() };
    let all = find(&bytes, addresses).unwrap_or_default();
    let ours: Vec<CodePlace> = all.iter().filter(|place| place.is_ours()).cloned().collect();
    if ours.is_empty() { all } else { ours }
}

fn find(bytes: &[u8], addresses: &[u64]) -> Result<Vec<CodePlace>, gimli::Error> {
    let Ok(image) = object::File::parse(bytes) else { return Ok(Vec::new()) };
    let section = |id: gimli::SectionId| {
        let data = image.section_by_name(id.name()).and_then(|section| section.data().ok());
        Ok::<_, gimli::Error>(EndianSlice::new(data.unwrap_or_default(), RunTimeEndian::Little))
    };
    let context = addr2line::Context::from_dwarf(gimli::Dwarf::load(section)?)?;
    let mut places: Vec<CodePlace> = Vec::new();
    for &address in addresses {
        let mut frames = context.find_frames(address).skip_all_loads()?;
        while let Some(frame) = frames.next()? {
            let function = frame.function.as_ref().and_then(|name| name.demangle().ok());
            let location = frame.location.and_then(|location| location.file.zip(location.line));
            if let (Some(function), Some((file, line))) = (function, location) {
                let place = CodePlace { function: without_hash(&function), file: in_project(file), line };
                if places.last() != Some(&place) {
                    places.push(place);
                }
            }
        }
    }
    Ok(places)
}

/// A function's name without the hash that the compiler appends.
fn without_hash(name: &str) -> String {
    match name.rsplit_once("::h") {
        Some((start, hash)) if hash.len() == 16 => start.to_owned(),
        _ => name.to_owned(),
    }
}

/// A path as one reads it in the root of the sources.
fn in_project(file: &str) -> String {
    let root = boards_folder().ok().and_then(Path::parent);
    let (Some(root), Ok(path)) = (root, Path::new(file).canonicalize()) else {
        return file.to_owned();
    };
    path.strip_prefix(root).map_or_else(|_| file.to_owned(), |path| path.display().to_string())
}

/// Replaces the addresses in a message of a board's fault handler by their places: `hard fault at 0x1234, called from 0x1278`, or
/// `panic, called from [0x1234, 0x1278]`, where the addresses behind `called from` are those that calls return to.
pub(crate) fn explain(message: &str, image: &Path) -> String {
    let Some((fault, callers)) = message.rsplit_once(", called from ") else { return message.to_owned() };
    let number = |word: &str| {
        let number = u64::from_str_radix(word.trim_matches([' ', '[', ']']).strip_prefix("0x")?, 16).ok()?;
        (number > 0).then_some(number)
    };
    let at = fault.rsplit_once(" at ").and_then(|(fault, at)| Some((fault, Some(number(at)?))));
    let (fault, instruction) = at.unwrap_or((fault, None));
    let returns = callers.split(',').filter_map(number).map(before_return);
    let addresses: Vec<u64> = instruction.into_iter().chain(returns).collect();
    let places: Vec<String> = places(image, &addresses).iter().map(CodePlace::to_string).collect();
    match places.split_first() {
        None => message.to_owned(),
        Some((first, [])) => format!("{fault} at {first}"),
        Some((first, callers)) => format!("{fault} at {first}; called from {}", callers.join("; ")),
    }
}
