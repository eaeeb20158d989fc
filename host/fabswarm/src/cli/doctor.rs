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
    Command::new("doctor")
        .about("Check toolchain, emulators, access to ports, CUDA and data: a green line each, or a remedy")
        .arg(flags::switch(
            "udev-rules",
            "Print rules for udev that give access to boards and probes, and do nothing else",
        ))
}

/// The result of one check.
struct Diagnosis {
    name: &'static str,
    /// The thing found, or the fault.
    what: String,
    /// The command to type, if something is missing.
    remedy: Option<String>,
}

impl Diagnosis {
    fn good(name: &'static str, what: impl Into<String>) -> Self {
        Self { name, what: what.into(), remedy: None }
    }

    fn missing(name: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, what: what.into(), remedy: Some(remedy.into()) }
    }
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    if matches.get_flag("udev-rules") {
        out!("{RULES}");
        return Ok(ExitCode::SUCCESS);
    }
    let findings = [
        toolchain(),
        targets(),
        program("qemu", "qemu-system-arm", "emulated boards", "cargo xtask install qemu"),
        program("setpriv", "setpriv", "boards as processes", "sudo apt-get install util-linux"),
        node(),
        udev_rules(),
        groups(),
        modem_manager(),
        probes(),
        ports(),
        cuda(),
        data(),
    ];
    for Diagnosis { name, what, remedy } in &findings {
        match remedy {
            None => outln!("{} {name:<13} {what}", style("✓").green()),
            Some(remedy) => {
                outln!("{} {name:<13} {what}\n  {:<13} type: {remedy}", style("–").yellow(), "")
            }
        }
    }
    let missing = findings.iter().filter(|finding| finding.remedy.is_some()).count();
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
    match first_line("rustc", &["--version"]) {
        Some(version) => Diagnosis::good("rust", version),
        None => Diagnosis::missing("rust", "firmware cannot be built", "see https://rustup.rs"),
    }
}

fn targets() -> Diagnosis {
    let installed =
        Process::new("rustup").args(["target", "list", "--installed"]).stderr(Stdio::null()).output();
    let installed =
        installed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let needed = board_targets();
    if needed.is_empty() {
        return Diagnosis::good("targets", "no boards: they are in the source tree, or not in this build");
    }
    let (there, missing): (Vec<&str>, Vec<&str>) =
        needed.keys().map(String::as_str).partition(|target| installed.lines().any(|line| line == *target));
    if missing.is_empty() {
        return Diagnosis::good("targets", there.join(", "));
    }
    let boards: Vec<&str> = missing.iter().flat_map(|target| &needed[*target]).map(String::as_str).collect();
    let remedy = format!("rustup target add {}", missing.join(" "));
    let what = format!("{}; none for {}", there.join(", "), boards.join(", "));
    Diagnosis::missing("targets", what.trim_start_matches("; "), remedy)
}

/// The compiler's targets, and the boards that each is for.
#[cfg(feature = "boards")]
fn board_targets() -> BTreeMap<String, Vec<String>> {
    use fabswarm_attach::{BoardFile, board_names};
    let mut targets: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for board in board_names().iter().filter_map(|board| BoardFile::read(board).ok()) {
        targets.entry(board.target.clone()).or_default().push(board.name.clone());
    }
    targets
}

#[cfg(not(feature = "boards"))]
fn board_targets() -> BTreeMap<String, Vec<String>> {
    BTreeMap::new()
}

fn program(name: &'static str, program: &str, purpose: &str, remedy: &str) -> Diagnosis {
    match first_line(program, &["--version"]) {
        Some(version) => Diagnosis::good(name, version),
        None => Diagnosis::missing(name, format!("no {program}, which {purpose} need"), remedy),
    }
}

fn node() -> Diagnosis {
    let Some(version) = first_line("node", &["--version"]) else {
        return Diagnosis::missing(
            "node",
            "emulated Picos need it",
            "sudo apt-get install nodejs npm, then cargo xtask install rp2040js",
        );
    };
    #[cfg(feature = "boards")]
    let boards = fabswarm_attach::boards_folder().ok();
    #[cfg(not(feature = "boards"))]
    let boards: Option<&Path> = None;
    let package = boards.map(|boards| boards.join("pico/emulator/node_modules/rp2040js/package.json"));
    if package.is_some_and(|package| package.is_file()) {
        Diagnosis::good("node", format!("{version}, with rp2040js"))
    } else {
        Diagnosis::missing("node", format!("{version}, without rp2040js"), "cargo xtask install rp2040js")
    }
}

