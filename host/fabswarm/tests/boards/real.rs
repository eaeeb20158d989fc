//! The commands for real boards with nothing plugged in, and flashing of a folder that looks like a drive.

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

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
    let monitor = ["boards", "monitor", text(&nowhere), "--board", "nrf52840-dk"];
    let by_rom = [&flash[..], &["esp32-c3"]].concat();
    let by_probe = [&flash[..], &["nrf52840-dk"]].concat();
    if cfg!(feature = "flash") {
        refuses(&by_rom, "the swarm file has no chip for agent 0");
        let all = ["boards", "flash", "--swarm", text(&swarm), "--all", "--board", "esp32-c3"];
        refuses(&[&all[..], &["--port", text(&nowhere)]].concat(), "no ESP32 is plugged in");
        assert!(prints(&[&list[..], &["esp32-c3"]].concat()).contains("no serial ports"));
        refuses(&by_probe, "no debug probe is plugged in");
        refuses(&monitor, "no debug probe is plugged in");
    } else {
        let lists = ["esp32-c3", "nrf52840-dk"].map(|board| [&list[..], &[board]].concat());
        for arguments in [&by_rom[..], &by_probe[..], &monitor[..], &lists[0][..], &lists[1][..]] {
            refuses(arguments, "this build of fabswarm reaches no debug probes and no boot ROMs");
        }
    }
    refuses(&["swarm", "new", "x.toml", "--chips", "zz"], "`zz` is not the number of a chip");
}

#[test]
fn an_agent_is_flashed_to_a_drive() {
    let folder = tempfile::tempdir().unwrap();
    let (drive, swarm) = (pico_drive(folder.path()), folder.path().join("swarm.toml"));
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
    // Each file has boots of its own: the third of agent 1, the first of agent 2. A board that was erased repeats none.
    let noted = fs::read_to_string(&swarm).unwrap();
    let boots = noted.split_once("[boots]\n").unwrap().1;
    assert!(boots.contains("1 = 3145729\n") && boots.contains("2 = 1048577\n"), "{noted}");
    assert!(fs::read(out.join("agent-1.uf2")).unwrap() != file, "no two files have the same boots");
}

/// What a scenario takes of boards is told before anything is built: words, frames, memory, page and writes to flash.
#[test]
fn boards_are_planned_before_they_are_built() {
    let plan = |arguments: &[&str]| prints(&[&["boards", "plan"], arguments].concat());
    let default = plan(&[]);
    let line = |text: &str, name: &str| {
        let found = text.lines().find(|line| line.starts_with(name));
        found
            .unwrap_or_else(|| panic!("{name} is not in\n{text}"))
            .split_once("  ")
            .unwrap()
            .1
            .trim()
            .to_owned()
    };
    assert_eq!(line(&default, "words"), "45 per decision, 45 of them travel; firmware needs room for 45");
    assert_eq!(line(&default, "frames, full"), "385 bytes, 4 packets");
    assert_eq!(line(&default, "frames, byte"), "122 bytes, 1 packet");
    assert_eq!(line(&default, "flash writes"), "none per day; 8 bytes per start");
    let saving = plan(&["--crashes", "1@10+5"]);
    assert!(line(&saving, "flash writes").contains("states per day on 1 agents"), "{saving}");
    for board in fabswarm_attach::board_names() {
        assert!(line(&default, &format!("{board} ")).starts_with("fits: "), "{default}");
    }
    // Sizes come from the scenario: some problems take more words than firmware has room for by default.
    let room = |problem: &str| -> usize {
        let words = line(&plan(&["--problem", problem]), "words");
        words.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let rooms = ["policy-evaluation", "hyper-tuning", "hyper-cleaning", "sensor-trust"].map(room);
    assert!(rooms.iter().filter(|words| **words > 45).count() >= 2, "{rooms:?}");
    let large = plan(&["--agents", "100", "--policy-evaluation-states", "200"]);
    assert!(line(&large, "pico ").starts_with("does not fit: "), "{large}");
}

/// A folder that looks like the drive of a Pico.
fn pico_drive(folder: &Path) -> PathBuf {
    let drive = folder.join("RPI-RP2");
    fs::create_dir(&drive).unwrap();
    fs::write(drive.join("INFO_UF2.TXT"), "UF2 Bootloader v3.0\nBoard-ID: RPI-RP2\n").unwrap();
    drive
}

/// Drives that are full, that are lost in the middle or at the end, that give other bytes back, and that are damaged.
#[test]
fn drives_that_fail_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let (drive, swarm) = (pico_drive(folder.path()), folder.path().join("swarm.toml"));
    let file = drive.join("agent-1.uf2");
    prints(&["swarm", "new", text(&swarm), "--chips", "e661a1,e661a2"]);
    let flash = ["boards", "flash", "--swarm", text(&swarm), "--agent", "1", "--drive", text(&drive)];
    let fails = |expected: &str| {
        let output = fabswarm(&flash);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{stderr}");
        assert!(stderr.contains(expected) && stderr.contains("\nhelp: "), "{stderr}");
        fs::remove_file(&file).unwrap();
    };
    symlink("/dev/full", &file).unwrap();
    fails("RPI-RP2 has no room for ");
    symlink("/dev/null", &file).unwrap();
    fails("RPI-RP2 gives other bytes back than were written");
    symlink("/nowhere/at/all", &file).unwrap();
    fails("RPI-RP2 was lost while it was written: ");

    // A pipe, whose other end is the board: it holds less than the file.
    let board = |bytes: u64| {
        assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
        let file = file.clone();
        thread::spawn(move || {
            let pipe = fs::File::open(&file).unwrap();
            // From here on there is no such drive.
            fs::remove_file(&file).unwrap();
            std::io::copy(&mut pipe.take(bytes), &mut std::io::sink()).unwrap()
        })
    };
    let unplugged = board(1000);
    let output = fabswarm(&flash);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), unplugged.join().unwrap()), (Some(4), 1000), "{stderr}");
    assert!(stderr.contains("RPI-RP2 was lost while it was written: "), "{stderr}");
    // One that restarts with all of it.
    let restarted = board(u64::MAX);
    let flashed = prints(&flash);
    assert!(flashed.contains("RPI-RP2 (written, and gone as that of a board that restarts: "), "{flashed}");
    assert!(restarted.join().unwrap() > 100_000);

    fs::write(drive.join("INFO_UF2.TXT"), [0xFF, 0, 0xFF]).unwrap();
    refuses(&flash, "does not say what board it is: its INFO_UF2.TXT has no line `Board-ID`");
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
        "probes",
        "ports",
        "CUDA",
        "data",
    ] {
        assert!(report.lines().any(|line| line.contains(name)), "{name} is not in\n{report}");
    }
    // Every target that a board needs, installed or not.
    for board in fabswarm_attach::board_names() {
        let target = fabswarm_attach::BoardFile::read(&board).unwrap().target.clone();
        assert!(report.contains(&target), "{target} is not in\n{report}");
    }
    assert!(report.lines().all(|line| line.is_empty() || !line.contains("error")), "{report}");
    let rules = prints(&["doctor", "--udev-rules"]);
    assert!(rules.contains("SUBSYSTEM==\"tty\"") && rules.contains("ID_MM_DEVICE_IGNORE"), "{rules}");
    // Espressif, Segger and ST.
    assert!(["303a", "1366", "0483"].iter().all(|maker| rules.contains(maker)), "{rules}");
}
