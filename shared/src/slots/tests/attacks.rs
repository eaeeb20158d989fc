//! Frames that were recorded, or that a member forged, and the time of those who hear them.

use super::*;

/// Agents in a line, of which only neighbours hear each other.
fn line<const AGENTS: usize>(seed: u64) -> Nodes {
    let mut nodes = Nodes::new(&[0.0; AGENTS], 40.0, seed);
    nodes.hears = Box::new(|receiver, sender| receiver.abs_diff(sender) == 1);
    nodes
}

/// An intruder that hears everything plays any of it at any time to anybody, whole runs of frames at their pace included.
#[test]
fn recordings_leave_superframes_where_they_are() {
    for seed in 0..300 {
        let mut nodes = line::<6>(seed);
        let length = nodes.length_us();
        nodes.run_until(60.0 * length);
        let is_root_dead = seed % 2 == 0;
        nodes.nodes[0].is_on = !is_root_dead;
        nodes.run_until(120.0 * length);
        let mut draw = Stream::new(seed, 9, 0, Purpose::Air);
        let mut below = |end: usize| draw.below(end as u32) as usize;
        for _ in 0..20 {
            // A run of frames of one sender from some superframe on, played at its pace, from some time on.
            let old = nodes.tape.iter().filter(|(.., at_us)| *at_us < nodes.now_us - 3.0 * length);
            let old: Vec<_> = old.copied().collect();
            let first = below(old.len());
            let count = 1 + below(12);
            let run = old[first..].iter().filter(|frame| frame.0 == old[first].0).take(count);
            let run: Vec<_> = run.copied().collect();
            let start = nodes.now_us + below(1000) as f64 / 1000.0 * length;
            let victims = 1 + below(63);
            for (sender, stamp, at_us) in &run {
                nodes.run_until(start + at_us - run[0].2);
                let now_us = nodes.now_us;
                for (id, node) in nodes.nodes.iter_mut().enumerate() {
                    if node.is_on && id != usize::from(*sender) && victims >> id & 1 == 1 {
                        let arrival = node.local(now_us);
                        node.schedule.hear(arrival, *sender, stamp);
                    }
                }
                nodes.assert_within(1.0, "recorded");
            }
            let lowest = u16::from(is_root_dead);
            assert!(nodes.roots().iter().all(|&root| root == lowest), "seed {seed}: {:?}", nodes.roots());
            assert!(nodes.numbers_agree(), "seed {seed}");
        }
    }
}

#[test]
fn one_frame_of_a_member_moves_nobody() {
    for seed in 0..200 {
        let mut nodes = line::<4>(seed);
        let length = nodes.length_us();
        nodes.run_until((60.0 + seed as f64 / 200.0) * length);
        let number = nodes.nodes[2].schedule.number();
        let mut draw = Stream::new(seed, 9, 0, Purpose::Air);
        let superframe = match seed % 3 {
            0 => u32::MAX,
            1 => number,
            _ => number.saturating_add(draw.below(100)),
        };
        let stamp = Stamp { root: 0, hops: 0, age: 0, is_timed: true, superframe };
        let arrival = nodes.nodes[2].local(nodes.now_us);
        nodes.nodes[2].schedule.hear(arrival, draw.below(2) as u16, &stamp);
        assert!(nodes.nodes[2].schedule.number() <= number + 1);
        for _ in 0..20 {
            nodes.run_until(nodes.now_us + 1.1 * length);
            nodes.assert_within(1.0, "forged");
            assert!(nodes.numbers_agree(), "seed {seed}");
        }
    }
}

/// Agent 2 of four in superframe 100, whose next superframe begins at 0 µs, and what `age` and `root` of agent 1 make of its time.
fn heard_after_news(news_age: u8, root: u16, age: u8) -> Hearing {
    let superframe = superframe(4);
    let mut schedule = SlotSchedule::new(superframe, 2, 100, 0);
    let at_us = superframe.sends_at_us(1, 100);
    let stamp = |root, age| Stamp { root, hops: 1, age, is_timed: true, superframe: 100 };
    assert_eq!(schedule.hear(at_us, 1, &stamp(0, news_age)), Hearing::Jumped);
    schedule.hear(at_us, 1, &stamp(root, age))
}

#[test]
fn only_fresher_news_of_a_root_is_followed() {
    let dead = superframe(4).give_up_after;
    assert_eq!(
        [9, 10, 11].map(|age| heard_after_news(10, 0, age)),
        [Hearing::Corrected, Hearing::Nothing, Hearing::Nothing]
    );
    assert_eq!(heard_after_news(10, 1, 0), Hearing::Nothing, "a higher root is not followed");
    let mut listening = SlotSchedule::new(superframe(4), 2, 100, 0);
    let stamp = |age| Stamp { root: 0, hops: 1, age, is_timed: true, superframe: 100 };
    assert_eq!(listening.hear(5000, 1, &stamp(dead)), Hearing::Nothing, "the root is dead");
    assert!(!listening.is_synchronised());
    assert_eq!(listening.hear(5000, 1, &stamp(dead - 1)), Hearing::Jumped);
    assert_eq!(listening.stamp().age, dead - 1);
}

#[test]
fn an_agent_in_doubt_follows_the_next_frame_and_tells_no_time() {
    let superframe = superframe(4);
    let mut schedule = SlotSchedule::new(superframe, 2, 9000, 0);
    let stamp = Stamp { root: 0, hops: 0, age: 0, is_timed: true, superframe: 9000 };
    assert_eq!(schedule.hear(0, 0, &stamp), Hearing::Jumped, "a recording");
    schedule.doubt(100);
    assert!(!schedule.stamp().is_timed && schedule.stamp().root == 2);
    let genuine = Stamp { root: 1, superframe: 100, ..stamp };
    let at_us = superframe.sends_at_us(1, 100) + 7777;
    assert_eq!(schedule.hear(at_us, 1, &genuine), Hearing::Jumped);
    assert_eq!((schedule.number(), schedule.stamp().root), (100, 1));
    assert_eq!(schedule.hear(at_us + 7777, 0, &Stamp { superframe: 101, ..stamp }), Hearing::Nothing);
}
