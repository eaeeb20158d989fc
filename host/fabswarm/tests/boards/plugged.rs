//! Boards behind pseudo-terminals, as real ones are behind serial ports.

use crate::ether::{Ether, Radio};
use fabswarm_attach::{BoardFile, BoardKind};
use rustix::fs::OFlags;
use rustix::pty::{self, OpenptFlags};
use rustix::termios::{self, OptionalActions};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// A byte after its way over a line; `None` if it is lost.
pub(crate) type Garble = fn(u8) -> Option<u8>;

/// The far end of a cable: a pseudo-terminal, unless it is unplugged.
type Plug = Arc<Mutex<Option<File>>>;

/// Flash of a native board: its page, then its storage.
const NATIVE_FLASH: usize = (1 << 20) + (64 << 10);

/// A new pseudo-terminal whose near end is called `name`. Processes that are started later must not hold its far end.
pub(crate) fn plug(name: &Path) -> File {
    let far = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    pty::grantpt(&far).unwrap();
    pty::unlockpt(&far).unwrap();
    let mut settings = termios::tcgetattr(&far).unwrap();
    settings.make_raw();
    termios::tcsetattr(&far, OptionalActions::Now, &settings).unwrap();
    rustix::fs::fcntl_setfl(&far, OFlags::RDWR | OFlags::NONBLOCK).unwrap();
    let _ = fs::remove_file(name);
    symlink(pty::ptsname(&far, Vec::new()).unwrap().to_str().unwrap(), name).unwrap();
    far.into()
}

/// A board on a pseudo-terminal.
pub(crate) struct PluggedBoard {
    name: PathBuf,
    plug: Plug,
    process: Arc<Mutex<Child>>,
    is_over: Arc<AtomicBool>,
    has_spoken: Arc<AtomicBool>,
    log: PathBuf,
    /// Cut its power and restore it.
    pub(crate) commands: [String; 2],
}

impl PluggedBoard {
    /// Starts a board without a page. The first of `garble` spoils each byte on its way to the host, the second on its way back.
    pub(crate) fn start(kind: BoardKind, folder: &Path, chip: u64, name: &str, garble: [Garble; 2]) -> Self {
        Self::start_with(kind, folder, chip, name, BoardLine { garble, radio: None })
    }

    /// A native board on a clean line that has a radio.
    pub(crate) fn with_radio(folder: &Path, chip: u64, ether: &Ether) -> Self {
        let line = BoardLine { garble: [clean, clean], radio: Some(ether.radio()) };
        Self::start_with(BoardKind::Native, folder, chip, &format!("usb-fabswarm_{chip}"), line)
    }

    fn start_with(kind: BoardKind, folder: &Path, chip: u64, name: &str, mut line: BoardLine) -> Self {
        let file = |ending: &str| folder.join(format!("file-{name}.{ending}"));
        let (name, log, flash, socket) = (folder.join(name), file("log"), file("flash"), file("sock"));
        let program = program(kind, &socket, &flash, chip);
        let listen = {
            let socket = socket.clone();
            move || {
                let listener = UnixListener::bind(&socket).unwrap();
                listener.set_nonblocking(true).unwrap();
                listener
            }
        };
        let mut listener = Some(listen());
        let (pid, off) = (file("pid"), file("off"));
        let commands = [
            format!("touch {0} && kill -9 $(cat {1})", off.display(), pid.display()),
            format!("rm {}", off.display()),
        ];
        let spawn = {
            let log = log.clone();
            move || {
                let log = File::options().create(true).append(true).open(&log).unwrap();
                let child = Command::new(&program[0]).args(&program[1..]).stderr(log).spawn().unwrap();
                fs::write(&pid, child.id().to_string()).unwrap();
                child
            }
        };
        let process = Arc::new(Mutex::new(spawn()));
        let [is_over, has_spoken] = [false; 2].map(|is_set| Arc::new(AtomicBool::new(is_set)));
        let plug: Plug = Arc::new(Mutex::new(Some(plug(&name))));
        let (cable, power, end, spoken) =
            (plug.clone(), process.clone(), is_over.clone(), has_spoken.clone());
        // A native board has a cable that nobody can unplug: what is sent meanwhile is lost on its way.
        let feels_cable = kind != BoardKind::Native;
        thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                if feels_cable && cable.lock().unwrap().is_none() {
                    listener = None;
                    let _ = fs::remove_file(&socket);
                } else if let Ok((stream, _)) = listener.get_or_insert_with(&listen).accept() {
                    pump(stream, &cable, [&end, &spoken], &mut line, feels_cable);
                }
                // One that resets itself connects again; one that has ended has lost its power for a moment.
                let mut process = power.lock().unwrap();
                let has_ended = process.try_wait().unwrap().is_some();
                if !end.load(Ordering::Relaxed) && has_ended && !off.exists() {
                    *process = spawn();
                }
                drop(process);
                thread::sleep(Duration::from_millis(2));
            }
        });
        Self { name, plug, process, is_over, has_spoken, log, commands }
    }

    /// A board of its kind on a clean line.
    pub(crate) fn of_kind(kind: BoardKind, folder: &Path, chip: u64) -> Self {
        Self::start(kind, folder, chip, &format!("usb-fabswarm_{chip}"), [clean, clean])
    }

    pub(crate) fn far(&self) -> MutexGuard<'_, Option<File>> {
        self.plug.lock().unwrap()
    }

    /// Whether it has said anything: an emulator may take its time to start.
    pub(crate) fn has_spoken(&self) -> bool {
        self.has_spoken.load(Ordering::Relaxed)
    }

    pub(crate) fn unplug(&self) {
        fs::remove_file(&self.name).unwrap();
        *self.far() = None;
    }

    pub(crate) fn replug(&self) {
        *self.far() = Some(plug(&self.name));
    }

    /// Takes its power away for a moment.
    pub(crate) fn reset(&self) {
        self.process.lock().unwrap().kill().unwrap();
    }

    /// The log of its process.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for PluggedBoard {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let mut process = self.process.lock().unwrap();
        let _ = process.kill();
        let _ = process.wait();
    }
}

