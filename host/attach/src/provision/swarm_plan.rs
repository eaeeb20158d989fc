//! The needs of a scenario: radio time, memory and flash, before anything is built or flashed.

use super::page::{PageMaker, page_bytes};
use super::save_plan::SavePlan;
use crate::firmware::board_file::{self, BoardFile};
use crate::firmware::board_kind::BoardKind;
use crate::firmware::firmware_crate::FirmwareConfig;
use fabswarm_board_file::Jitter;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::agent::{Agent, MemberSet, PeerSlot};
use fabswarm_shared::problem::AnyProblem;
use fabswarm_shared::provisioning::{BOARD_MEMBERS, BOARD_MEMBERS_LARGE, BOARD_WORDS, PAGE_ROOM, Pace, Page};
use fabswarm_shared::wire::payload::Width;
use fabswarm_shared::wire::seal::TAG;
use fabswarm_sim::air::radio::{RadioConfig, RadioKind, RadioPlan, RadioTiming};
use fabswarm_sim::scenario::{Scenario, WidthKind};
use fabswarm_sim::swarm::HeapPeers;
use fabswarm_sim::trial::{self, ExactAgents};

/// Bytes that a stamp adds to a sealed frame of its own round: none besides what it replaces.
const STAMP_BYTES: usize = 2;
/// The tag of an epoch, or its number after up to 1,023 changes of the member set.
const EPOCH_BYTES: usize = 3;
/// The last boot with which frames fit their slots: boards can be flashed about 85 times from one swarm file.
pub(super) const LAST_PLANNED_BOOT: u32 = (1 << 28) - 1;
const BOOT_BYTES: usize = varint_bytes(LAST_PLANNED_BOOT);

/// The frames of one width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WidthPlan {
    /// The width.
    pub width: WidthKind,
    /// Bytes of a frame, sealed and stamped.
    pub frame_bytes: usize,
    /// Packets that it takes.
    pub packets: usize,
}

/// Whether a scenario fits a board.
#[derive(Clone, Debug, PartialEq)]
pub struct BoardRoom {
    /// The name in its `board.toml`.
    pub board: String,
    /// RAM of its chip without that of the stack.
    pub ram_bytes: u64,
    /// Room for the page.
    pub page_bytes: u64,
    /// Whether both are enough.
    pub is_enough: bool,
    /// Whether it has a radio: frames of a board without one go by cable.
    pub has_radio: bool,
    /// Its radio, if the slots are for another one.
    pub other_radio: Option<RadioKind>,
    /// Its writes to flash.
    pub saves: SavePlan,
}

/// RAM of the emulated board's firmware without its stack, by a formula: agent, peers and queues grow with the words of a decision.
fn firmware_ram_bytes(needs: &FirmwareConfig) -> usize {
    let words = needs.words.max(BOARD_WORDS);
    let members = if needs.members > BOARD_MEMBERS { BOARD_MEMBERS_LARGE } else { BOARD_MEMBERS };
    // Both sizes are linear in the words.
    let at = |small: usize, large: usize| small + (large - small) / 32 * (words - 32);
    let peer = at(size_of::<PeerSlot<32>>(), size_of::<PeerSlot<64>>());
    let agent = at(size_of::<SizedAgent<32>>(), size_of::<SizedAgent<64>>());
    let packet = PACKET_OVERHEAD_BYTES + Width::Full.payload_bytes(words).max(MemberSet::BYTES);
    (members - 1) * peer + agent + QUEUED_PACKETS * packet + FIXED_RAM_BYTES
}

/// An agent with room for `WORDS` words. Its peers are on the heap here and counted apart; the firmware keeps them in a static.
type SizedAgent<const WORDS: usize> = Agent<AnyProblem<'static, f32>, HeapPeers<WORDS>, WORDS>;

