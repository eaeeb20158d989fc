#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fabswarm_fuzz::targets::seal(bytes);
});
