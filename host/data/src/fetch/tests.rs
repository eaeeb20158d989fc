//! Fetches with a package client of our own making.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::CacheState;
use crate::catalogue::{self, EntryKind, PackageManager};
use fabswarm_sim::cache_folder::bytes_below;

/// sha256 of "abc".
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn file(name: &str, inside: &str) -> File {
    File { name: name.to_owned(), inside: inside.to_owned(), bytes: 3, sha256: ABC.to_owned() }
}

fn package(spec: &str, bytes: u64, files: Vec<File>, zip_part: Option<&str>) -> Package {
    Package {
        client: PackageManager::Npm,
        spec: spec.to_owned(),
        bytes,
        files,
        zip_part: zip_part.map(str::to_owned),
    }
}

/// An entry as those of the catalogue, which live as long as the program.
fn entry(packages: Vec<Package>, joined_zip: Vec<File>) -> &'static Entry {
    let [name, about, terms] = ["letters", "", ""].map(str::to_owned);
    Box::leak(Box::new(Entry { name, kind: EntryKind::Imdb, about, terms, packages, joined_zip }))
}

fn letters() -> &'static Entry {
    let of = |spec, name, inside| package(spec, 100, vec![file(name, inside)], None);
    entry(vec![of("first@1", "a", "package/a"), of("second@1", "b", "package/b")], vec![])
}

fn pieces() -> &'static Entry {
    let of = |spec, inside| package(spec, 1, vec![], Some(inside));
    entry(vec![of("one@1", "zip.001"), of("two@1", "zip.002")], vec![file("a", "folder/a")])
}

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

    /// Takes the specs that the client was asked for.
    fn asked(&self) -> Vec<String> {
        let path = self.root.path().join("asked");
        let asked = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        asked.lines().map(str::to_owned).collect()
    }

    /// Names in the entry's folder beside the lock.
    fn left(&self, entry: &Entry) -> Vec<String> {
        let items = fs::read_dir(self.cache().folder(entry).unwrap()).unwrap();
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
    let entry = letters();
    assert_eq!(machine.cache().state(entry), CacheState::Absent);
    machine.shelve("first@1", "package/a", b"abc");
    let message = machine.fetch(entry, false).unwrap_err().to_string();
    assert!(message.contains("npm pack second@1") && message.contains("no such package"), "{message}");
    assert_eq!(machine.asked(), ["first@1", "second@1"]);
    assert_eq!(machine.cache().state(entry), CacheState::Partial);

    machine.shelve("second@1", "package/b", b"abc");
    assert_eq!(machine.fetch(entry, false).unwrap(), FetchOutcome::Fetched);
    assert_eq!(machine.asked(), ["second@1"]);
    assert_eq!(machine.left(entry), ["a", "b"]);
    assert!(machine.cache().checked_folder(entry).is_ok());

    assert_eq!(machine.fetch(entry, false).unwrap(), FetchOutcome::AlreadyThere);
    assert!(machine.asked().is_empty());
    assert_eq!(machine.fetch(entry, true).unwrap(), FetchOutcome::Fetched);
    assert_eq!(machine.asked(), ["first@1", "second@1"]);
}

#[test]
fn damaged_files_are_fetched_again_and_files_brought_by_hand_are_taken() {
    let machine = FetchMachine::new();
    let entry = letters();
    machine.shelve("first@1", "package/a", b"abc");
    let folder = machine.cache().folder(entry).unwrap();
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a"), b"abX").unwrap();
    fs::write(folder.join("b"), b"abc").unwrap();
    assert_eq!(machine.fetch(entry, false).unwrap(), FetchOutcome::Fetched);
    assert_eq!(machine.asked(), ["first@1"]);
    assert!(machine.cache().checked_folder(entry).is_ok());
}

