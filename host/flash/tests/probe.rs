//! Simulated chips behind debug probes, down to the registers of their debug ports.

#[path = "fake/cable.rs"]
mod cable;
#[path = "fake/chip.rs"]
mod chip;
#[path = "fake/contents.rs"]
mod contents;

use cable::FakeCable;
use chip::FakeChip;
use contents::{count, image_bytes, page_of};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_flash::probe::{flash_all, follow_log, read_chip};
use fabswarm_flash::{ChipFacts, ChipPage, FlashImage, FlashJob, FlashRegion, FlashedBoard, PartNumber};
use std::cell::Cell;
use std::sync::Mutex;

const PAGE_AT: u32 = 0xE_0000;
const BOOTS_AT: u32 = 0xF_0000;
/// The chip of agent 0.
const FIRST_CHIP: u64 = 0xFAB0_0000_0000_0000;

/// The values of the nRF52840 DK's `board.toml`.
fn job() -> FlashJob {
    FlashJob {
        chip: "nRF52840_xxAA".to_owned(),
        part: Some(PartNumber { at: 0x1000_0100, mask: u32::MAX, value: 0x0005_2840 }),
        number_at: Some(0x1000_0060),
        image: FlashImage::from_parts(vec![(0, image_bytes(20_000)), (0x8000, image_bytes(300))]),
        image_room: FlashRegion { origin: 0, bytes: PAGE_AT.into() },
        page_room: FlashRegion { origin: PAGE_AT.into(), bytes: 0x1_0000 },
        boots: FlashRegion { origin: BOOTS_AT.into(), bytes: 0x2000 },
    }
}

#[track_caller]
fn flash(job: &FlashJob, chip: &FakeChip) -> Result<Option<FlashedBoard>, Diagnostic> {
    flash_all(job, vec![(Ok(FakeCable::to(chip)), None)], &page_of, &|_, _| {}).remove(0)
}

#[track_caller]
fn refusal(job: &FlashJob, chip: &FakeChip) -> Diagnostic {
    let before = chip.state().bytes(0, 0x10_0000);
    let error = flash(job, chip).unwrap_err();
    assert!(chip.state().bytes(0, 0x10_0000) == before, "nothing was to be written: {error}");
    assert!(error.to_string().contains("\nhelp: "), "{error}");
    error
}

#[test]
fn eight_boards_are_flashed_at_once() {
    let chips: Vec<FakeChip> = (0..8).map(|agent| FakeChip::new(FIRST_CHIP + agent)).collect();
    for chip in &chips {
        chip.state().put(BOOTS_AT, b"boots");
    }
    let (job, counts) = (job(), Mutex::new([(0, 0); 8]));
    let probes = chips.iter().map(|chip| (Ok(FakeCable::to(chip)), None)).collect();
    let outcomes = flash_all(&job, probes, &page_of, &count(&counts));
    for (agent, (chip, outcome)) in chips.iter().zip(outcomes).enumerate() {
        assert_eq!(outcome, Ok(Some(FlashedBoard { agent, bytes: 20_300 + 3000 + agent })));
        let chip = chip.state();
        assert_eq!(chip.bytes(0, 20_000), image_bytes(20_000));
        assert_eq!(chip.bytes(0x8000, 300), image_bytes(300));
        assert_eq!(chip.bytes(PAGE_AT, 3000 + agent), vec![agent as u8; 3000 + agent]);
        assert_eq!(chip.bytes(BOOTS_AT, 5), b"boots", "boots are never lost");
        assert!(chip.resets > 0, "it was started");
    }
    for (total, done) in counts.into_inner().unwrap() {
        assert!(done >= 2 * 23_300 && done <= total, "{done} of {total} bytes");
    }
}

