//! Pages, and what a board without a good one does.

use crate::rig::*;
use core::{cell::Cell, future::pending};
use embassy_futures::{
    block_on,
    select::{Either, select},
};
use embassy_time::{Instant, Timer, with_timeout};
use fabswarm_firmware::{Buffers, Parts, health::Health, link::Link, run, storage::BoardStorage};
use fabswarm_shared::{
    packet::{Boot, Packet},
    provisioning::{self, Pace},
};

#[test]
fn a_board_without_a_good_page_says_why_and_nothing_else() {
    let mut flash = blank_flash();
    let newer_key = page_with(5, Pace::Air, |page| page.key_number = 2);
    assert_eq!(first_round(&said_with(&mut flash, &newer_key, [])), 0);
    for (page, error) in [
        (vec![u32::MAX; 64], provisioning::Error::Missing),
        (page_with(5, Pace::Air, |page| page.chip = Some(7)), provisioning::Error::OtherChip),
        (page(Pace::Air), provisioning::Error::OldKey { page: 1, used: 2 }),
    ] {
        let said = said_with(&mut flash, &page, [Packet::Start { air_round: 0 }, over(0)]);
        assert!(!said.is_empty());
        for packet in said {
            let Ok(Packet::Boot(boot)) = Packet::decode(&packet) else { panic!("{packet:?} is no boot") };
            assert_eq!(boot.page, Err(error));
        }
    }
}

/// The last boot packet of a board, and whatever else it sent.
fn last_boot(said: &[Vec<u8>]) -> (Boot<'_>, Vec<Packet<'_>>) {
    let packets = said.iter().map(|packet| Packet::decode(packet).unwrap());
    let (boots, others): (Vec<_>, Vec<_>) = packets.partition(|packet| matches!(packet, Packet::Boot(_)));
    let Some(&Packet::Boot(last)) = boots.last() else { panic!("no boot packet") };
    (last, others)
}

#[test]
fn a_board_without_an_agent_takes_a_page() {
    let bytes = Packet::PageBytes { offset: 4, bytes: &[5, 6, 7, 8] };
    let commands = [
        Packet::Mark { number: 0 },
        Packet::PageBytes { offset: 0, bytes: &[1, 2, 3, 4] },
        Packet::Mark { number: 4 },
        // The cable has lost the bytes, and brings them twice afterwards.
        Packet::Mark { number: 8 },
        bytes,
        bytes,
        Packet::Mark { number: 8 },
    ];
    let mut flash = blank_flash();
    flash[PAGE_AT..].fill(0);
    let said = said_with(&mut flash, &[u32::MAX; 64], commands);
    assert_eq!(flash[PAGE_AT..PAGE_AT + 9], [1, 2, 3, 4, 5, 6, 7, 8, 0xFF]);
    let (boot, others) = last_boot(&said);
    assert_eq!(boot.page, Err(provisioning::Error::Missing));
    assert_eq!(others, [0, 4, 8].map(|number| Packet::Mark { number }));
}

#[test]
fn a_board_that_waits_leaves_its_agent_for_service() {
    let waiting = said(&page(Pace::Air), []);
    let (boot, _) = last_boot(&waiting);
    assert_eq!((boot.chip, boot.window, boot.page.unwrap().boot), (Some(CHIP), 1024, 1));
    let in_service = said(&page(Pace::Air), [Packet::Service]);
    assert_eq!(last_boot(&in_service).0.page, Err(provisioning::Error::InService));
}

#[test]
fn a_board_that_runs_keeps_its_page() {
    let page_bytes = Packet::PageBytes { offset: 0, bytes: &[1, 2, 3, 4] };
    let commands = [Packet::Start { air_round: 0 }, Packet::Service, page_bytes, over(0)];
    let mut flash = blank_flash();
    let said = said_with(&mut flash, &page(Pace::Air), commands);
    assert_eq!(flash[PAGE_AT], 0xFF);
    assert_eq!(telemetry(&said).len(), 2);
}

/// A cable without a host, as the USB port of an ESP32: it takes nothing.
struct LooseCable;

impl Link for LooseCable {
    async fn send(&mut self, _: &[u8]) {
        pending().await
    }

    async fn receive(&mut self, _: &mut [u8]) -> (usize, Instant) {
        pending().await
    }
}

struct CountingWatchdog<'a>(&'a Cell<u32>);

impl Health for CountingWatchdog<'_> {
    fn feed_watchdog(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

/// Regression: an ESP32 without page and host reset itself every eight seconds.
#[test]
fn a_board_without_page_and_host_waits() {
    let (mut flash, fed) = (blank_flash(), Cell::new(0));
    let parts = Parts {
        board: "testing",
        chip: Some(CHIP),
        window: 1024,
        page: &[0xFF; 64],
        buffers: &mut Buffers::new(),
        link: LooseCable,
        storage: BoardStorage::new(RamFlash(&mut flash)),
        health: CountingWatchdog(&fed),
        marks: None,
    };
    let is_fed = async {
        while fed.get() < 3 {
            Timer::after_millis(10).await;
        }
    };
    let outcome = block_on(select(run(parts), with_timeout(A_MINUTE, is_fed)));
    assert!(matches!(outcome, Either::Second(Ok(()))), "fed {} times", fed.get());
}
