//! Simulated boot ROMs of Espressif's chips, on pseudo-terminals.

#[path = "fake/boot_rom.rs"]
mod boot_rom;
#[path = "fake/contents.rs"]
mod contents;

use boot_rom::{C3, C6, FakeEsp};
use contents::{count, image_bytes, page_of};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_flash::esp::{EspPort, flash_all, read_chip, read_image};
use fabswarm_flash::{ChipFacts, ChipPage, FlashImage, FlashJob, FlashRegion, FlashedBoard};
use std::path::Path;
use std::sync::Mutex;

const PAGE_AT: usize = 0x3E_0000;
const BOOTS_AT: usize = 0x3F_0000;
/// The chip of agent 0.
const FIRST_CHIP: u64 = 0x7CDF_A1B2_C300;

/// The values of the ESP32-C3's `board.toml`, and an image with a boot loader in front.
fn job() -> FlashJob {
    FlashJob {
        chip: "esp32c3".to_owned(),
        part: None,
        number_at: None,
        image: FlashImage::from_parts(vec![(0, image_bytes(5000)), (0x1_0000, image_bytes(90_001))]),
        image_room: FlashRegion { origin: 0, bytes: PAGE_AT as u64 },
        page_room: FlashRegion { origin: PAGE_AT as u64, bytes: 0x4000 },
        boots: FlashRegion { origin: BOOTS_AT as u64, bytes: 0x2000 },
    }
}

fn flash(job: &FlashJob, chip: &FakeEsp) -> Result<Option<FlashedBoard>, Diagnostic> {
    flash_all(job, vec![EspPort::new(&chip.plug_in())], &page_of, &|_, _| {}).remove(0)
}

/// Flashing must be refused, and nothing written: the chip goes on with what it has, unless it is silent.
#[track_caller]
fn refusal(job: &FlashJob, chip: &FakeEsp) -> Diagnostic {
    let starts = chip.state().starts;
    let error = flash(job, chip).unwrap_err();
    let was_asked = !chip.state().is_silent && !error.what().starts_with("the image has bytes");
    assert_eq!(chip.state().starts, starts + u32::from(was_asked), "{error}");
    assert!(chip.state().erased_sectors.is_empty(), "nothing was to be written: {error}");
    assert!(error.to_string().contains("\nhelp: "), "{error}");
    error
}

#[test]
fn eight_boards_are_flashed_at_once() {
    let chips: Vec<FakeEsp> = (0..8).map(|agent| FakeEsp::new(C3, FIRST_CHIP + agent)).collect();
    for chip in &chips {
        chip.state().flash[BOOTS_AT..][..5].copy_from_slice(b"boots");
    }
    let counts = Mutex::new([(0, 0); 8]);
    let saw_boots = |facts: &ChipFacts| {
        assert_eq!((&facts.boots[..5], facts.boots.len()), (&b"boots"[..], 0x2000));
        page_of(facts)
    };
    let ports = chips.iter().map(|chip| EspPort::new(&chip.plug_in())).collect();
    let outcomes = flash_all(&job(), ports, &saw_boots, &count(&counts));
    for (agent, (chip, outcome)) in chips.iter().zip(outcomes).enumerate() {
        let bytes = 95_001 + 3000 + agent;
        assert_eq!(outcome, Ok(Some(FlashedBoard { agent, bytes })));
        let chip = chip.state();
        assert!(chip.flash[..5000] == image_bytes(5000));
        assert!(chip.flash[0x1_0000..][..90_001] == image_bytes(90_001));
        assert_eq!(chip.flash[PAGE_AT..][..3000 + agent], vec![agent as u8; 3000 + agent]);
        assert_eq!(&chip.flash[BOOTS_AT..][..5], b"boots", "boots are never lost");
        assert_eq!(chip.starts, 1, "it was started");
    }
    for (agent, (total, done)) in counts.into_inner().unwrap().into_iter().enumerate() {
        assert_eq!((total, done), (2 * (98_001 + agent as u64), total), "each bar ends where it should");
    }
}

#[test]
fn an_image_that_is_there_is_not_written_again() {
    let chip = FakeEsp::new(C3, FIRST_CHIP);
    flash(&job(), &chip).unwrap();
    chip.state().erased_sectors.clear();
    let other_page = |facts: &ChipFacts| {
        let page = page_of(facts)?.unwrap();
        Ok(Some(ChipPage { bytes: vec![7; 100].into(), ..page }))
    };
    flash_all(&job(), vec![EspPort::new(&chip.plug_in())], &other_page, &|_, _| {}).remove(0).unwrap();
    assert_eq!(chip.state().erased_sectors, [PAGE_AT]);
}