/// An RP2040 cannot tell its number.
#[test]
fn a_rig_knows_the_chip_behind_a_probe() {
    let chip = FakeChip::new(FIRST_CHIP);
    let flash = |job: &FlashJob, known: u64| {
        flash_all(job, vec![(Ok(FakeCable::to(&chip)), Some(known))], &page_of, &|_, _| {}).remove(0)
    };
    let silent = FlashJob { number_at: None, ..job() };
    let agents = [&silent, &job()].map(|job| flash(job, FIRST_CHIP).unwrap().map(|done| done.agent));
    assert_eq!(agents, [Some(0), Some(0)]);
    let other = flash(&job(), FIRST_CHIP + 1).unwrap_err().to_string();
    assert!(other.contains("and the rig has chip"), "{other}");
}

#[test]
fn a_board_without_an_agent_is_left_as_it_is() {
    let chip = FakeChip::new(FIRST_CHIP);
    let outcome =
        flash_all(&job(), vec![(Ok(FakeCable::to(&chip)), None)], &|_| Ok(None), &|_, _| {}).remove(0);
    assert_eq!(outcome, Ok(None));
    assert!(chip.state().erased_sectors.is_empty());
    let facts = read_chip(&job(), FakeCable::to(&chip)).unwrap();
    assert_eq!((facts.number, facts.boots.len()), (Some(FIRST_CHIP), 0x2000));
}

#[test]
fn a_worn_cell_is_found_by_its_address() {
    for at in [0x1234, PAGE_AT + 16] {
        let chip = FakeChip::new(FIRST_CHIP);
        chip.state().worn = Some((at, 0x80));
        let written = if at == 0x1234 { image_bytes(20_000)[0x1234] } else { 0 };
        assert_eq!(written & 0x80, 0, "the bit must matter");
        let error = flash(&job(), &chip).unwrap_err();
        let found = written | 0x80;
        let expected = format!("has {found:#04x} at {at:#x}, where {written:#04x} was written");
        assert_eq!(error.what(), expected);
    }
}

#[test]
fn a_locked_chip_stays_locked() {
    let chip = FakeChip::new(FIRST_CHIP);
    chip.state().is_locked = true;
    let error = refusal(&job(), &chip);
    assert!(error.what().starts_with("the chip is locked"), "{error}");
    assert!(error.to_string().contains("--allow-erase-all"), "{error}");
}

#[test]
fn a_cable_may_break_at_any_time() {
    let chip = FakeChip::new(FIRST_CHIP);
    // So many transfers a whole flash takes.
    chip.state().transfers_left = Some(u32::MAX);
    flash(&job(), &chip).unwrap();
    let needed = u32::MAX - chip.state().transfers_left.unwrap();
    let mut purposes = Vec::new();
    for part in 0..24 {
        chip.state().transfers_left = Some(needed / 24 * part);
        let error = flash(&job(), &chip).unwrap_err();
        let purpose = error.what().strip_prefix("was unplugged while it was to ");
        purposes.push(purpose.unwrap_or_else(|| panic!("{error} at {part}/24")).to_owned());
    }
    purposes.dedup();
    assert_eq!(purposes[0], "answer");
    assert_eq!(purposes[purposes.len() - 1], "be read back");
    assert!(purposes.iter().any(|purpose| purpose == "be written"), "{purposes:?}");
    // Plugged in again, it is flashed again.
    chip.state().transfers_left = None;
    flash(&job(), &chip).unwrap();
}

#[test]
fn another_chip_is_refused() {
    let chip = FakeChip::new(FIRST_CHIP);
    chip.state().put(0x1000_0100, &0x0005_2832_u32.to_le_bytes());
    let error = refusal(&job(), &chip);
    let expected = "the chip says that it is part 0x52832, and nRF52840_xxAA is part 0x52840";
    assert_eq!(error.what(), expected);
}

#[test]
fn a_page_for_another_chip_is_refused() {
    let chip = FakeChip::new(FIRST_CHIP);
    let other = |facts: &ChipFacts| {
        let page = page_of(facts)?.unwrap();
        Ok(Some(ChipPage { chip: Some(7), ..page }))
    };
    let outcome = flash_all(&job(), vec![(Ok(FakeCable::to(&chip)), None)], &other, &|_, _| {}).remove(0);
    let message = outcome.unwrap_err().to_string();
    assert!(message.starts_with("the record is bound to chip 0000000000000007, "), "{message}");
    assert!(chip.state().erased_sectors.is_empty());
}

