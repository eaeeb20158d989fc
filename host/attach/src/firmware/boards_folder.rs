//! The folder of the boards' sources: firmware is built from it, and `board.toml` read.

use crate::notice::notify;
use fabswarm_diagnostic::Diagnostic;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{env, fs};

/// The environment variable that names the folder.
const VARIABLE: &str = "FABSWARM_BOARDS";

/// The source tree that this crate was built in, which may be gone.
const BUILT_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

static FOLDER: OnceLock<Result<PathBuf, Diagnostic>> = OnceLock::new();

/// Takes boards from `folder`, or its folder `boards`, instead of looking for one. Call it before anything else.
///
/// # Errors
/// If no board is there.
pub fn use_boards_folder(folder: &Path) -> Result<(), Diagnostic> {
    FOLDER.get_or_init(|| named(folder, "--boards-dir")).as_ref().map(drop).map_err(Clone::clone)
}

/// The folder of the boards: the one that the user names, that of the source tree around the working directory, or that of the tree
/// in which this crate was built.
///
/// # Errors
/// If there is none.
pub fn boards_folder() -> Result<&'static Path, Diagnostic> {
    let found = FOLDER.get_or_init(|| match env::var_os(VARIABLE).filter(|folder| !folder.is_empty()) {
        Some(folder) => named(Path::new(&folder), VARIABLE),
        None => find(&env::current_dir().unwrap_or_default(), Path::new(BUILT_IN)),
    });
    found.as_deref().map_err(Clone::clone)
}

/// Shows, once, which folder firmware is built from: it need not be the one that the user edits.
pub(crate) fn announce(folder: &Path) {
    static IS_SHOWN: OnceLock<()> = OnceLock::new();
    IS_SHOWN.get_or_init(|| notify(&format!("boards are built from {}", folder.display())));
}

fn named(folder: &Path, by: &str) -> Result<PathBuf, Diagnostic> {
    let candidates = [folder.to_owned(), folder.join("boards")];
    let found =
        candidates.iter().find(|folder| has_boards(folder)).and_then(|found| found.canonicalize().ok());
    found.ok_or_else(|| {
        let remedy =
            "name a folder whose folders have a board.toml each, such as boards/ in fabswarm's source tree";
        Diagnostic::new(format!("{by} = {}: no board is there", folder.display()), remedy)
    })
}

fn find(start: &Path, built_in: &Path) -> Result<PathBuf, Diagnostic> {
    let is_tree = |tree: &&Path| {
        ["boards", "firmware", "shared"].iter().all(|part| tree.join(part).join("Cargo.toml").is_file())
    };
    let tree = start.ancestors().chain([built_in]).find(is_tree);
    tree.and_then(|tree| tree.join("boards").canonicalize().ok()).ok_or_else(|| {
        Diagnostic::new(
            format!(
                "the sources of the boards are neither around {} nor where this program was built",
                start.display()
            ),
            format!(
                "run it in fabswarm's source tree, or name its folder boards/ with --boards-dir or {VARIABLE}; boards that are flashed already need none"
            ),
        )
    })
}

fn has_boards(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.path().join("board.toml").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_tree_counts_and_the_one_of_the_build_is_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let [tree, inside, other] =
            ["tree", "tree/runs/3", "other"].map(|name| folder.path().canonicalize().unwrap().join(name));
        for made in ["tree/boards/mine", "tree/firmware", "tree/shared", "tree/runs/3", "other"] {
            fs::create_dir_all(folder.path().join(made)).unwrap();
        }
        for part in ["boards", "firmware", "shared"] {
            fs::write(tree.join(part).join("Cargo.toml"), "").unwrap();
        }
        assert_eq!(find(&inside, &other).unwrap(), tree.join("boards"));
        assert_eq!(find(&other, &tree).unwrap(), tree.join("boards"));
        let message = find(&other, &other).unwrap_err().to_string();
        assert!(message.contains("other") && message.contains("FABSWARM_BOARDS"), "{message}");
        // A folder that is named need not be in a tree.
        assert!(named(&tree, "--boards-dir").unwrap_err().to_string().contains("no board is there"));
        fs::write(tree.join("boards/mine/board.toml"), "").unwrap();
        for name in [&tree, &tree.join("boards")] {
            assert_eq!(named(name, "--boards-dir").unwrap(), tree.join("boards"));
        }
    }
}
