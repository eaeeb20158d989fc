//! The digest's coverage, the names of the words of a state, and the room that an agent needs.

use super::*;
use crate::problem::testing::OraclesOnly;
use std::format;
use std::string::{String, ToString};

/// An error in a gradient would otherwise show only once its share has travelled.
#[test]
fn a_gradient_or_descent_that_differs_in_one_bit_is_in_the_digest() {
    let agent = agent(config(0));
    for (word, bit) in (0..WORDS).flat_map(|word| (0..32).map(move |bit| (word, bit))) {
        let [mut one, mut other] = [agent.clone(), agent.clone()];
        for changed in [&mut one.ledger.gradient[word], &mut other.ledger.accumulator[word]] {
            *changed = f32::from_bits(changed.to_bits() ^ 1 << bit);
        }
        assert!(![one.digest(), other.digest()].contains(&agent.digest()), "word {word}, bit {bit}");
    }
}

/// The names of all words of a state, in their order.
#[test]
fn every_word_of_a_saved_state_has_its_name() {
    let agents = swarm_after(3);
    let state = saved(&agents[0]);
    let names: Vec<String> =
        (0..state.len()).map(|word| StateField::find(&state, word).unwrap().to_string()).collect();
    let name_of = |bits: u32| &*names[state.iter().position(|&word| word == bits).unwrap()];
    for (index, part) in ["x[0]", "x[1]", "y[0]", "y[1]", "y[2]", "y[3]", "z[0]", "z[1]", "z[2]", "z[3]"]
        .into_iter()
        .enumerate()
    {
        assert_eq!(name_of(agents[0].decision()[index].to_bits()), format!("decision.{part}"));
        assert_eq!(name_of(agents[0].gradient()[index].to_bits()), format!("gradient.{part}"));
        assert_eq!(name_of(agents[0].sigma()[index] as u32), format!("sigma.{part}"));
    }
    let collected: Vec<_> = agents[0].collected().collect();
    assert_eq!(name_of(collected[1].rho[3] as u32), format!("peer {} rho[3]", collected[1].sender));
    assert_eq!(names[6], "round");
    // Remainders have 64 bits.
    assert_eq!(names[106..109], ["remainder.x[0]", "remainder.x[0]", "remainder.x[1]"]);
    assert_eq!(names[125..127], ["remainder.z[3]", "peers"]);
    assert_eq!(names.last().unwrap(), &format!("peer {} rho[9]", collected.last().unwrap().sender));
    assert_eq!(StateField::find(&state, state.len()), None);
    assert_eq!(StateField::find(&state[..4], 0), None);
    let mut other_version = state.clone();
    other_version[0] ^= 1;
    assert_eq!(StateField::find(&other_version, 0), None);
    for (words, is_known) in [(1 << 20, true), ((1 << 20) + 1, false)] {
        let mut wide = state.clone();
        wide[2] = words;
        assert_eq!(StateField::find(&wide, 0).is_some(), is_known, "{words} words of x");
    }
    let [float, integer] = [20 + 32, 6].map(|word| StateField::find(&state, word).unwrap());
    assert_eq!(float.value(0.5_f32.to_bits()).to_string(), "5e-1");
    assert_eq!(integer.value(7).to_string(), "7");
}

/// A user's problem whose oracles need more than the agent has, once the gradient of the penalty has taken its part.
#[test]
fn an_agent_without_room_for_the_default_gradient_is_refused() {
    let problem = problem(0);
    let plain = || OraclesOnly(&problem);
    let peers = heapless::Vec::<PeerSlot<WORDS>, 8>::new();
    let error = Agent::<_, _, WORDS>::new(config(0), plain(), &[0.0; WORDS], peers).unwrap_err();
    assert_eq!(error, Error::TooLarge { needed: 14, room: WORDS });
    let peers = heapless::Vec::<PeerSlot<14>, 8>::new();
    let mut agent = Agent::<_, _, 14>::new(config(0), plain(), &[0.0; WORDS], peers).unwrap();
    let _ = agent.end_round();
}
