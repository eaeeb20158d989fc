//! The commands for real boards with nothing plugged in, and flashing of a folder that looks like a drive.

use crate::support::{Folder, assert_contains};
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::thread;

#[test]
fn every_command_behaves_with_nothing_plugged_in() {
    let folder = Folder::new();
    assert_contains(&folder.succeeds("boards list /nowhere/usb-*").stdout, "no serial ports");
    for command in ["reset", "identify", "monitor"] {
        folder.refuses(&format!("boards {command} /nowhere/usb-*"), "there are no serial ports");
    }
    let provision = "boards provision --swarm swarm.toml /nowhere/usb-*";
    folder.refuses(provision, "cannot use the swarm file");
    let new = "swarm new swarm.toml --ports /nowhere/usb-*";
    assert_contains(&folder.succeeds(new).stdout, "10 agents, 0 of them on known chips");
    folder.refuses(new, "the swarm file swarm.toml exists");
    folder.refuses("swarm new nowhere/swarm.toml", "cannot write the swarm file nowhere/swarm.toml");
    folder.refuses("boards monitor /dev/ttyACM77", "there is no serial port `/dev/ttyACM77`");
    folder.refuses("boards plan --boards-dir /nowhere", "--boards-dir = /nowhere: no board is there");
    folder.refuses(provision, "there are no serial ports");
    folder.refuses("swarm new x.toml --chips zz", "`zz` is not the number of a chip");
    folder.refuses("boards build nothing", "there is no board `nothing`");

    let flash = |flags: &str, expected: &str| {
        folder.refuses(&format!("boards flash --swarm swarm.toml {flags}"), expected);
    };
    flash("", "which agent?");
    flash("--agent 0 --drive .", "is not the drive of a boot loader");
    flash("--agent 0 --board nothing", "there is no board `nothing`");
    flash("--agent 0 --board nrf52840-dk --out files", "nrf52840-dk takes no UF2 files");
    flash("--agent 99", "and no agent 99");
    flash("--agent 0 --board esp32-c3 --probe", "esp32-c3 is flashed by its serial port");
    flash("--agent 0 --board nrf52840-dk --port x", "is not flashed by a serial port");
    let monitor = "boards monitor /nowhere/usb-* --board nrf52840-dk";
    if cfg!(feature = "flash") {
        flash("--agent 0 --board esp32-c3", "the swarm file has no chip for agent 0");
        flash("--all --board esp32-c3 --port /nowhere/usb-*", "no ESP32 is plugged in");
        let listed = folder.succeeds("boards list /nowhere/usb-* --board esp32-c3");
        assert_contains(&listed.stdout, "no serial ports");
        flash("--agent 0 --board nrf52840-dk", "no debug probe is plugged in");
        folder.refuses(monitor, "no debug probe is plugged in");
    } else {
        let out_of_reach = "this build of fabswarm reaches no debug probes and no boot ROMs";
        folder.refuses(monitor, out_of_reach);
        for board in ["esp32-c3", "nrf52840-dk"] {
            flash(&format!("--agent 0 --board {board}"), out_of_reach);
            folder.refuses(&format!("boards list /nowhere/usb-* --board {board}"), out_of_reach);
        }
    }
}

/// The plan tells before anything is built what a scenario takes of boards: words, frames, memory, page and writes to flash.
#[test]
fn boards_are_planned_before_they_are_built() {
    let folder = Folder::new();
    let plan = |flags: &str| folder.succeeds(&format!("boards plan {flags}")).stdout;
    let default = plan("");
    let line = |text: &str, name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("{name} is not in\n{text}")).trim().to_owned()
    };
    assert_eq!(line(&default, "scalars"), "45 per decision, 45 of them travel; firmware needs room for 45");
    assert_eq!(line(&default, "frames, full"), "388 bytes, 4 packets");
    assert_eq!(line(&default, "frames, byte"), "125 bytes, 2 packets");
    assert!(line(&default, "time of arrival").ends_with("16 µs per hop, assumed and measured by nobody"));
    assert!(line(&default, "nrf52840-dk ").ends_with(" s), an erase stops it for 85 ms"), "{default}");
    let saving = plan("--crashes 1@10+5");
    let refused = "does not fit: in every round it would erase for 85 ms in a tail of 2.00 ms, and its flash would last ";
    assert!(line(&saving, "nrf52840-dk ").starts_with(refused), "{saving}");
    assert!(line(&saving, "mps2-an386 ").starts_with("fits by cable: "), "{saving}");
    let radios = [("802.15.4", ["nrf52840-dk ", "esp32-c3 "]), ("lora", ["pico-lora ", "nrf52840-dk "])];
    for (radio, [same, other]) in radios {
        let text = plan(&format!("--radio {radio}"));
        assert!(line(&text, same).starts_with("fits: "), "{text}");
        assert!(line(&text, other).starts_with("does not fit: its radio is "), "{text}");
        assert!(line(&text, "pico ").starts_with("fits by cable: "), "{text}");
    }
    // Sizes come from the scenario: some problems take more words than firmware has room for by default.
    let room = |problem: &str| -> usize {
        let words = line(&plan(&format!("--problem {problem}")), "scalars");
        words.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let rooms = ["policy-evaluation", "hyper-tuning", "hyper-cleaning", "sensor-trust"].map(room);
    assert!(rooms.iter().filter(|words| **words > 45).count() >= 2, "{rooms:?}");
    let large = plan("--agents 100 --policy-evaluation-states 200");
    assert!(line(&large, "pico ").starts_with("does not fit: "), "{large}");
}

