//! One codec, the one that the target is named after: decodes any bytes, and gives back what it encoded.
#![no_main]

use conformance::codecs::{CODECS, decode, round_trip};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let name = env!("CARGO_BIN_NAME");
    let id =
        CODECS.iter().find(|(n, _)| *n == name).map(|(_, id)| *id).expect("a target named after a codec");
    decode(id, data);
    round_trip(id, data, |encoded| {
        if let (Some(&at), Some(&value)) = (data.first(), data.get(1)) {
            let at = usize::from(at) % encoded.len().max(1);
            if let Some(byte) = encoded.get_mut(at) {
                *byte = value;
            }
        }
    });
});
