//! `fabswarm doctor`: what is installed, and what to type where something is missing.

use super::flags;
use anyhow::Result;
use clap::{ArgMatches, Command};
use console::style;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, ExitCode, Stdio};

const UDEV_RULES: &str = "/etc/udev/rules.d/70-fabswarm.rules";

/// Serial ports of boards and debug probes for everybody who is logged in, and nothing for ModemManager.
const RULES: &str = r#"# Boards that run fabswarm, boot loaders of the RP2040, Espressif's chips, and debug probes.
SUBSYSTEM=="tty", ATTRS{idVendor}=="1209", ATTRS{idProduct}=="0001", TAG+="uaccess", ENV{ID_MM_DEVICE_IGNORE}="1"
SUBSYSTEM=="usb", ATTRS{idVendor}=="2e8a", TAG+="uaccess", ENV{ID_MM_DEVICE_IGNORE}="1"
SUBSYSTEM=="tty", ATTRS{idVendor}=="2e8a", TAG+="uaccess", ENV{ID_MM_DEVICE_IGNORE}="1"
SUBSYSTEM=="tty", ATTRS{idVendor}=="303a", TAG+="uaccess", ENV{ID_MM_DEVICE_IGNORE}="1"
SUBSYSTEM=="usb", ATTRS{idVendor}=="1366", TAG+="uaccess"
SUBSYSTEM=="usb", ATTRS{idVendor}=="0483", TAG+="uaccess"
SUBSYSTEM=="usb", ATTRS{product}=="*CMSIS-DAP*", TAG+="uaccess"
"#;

pub(super) fn command() -> Command {
    let rules = "Print rules for udev that give access to boards and probes, and do nothing else";
    Command::new("doctor")
        .about("Check toolchain, emulators, access to ports, CUDA and data: a green line each, or a remedy")
        .arg(flags::switch("udev-rules", rules))
}

/// The thing found, or the fault and what to type.
type Diagnosis = Result<String, (String, String)>;

fn missing(what: impl Into<String>, remedy: impl Into<String>) -> Diagnosis {
    Err((what.into(), remedy.into()))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    if matches.get_flag("udev-rules") {
        out!("{RULES}");
        return Ok(ExitCode::SUCCESS);
    }
    let findings = [
        ("rust", toolchain()),
        ("targets", targets()),
        ("qemu", program("qemu-system-arm", "emulated boards", "cargo xtask install qemu")),
        ("setpriv", program("setpriv", "boards as processes", "sudo apt-get install util-linux")),
        ("node", node()),
        ("udev rules", udev_rules()),
        ("serial group", groups()),
        ("ModemManager", modem_manager()),
        ("probes", probes()),
        ("ports", ports()),
        ("CUDA", cuda()),
        ("data", data()),
    ];
    for (name, diagnosis) in &findings {
        match diagnosis {
            Ok(what) => outln!("{} {name:<13} {what}", style("✓").green()),
            Err((what, remedy)) => {
                outln!("{} {name:<13} {what}\n  {:<13} type: {remedy}", style("–").yellow(), "")
            }
        }
    }
    let missing = findings.iter().filter(|(_, diagnosis)| diagnosis.is_err()).count();
    if missing > 0 {
        outln!("\n{missing} of {} are not there; a swarm in this process needs none of them", findings.len());
    }
    Ok(ExitCode::SUCCESS)
}

/// The first line that a program prints, if it runs.
fn first_line(program: &str, arguments: &[&str]) -> Option<String> {
    let output =
        Process::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then(|| text.lines().next().unwrap_or_default().to_owned())
}

fn toolchain() -> Diagnosis {
    first_line("rustc", &["--version"])
        .map_or_else(|| missing("firmware cannot be built", "see https://rustup.rs"), Ok)
}

fn program(program: &str, purpose: &str, remedy: &str) -> Diagnosis {
    first_line(program, &["--version"])
        .map_or_else(|| missing(format!("no {program}, which {purpose} need"), remedy), Ok)
}

fn targets() -> Diagnosis {
    let installed =
        Process::new("rustup").args(["target", "list", "--installed"]).stderr(Stdio::null()).output();
    let installed =
        installed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let needed = board_targets();
    if needed.is_empty() {
        return Ok("no boards: they are in the source tree, or not in this build".to_owned());
    }
    let (there, missing): (Vec<&str>, Vec<&str>) =
        needed.keys().map(String::as_str).partition(|target| installed.lines().any(|line| line == *target));
    if missing.is_empty() {
        return Ok(there.join(", "));
    }
    let boards: Vec<&str> = missing.iter().flat_map(|target| &needed[*target]).map(String::as_str).collect();
    let what = format!("{}; none for {}", there.join(", "), boards.join(", "));
    self::missing(what.trim_start_matches("; "), format!("rustup target add {}", missing.join(" ")))
}

/// The compiler's targets, and the boards that each is for.
fn board_targets() -> BTreeMap<String, Vec<String>> {
    #[cfg_attr(not(feature = "boards"), expect(unused_mut))]
    let mut targets: BTreeMap<String, Vec<String>> = BTreeMap::new();
    #[cfg(feature = "boards")]
    for board in fabswarm_attach::board_names() {
        if let Ok(file) = fabswarm_attach::BoardFile::read(&board) {
            targets.entry(file.target.clone()).or_default().push(file.name.clone());
        }
    }
    targets
}