/// A board's connections with the world.
struct BoardLine {
    garble: [Garble; 2],
    radio: Option<Radio>,
}

/// The program that is a board, with its arguments; its flash is made, and blank.
fn program(kind: BoardKind, socket: &Path, flash: &Path, chip: u64) -> Vec<String> {
    let image = fabswarm_attach::image(kind).unwrap().display().to_string();
    let blank = |bytes: usize| fs::write(flash, vec![0xFF; bytes]).unwrap();
    let (socket, flash) = (socket.display(), flash.display());
    if kind == BoardKind::Native {
        blank(NATIVE_FLASH);
        return vec![image, socket.to_string(), flash.to_string(), format!("{chip:x}")];
    }
    let file = BoardFile::read(kind.board()).unwrap();
    blank((file.storage.end() - file.page.origin) as usize);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../boards/pico/emulator/main.mjs");
    let port = if kind == BoardKind::PicoUsb { "usb" } else { "uart" };
    vec![
        "node".to_owned(),
        script.to_owned(),
        format!("--image={image}"),
        format!("--socket={socket}"),
        format!("--port={port}"),
        format!("--flash={flash}"),
        format!("--flash-at={}", file.page.origin),
        format!("--chip={chip:x}"),
        "--battery".to_owned(),
    ]
}

/// A line that spoils nothing.
pub(crate) fn clean(byte: u8) -> Option<u8> {
    Some(byte)
}

/// Carries bytes between a board and its cable until the board ends, or its cable is unplugged and it feels that.
fn pump(
    mut board: UnixStream,
    cable: &Plug,
    [is_over, has_spoken]: [&AtomicBool; 2],
    BoardLine { garble: [to_host, to_board], radio }: &mut BoardLine,
    feels_cable: bool,
) {
    board.set_nonblocking(true).unwrap();
    // Packets sent while it was off are dropped.
    radio.iter().for_each(|radio| drop(radio.heard()));
    let mut chunk = [0; 4096];
    let garbled =
        |chunk: &[u8], garble: Garble| chunk.iter().copied().filter_map(garble).collect::<Vec<u8>>();
    while !is_over.load(Ordering::Relaxed) {
        let mut cable = cable.lock().unwrap();
        if feels_cable && cable.is_none() {
            return;
        }
        match board.read(&mut chunk) {
            Ok(0) => return,
            Ok(count) => {
                has_spoken.store(true, Ordering::Relaxed);
                let said = match radio {
                    Some(radio) => radio.send(&chunk[..count]),
                    None => chunk[..count].to_vec(),
                };
                // Nobody may have the port open.
                let _ = cable.as_mut().map(|far| far.write_all(&garbled(&said, *to_host)));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
        let mut heard = radio.as_ref().map(Radio::heard).unwrap_or_default();
        if let Some(Ok(count)) = cable.as_mut().map(|far| far.read(&mut chunk)) {
            heard.extend(garbled(&chunk[..count], *to_board));
        }
        if heard.is_empty() {
            drop(cable);
            thread::sleep(Duration::from_millis(1));
        } else {
            board.set_nonblocking(false).unwrap();
            let _ = board.write_all(&heard);
            board.set_nonblocking(true).unwrap();
        }
    }
}
