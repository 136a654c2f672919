//! Each codec alone, on bytes that nobody encoded: for fuzzers, and for a short deterministic run.

use hyperslab::codec::{BindContext, Codec, FilterSpec, Registry, Scratch};
use hyperslab::dtype::{ByteOrder, DType, IntegerType};
use hyperslab::shape::Name;
use std::sync::Arc;

/// Names and HDF5 filter numbers of all codecs.
pub const CODECS: &[(&str, u16)] = &[
    ("deflate", 1),
    ("shuffle", 2),
    ("fletcher32", 3),
    ("szip", 4),
    ("nbit", 5),
    ("scaleoffset", 6),
    ("bzip2", 307),
    ("lzf", 32000),
    ("blosc", 32001),
    ("lz4", 32004),
    ("bitshuffle", 32008),
    ("zfp", 32013),
    ("zstd", 32015),
    ("blosc2", 32026),
];

/// Those that give back what they were given, with parameters that make them do so.
const EXACT: &[(u16, &[u32])] = &[
    (1, &[4]),
    (2, &[4]),
    (3, &[]),
    (307, &[9]),
    (32000, &[]),
    (32001, &[2, 2, 4, 256, 5, 1, 1]),
    (32004, &[0]),
    (32008, &[0, 5, 4, 0, 2]),
    (32015, &[3]),
];

/// Extents of the chunk of every run, and its bytes: 4 to an element.
const CHUNK: &[u64] = &[8, 8];
const CHUNK_BYTES: usize = 256;

fn bind(id: u16, parameters: Vec<u32>, size: usize) -> Option<Arc<dyn Codec>> {
    let dtype = DType::Integer(IntegerType::new(size, ByteOrder::Little, true));
    let spec = FilterSpec::Hdf5 { id, flags: 0, name: Name::default(), parameters };
    let context = BindContext { dtype: &dtype, chunk: CHUNK, chunk_bytes: 64 * size as u64 };
    Registry::default().bind(&spec, &context).ok()
}

/// Binds the codec to parameters taken from `data` and decodes the rest of it. Panics if the codec breaks its contract.
pub fn decode(id: u16, data: &[u8]) {
    let Some((&[count, size], rest)) = data.split_first_chunk::<2>() else { return };
    let size = [1, 2, 4, 8][usize::from(size) % 4];
    let (words, input) = rest.split_at(rest.len().min(4 * usize::from(count % 16)));
    let parameters = words.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
    let Some(codec) = bind(id, parameters, size) else { return };
    let (mut out, mut scratch) = (Vec::new(), Scratch::default());
    let max = 64 * size;
    if codec.decode(input, &mut out, max, &mut scratch).is_ok() {
        assert!(out.len() <= max, "{} bytes where {max} are allowed", out.len());
    }
    let mut exact = vec![0; max];
    let _ = codec.decode_into(input, &mut exact, &mut scratch);
}

/// Encodes `data` (a chunk of it) and decodes that; then decodes it with `damage` applied, which may fail but not fall.
pub fn round_trip(id: u16, data: &[u8], damage: impl FnOnce(&mut Vec<u8>)) {
    let Some((_, parameters)) = EXACT.iter().find(|(exact, _)| *exact == id) else { return };
    let codec = bind(id, parameters.to_vec(), 4).expect("these parameters are good");
    let mut chunk = data.to_vec();
    chunk.resize(CHUNK_BYTES, 7);
    let (mut encoded, mut scratch) = (Vec::new(), Scratch::default());
    if codec.encode(&chunk, &mut encoded, &mut scratch).is_err() {
        return; // Some codecs refuse what they cannot shrink, some only decode.
    }
    let mut back = Vec::new();
    codec.decode(&encoded, &mut back, CHUNK_BYTES, &mut scratch).expect("what was encoded decodes");
    assert_eq!(back, chunk, "{} gives something else back", codec.name());
    damage(&mut encoded);
    back.clear();
    if codec.decode(&encoded, &mut back, CHUNK_BYTES, &mut scratch).is_ok() {
        assert!(back.len() <= CHUNK_BYTES);
    }
}