/// Packets in the queues of the firmware, and what each takes besides its payload.
const QUEUED_PACKETS: usize = 6;
const PACKET_OVERHEAD_BYTES: usize = 64;
/// RAM of the executor, the link and everything else that does not depend on the scenario.
const FIXED_RAM_BYTES: usize = 2500;

/// The demands of a scenario on boards and radio.
#[derive(Clone, Debug)]
pub struct SwarmPlan {
    /// The radio.
    pub radio: RadioTiming,
    /// The jitter that guard times are planned for: that of the worst board with this radio, if there is one.
    pub jitter: Option<Jitter>,
    /// Its slots, and what they amount to.
    pub slots: RadioPlan,
    /// The slots, encoded for a page.
    pub pace: Pace,
    /// The demands on the slots.
    pub needs: RadioConfig,
    /// Words of a decision, and how many of them travel.
    pub words: usize,
    /// Words that travel.
    pub exchanged: usize,
    /// Words that firmware must have room for.
    pub room_words: usize,
    /// Frames of each width.
    pub widths: Vec<WidthPlan>,
    /// Bytes of the longest provisioning record.
    pub page_bytes: usize,
    /// RAM of the firmware without its stack, by formula.
    pub ram_bytes: usize,
    /// The room on each board.
    pub boards: Vec<BoardRoom>,
    /// Agents that save their state in every round.
    pub saving_agents: usize,
}

impl SwarmPlan {
    /// Plans the swarm of `scenario`.
    ///
    /// # Errors
    /// If the scenario, the radio or the law does not allow it.
    pub fn new(scenario: &Scenario) -> Result<Self, Diagnostic> {
        Self::of_agents(scenario, &trial::exact_agents(scenario)?)
    }

    /// Plans the swarm of `scenario`, whose agents were made already.
    pub(crate) fn of_agents(scenario: &Scenario, parts: &ExactAgents) -> Result<Self, Diagnostic> {
        let ExactAgents { task, setup, air, rounds } = parts;
        let agents = scenario.swarm.agents;
        let count = u16::try_from(agents).map_err(|_| {
            let what = format!("{agents} agents are more than boards can be members of a swarm");
            Diagnostic::new(what, "lower swarm.agents")
        })?;
        let shape = task.shape();
        let exchanged = shape.exchanged().len();
        let mut radio = RadioTiming::of(&scenario.radio);
        let files: Vec<BoardFile> =
            board_file::names().iter().filter_map(|board| BoardFile::read(board).ok()).collect();
        let with_radio = files.iter().filter(|file| file.other_radio(radio.kind).is_none());
        let jitter = with_radio.filter_map(|file| Some(file.radio?.jitter())).max_by_key(|jitter| jitter.us);
        radio.tick_us = jitter.map_or(radio.tick_us, |jitter| jitter.us);
        let bytes = |width: Width| {
            frame_bytes(width.payload_bytes(exchanged), count, *rounds, scenario.frames.sealed)
        };
        let width = setup.config.width;
        let is_narrow = width != Width::Full;
        let section = &scenario.radio;
        let needs = RadioConfig {
            agents: count,
            frame_bytes: bytes(width),
            shared_bytes: if is_narrow { bytes(Width::Full) } else { 0 },
            control_bytes: control_bytes(agents, *rounds),
            turn: width.period().try_into().unwrap_or(u16::MAX),
            ppm: section.clock_ppm,
            hops: section.hops,
            reach_m: section.reach_m,
            compute_us: (1000.0 * section.compute_ms) as u32,
            period_us: Some((1000.0 * section.period_ms) as u64).filter(|&period| period > 0),
        };
        let slots = RadioPlan::new(&radio, &needs)?;
        let pace = pace(&slots, &needs, is_narrow);
        let longest = longest_page(&PageMaker::new(task, setup, pace, *rounds), agents)?;
        let needs_of_boards = FirmwareConfig::of(task, agents);
        let ram_bytes = firmware_ram_bytes(&needs_of_boards);
        let (words, round_us) = (shape.words(), slots.superframe.length_us());
        let room = |file: &BoardFile| {
            let ram_of_board = 1024 * (file.ram.chip_kib - file.ram.stack_kib);
            BoardRoom {
                board: file.name.clone(),
                ram_bytes: ram_of_board,
                page_bytes: file.page.bytes(),
                is_enough: ram_bytes as u64 <= ram_of_board && longest as u64 <= file.page.bytes(),
                has_radio: file.radio.is_some(),
                other_radio: file.other_radio(radio.kind),
                saves: SavePlan::new(file, words, needs_of_boards.members, round_us),
            }
        };
        let widths =
            [(WidthKind::Full, Width::Full), (WidthKind::Half, Width::Half), (WidthKind::Byte, Width::Byte)];
        Ok(Self {
            slots,
            pace,
            needs,
            words,
            exchanged,
            room_words: needs_of_boards.words,
            widths: widths
                .map(|(word, width)| WidthPlan {
                    width: word,
                    frame_bytes: bytes(width),
                    packets: radio.packets(bytes(width)).count(),
                })
                .into(),
            page_bytes: longest,
            ram_bytes,
            boards: files.iter().map(room).collect(),
            saving_agents: (0..agents).filter(|&agent| air.outages().will_remember(agent, 0)).count(),
            radio,
            jitter,
        })
    }
}

