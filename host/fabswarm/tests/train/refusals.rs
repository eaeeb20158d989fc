//! `fabswarm train` seen from outside: what it refuses, and how.

use crate::support::{Ended, Folder, assert_contains};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn train(folder: &Folder, flags: &str) -> Ended {
    let mut command = folder.fabswarm(&format!("train --device cpu {flags}"));
    command.env("FABSWARM_CACHE", folder.join("cache")).output().unwrap().into()
}

#[track_caller]
fn assert_refused(folder: &Folder, flags: &str, parts: &[&str]) {
    let before = everything_in(folder);
    let ended = train(folder, flags);
    ended.check(2, "help: ");
    parts.iter().for_each(|part| assert_contains(&ended.stderr, part));
    assert!(everything_in(folder) == before, "something was written");
}

/// Every folder and file below `folder`, with what is in it.
fn everything_in(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            all.append(&mut everything_in(&path));
            all.insert(path, Vec::new());
        } else {
            let bytes = fs::read(&path).unwrap();
            all.insert(path, bytes);
        }
    }
    all
}

/// A BERT of one layer of four words, as a folder with files as they are published.
fn encoder(folder: &Path, vocabulary: usize) {
    fs::create_dir_all(folder).unwrap();
    let config = format!(
        r#"{{"model_type": "bert", "vocab_size": {vocabulary}, "hidden_size": 4, "num_attention_heads": 2,
        "num_hidden_layers": 1, "intermediate_size": 6, "max_position_embeddings": 8, "type_vocab_size": 2,
        "layer_norm_eps": 1e-12, "hidden_act": "gelu"}}"#
    );
    fs::write(folder.join("config.json"), config).unwrap();
    let tokenizer = include_str!("../../../data/src/tokenizer/small_tokenizer.json");
    fs::write(folder.join("tokenizer.json"), tokenizer).unwrap();
}

/// Texts that are tokens already: two classes, eight tokens each.
fn texts(path: &Path) {
    use safetensors::tensor::{Dtype, TensorView};
    let (samples, length) = (40, 8);
    let ids: Vec<u8> = (0..samples * length).flat_map(|place| (place as u16 % 5).to_le_bytes()).collect();
    let used: Vec<u8> = (0..samples).flat_map(|_| 8_u16.to_le_bytes()).collect();
    let labels: Vec<u8> = (0..samples).map(|sample| sample as u8 % 2).collect();
    let tensors = ["train", "test"].into_iter().flat_map(|part| {
        [
            (format!("{part}.ids"), TensorView::new(Dtype::U16, vec![samples, length], &ids).unwrap()),
            (format!("{part}.used"), TensorView::new(Dtype::U16, vec![samples], &used).unwrap()),
            (format!("{part}.labels"), TensorView::new(Dtype::U8, vec![samples], &labels).unwrap()),
        ]
    });
    let about = [("classes".to_owned(), "2".to_owned())].into();
    fs::write(path, safetensors::serialize(tensors, Some(about)).unwrap()).unwrap();
}

#[test]
fn data_that_is_missing_or_damaged_is_refused_with_the_command_that_brings_it() {
    let folder = Folder::new();
    assert_refused(&folder, "", &["is missing", "fabswarm data fetch fashion-mnist"]);
    assert_refused(&folder, "--data mnits", &["unknown data set `mnits`", "fashion-mnist"]);

    fs::create_dir(folder.join("idx")).unwrap();
    for part in ["train", "t10k"] {
        folder.write(&format!("idx/{part}-images-idx3-ubyte"), [0, 0, 8, 3, 0, 0]);
        folder.write(&format!("idx/{part}-labels-idx1-ubyte"), [0, 0, 8, 1, 0, 0, 0, 0]);
    }
    assert_refused(&folder, "--data idx", &["train-images-idx3-ubyte"]);

    fs::create_dir_all(folder.join("cache/fashion-mnist")).unwrap();
    for name in ["train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"] {
        folder.write(&format!("cache/fashion-mnist/{name}-ubyte.gz"), "no gzip");
    }
    assert_refused(&folder, "", &["is damaged", "fabswarm data fetch fashion-mnist --force"]);
}

#[test]
fn without_a_cache_folder_the_sample_is_there() {
    let folder = Folder::new();
    let train = |data: &str| -> Ended {
        let flags = "--device cpu --model softmax --agents 2 --epochs 1";
        let mut command = folder.fabswarm(&format!("train {flags} --data {data}"));
        command.env_clear().output().unwrap().into()
    };
    train("mnist")
        .check(2, "no cache folder: neither XDG_CACHE_HOME nor HOME is set\nhelp: set FABSWARM_CACHE");
    train("sample").check(0, "");
}