fn udev_rules() -> Diagnosis {
    let folders = ["/etc/udev/rules.d", "/usr/lib/udev/rules.d", "/lib/udev/rules.d"];
    let mut rules = folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let known = rules.find(|rule| {
        let name = rule.file_name().to_string_lossy().into_owned();
        name.contains("fabswarm") || name.contains("probe-rs")
    });
    match known {
        Some(rule) => Diagnosis::good("udev rules", rule.path().display().to_string()),
        None => Diagnosis::missing(
            "udev rules",
            "debug probes and boards may be for root only",
            format!("fabswarm doctor --udev-rules | sudo tee {UDEV_RULES} && sudo udevadm control --reload"),
        ),
    }
}

fn groups() -> Diagnosis {
    let groups = first_line("id", &["-nG"]).unwrap_or_default();
    let is_member = groups.split(' ').any(|group| ["dialout", "uucp", "root"].contains(&group));
    if is_member {
        Diagnosis::good("serial group", groups)
    } else {
        let remedy = "sudo usermod -aG dialout $USER, then log in again";
        Diagnosis::missing("serial group", "you may not open serial ports", remedy)
    }
}

fn modem_manager() -> Diagnosis {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_running = processes
        .filter_map(|process| fs::read_to_string(process.path().join("comm")).ok())
        .any(|name| name.trim() == "ModemManager");
    if is_running && !Path::new(UDEV_RULES).exists() {
        let remedy = format!(
            "fabswarm doctor --udev-rules | sudo tee {UDEV_RULES}, or sudo systemctl stop ModemManager"
        );
        return Diagnosis::missing("ModemManager", "it runs, and talks to new serial ports", remedy);
    }
    Diagnosis::good("ModemManager", if is_running { "is told to leave boards alone" } else { "does not run" })
}

#[cfg(feature = "flash")]
fn probes() -> Diagnosis {
    let (usable, locked): (Vec<_>, Vec<_>) =
        fabswarm_flash::probe::probes().into_iter().partition(|probe| probe.is_accessible);
    let names = |probes: &[fabswarm_flash::probe::FoundProbe]| {
        probes.iter().map(|probe| probe.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    if !locked.is_empty() {
        let remedy = format!(
            "fabswarm doctor --udev-rules | sudo tee {UDEV_RULES} && sudo udevadm control --reload, then plug it in again"
        );
        return Diagnosis::missing("probes", format!("no access to {}", names(&locked)), remedy);
    }
    Diagnosis::good(
        "probes",
        if usable.is_empty() { "none is plugged in".to_owned() } else { names(&usable) },
    )
}

#[cfg(not(feature = "flash"))]
fn probes() -> Diagnosis {
    Diagnosis::good("probes", "not looked for: this build lacks the feature `flash`")
}

fn ports() -> Diagnosis {
    let devices = fs::read_dir("/dev").into_iter().flatten().flatten();
    let mut ports: Vec<PathBuf> = devices
        .map(|device| device.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with("ttyACM") || name.starts_with("ttyUSB")
        })
        .collect();
    ports.sort();
    let (usable, locked): (Vec<_>, Vec<_>) =
        ports.iter().partition(|port| fs::File::options().read(true).write(true).open(port).is_ok());
    let names = |ports: &[&PathBuf]| {
        ports.iter().map(|port| port.display().to_string()).collect::<Vec<_>>().join(", ")
    };
    if !locked.is_empty() {
        let remedy =
            "sudo usermod -aG dialout $USER, then log in again; or end the program that uses the port";
        return Diagnosis::missing("ports", format!("no access to {}", names(&locked)), remedy);
    }
    if usable.is_empty() {
        return Diagnosis::good("ports", "none, as no board is plugged in");
    }
    Diagnosis::good("ports", format!("{}; `fabswarm boards list` says what is on them", names(&usable)))
}

fn cuda() -> Diagnosis {
    match first_line("nvidia-smi", &["--query-gpu=name,driver_version", "--format=csv,noheader"]) {
        Some(gpu) => Diagnosis::good("CUDA", gpu),
        None => Diagnosis::good("CUDA", "no GPU: large agents train on the CPU"),
    }
}

fn data() -> Diagnosis {
    let folder = fabswarm_sim::cache_folder::find();
    let is_there = folder
        .as_ref()
        .is_some_and(|folder| fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()));
    match folder {
        Some(folder) if is_there => Diagnosis::good("data", folder.display().to_string()),
        _ => {
            Diagnosis::missing("data", "no data sets for large agents but the sample", "fabswarm data fetch")
        }
    }
}