#[test]
fn the_doctor_has_a_line_for_everything() {
    let folder = Folder::new();
    let report = folder.succeeds("doctor").stdout;
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
    let rules = folder.succeeds("doctor --udev-rules").stdout;
    assert!(rules.contains("SUBSYSTEM==\"tty\"") && rules.contains("ID_MM_DEVICE_IGNORE"), "{rules}");
    // Espressif, Segger and ST.
    assert!(["303a", "1366", "0483"].iter().all(|maker| rules.contains(maker)), "{rules}");
}

mod long {
    use super::*;

    /// Makes a folder that looks like the drive of a board with this chip.
    fn drive(folder: &Folder, chip: &str) {
        fs::create_dir(folder.join(chip)).unwrap();
        folder.write(&format!("{chip}/INFO_UF2.TXT"), format!("UF2 Bootloader v3.0\nBoard-ID: {chip}\n"));
    }

    #[test]
    #[ignore = "long: builds the firmware of the Pico"]
    fn an_agent_is_flashed_to_a_drive() {
        let folder = Folder::new();
        drive(&folder, "RPI-RP2");
        drive(&folder, "RP2350");
        folder.succeeds("swarm new swarm.toml --chips e661a1,e661a2");
        let to_other = "boards flash --swarm swarm.toml --agent 1 --drive RP2350";
        folder.refuses(to_other, "another board: its INFO_UF2.TXT says `RP2350`, and that of pico `RPI-RP2`");
        let flashed = folder.succeeds("boards flash --swarm swarm.toml --agent 1 --drive RPI-RP2").stdout;
        assert!(flashed.starts_with("agent 1: ") && flashed.contains("read back and equal"), "{flashed}");
        let file = fs::read(folder.join("RPI-RP2/agent-1.uf2")).unwrap();
        assert_eq!(file.len() % 512, 0);
        assert_eq!(file[..4], 0x0A32_4655_u32.to_le_bytes());
        folder.succeeds("boards flash --swarm swarm.toml --all --out files");
        assert_eq!(folder.names("files").len(), 10);
        // Each file has boots of its own: the second of agent 1, the first of agent 2. A board that was erased repeats none.
        let noted = folder.read("swarm.toml");
        let boots = noted.split_once("[boots]\n").unwrap().1;
        assert_eq!(boots.lines().count(), 10, "{noted}");
        let second = fs::read(folder.join("files/agent-1.uf2")).unwrap();
        assert!(second != file, "no two files have the same boots");
    }

    #[test]
    #[ignore = "long: builds the firmware of the Pico 2"]
    fn an_agent_is_flashed_to_the_drive_of_a_pico_2() {
        let folder = Folder::new();
        drive(&folder, "RP2350");
        folder.succeeds("swarm new swarm.toml");
        folder.succeeds("boards flash --swarm swarm.toml --agent 1 --drive RP2350 --board pico2");
        let block = fs::read(folder.join("RP2350/agent-1.uf2")).unwrap();
        assert_eq!(block[28..32], 0xE48B_FF59_u32.to_le_bytes(), "the family of the RP2350");
    }

    /// Drives that are full, that are lost in the middle or at the end, that give other bytes back, and that are damaged.
    #[test]
    #[ignore = "long: builds the firmware of the Pico"]
    fn drives_that_fail_are_told() {
        let folder = Folder::new();
        drive(&folder, "RPI-RP2");
        let file = folder.join("RPI-RP2/agent-1.uf2");
        folder.succeeds("swarm new swarm.toml --chips e661a1,e661a2");
        let flash = "boards flash --swarm swarm.toml --agent 1 --drive RPI-RP2";
        // A link on the drive is not followed.
        symlink("/dev/null", &file).unwrap();
        assert_contains(&folder.ends(flash, 4, "RPI-RP2 was lost while it was written: ").stderr, "\nhelp: ");
        fs::remove_file(&file).unwrap();

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
        folder.ends(flash, 4, "RPI-RP2 was lost while it was written: ");
        assert_eq!(unplugged.join().unwrap(), 1000);
        // One that restarts with all of it.
        let restarted = board(u64::MAX);
        let flashed = folder.succeeds(flash).stdout;
        assert_contains(&flashed, "RPI-RP2 (written, and gone as that of a board that restarts: ");
        assert!(restarted.join().unwrap() > 100_000);

        folder.write("RPI-RP2/INFO_UF2.TXT", [0xFF, 0, 0xFF]);
        folder.refuses(flash, "does not say what board it is: its INFO_UF2.TXT has no line `Board-ID`");
    }
}