fn node() -> Diagnosis {
    let Some(version) = first_line("node", &["--version"]) else {
        let remedy = "sudo apt-get install nodejs npm, then cargo xtask install rp2040js";
        return missing("emulated Picos need it", remedy);
    };
    #[cfg(feature = "boards")]
    let boards = fabswarm_attach::boards_folder().ok();
    #[cfg(not(feature = "boards"))]
    let boards: Option<&Path> = None;
    let package = boards.map(|boards| boards.join("pico/emulator/node_modules/rp2040js/package.json"));
    if package.is_some_and(|package| package.is_file()) {
        Ok(format!("{version}, with rp2040js"))
    } else {
        missing(format!("{version}, without rp2040js"), "cargo xtask install rp2040js")
    }
}

/// The paths in a folder, none if it cannot be read.
fn paths_in(folder: &str) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Whether the name of a file is one that is looked for.
fn is_named(path: &Path, is_it: impl Fn(&str) -> bool) -> bool {
    path.file_name().is_some_and(|name| is_it(&name.to_string_lossy()))
}

fn udev_rules() -> Diagnosis {
    let folders = ["/etc/udev/rules.d", "/usr/lib/udev/rules.d", "/lib/udev/rules.d"];
    let is_known = |name: &str| name.contains("fabswarm") || name.contains("probe-rs");
    match folders.into_iter().flat_map(paths_in).find(|rule| is_named(rule, is_known)) {
        Some(rule) => Ok(rule.display().to_string()),
        None => missing(
            "debug probes and boards may be for root only",
            format!("fabswarm doctor --udev-rules | sudo tee {UDEV_RULES} && sudo udevadm control --reload"),
        ),
    }
}

fn groups() -> Diagnosis {
    let groups = first_line("id", &["-nG"]).unwrap_or_default();
    if groups.split(' ').any(|group| ["dialout", "uucp", "root"].contains(&group)) {
        return Ok(groups);
    }
    missing("you may not open serial ports", "sudo usermod -aG dialout $USER, then log in again")
}

fn modem_manager() -> Diagnosis {
    let is_it = |process: PathBuf| {
        fs::read_to_string(process.join("comm")).is_ok_and(|name| name.trim() == "ModemManager")
    };
    if !paths_in("/proc").any(is_it) {
        return Ok("does not run".to_owned());
    }
    if Path::new(UDEV_RULES).exists() {
        return Ok("is told to leave boards alone".to_owned());
    }
    let remedy =
        format!("fabswarm doctor --udev-rules | sudo tee {UDEV_RULES}, or sudo systemctl stop ModemManager");
    missing("it runs, and talks to new serial ports", remedy)
}

/// The names of what may be used, unless something may not; `None` where there is nothing.
fn access(found: Vec<(String, bool)>, remedy: &str) -> Result<Option<String>, (String, String)> {
    let (usable, locked): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, is_usable)| *is_usable);
    let names =
        |found: Vec<(String, bool)>| found.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
    if locked.is_empty() {
        Ok((!usable.is_empty()).then(|| names(usable)))
    } else {
        Err((format!("no access to {}", names(locked)), remedy.to_owned()))
    }
}

#[cfg(feature = "flash")]
fn probes() -> Diagnosis {
    let probes = fabswarm_flash::probe::probes().into_iter().map(|probe| (probe.name, probe.is_accessible));
    let remedy = format!(
        "fabswarm doctor --udev-rules | sudo tee {UDEV_RULES} && sudo udevadm control --reload, then plug it in again"
    );
    Ok(access(probes.collect(), &remedy)?.unwrap_or_else(|| "none is plugged in".to_owned()))
}

#[cfg(not(feature = "flash"))]
fn probes() -> Diagnosis {
    Ok("not looked for: this build lacks the feature `flash`".to_owned())
}

fn ports() -> Diagnosis {
    let is_serial = |name: &str| name.starts_with("ttyACM") || name.starts_with("ttyUSB");
    let mut ports: Vec<PathBuf> = paths_in("/dev").filter(|path| is_named(path, is_serial)).collect();
    ports.sort();
    let is_usable = |port: &PathBuf| fs::File::options().read(true).write(true).open(port).is_ok();
    let ports = ports.iter().map(|port| (port.display().to_string(), is_usable(port)));
    let remedy = "sudo usermod -aG dialout $USER, then log in again; or end the program that uses the port";
    Ok(match access(ports.collect(), remedy)? {
        Some(names) => format!("{names}; `fabswarm boards list` says what is on them"),
        None => "none, as no board is plugged in".to_owned(),
    })
}

fn cuda() -> Diagnosis {
    let gpu = first_line("nvidia-smi", &["--query-gpu=name,driver_version", "--format=csv,noheader"]);
    Ok(gpu.unwrap_or_else(|| "no GPU: large agents train on the CPU".to_owned()))
}

fn data() -> Diagnosis {
    let is_filled = |folder: &PathBuf| fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    match fabswarm_sim::cache_folder::find().filter(is_filled) {
        Some(folder) => Ok(folder.display().to_string()),
        None => missing("no data sets for large agents but the sample", "fabswarm data fetch"),
    }
}