#[test]
fn too_large_an_image_or_page_is_refused() {
    let chip = FakeChip::new(FIRST_CHIP);
    let image = FlashImage::from_parts(vec![(u64::from(PAGE_AT) - 8, vec![1; 9])]);
    let error = refusal(&FlashJob { image, ..job() }, &chip);
    assert!(error.what().starts_with("the image has bytes from "), "{error}");
    let page_room = FlashRegion { origin: PAGE_AT.into(), bytes: 2999 };
    let error = refusal(&FlashJob { page_room, ..job() }, &chip);
    assert_eq!(error.what(), "the provisioning record takes 3000 bytes, and the board has 2999 for it");
}

#[test]
fn a_probe_that_cannot_be_opened_holds_nobody_up() {
    let chip = FakeChip::new(FIRST_CHIP);
    let busy = Diagnostic::bare("busy");
    let outcomes = flash_all(
        &job(),
        vec![(Err(busy.clone()), None), (Ok(FakeCable::to(&chip)), None)],
        &page_of,
        &|_, _| {},
    );
    assert_eq!(outcomes[0], Err(busy));
    assert!(outcomes[1].is_ok(), "{outcomes:?}");
}

/// Addresses of the fake's log and its buffer.
const LOG_AT: u32 = 0x2000_0100;
const BUFFER_AT: u32 = 0x2000_0200;
const BUFFER_BYTES: u32 = 16;

/// Writes a log, with the positions of the board's writes and the host's reads.
fn put_log(chip: &FakeChip, bytes: &[u8], written: u32, read: u32) {
    let mut chip = chip.state();
    chip.put(LOG_AT, b"SEGGER RTT\0\0\0\0\0\0");
    for (index, word) in [1, 0, 0, BUFFER_AT, BUFFER_BYTES, written, read, 0].into_iter().enumerate() {
        chip.put(LOG_AT + 16 + 4 * index as u32, &u32::to_le_bytes(word));
    }
    chip.put(BUFFER_AT, bytes);
}

/// Reads what is in the log of a board.
fn log_of(job: &FlashJob, chip: &FakeChip) -> Result<Vec<u8>, Diagnostic> {
    let (looks, mut log) = (Cell::new(0), Vec::new());
    let goes_on = || looks.replace(looks.get() + 1) < 4;
    let mut take = |bytes: &[u8]| log.extend_from_slice(bytes);
    follow_log(job, FakeCable::to(chip), LOG_AT.into(), &goes_on, &mut take)?;
    Ok(log)
}

#[test]
fn the_log_of_a_board_is_read_while_it_runs() {
    let (job, chip) = (job(), FakeChip::new(FIRST_CHIP));
    let refusal = || log_of(&job, &chip).unwrap_err().what().to_owned();
    assert!(refusal().starts_with("runs another image"), "it was not flashed");
    flash(&job, &chip).unwrap();
    assert_eq!(refusal(), format!("has no log at {LOG_AT:#x}"));
    // The board has come to the end of its buffer and gone on at its start.
    put_log(&chip, b"ghij\0\0\0\0\0\0abcdef", 4, 10);
    assert_eq!(log_of(&job, &chip).unwrap(), b"abcdefghij");
    assert_eq!(chip.state().bytes(LOG_AT + 40, 4), 4_u32.to_le_bytes(), "the board has room again");
    assert_eq!(log_of(&job, &chip).unwrap(), b"");
    // No board writes such positions.
    for (written, read) in [(BUFFER_BYTES, 0), (0, u32::MAX)] {
        put_log(&chip, b"", written, read);
        assert_eq!(refusal(), format!("has no log at {LOG_AT:#x}"));
    }
}