#[test]
fn an_encoder_that_does_not_fit_its_files_is_refused_with_what_differs() {
    let folder = Folder::new();
    texts(&folder.join("texts.safetensors"));
    let refused = |model: &str, parts: &[&str]| {
        let text = "--data texts.safetensors --sequence 8 --agents 2";
        assert_refused(&folder, &format!("{text} --model {model}"), parts);
    };
    refused("mlp", &["training.model = \"mlp\"", "for texts take minilm"]);

    encoder(&folder.join("small"), 7);
    refused("small", &["model.safetensors"]);
    let one = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![2, 2], &[0; 16]).unwrap();
    let tensors = [("embeddings.word_embeddings.weight", one)];
    folder.write("small/model.safetensors", safetensors::serialize(tensors, None).unwrap());
    let parts = [
        "the weights do not fit the model",
        "missing",
        "embeddings.word_embeddings.weight: [2, 2] in the file, [7, 4] in the model",
        "…",
    ];
    refused("small", &parts);

    encoder(&folder.join("narrow"), 3);
    refused("narrow", &["it has 3 words", "it was made for another model"]);
}

#[test]
fn what_does_not_go_together_is_refused_before_anything_is_written() {
    let folder = Folder::new();
    folder.write("taken", "mine");
    for (flags, parts) in [
        ("--model resnet", &["softmax, mlp, lenet"][..]),
        ("--batch 0", &["training.batch = 0 is out of range"]),
        ("--dirichlet-alpha 0", &["training.dirichlet_alpha = 0"]),
        ("--agents 61", &["600 samples for 61 agents"]),
        ("--algorithm fab --delay-rounds 2", &["plain FAB", "neither late ones"]),
        ("--topology erdos-renyi --edge-probability 0", &["network.edge_probability"]),
        ("--out taken", &["cannot use taken as the output folder"]),
    ] {
        assert_refused(&folder, &format!("--data sample {flags}"), parts);
    }
}

#[test]
fn what_does_not_fit_the_memory_is_refused_before_anything_is_written() {
    let folder = Folder::new();
    let large = "--data sample --agents 20 --dirichlet-alpha 50 --model-width 8000";
    let refused = folder.shell(&format!("ulimit -v 3000000; exec \"$FABSWARM\" train --device cpu {large}"));
    refused.check(2, "GB for 20 agents");
    assert_contains(&refused.stderr, "` would fit");
    assert!(everything_in(&folder).is_empty(), "something was written");
}

#[test]
fn what_cannot_be_resumed_is_left_as_it_is() {
    let folder = Folder::new();
    let refused = |flags: &str, part: &str| assert_refused(&folder, &format!("--resume {flags}"), &[part]);
    refused("nope", "cannot resume from nope: there is no such folder");
    fs::create_dir(folder.join("bare")).unwrap();
    refused("bare", "cannot resume from bare: it is not a run folder");
    folder.write("bare/scenario.toml", "version = 1\n");
    refused("bare", "no checkpoint was kept there\nhelp: start again with `fabswarm train bare/");
    folder.succeeds("run --rounds 3 --error-below 0 --out trial");
    refused("trial", "help: repeat it from its start with `fabswarm run trial/scenario.toml`");

    train(&folder, "--data sample --model softmax --epochs 2 --agents 2 --out run").check(0, "");
    refused("run --seed 2", "it belongs to a run of another scenario, with seed = 1");
    refused("run --epochs 1", "the run has done 2 epochs already");
    let metrics = folder.read("run/metrics.csv");
    folder.write("run/metrics.csv", metrics.replace("test_loss", "loss"));
    refused("run", "its columns are not those of this version");
    folder.write("run/metrics.csv", metrics.split_inclusive('\n').take(2).collect::<String>());
    let lost = "cannot resume from run: metrics.csv and times.csv have rows of different rounds\nhelp: put ";
    refused("run", lost);
    fs::remove_file(folder.join("run/metrics.csv")).unwrap();
    refused("run", lost);
    folder.write("run/metrics.csv", metrics);
    let bytes = fs::read(folder.join("run/checkpoint.safetensors")).unwrap();
    folder.write("run/checkpoint.safetensors", &bytes[..bytes.len() / 2]);
    refused("run", "run/checkpoint.safetensors: it is damaged");
}

#[test]
fn without_a_driver_cuda_is_refused_and_auto_takes_the_cpu() {
    if Path::new("/proc/driver/nvidia").exists() {
        return;
    }
    let folder = Folder::new();
    let small = "--data sample --model softmax --epochs 1 --agents 2";
    let refused = folder.ends(&format!("train --device cuda {small}"), 2, "no CUDA device");
    assert_contains(&refused.stderr, "--device cpu");
    assert!(everything_in(&folder).is_empty(), "something was written");
    folder.succeeds(&format!("train --device auto {small}"));
}
