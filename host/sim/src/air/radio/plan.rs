//! The plan of a swarm for a radio, before anything is flashed.

use super::timing::{RadioKind, RadioTiming};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::slots::{self, SlotConfig, Superframe};

/// The time over which laws count airtime.
pub const DUTY_WINDOW_US: f64 = 3600e6;

/// The requirements of a swarm on its radio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadioConfig {
    /// Agents with a slot.
    pub agents: u16,
    /// Bytes of the frame that an agent sends in most rounds, sealed and stamped.
    pub frame_bytes: usize,
    /// Bytes of what it sends in its turn of a shared slot, a full payload; 0 if all frames are alike.
    pub shared_bytes: usize,
    /// Bytes of the longest news about members, which is sent in front of a frame: in a shared slot if there is one.
    pub control_bytes: usize,
    /// Rounds from one turn of a shared slot to the next.
    pub turn: u16,
    /// Error of the clocks.
    pub ppm: u32,
    /// Hops from the root to the farthest agent.
    pub hops: u8,
    /// The longest link.
    pub reach_m: f64,
    /// Time for computing at the end of a round.
    pub compute_us: u32,
    /// Length of a round; `None` for the shortest.
    pub period_us: Option<u64>,
}

impl Default for RadioConfig {
    fn default() -> Self {
        Self {
            agents: 10,
            frame_bytes: 120,
            shared_bytes: 0,
            control_bytes: 0,
            turn: 16,
            ppm: 40,
            hops: 4,
            reach_m: 300.0,
            compute_us: 2000,
            period_us: None,
        }
    }
}

/// A superframe for a radio, and what it amounts to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadioPlan {
    /// The slots.
    pub superframe: Superframe,
    /// Packets of a frame.
    pub packets: usize,
    /// Time that a frame is on the air.
    pub airtime_us: u32,
    /// Rounds in a second.
    pub rounds_per_second: f64,
    /// The share of time in which an agent sends.
    pub duty_cycle: f64,
    /// The share of time in which anybody sends.
    pub channel_use: f64,
    /// Mean power of an agent's radio, which listens whenever it does not send.
    pub mean_mw: f64,
    /// Energy of a round of an agent.
    pub round_mj: f64,
}

impl RadioPlan {
    /// Plans the slots of a swarm.
    ///
    /// # Errors
    /// Where the radio or the law does not allow what is wanted.
    pub fn new(radio: &RadioTiming, needs: &RadioConfig) -> Result<Self, Diagnostic> {
        for bytes in [needs.frame_bytes, needs.shared_bytes] {
            if bytes > 0 && radio.packets(bytes).count() == 0 {
                let what =
                    format!("a frame of {bytes} bytes does not fit 255 packets of {} bytes", radio.mtu);
                return Err(Diagnostic::new(what, "use narrower frames (frames.width) or a smaller problem"));
            }
        }
        let airtime_us = radio.airtime_us(needs.frame_bytes);
        let shared_airtime_us =
            if needs.shared_bytes == 0 { 0.0 } else { f64::from(radio.airtime_us(needs.shared_bytes)) };
        // In its turn, an agent sends in the shared slot instead of its own.
        let turns = if needs.shared_bytes == 0 { 0.0 } else { 1.0 / f64::from(needs.turn.max(1)) };
        let sent_us = f64::from(airtime_us) * (1.0 - turns) + shared_airtime_us * turns;
        let legal_us = radio.duty_limit.map_or(0, |limit| {
            // Any hour may hold one frame and one turn more than the average one, and clocks may be fast.
            let spare_us = limit * DUTY_WINDOW_US - f64::from(airtime_us) - shared_airtime_us;
            let fast = 1.0 + 1e-6 * f64::from(needs.ppm);
            libm::ceil(fast * sent_us * DUTY_WINDOW_US / spare_us.max(1.0)) as u64
        });

        let slots = slot_needs(radio, needs);
        let shortest = Superframe::plan(&slots).map_err(no_slots)?;
        let wanted_us = needs.period_us.unwrap_or(legal_us.max(shortest.length_us()));
        let period_ms = wanted_us as f64 / 1000.0;
        if let Some(limit) = radio.duty_limit.filter(|_| wanted_us < legal_us) {
            let (duty, least_ms) = (sent_us / wanted_us as f64, legal_us as f64 / 1000.0);
            return Err(Diagnostic::new(
                format!(
                    "rounds of {period_ms:.0} ms would have each agent send for {:.2} % of the time, and the law allows {:.2} %",
                    100.0 * duty,
                    100.0 * limit
                ),
                format!("give rounds of at least {least_ms:.0} ms, or narrower frames (frames.width)"),
            ));
        }
        if wanted_us < shortest.length_us() {
            let (agents, least_ms) = (needs.agents, shortest.length_us() as f64 / 1000.0);
            return Err(Diagnostic::new(
                format!(
                    "the slots of {agents} agents take {least_ms:.1} ms, longer than a round of {period_ms:.1} ms"
                ),
                "give longer rounds, narrower frames (frames.width) or a faster radio",
            ));
        }
        let superframe = stretched(radio, slots, shortest, wanted_us).map_err(no_slots)?;
        let period_us = superframe.length_us() as f64;
        let duty_cycle = sent_us / period_us;
        let mean_mw = duty_cycle * radio.transmit_mw + (1.0 - duty_cycle) * radio.receive_mw;
        Ok(Self {
            superframe,
            packets: radio.packets(needs.frame_bytes).count(),
            airtime_us,
            rounds_per_second: 1e6 / period_us,
            duty_cycle,
            channel_use: duty_cycle * f64::from(needs.agents),
            mean_mw,
            round_mj: mean_mw * period_us / 1e6,
        })
    }
}

