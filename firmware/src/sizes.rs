//! Sizes of swarm and problem that the firmware is built for.

use fabswarm_shared::{
    agent::MemberSet,
    packet,
    provisioning::{BOARD_MEMBERS, BOARD_MEMBERS_LARGE, BOARD_WORDS},
    slots, wire,
};

/// Words of the packed decision `[x | y | z]`: the variable `FABSWARM_WORDS` of the build, or as many as the default scenario has.
pub const WORDS: usize = match option_env!("FABSWARM_WORDS") {
    Some(words) => number(words),
    None => BOARD_WORDS,
};

/// Members of the swarm, this agent included: the variable `FABSWARM_MEMBERS` of the build, or those of a small or large swarm.
pub const MEMBERS: usize = match option_env!("FABSWARM_MEMBERS") {
    Some(members) => number(members),
    None if cfg!(feature = "large-swarm") => BOARD_MEMBERS_LARGE,
    None => BOARD_MEMBERS,
};

/// Reads a number at compile time.
const fn number(text: &str) -> usize {
    match usize::from_str_radix(text, 10) {
        Ok(number) if number > 1 => number,
        _ => panic!("FABSWARM_WORDS and FABSWARM_MEMBERS must be numbers above 1"),
    }
}

/// Bytes of the longest frame of an agent.
pub(crate) const FRAME: usize = {
    let data = wire::frame::DATA_HEADER_MAX + wire::payload::Width::Full.payload_bytes(WORDS);
    let members = wire::frame::MEMBERS_HEADER_MAX + MemberSet::BYTES;
    if data > members { data } else { members }
};

/// Bytes of the longest frame with a stamp.
pub(crate) const STAMPED: usize = slots::STAMP_MAX + FRAME;

pub(crate) const MEMBER_BYTES: usize = MEMBERS.div_ceil(8);

/// Bytes of the longest packet: a sealed frame.
pub const PACKET: usize = packet::FRAME_OFFSET + STAMPED + wire::seal::OVERHEAD_MAX;

/// Bytes of the longest packet on a serial line.
pub const LINE: usize = wire::stream::encoded_max(PACKET);

pub(crate) const PEERS: usize = MEMBERS - 1;
