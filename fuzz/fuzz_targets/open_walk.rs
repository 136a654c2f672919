//! Opens a file, checks its structures, walks its objects, reads their attributes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    conformance::probe::probe_bytes(data, false);
});