#[test]
fn wrong_bytes_never_get_a_name_in_the_cache() {
    let machine = FetchMachine::new();
    let entry = letters();
    machine.shelve("second@1", "package/b", b"abc");
    for (path, content, what) in [
        ("package/a", &b"abX"[..], "expected 3 bytes"),
        ("package/a", &b"abcabc"[..], "more than 3 bytes"),
        ("package/z", &b"abc"[..], "does not contain package/a"),
    ] {
        machine.shelve("first@1", path, content);
        let message = machine.fetch(entry, false).unwrap_err().to_string();
        assert!(message.contains(what) && message.contains("first@1"), "{message}");
        assert!(!machine.cache().folder(entry).unwrap().join("a").exists());
    }
    fs::write(machine.root.path().join("first@1.tgz"), b"<html>not found</html>").unwrap();
    let message = machine.fetch(entry, false).unwrap_err().to_string();
    assert!(message.contains("cannot unpack"), "{message}");
    // None of these downloads was kept.
    machine.shelve("first@1", "package/a", b"abc");
    assert_eq!(machine.fetch(entry, false).unwrap(), FetchOutcome::Fetched);
}

#[test]
fn an_interrupted_download_is_begun_again() {
    let machine = FetchMachine::new();
    let entry = letters();
    machine.shelve("first@1", "package/a", b"abc");
    machine.shelve("second@1", "package/b", b"abc");
    let workplace = machine.cache().folder(entry).unwrap().join(".partial/download");
    fs::create_dir_all(&workplace).unwrap();
    fs::write(workplace.join("first-1.tgz"), b"half").unwrap();
    fs::write(machine.cache().folder(entry).unwrap().join(".partial/a"), b"ab").unwrap();
    assert_eq!(machine.fetch(entry, false).unwrap(), FetchOutcome::Fetched);
    assert_eq!(machine.left(entry), ["a", "b"]);
}

#[test]
fn pieces_of_an_archive_are_joined() {
    let bytes = zip_of("folder/a", b"abc");
    let (first, second) = bytes.split_at(bytes.len() / 2);

    let machine = FetchMachine::new();
    let entry = pieces();
    machine.shelve("one@1", "zip.001", first);
    assert!(machine.fetch(entry, false).is_err());
    machine.shelve("two@1", "zip.002", first);
    let message = machine.fetch(entry, false).unwrap_err().to_string();
    assert!(message.contains("cannot unpack"), "{message}");
    assert_eq!(machine.asked(), ["one@1", "two@1", "two@1"], "the first piece was kept");
    machine.shelve("two@1", "zip.002", second);
    assert_eq!(machine.fetch(entry, false).unwrap(), FetchOutcome::Fetched);
    assert_eq!(machine.asked(), ["one@1", "two@1"], "any piece may have been the wrong one");
    assert_eq!(machine.left(entry), ["a"]);
}

/// Bytes of a bomb's content, far above every limit of these entries; a few kilobytes when compressed.
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

#[test]
fn a_tar_bomb_is_refused_with_its_limit_and_leaves_nothing() {
    let machine = FetchMachine::new();
    let entry = letters();
    let bomb = vec![0; BOMB_BYTES];
    // The wanted member itself, and another one.
    for (path, limit) in [("package/a", "more than 3 bytes"), ("package/z", "more than 67109070 bytes")] {
        machine.shelve("first@1", path, &bomb);
        let message = machine.fetch(entry, false).unwrap_err().to_string();
        assert!(message.contains("first-1.tgz") && message.contains(limit), "{message}");
        assert!(message.contains("\nhelp: "), "{message}");
        assert_eq!(bytes_below(&machine.cache().folder(entry).unwrap()), 0, "{path}");
    }
}

#[test]
fn a_zip_bomb_is_refused_with_its_limit_and_leaves_nothing() {
    let machine = FetchMachine::new();
    let entry = pieces();
    let bytes = zip_of("folder/a", &vec![0; BOMB_BYTES]);
    let (first, second) = bytes.split_at(bytes.len() / 2);
    machine.shelve("one@1", "zip.001", first);
    machine.shelve("two@1", "zip.002", second);
    let message = machine.fetch(entry, false).unwrap_err().to_string();
    assert!(message.contains("joined.zip") && message.contains("more than 3 bytes"), "{message}");
    assert_eq!(bytes_below(&machine.cache().folder(entry).unwrap()), 0);

    // A piece that is a bomb itself.
    machine.shelve("one@1", "zip.001", &vec![0; BOMB_BYTES]);
    let message = machine.fetch(entry, false).unwrap_err().to_string();
    assert!(message.contains("one-1.tgz") && message.contains("more than 1048578 bytes"), "{message}");
}