#[test]
fn a_board_without_an_agent_goes_on_as_it_is() {
    let chip = FakeEsp::new(C3, FIRST_CHIP);
    let outcome = flash_all(&job(), vec![EspPort::new(&chip.plug_in())], &|_| Ok(None), &|_, _| {}).remove(0);
    assert_eq!(outcome, Ok(None));
    let facts = read_chip(&job(), &EspPort::new(&chip.plug_in())).unwrap();
    assert_eq!((facts.number, facts.boots.len()), (Some(FIRST_CHIP), 0x2000));
    let chip = chip.state();
    assert_eq!((chip.starts, chip.erased_sectors.len()), (2, 0));
}

#[test]
fn a_worn_cell_is_found_by_its_address() {
    for at in [0x1_0000 + 70_000, PAGE_AT + 16] {
        let chip = FakeEsp::new(C3, FIRST_CHIP);
        chip.state().worn = Some((at, 0x80));
        let written = if at == PAGE_AT + 16 { 0 } else { image_bytes(90_001)[70_000] };
        assert_eq!(written & 0x80, 0, "the bit must matter");
        let error = flash(&job(), &chip).unwrap_err();
        let found = written | 0x80;
        let expected = format!("has {found:#04x} at {at:#x}, where {written:#04x} was written");
        assert_eq!(error.what(), expected);
    }
}

#[test]
fn another_chip_is_refused() {
    let error = refusal(&job(), &FakeEsp::new(C6, FIRST_CHIP));
    assert_eq!(error.what(), "the chip says that it is an esp32c6, and not an esp32c3");
    let job = FlashJob { chip: "esp32c6".to_owned(), ..job() };
    assert!(flash(&job, &FakeEsp::new(C6, FIRST_CHIP)).unwrap().is_some());
}

#[test]
fn burnt_fuses_are_noticed() {
    for fuses in [1, 4] {
        let chip = FakeEsp::new(C3, FIRST_CHIP);
        chip.state().fuses = fuses;
        let error = refusal(&job(), &chip);
        assert!(error.what().starts_with("fuses of the chip are burnt"), "{error}");
    }
}

#[test]
fn an_unplugged_cable_ends_only_its_own_board() {
    let chips = [0, 1].map(|agent| FakeEsp::new(C3, FIRST_CHIP + agent));
    // Reading the boots takes 128 commands; writing the image 93.
    chips[0].state().commands_left = Some(200);
    let ports = chips.iter().map(|chip| EspPort::new(&chip.plug_in())).collect();
    let outcomes = flash_all(&job(), ports, &page_of, &|_, _| {});
    assert_eq!(outcomes[0].as_ref().unwrap_err().what(), "was unplugged while it was to be written");
    assert!(outcomes[1].is_ok(), "{outcomes:?}");
    // Plugged in again, it is flashed.
    chips[0].state().commands_left = None;
    assert!(flash(&job(), &chips[0]).unwrap().is_some());
}

#[test]
fn a_port_that_never_answers_is_given_up() {
    let chip = FakeEsp::new(C3, FIRST_CHIP);
    chip.state().is_silent = true;
    let error = refusal(&job(), &chip);
    assert!(error.what().starts_with("no boot ROM of an esp32c3 answers: "), "{error}");
    let gone = EspPort::new(Path::new("/dev/no-such-port"));
    assert!(!gone.is_espressif());
    assert!(read_chip(&job(), &gone).unwrap_err().what().starts_with("cannot be opened: "));
}

#[test]
fn too_large_an_image_or_page_is_refused() {
    let chip = FakeEsp::new(C3, FIRST_CHIP);
    let image = FlashImage::from_parts(vec![(PAGE_AT as u64 - 8, vec![1; 9])]);
    let error = refusal(&FlashJob { image, ..job() }, &chip);
    assert!(error.what().starts_with("the image has bytes from "), "{error}");
    let page_room = FlashRegion { origin: PAGE_AT as u64, bytes: 2999 };
    let error = refusal(&FlashJob { page_room, ..job() }, &chip);
    assert_eq!(error.what(), "the provisioning record takes 3000 bytes, and the board has 2999 for it");
}

#[test]
fn what_is_no_image_of_the_chip_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("image");
    std::fs::write(&file, "#!/bin/sh").unwrap();
    for (path, chip) in [(&*file, "esp32c3"), (&*file, "esp99"), (Path::new("nowhere"), "esp32c3")] {
        let error = read_image(path, chip).unwrap_err();
        assert!(error.to_string().contains("\nhelp: "), "{error}");
        assert_eq!(error.what().contains("is not the image of"), path == Path::new("nowhere"));
    }
}
