//! The same, and plans and reads every array.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    conformance::probe::probe_bytes(data, true);
});
