//! Emulated boards: QEMU's `mps2-an386`, a Cortex-M4F.

use crate::firmware::{board_kind::PacketFraming, code_place::before_return};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

const MONITOR_TIMEOUT: Duration = Duration::from_secs(1);

/// Escapes a path for use in a QEMU option, where a comma ends the value.
fn in_option(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// The socket of the emulator's monitor, beside that of the board.
pub(crate) fn monitor(socket: &Path) -> PathBuf {
    socket.with_extension("monitor")
}

/// Asks a running emulator where its processor is: the addresses of its instruction and of the call that led there.
pub(crate) fn processor_place(monitor: &Path) -> io::Result<[u64; 2]> {
    let mut stream = UnixStream::connect(monitor)?;
    stream.set_read_timeout(Some(MONITOR_TIMEOUT))?;
    stream.write_all(b"info registers\n")?;
    let (mut text, mut chunk) = (String::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut chunk)?;
        text.push_str(&String::from_utf8_lossy(&chunk[..count]));
        let register = |name: &str| register(&text, name);
        if let (Some(counter), Some(link)) = (register("R15="), register("R14=")) {
            // Thumb code has odd return addresses.
            return Ok([counter, before_return(link & !1)]);
        }
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// The value of a register in what the monitor prints, once all its digits are there.
fn register(text: &str, name: &str) -> Option<u64> {
    let (_, value) = text.split_once(name)?;
    u64::from_str_radix(value.get(..8)?, 16).ok()
}

/// QEMU's arguments for running `image` with `socket` as its Ethernet or serial port, `flash` as its flash and `log` as the file for
/// its log.
pub(crate) fn arguments(
    image: &Path,
    (framing, socket): (PacketFraming, &Path),
    flash: &Path,
    log: &Path,
) -> Vec<String> {
    let monitor = in_option(&monitor(socket));
    let socket = in_option(socket);
    let mut arguments = Vec::new();
    let mut add = |name: &str, value: &str| arguments.extend([name, value].map(str::to_owned));
    // The machine's PSRAM is a file, so that what the board stores survives a restart.
    add("-M", "mps2-an386,memory-backend=flash");
    // One emulated core needs one thread and a small translation buffer: 10 % faster with a hundred emulators.
    add("-accel", "tcg,thread=single,tb-size=4");
    let psram = format!("memory-backend-file,id=flash,size=16M,share=on,mem-path={}", in_option(flash));
    add("-object", &psram);
    match framing {
        PacketFraming::Ethernet => {
            add("-netdev", &format!("stream,id=air,addr.type=unix,addr.path={socket}"));
            add("-net", "nic,netdev=air,model=lan9118");
            add("-serial", "null");
        }
        PacketFraming::Serial => {
            add("-chardev", &format!("socket,id=air,path={socket}"));
            add("-net", "none");
            add("-serial", "chardev:air");
        }
    }
    add("-serial", &format!("file:{}", log.display()));
    // Lets firmware exit the emulator after a panic.
    add("-semihosting-config", "enable=on,target=native");
    add("-display", "none");
    // Tells where the processor is, should the board hang.
    add("-monitor", &format!("unix:{monitor},server=on,wait=off"));
    add("-kernel", &image.display().to_string());
    arguments
}

/// Further arguments for a board with a sensor on `line`, or without a working one, and `decisions` as the file for its decisions.
pub(crate) fn sensor_arguments(line: Option<&OwnedFd>, decisions: &Path) -> Vec<String> {
    let sensor = match line {
        Some(line) => format!("socket,id=sensor,fd={}", line.as_raw_fd()),
        None => "null,id=sensor".to_owned(),
    };
    // A board that restarts goes on with the same file.
    let autopilot = format!("file,id=autopilot,append=on,path={}", in_option(decisions));
    ["-chardev", &sensor, "-serial", "chardev:sensor", "-chardev", &autopilot, "-serial", "chardev:autopilot"]
        .map(str::to_owned)
        .to_vec()
}
