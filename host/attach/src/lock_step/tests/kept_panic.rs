//! A panic of an emulated Pico, which restarts as the real one does: what it said arrives with its next boot.

use super::*;
use object::ObjectSegment;

/// An image with its bytes by their addresses.
struct PatchedImage {
    bytes: Vec<u8>,
    /// Address, length and place in the file.
    parts: Vec<(u64, u64, u64)>,
}

impl PatchedImage {
    fn read(image: &Path) -> Self {
        let bytes = fs::read(image).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let part = |part: object::Segment| (part.address(), part.file_range().1, part.file_range().0);
        let parts = file.segments().map(part).collect();
        Self { bytes, parts }
    }

    /// The first address of something whose name contains `name`. Thumb code has odd ones.
    fn address(&self, name: &str) -> u64 {
        let file = object::File::parse(&*self.bytes).unwrap();
        let mut symbols = file.symbols();
        symbols.find(|symbol| symbol.name().unwrap().contains(name)).unwrap().address() & !1
    }

    fn place(&self, address: u64) -> Option<usize> {
        let (at, _, from) =
            self.parts.iter().find(|(at, length, _)| (*at..at + length).contains(&address))?;
        Some((from + address - at) as usize)
    }

    fn bytes<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        self.bytes.get(self.place(address)?..)?.get(..N)?.try_into().ok()
    }

    fn word(&self, address: u64) -> Option<u64> {
        self.bytes(address).map(|word| u32::from_le_bytes(word).into())
    }

    /// The panics for an index that is too large: where the code begins that calls `handler`, and file and line that it names.
    fn panics(&self, handler: u64) -> impl Iterator<Item = (u64, String)> {
        let addresses = self.parts.iter().flat_map(|(at, length, _)| (*at..at + length).step_by(2));
        let calls = addresses.filter(move |at| self.bytes(*at) == Some(call(*at, handler)));
        calls.filter_map(|call| {
            // The third argument is the place in the sources, and is loaded within a few instructions before the call.
            let load =
                (1..=4).map(|back| call - 2 * back).find(|at| self.bytes::<2>(*at).unwrap()[1] == 0x4A)?;
            let distance = 4 * u64::from(self.bytes::<1>(load)?[0]);
            // Pointer to the file's name, its length, line and column.
            let place = self.word(((load + 4) & !3) + distance)?;
            let [name, length, line] = [0, 4, 8].map(|field| self.word(place + field));
            let from = self.place(name?)?;
            let name = std::str::from_utf8(self.bytes.get(from..from + length? as usize)?).ok()?;
            Some((load, format!("{name}:{}:", line?)))
        })
    }
}

/// The Pico's firmware with a panic at the start of the function `place` of its agent, and the file and line that it names.
fn panicking_pico(place: &str, folder: &Path) -> (Firmware, String) {
    let mut firmware = Firmware::prepare(BoardKind::Pico, &FirmwareConfig::USUAL).unwrap();
    let mut image = PatchedImage::read(&firmware.image);
    let mut panics = image.panics(image.address("panic_bounds_check"));
    let (panic, line) = panics.find(|(_, line)| line.contains("shared/src/")).unwrap();
    drop(panics);
    let place = image.address(&format!("SealedAgent$LT$P$GT${}{place}", place.len()));
    let at = image.place(place).unwrap();
    image.bytes[at..at + 4].copy_from_slice(&call(place, panic));
    firmware.image = folder.join("pico");
    fs::write(&firmware.image, &image.bytes).unwrap();
    (firmware, line)
}

fn launch_pico(firmware: Firmware, lost_boards: LostBoards) -> Result<LockStepBoards, Error> {
    Ok(launch(firmware, page("pico"), SILENCE_LIMIT)?.with_lost_boards(lost_boards))
}

#[test]
fn a_panic_is_told_by_the_next_boot() {
    let folder = tempfile::tempdir().unwrap();
    let (firmware, line) = panicking_pico("end_round", folder.path());
    let cause = format!("started by its firmware; its last run ended in a panic: panicked at {line}");

    let mut boards = launch_pico(firmware, LostBoards::Rejoin).unwrap();
    Remote::shadow_ended_round(&mut boards, 0, ShadowRound::default());
    Remote::catch_up(&mut boards).unwrap();
    let warnings: Vec<String> = boards.take_warnings().iter().map(ToString::to_string).collect();
    let lost = format!("agent 0: its board restarted by itself in round 0 ({cause}");
    assert!(warnings.iter().any(|warning| warning.starts_with(&lost)), "{lost}\n{warnings:#?}");
    // The firmware of the next boot logs it too.
    let logged = format!("the last run ended in a panic: panicked at {line}");
    assert!(warnings.iter().any(|warning| warning.contains(&logged)), "{logged}\n{warnings:#?}");
    let kept = folder.path().join("boards");
    boards.keep_logs(&kept).unwrap();
    let events = fs::read_to_string(kept.join("events.csv")).unwrap();
    assert!(events.contains(&format!("0,0,lost,\"restarted by itself ({cause}")), "{events}");
    drop(boards);

    let (firmware, _) = panicking_pico("end_round", folder.path());
    let mut boards = launch_pico(firmware, LostBoards::Fail).unwrap();
    Remote::shadow_ended_round(&mut boards, 0, ShadowRound::default());
    let message = Remote::catch_up(&mut boards).unwrap_err().to_string();
    let start = format!("the board of agent 0 restarted by itself in round 0; it {cause}");
    assert!(message.starts_with(&start) && message.contains("\nhelp: "), "{start}\n{message}");
}

/// Regression: a board that panics before its first round was started again and again, for ever.
#[test]
fn a_board_that_panics_in_its_first_round_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let (firmware, line) = panicking_pico("poll_frame", folder.path());
    let message = launch_pico(firmware, LostBoards::Rejoin).map(drop).unwrap_err().to_string();
    let cause = format!("it started by its firmware; its last run ended in a panic: panicked at {line}");
    assert!(message.contains(&cause), "{cause}\n{message}");
}