fn no_slots(error: slots::Error) -> Diagnostic {
    Diagnostic::new(error.to_string(), "use fewer agents, better clocks or shorter frames")
}

/// The shortest slots that hold the frames.
fn slot_needs(radio: &RadioTiming, needs: &RadioConfig) -> SlotConfig {
    let &RadioConfig { frame_bytes, shared_bytes, control_bytes, .. } = needs;
    let (frame_us, shared_us) = match shared_bytes {
        0 => (radio.slot_us(&[frame_bytes, control_bytes]), 0),
        bytes => (radio.slot_us(&[frame_bytes]), radio.slot_us(&[bytes, control_bytes])),
    };
    SlotConfig {
        agents: needs.agents,
        frame_us,
        shared_us,
        turn: needs.turn,
        tail_us: needs.compute_us,
        ppm: needs.ppm,
        // A host brings a frame to everybody.
        hops: if radio.kind == RadioKind::Carried { 1 } else { needs.hops },
        tick_us: radio.tick_us,
        propagation_us: (needs.reach_m / 300.0) as u32 + 1,
        ..SlotConfig::default()
    }
}

/// The superframe of `slots` that takes `wanted_us`, at least as long as the `shortest`.
fn stretched(
    radio: &RadioTiming,
    mut slots: SlotConfig,
    shortest: Superframe,
    wanted_us: u64,
) -> Result<Superframe, slots::Error> {
    let mut superframe = shortest;
    if radio.kind == RadioKind::Carried {
        // Nobody knows by how much a host is late that carries frames: nearly all spare time is guard time.
        let slots_of_all = u64::from(slots.agents) + u64::from(shortest.shared_slots());
        let spare_us = (wanted_us - shortest.length_us()) / slots_of_all * 19 / 20;
        slots.tick_us +=
            u32::try_from(spare_us / (4 * (u64::from(slots.hops) + 1))).map_err(|_| slots::Error::TooLong)?;
        superframe = Superframe::plan(&slots)?;
    }
    // A longer round is a longer tail; its guard times grow with it, and the tail gives that back.
    for _ in 0..8 {
        let missing = wanted_us as i64 - superframe.length_us() as i64;
        if missing == 0 {
            break;
        }
        slots.tail_us =
            u32::try_from((i64::from(slots.tail_us) + missing).max(0)).map_err(|_| slots::Error::TooLong)?;
        superframe = Superframe::plan(&slots)?;
    }
    Ok(superframe)
}
