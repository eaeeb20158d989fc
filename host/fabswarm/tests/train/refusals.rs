//! `fabswarm train` seen from outside: what it refuses, and how.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn train(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    command.current_dir(folder).stdin(Stdio::null()).env("FABSWARM_CACHE", folder.join("cache"));
    command.args(["train", "--device", "cpu"]).args(arguments).output().unwrap()
}

#[track_caller]
fn assert_refused(folder: &Path, arguments: &[&str], parts: &[&str]) {
    let before = everything_in(folder);
    let output = train(folder, arguments);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    for part in parts.iter().chain(&["help: "]) {
        assert!(message.contains(part), "{message}\ndoes not contain\n{part}");
    }
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
    let tokenizer = include_str!("../../../large/src/data/tokenizer/small_tokenizer.json");
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
    let folder = tempfile::tempdir().unwrap();
    assert_refused(folder.path(), &[], &["is missing", "fabswarm data fetch fashion-mnist"]);
    assert_refused(folder.path(), &["--data", "mnits"], &["unknown data set `mnits`", "fashion-mnist"]);

    let idx = folder.path().join("idx");
    fs::create_dir(&idx).unwrap();
    for part in ["train", "t10k"] {
        fs::write(idx.join(format!("{part}-images-idx3-ubyte")), [0, 0, 8, 3, 0, 0]).unwrap();
        fs::write(idx.join(format!("{part}-labels-idx1-ubyte")), [0, 0, 8, 1, 0, 0, 0, 0]).unwrap();
    }
    assert_refused(folder.path(), &["--data", "idx"], &["train-images-idx3-ubyte"]);

    let cached = folder.path().join("cache/fashion-mnist");
    fs::create_dir_all(&cached).unwrap();
    for name in ["train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"] {
        fs::write(cached.join(format!("{name}-ubyte.gz")), "no gzip").unwrap();
    }
    assert_refused(folder.path(), &[], &["is damaged", "fabswarm data fetch fashion-mnist --force"]);
}

#[test]
fn an_encoder_that_does_not_fit_its_files_is_refused_with_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    texts(&folder.path().join("texts.safetensors"));
    let text = ["--data", "texts.safetensors", "--sequence", "8", "--agents", "2", "--model"];
    let with = |model: &'static str| [&text[..], &[model]].concat();
    assert_refused(folder.path(), &with("mlp"), &["training.model = \"mlp\"", "for texts take minilm"]);

    encoder(&folder.path().join("small"), 7);
    assert_refused(folder.path(), &with("small"), &["model.safetensors"]);
    let one = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![2, 2], &[0; 16]).unwrap();
    let tensors = [("embeddings.word_embeddings.weight", one)];
    let weights = safetensors::serialize(tensors, None).unwrap();
    fs::write(folder.path().join("small/model.safetensors"), weights).unwrap();
    let parts = [
        "the weights do not fit the model",
        "missing",
        "embeddings.word_embeddings.weight: [2, 2] in the file, [7, 4] in the model",
        "…",
    ];
    assert_refused(folder.path(), &with("small"), &parts);

    encoder(&folder.path().join("narrow"), 3);
    assert_refused(folder.path(), &with("narrow"), &["it has 3 words", "it was made for another model"]);
}

#[test]
fn what_does_not_go_together_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let sample = ["--data", "sample"];
    let with = |flags: &[&'static str]| [&sample[..], flags].concat();
    assert_refused(folder.path(), &with(&["--model", "resnet"]), &["softmax, mlp, lenet or resnet18"]);
    assert_refused(folder.path(), &with(&["--batch", "0"]), &["training.batch = 0 is out of range"]);
    assert_refused(folder.path(), &with(&["--dirichlet-alpha", "0"]), &["training.dirichlet_alpha = 0"]);
    assert_refused(folder.path(), &with(&["--agents", "61"]), &["600 samples for 61 agents"]);
    assert_refused(folder.path(), &with(&["--delay-rounds", "2"]), &["plain FAB", "neither late ones"]);
    let apart = ["--topology", "erdos-renyi", "--edge-probability", "0"];
    assert_refused(folder.path(), &with(&apart), &["network.edge_probability"]);
    fs::write(folder.path().join("taken"), "mine").unwrap();
    assert_refused(folder.path(), &with(&["--out", "taken"]), &["cannot use taken as the output folder"]);
}

#[test]
#[cfg(target_os = "linux")]
fn what_does_not_fit_the_memory_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let line = "ulimit -v 3000000; exec \"$FABSWARM\" train --device cpu --data sample --agents 20 --dirichlet-alpha 50 --model-width 8000";
    let refused = Command::new("sh")
        .args(["-c", line])
        .env("FABSWARM", env!("CARGO_BIN_EXE_fabswarm"))
        .current_dir(folder.path())
        .output()
        .unwrap();
    let message = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert!(message.contains("GB for 20 agents") && message.contains("` would fit"), "{message}");
    assert!(everything_in(folder.path()).is_empty(), "something was written");
}

#[test]
fn what_cannot_be_resumed_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], part: &str| assert_refused(folder.path(), arguments, &[part]);
    refused(&["--resume", "nope"], "cannot resume from nope: there is no such folder");
    fs::create_dir(folder.path().join("bare")).unwrap();
    refused(&["--resume", "bare"], "cannot resume from bare: it is not a run folder");
    fs::write(folder.path().join("bare/scenario.toml"), "version = 1\n").unwrap();
    refused(
        &["--resume", "bare"],
        "no checkpoint was kept there\nhelp: start again with `fabswarm train bare/",
    );

    let small = ["--data", "sample", "--model", "softmax", "--epochs", "2", "--agents", "2", "--out", "run"];
    assert!(train(folder.path(), &small).status.success());
    refused(&["--resume", "run", "--seed", "2"], "it belongs to a run of another scenario, with seed = 1");
    refused(&["--resume", "run", "--epochs", "1"], "the run has done 2 epochs already");
    let metrics = fs::read_to_string(folder.path().join("run/metrics.csv")).unwrap();
    fs::write(folder.path().join("run/metrics.csv"), metrics.replace("test_loss", "loss")).unwrap();
    refused(&["--resume", "run"], "its columns are those of another version");
    fs::write(folder.path().join("run/metrics.csv"), metrics).unwrap();
    let checkpoint = folder.path().join("run/checkpoint.safetensors");
    let bytes = fs::read(&checkpoint).unwrap();
    fs::write(&checkpoint, &bytes[..bytes.len() / 2]).unwrap();
    refused(&["--resume", "run"], "run/checkpoint.safetensors: it is damaged");
}

#[test]
fn without_a_driver_cuda_is_refused_and_auto_takes_the_cpu() {
    let has_driver = Path::new("/proc/driver/nvidia").exists();
    if has_driver {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let on = |device: &str| {
        let small = ["--data", "sample", "--model", "softmax", "--epochs", "1", "--agents", "2"];
        Command::new(env!("CARGO_BIN_EXE_fabswarm"))
            .current_dir(folder.path())
            .args(["train", "--device", device])
            .args(small)
            .output()
            .unwrap()
    };
    let refused = on("cuda");
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && message.contains("no CUDA device"), "{message}");
    assert!(message.contains("--device cpu"), "{message}");
    assert!(everything_in(folder.path()).is_empty(), "something was written");
    assert!(on("auto").status.success());
}
