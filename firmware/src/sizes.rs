//! How large a swarm and its problem may be: the constants a firmware is built with.

use fabswarm_shared::{packet, wire};

/// Words of the packed decision `[x | y | z]`: a policy evaluation with 20 states and 5 features.
pub const WORDS: usize = 45;

/// Members of the swarm, this agent included.
pub const MEMBERS: usize = if cfg!(feature = "large-swarm") { 128 } else { 16 };

/// Bytes of the longest packet: a sealed frame in full width.
pub const PACKET: usize = packet::FRAME_OFFSET
    + wire::frame::DATA_HEADER_MAX
    + 1
    + 2 * WORDS * size_of::<f32>()
    + wire::seal::OVERHEAD_MAX;
