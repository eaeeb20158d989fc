//! Sizes of swarm and problem that the firmware is built for.

use fabswarm_shared::{
    agent::MemberSet,
    packet,
    provisioning::{BOARD_MEMBERS, BOARD_MEMBERS_LARGE, BOARD_WORDS},
    slots, wire,
};

/// Words of the packed decision `[x | y | z]`.
pub const WORDS: usize = BOARD_WORDS;

/// Members of the swarm, this agent included.
pub const MEMBERS: usize = if cfg!(feature = "large-swarm") { BOARD_MEMBERS_LARGE } else { BOARD_MEMBERS };

/// Bytes of the longest frame of an agent.
pub(crate) const FRAME: usize = {
    let payload = wire::payload::Width::Full.payload_bytes(WORDS);
    let longest = if payload > MemberSet::BYTES { payload } else { MemberSet::BYTES };
    wire::frame::DATA_HEADER_MAX + longest
};

/// Bytes of the longest frame with a stamp.
pub(crate) const STAMPED: usize = slots::STAMP_MAX + FRAME;

/// Bytes of a set of members.
pub(crate) const MEMBER_BYTES: usize = MEMBERS.div_ceil(8);

/// Bytes of the longest packet: a sealed frame.
pub const PACKET: usize = packet::FRAME_OFFSET + STAMPED + wire::seal::OVERHEAD_MAX;

/// Bytes of the longest packet on a serial line.
pub const LINE: usize = wire::stream::encoded_max(PACKET);

/// Most peers of an agent.
pub(crate) const PEERS: usize = MEMBERS - 1;
