#![no_main]

use std::sync::LazyLock;

use fabswarm_fuzz::{swarm, targets};
use fabswarm_shared::wire::seal::Key;

static KEY: LazyLock<Key> = LazyLock::new(|| Key::new(&targets::KEY));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    swarm::swarm(bytes, &KEY);
});