/// Bytes of the longest page of a swarm.
fn longest_page(pages: &PageMaker, agents: usize) -> Result<usize, Diagnostic> {
    let mut longest = 0;
    for agent in 0..agents {
        let (key_number, chip, boot_floor) = (u32::MAX, Some(u64::MAX), u32::MAX);
        let page = Page { key_number, chip, boot_floor, ..pages.page(agent, BoardKind::Qemu.board()) };
        longest = longest.max(page_bytes(page, PAGE_ROOM as u64)?.len());
    }
    Ok(longest)
}

/// The slots, encoded for a page. Control frames have room in shared slots, or behind each frame where there are none.
fn pace(slots: &RadioPlan, needs: &RadioConfig, is_narrow: bool) -> Pace {
    let short = |bytes: usize| u16::try_from(bytes).unwrap_or(u16::MAX);
    let (slot_bytes, shared_bytes) = match is_narrow {
        true => (needs.frame_bytes, needs.shared_bytes + needs.control_bytes),
        false => (needs.frame_bytes + needs.control_bytes, 0),
    };
    Pace::Slots {
        superframe: slots.superframe,
        slot_bytes: short(slot_bytes),
        shared_bytes: short(shared_bytes),
    }
}

/// Bytes of a stamped data frame with this payload, at most, in a run of `rounds` rounds.
fn frame_bytes(payload: usize, agents: u16, rounds: u32, is_sealed: bool) -> usize {
    let sender = varint_bytes(agents.saturating_sub(1).into());
    let root = if agents > 16 { 1 } else { 0 };
    let frame = STAMP_BYTES + root + EPOCH_BYTES + varint_bytes(rounds) + payload;
    if is_sealed { seal_bytes(sender, rounds) + frame } else { 1 + sender + frame }
}

/// Bytes of a stamped and sealed announcement of members, admission or report on silent members.
fn control_bytes(agents: usize, rounds: u32) -> usize {
    let sender = varint_bytes(agents.saturating_sub(1) as u32);
    let round = varint_bytes(rounds);
    let stamp = STAMP_BYTES + 1 + round;
    let header = 1 + sender + (EPOCH_BYTES + BOOT_BYTES + sender);
    let members = 1 + agents.div_ceil(8);
    let admission = (sender + BOOT_BYTES + round) + sender + BOOT_BYTES + 1;
    let silence = 2 + 2 * agents.next_multiple_of(8).min(64);
    seal_bytes(sender, rounds) + stamp + header + members.max(admission).max(silence)
}

/// Frames that a board seals in a round, at most: data, and news about members of each kind.
const FRAMES_PER_ROUND: u32 = 4;

