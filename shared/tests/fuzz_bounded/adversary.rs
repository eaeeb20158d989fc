//! An intruder without the key, that records every frame of every life of a swarm and plays any of it at any time to anybody.

use crate::swarm::{AGENTS, Recorded, Station, config, round};
use fabswarm_shared::agent::{Config, Epoch, Mode, Received};
use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_shared::wire::Frame;

/// The first boot of the boards of a second page, from which on numbers of epochs once repeated.
const PAGE: u32 = 1 + (1 << 20);

/// A station that gives nobody up.
fn patient(id: usize, boot: u32, mode: Mode) -> Station {
    Station::new(Config { give_up_after: None, ..config(id, boot, mode) })
}

fn is_settled(stations: &[Station]) -> bool {
    let epoch = stations[0].agent.epoch();
    let is_in = |Station { agent, .. }: &Station| agent.epoch() == epoch && !agent.is_waiting();
    epoch > Epoch::FIRST && stations.iter().all(is_in)
}

/// A first life of four agents and a guest, with two restarts: its tape, and the boots of a second life.
fn first_life(first_boot: u32, mode: Mode, seed: u64) -> (Vec<Recorded>, Vec<u32>) {
    let mut stations: Vec<_> = (0..=AGENTS).map(|id| patient(id, first_boot, mode)).collect();
    let mut tape = Vec::new();
    for now in 0..400 {
        if [150, 200].contains(&now) {
            stations[1 + (seed as usize + now) % 3].restart(false);
        }
        round(&mut stations, |_, _| true, &mut tape);
    }
    assert!(is_settled(&stations), "{mode:?}, seed {seed}");
    (tape, stations.iter().map(|station| station.config.boot + 1).collect())
}

/// Founds the second life, without the guest.
fn second_life(boots: &[u32], mode: Mode) -> (Vec<Station>, Vec<Recorded>) {
    let mut stations: Vec<_> = (0..AGENTS).map(|id| patient(id, boots[id], mode)).collect();
    let mut tape = Vec::new();
    while !is_settled(&stations) {
        round(&mut stations, |_, _| true, &mut tape);
        assert!(tape.len() < 10_000, "nobody founds the swarm");
    }
    (stations, tape)
}

/// Plays the second life with and without the intruder, and returns how far apart the answers are.
fn attacked(seed: u64, mode: Mode, rounds: u32) -> f32 {
    let (mut tape, boots) = first_life([1, 8190, PAGE][seed as usize % 3], mode, seed);
    let [(mut alone, _), (mut victims, newer)] = [(); 2].map(|()| second_life(&boots, mode));
    tape.extend(newer);
    let mut draw = Stream::new(seed, 7, 0, Purpose::Air);
    let mut unused = Vec::new();
    // Where it plays a run of one sender's frames, it goes on where it stopped.
    let mut next = 0;
    for now in 0..rounds {
        let is_up: Vec<bool> = (0..AGENTS * AGENTS).map(|_| draw.uniform_f64() < 0.7).collect();
        let hears = |receiver: usize, sender: usize| is_up[receiver * AGENTS + sender];
        for _ in 0..draw.below(9) {
            next = if draw.below(3) == 0 { draw.below(tape.len() as u32) as usize } else { next + 1 };
            let Some(played) = tape.get(next) else { continue };
            let receivers = draw.below(16);
            for receiver in (0..AGENTS).filter(|id| receivers >> id & 1 == 1) {
                let _ = victims[receiver].hear(played);
            }
        }
        round(&mut alone, hears, &mut unused);
        round(&mut victims, hears, &mut tape);
        if mode == Mode::LockStep {
            for (one, other) in alone.iter().zip(&victims) {
                let state = |station: &Station| (station.agent.digest(), *station.agent.members());
                assert_eq!(state(one), state(other), "seed {seed}, round {now}, agent {}", one.agent.id());
            }
        }
    }
    let x = |station: &Station| station.agent.decision()[0];
    let gaps = alone.iter().zip(&victims).map(|(one, other)| (x(one) - x(other)).abs() / x(one).abs());
    gaps.fold(0.0, f32::max)
}

#[test]
fn no_schedule_of_recordings_changes_a_refounded_swarm() {
    let cases = if std::env::var_os("FABSWARM_LONG").is_some() { 4000 } else { 200 };
    // In schedule 1912 a hello of a later round is held back until that round.
    for seed in (0..cases).chain([1912]) {
        assert_eq!(attacked(seed, Mode::LockStep, 150), 0.0);
    }
    for seed in 0..cases / 20 {
        let distance = attacked(seed, Mode::FreeRunning, 2000);
        assert!(distance < 0.01, "seed {seed}: {distance}");
    }
}

/// A guest of the first life is gone. Its frames are ahead of the second life in rounds, and of another founding.
#[test]
fn the_tape_of_a_guest_moves_no_round_and_opens_no_old_epoch() {
    for mode in [Mode::LockStep, Mode::FreeRunning] {
        let (tape, boots) = first_life(PAGE, mode, 2);
        let (mut stations, _) = second_life(&boots, mode);
        let (epoch, first_round) = (stations[0].agent.epoch(), stations[0].agent.round());
        for (now, played) in (0..).zip(tape.iter().filter(|recorded| recorded.sender == AGENTS)) {
            let frame = Frame::decode(&played.frame).unwrap();
            for station in &mut stations {
                let received = station.hear(played);
                let tells_time = station.agent.may_tell_time(&frame, received);
                assert!(!tells_time, "boards in slots would take its time");
                assert!(!matches!(received, Some(Received::Taken | Received::Early | Received::NewEpoch)));
            }
            if now % 4 == 3 {
                round(&mut stations, |_, _| true, &mut Vec::new());
            }
        }
        let rounds = stations[0].agent.round() - first_round;
        assert!(rounds < 200, "{mode:?}: {rounds}");
        let is_as_before =
            |Station { agent, .. }: &Station| agent.epoch() == epoch && agent.members().len() == 4;
        assert!(stations.iter().all(is_as_before));
    }
}
