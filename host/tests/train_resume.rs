//! A training run that is killed goes on as if nothing had happened.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Two hundred short epochs with a checkpoint after each.
fn train(folder: &Path, resumes: bool) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    command.args(["train", "--device", "cpu"]).stdout(Stdio::null()).stderr(Stdio::null());
    if resumes {
        command.arg("--resume").arg(folder);
    } else {
        command.arg("--out").arg(folder).args([
            "--data",
            "sample",
            "--agents",
            "3",
            "--batch",
            "8",
            "--model-width",
            "12",
        ]);
        command.args(["--epochs", "200", "--checkpoint-every", "1", "--evaluate-every", "50"]);
    }
    command
}

#[test]
fn killed_and_resumed_equals_uninterrupted() {
    let parent = tempfile::tempdir().unwrap();
    let (whole, killed) = (parent.path().join("whole"), parent.path().join("killed"));
    assert!(train(&whole, false).status().unwrap().success());

    let mut run = train(&killed, false).spawn().unwrap();
    let checkpoint = killed.join("checkpoint.safetensors");
    let patience = Instant::now() + Duration::from_secs(120);
    while !checkpoint.is_file() {
        assert!(Instant::now() < patience, "no checkpoint came");
        std::thread::sleep(Duration::from_millis(5));
    }
    // On Unix this is SIGKILL: the run writes nothing more.
    run.kill().unwrap();
    run.wait().unwrap();

    assert!(train(&killed, true).status().unwrap().success());
    let model = |folder: &Path| std::fs::read(folder.join("model.safetensors")).unwrap();
    assert!(model(&whole) == model(&killed), "the final weights differ");
}
