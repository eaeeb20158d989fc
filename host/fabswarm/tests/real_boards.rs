//! The commands for real boards with nothing plugged in, and flashing of a folder that looks like a drive.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn fabswarm(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fabswarm")).args(arguments).output().unwrap()
}

#[track_caller]
fn prints(arguments: &[&str]) -> String {
    let output = fabswarm(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refuses(arguments: &[&str], expected: &str) {
    let output = fabswarm(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains(expected) && stderr.contains("\nhelp: "), "{stderr}");
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn every_command_behaves_with_nothing_plugged_in() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("usb-*");
    let swarm = folder.path().join("swarm.toml");
    assert!(prints(&["boards", "list", text(&nowhere)]).contains("no serial ports"));
    for command in ["reset", "identify", "monitor"] {
        refuses(&["boards", command, text(&nowhere)], "there are no serial ports");
    }
    refuses(&["boards", "provision", "--swarm", text(&swarm), text(&nowhere)], "cannot use the swarm file");
    let drawn = prints(&["swarm", "new", text(&swarm), "--ports", text(&nowhere)]);
    assert!(drawn.contains("10 agents, 0 of them on known chips"), "{drawn}");
    refuses(&["swarm", "new", text(&swarm), "--ports", text(&nowhere)], "swarm.toml: File exists");
    refuses(&["boards", "provision", "--swarm", text(&swarm), text(&nowhere)], "there are no serial ports");
    refuses(&["boards", "flash", "--swarm", text(&swarm)], "which agent?");
    let no_drive =
        ["boards", "flash", "--swarm", text(&swarm), "--agent", "0", "--drive", text(folder.path())];
    refuses(&no_drive, "is not the drive of a boot loader");
    let flash = ["boards", "flash", "--swarm", text(&swarm), "--agent", "0", "--board"];
    refuses(&[&flash[..], &["nothing"]].concat(), "there is no board `nothing`");
    refuses(&["boards", "build", "nothing"], "there is no board `nothing`");
    let as_file = [&flash[..], &["nrf52840-dk", "--out", "files"]].concat();
    refuses(&as_file, "nrf52840-dk takes no UF2 files");
    refuses(&["boards", "flash", "--swarm", text(&swarm), "--agent", "99"], "and no agent 99");
    refuses(&[&flash[..], &["esp32-c3", "--probe"]].concat(), "esp32-c3 is flashed by its serial port");
    refuses(&[&flash[..], &["nrf52840-dk", "--port", "x"]].concat(), "is not flashed by a serial port");
    let list = ["boards", "list", text(&nowhere), "--board"];
    if cfg!(feature = "esp") {
        refuses(&[&flash[..], &["esp32-c3"]].concat(), "the swarm file has no chip for agent 0");
        let all = ["boards", "flash", "--swarm", text(&swarm), "--all", "--board", "esp32-c3"];
        refuses(&[&all[..], &["--port", text(&nowhere)]].concat(), "no ESP32 is plugged in");
        assert!(prints(&[&list[..], &["esp32-c3"]].concat()).contains("no serial ports"));
    } else {
        refuses(&[&flash[..], &["esp32-c3"]].concat(), "this build of fabswarm cannot talk to it");
        refuses(&[&list[..], &["esp32-c3"]].concat(), "cannot talk to boot ROMs");
    }
    if cfg!(feature = "probe") {
        refuses(&[&flash[..], &["nrf52840-dk"]].concat(), "no debug probe is plugged in");
    } else {
        refuses(&[&flash[..], &["nrf52840-dk"]].concat(), "this build of fabswarm reaches none");
    }
    if !cfg!(feature = "probe") {
        refuses(&[&list[..], &["nrf52840-dk"]].concat(), "reaches no debug probes");
    }
    refuses(&["swarm", "new", "x.toml", "--chips", "zz"], "`zz` is not the number of a chip");
}

#[test]
fn an_agent_is_flashed_to_a_drive() {
    let folder = tempfile::tempdir().unwrap();
    let [swarm, drive] = ["swarm.toml", "RPI-RP2"].map(|name| folder.path().join(name));
    fs::create_dir(&drive).unwrap();
    fs::write(drive.join("INFO_UF2.TXT"), "UF2 Bootloader v3.0\nBoard-ID: RPI-RP2\n").unwrap();
    prints(&["swarm", "new", text(&swarm), "--chips", "e661a1,e661a2"]);
    let other = folder.path().join("RP2350");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("INFO_UF2.TXT"), "UF2 Bootloader v1.0\nBoard-ID: RP2350\n").unwrap();
    let to_other = ["boards", "flash", "--swarm", text(&swarm), "--agent", "1", "--drive", text(&other)];
    refuses(&to_other, "another board: its INFO_UF2.TXT says `RP2350`, and that of pico `RPI-RP2`");
    prints(&[&to_other[..], &["--board", "pico2"]].concat());
    let block = fs::read(other.join("agent-1.uf2")).unwrap();
    assert_eq!(block[28..32], 0xE48B_FF59_u32.to_le_bytes(), "the family of the RP2350");
    let flashed =
        prints(&["boards", "flash", "--swarm", text(&swarm), "--agent", "1", "--drive", text(&drive)]);
    assert!(flashed.starts_with("agent 1: ") && flashed.contains("read back and equal"), "{flashed}");
    let file = fs::read(drive.join("agent-1.uf2")).unwrap();
    assert_eq!(file.len() % 512, 0);
    assert_eq!(file[..4], 0x0A32_4655_u32.to_le_bytes());
    let out = folder.path().join("files");
    prints(&["boards", "flash", "--swarm", text(&swarm), "--all", "--out", text(&out)]);
    assert_eq!(fs::read_dir(&out).unwrap().count(), 10);
    assert_eq!(fs::read(out.join("agent-1.uf2")).unwrap(), file);
}

#[test]
fn the_doctor_has_a_line_for_everything() {
    let report = prints(&["doctor"]);
    for name in [
        "rust",
        "targets",
        "qemu",
        "node",
        "udev rules",
        "serial group",
        "ModemManager",
        "ports",
        "CUDA",
        "data",
    ] {
        assert!(report.lines().any(|line| line.contains(name)), "{name} is not in\n{report}");
    }
    // Every target that a board needs, installed or not.
    for board in fabswarm_attach::board_names() {
        let target = fabswarm_attach::BoardFile::read(&board).unwrap().target;
        assert!(report.contains(&target), "{target} is not in\n{report}");
    }
    assert!(report.lines().all(|line| line.is_empty() || !line.contains("error")), "{report}");
    let rules = prints(&["doctor", "--udev-rules"]);
    assert!(rules.contains("SUBSYSTEM==\"tty\"") && rules.contains("ID_MM_DEVICE_IGNORE"), "{rules}");
    // Espressif, Segger and ST.
    assert!(["303a", "1366", "0483"].iter().all(|maker| rules.contains(maker)), "{rules}");
}