/// Bytes that sealing adds: check of the key, sender, boot, counter and tag.
fn seal_bytes(sender: usize, rounds: u32) -> usize {
    1 + sender + BOOT_BYTES + varint_bytes(rounds.saturating_mul(FRAMES_PER_ROUND)) + TAG
}

/// Bytes of a number as postcard writes it.
const fn varint_bytes(number: u32) -> usize {
    match number {
        0..=0x7F => 1,
        0x80..=0x3FFF => 2,
        0x4000..=0x1F_FFFF => 3,
        0x20_0000..=0xFFF_FFFF => 4,
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabswarm_shared::slots::Stamp;
    use fabswarm_shared::wire::frame::{DataHeader, EpochTag, Frame};
    use fabswarm_shared::wire::seal::{Key, Sealer, VolatileBoots};

    fn byte_scenario() -> Scenario {
        let mut scenario = Scenario::default();
        scenario.frames.width = WidthKind::Byte;
        scenario
    }

    #[test]
    fn ten_boards_of_any_kind_with_byte_frames_make_eleven_rounds_a_second() {
        let plan = SwarmPlan::new(&byte_scenario()).unwrap();
        assert!(plan.slots.rounds_per_second >= 11.3, "{:?}", plan.slots);
        assert!(plan.boards.iter().all(|board| board.is_enough), "{plan:?}");
    }

    /// The formula against frames, late in the run.
    #[test]
    fn frames_of_all_planned_boots_fit_their_slots() {
        let (agents, rounds, payload) = (10, 3000, [1; 90]);
        let planned = frame_bytes(payload.len(), agents, rounds, true);
        let key = Key::new(&[7; 32]);
        let header = DataHeader { sender: agents - 1, epoch: EpochTag((1 << 21) - 1), round: rounds - 1 };
        let stamp = Stamp { root: 0, hops: 3, age: 9, is_timed: true, superframe: rounds - 1 };
        let length_in = |boot| {
            let (mut frame, mut stamped, mut sealed) = ([0; 128], [0; 128], [0; 160]);
            let length = Frame::Data(header, &payload).encode(&mut frame).unwrap();
            let length = stamp.join(&frame[..length], true, &mut stamped).unwrap();
            let mut sealer = Sealer::start(header.sender, boot, &mut VolatileBoots::new()).unwrap();
            (0..200).for_each(|_| _ = sealer.seal(&key, &[], &mut sealed).unwrap());
            sealer.seal(&key, &stamped[..length], &mut sealed).unwrap()
        };
        assert_eq!(length_in(LAST_PLANNED_BOOT), planned);
        assert!(length_in(1) < planned && length_in(LAST_PLANNED_BOOT + 1) > planned);
    }

    /// The formula against the linker.
    #[test]
    fn the_ram_of_the_emulated_board_is_predicted() {
        use object::{Object, ObjectSegment};
        let image = crate::image(BoardKind::Qemu).unwrap();
        let bytes = std::fs::read(image).unwrap();
        let elf = object::File::parse(&*bytes).unwrap();
        let in_ram = elf.segments().filter(|segment| segment.address() >= 0x2000_0000);
        let linked: u64 = in_ram.map(|segment| segment.size()).sum();
        let planned = SwarmPlan::new(&Scenario::default()).unwrap().ram_bytes as u64;
        assert!(planned.abs_diff(linked) * 10 < linked, "planned {planned}, linked {linked}");
    }

    #[test]
    fn a_plan_beyond_the_law_is_refused() {
        let mut scenario = byte_scenario();
        scenario.radio.kind = fabswarm_sim::scenario::RadioFamily::Lora;
        let legal = SwarmPlan::new(&scenario).unwrap();
        assert!(legal.slots.duty_cycle <= 0.01);
        scenario.radio.period_ms = 5000.0;
        let message = SwarmPlan::new(&scenario).unwrap_err().to_string();
        assert!(message.contains("the law allows 1.00 %") && message.contains("help:"), "{message}");
    }
}