#[test]
fn a_gzip_bomb_is_refused_before_it_is_unpacked() {
    let compressed = entry(vec![package("first@1", 100, vec![file("a.gz", "package/a.gz")], None)], vec![]);
    let machine = FetchMachine::new();
    machine.shelve("first@1", "package/a.gz", &gzip(&vec![0; BOMB_BYTES]));
    let message = machine.fetch(compressed, false).unwrap_err().to_string();
    assert!(message.contains("more than 4099 bytes"), "{message}");
    machine.shelve("first@1", "package/a.gz", &gzip(&[0; 1 << 16]));
    let message = machine.fetch(compressed, false).unwrap_err().to_string();
    assert!(message.contains("more than 3 bytes"), "{message}");
    assert_eq!(bytes_below(&machine.cache().folder(compressed).unwrap()), 0);
    machine.shelve("first@1", "package/a.gz", &gzip(b"abc"));
    assert_eq!(machine.fetch(compressed, false).unwrap(), FetchOutcome::Fetched);
}

#[test]
fn a_missing_client_is_named_with_its_remedy_and_the_files_to_bring() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().join("cache"));
    let tools = Tools::in_folders(folder.path());
    for entry in catalogue::entries() {
        let message = fetch(&cache, &tools, entry, false, &mut |_| {}).unwrap_err().to_string();
        let client = entry.packages[0].client.name();
        assert!(message.contains(&format!("needs {client}, which is not installed")), "{message}");
        assert!(message.contains(&cache.folder(entry).unwrap().display().to_string()), "{message}");
        assert!(entry.files().all(|file| message.contains(&file.name) && message.contains(&file.sha256)));
    }
}

#[test]
fn locked_entry_is_not_fetched() {
    let machine = FetchMachine::new();
    let entry = letters();
    fs::create_dir_all(machine.cache().folder(entry).unwrap()).unwrap();
    let held = lock(&machine.cache().folder(entry).unwrap(), entry).unwrap();
    let message = machine.fetch(entry, false).unwrap_err().to_string();
    assert!(message.contains("another fabswarm is fetching letters"), "{message}");
    drop(held);
    machine.shelve("first@1", "package/a", b"abc");
    machine.shelve("second@1", "package/b", b"abc");
    assert!(machine.fetch(entry, false).is_ok());
}

#[test]
#[ignore = "downloads 708 MB into the cache"]
fn the_whole_catalogue_can_be_fetched_and_read() {
    let cache = Cache::from_environment();
    for entry in catalogue::entries() {
        fetch(&cache, &Tools::from_environment(), entry, false, &mut |_| {}).unwrap();
        let folder = cache.checked_folder(entry).unwrap();
        let count = if entry.kind.is_data() {
            let data = crate::load(&cache, &entry.name).unwrap();
            [data.classes, data.train.inputs.count(), data.test.inputs.count()]
        } else {
            let weights = crate::weights::load(&folder).unwrap();
            let tensors: Vec<_> = weights.tensors.values().map(|tensor| &tensor.words).collect();
            assert!(tensors.iter().copied().flatten().all(|word| word.is_finite()));
            [tensors.len(), tensors.iter().map(|words| words.len()).sum(), 0]
        };
        let expected = match &*entry.name {
            "mnist" | "fashion-mnist" => [10, 60_000, 10_000],
            "imdb" => [2, 25_000, 25_000],
            "minilm" => [103, 22_713_216, 0],
            _ => [199, 109_486_464, 0],
        };
        assert_eq!(count, expected, "{}", entry.name);
    }
}
