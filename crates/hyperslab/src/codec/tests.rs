//! Tests that every codec and pipeline must pass.

use super::*;
use crate::dtype::{ByteOrder, DType, IntegerType};
use proptest::prelude::*;

pub(super) fn spec(id: u16, parameters: &[u32]) -> FilterSpec {
    FilterSpec::Hdf5 { id, flags: 0, name: Name::default(), parameters: parameters.to_vec() }
}

fn optional(id: u16, parameters: &[u32]) -> FilterSpec {
    FilterSpec::Hdf5 { id, flags: 1, name: Name::default(), parameters: parameters.to_vec() }
}

fn bytes_type() -> DType {
    DType::Integer(IntegerType::new(1, ByteOrder::Little, false))
}

/// A pipeline for chunks of `len` bytes.
pub(super) fn pipeline(specs: &[FilterSpec], len: usize) -> Pipeline {
    let dtype = bytes_type();
    let chunk = [len as u64];
    let context = BindContext { dtype: &dtype, chunk: &chunk, chunk_bytes: len as u64 };
    Registry::default().pipeline(specs, &context).unwrap()
}

/// Bytes that do not compress.
pub(super) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// What a stage is tested with: filter and parameters that fit any input.
fn stages() -> Vec<FilterSpec> {
    let mut stages = vec![
        spec(1, &[6]),
        spec(1, &[0]),
        spec(2, &[4]),
        spec(2, &[7]),
        spec(3, &[]),
        spec(307, &[1]),
        spec(32000, &[]),
        spec(32004, &[]),
        spec(32004, &[100]),
        spec(32008, &[0, 4, 4, 0, 0]),
        spec(32008, &[0, 4, 3, 16, 0]),
        spec(32008, &[0, 4, 8, 0, 2]),
        spec(32008, &[0, 4, 5, 16, 2]),
        spec(4, &[4, 8, 8, 37]),
        spec(4, &[32, 16, 8, 256]),
        spec(32001, &[2, 2, 4, 0, 5, 1, 0]),
        spec(32001, &[2, 2, 4, 0, 5, 2, 1]),
        spec(32001, &[2, 2, 3, 0, 5, 2, 3]),
        spec(32001, &[2, 2, 1, 0, 5, 0, 4]),
    ];
    if cfg!(feature = "c-codecs") {
        let zstd = [spec(32008, &[0, 4, 2, 0, 3, 1]), spec(32015, &[3]), spec(32001, &[2, 2, 8, 0, 5, 1, 5])];
        stages.extend(zstd);
    }
    stages
}

#[cfg(not(feature = "c-codecs"))]
#[test]
fn without_c_zstandard_is_refused_by_name() {
    let p = pipeline(&[spec(32015, &[3])], 4);
    let error = p.encode(&[1, 2, 3, 4], &mut Vec::new(), &mut Scratch::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("c-codecs"), "{error}");
}

#[test]
fn a_deflated_chunk_may_end_behind_what_is_wanted() {
    let (data, mut scratch) = (noise(60), Scratch::default());
    let (mut encoded, mut decoded) = (Vec::new(), Vec::new());
    pipeline(&[spec(1, &[6])], 60).encode(&data, &mut encoded, &mut scratch).unwrap();
    let mut decode = |pipeline: Pipeline, least, encoded: &[u8]| {
        let done = pipeline.decode_least(least, encoded, 0, &mut decoded, &mut scratch);
        done.map(|()| decoded.clone()).map_err(|e| (e.kind(), e.message().to_owned()))
    };
    let deflate = || pipeline(&[spec(1, &[6])], 1 << 20);
    // So few bytes could not give the whole chunk.
    assert_eq!(decode(deflate(), 60, &encoded).unwrap(), data);
    assert_eq!(decode(deflate(), 8, &encoded).unwrap(), data);
    let (kind, text) = decode(deflate(), 61, &encoded).unwrap_err();
    assert_eq!(kind, ErrorKind::Corrupt);
    assert!(text.contains("60 bytes where 1048576 are wanted"), "{text}");
    // A damaged or cut stream is none that ends early.
    assert_eq!(decode(deflate(), 8, &encoded[..encoded.len() - 1]).unwrap_err().0, ErrorKind::Corrupt);
    let mut broken = encoded.clone();
    broken[20] ^= 1;
    assert_eq!(decode(deflate(), 8, &broken).unwrap_err().0, ErrorKind::Corrupt);
    // More filters, or others, or those of Zarr: as long as they say, or wrong.
    assert!(decode(pipeline(&[spec(2, &[4]), spec(1, &[6])], 100), 8, &encoded).is_err());
    let zlib = FilterSpec::Zarr { name: "zlib".to_owned(), configuration: Json::Map(Vec::new()) };
    assert!(decode(pipeline(&[zlib], 100), 8, &encoded).is_err());
}

/// Bytes with structure: runs, ramps and noise.
fn data() -> impl Strategy<Value = Vec<u8>> {
    let run = (any::<u8>(), 1usize..600).prop_map(|(b, n)| vec![b; n]);
    let ramp =
        (any::<u8>(), 1usize..300).prop_map(|(b, n)| (0..n).map(|i| b.wrapping_add(i as u8)).collect());
    let noise = prop::collection::vec(any::<u8>(), 0..300);
    prop::collection::vec(prop_oneof![run, ramp, noise], 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_codec_round_trips(data in data()) {
        let mut scratch = Scratch::default();
        for spec in stages() {
            let p = pipeline(std::slice::from_ref(&spec), data.len());
            let (mut encoded, mut decoded) = (Vec::new(), Vec::new());
            let mask = p.encode(&data, &mut encoded, &mut scratch).unwrap();
            prop_assert_eq!(mask, 0);
            p.decode(&encoded, 0, &mut decoded, &mut scratch).unwrap();
            prop_assert_eq!(&decoded, &data, "{:?}", spec);
            // Chunks one byte shorter or longer are errors.
            for len in [data.len() + 1, data.len().saturating_sub(1)] {
                if len != data.len() {
                    let error = pipeline(std::slice::from_ref(&spec), len)
                        .decode(&encoded, 0, &mut decoded, &mut scratch).unwrap_err();
                    prop_assert_eq!(error.kind(), ErrorKind::Corrupt, "{:?}: {}", spec, error);
                }
            }
        }
    }

    /// Decoding without knowing the length gives the same, and never more than allowed.
    #[test]
    fn every_codec_honours_max(data in data(), cut in 0usize..200) {
        let mut scratch = Scratch::default();
        let dtype = bytes_type();
        let chunk = [data.len() as u64];
        let context = BindContext { dtype: &dtype, chunk: &chunk, chunk_bytes: data.len() as u64 };
        for spec in stages() {
            let codec = Registry::default().bind(&spec, &context).unwrap();
            let (mut encoded, mut decoded) = (Vec::new(), Vec::new());
            codec.encode(&data, &mut encoded, &mut scratch).unwrap();
            prop_assert!(codec.decoded_bound(encoded.len() as u64) >= data.len() as u64);
            if let Some(len) = codec.encoded_len(data.len() as u64) {
                prop_assert_eq!(len, encoded.len() as u64);
            }
            codec.decode(&encoded, &mut decoded, data.len(), &mut scratch).unwrap();
            prop_assert_eq!(&decoded, &data);
            if cut > 0 && cut <= data.len() {
                let mut out = Vec::new();
                prop_assert!(codec.decode(&encoded, &mut out, data.len() - cut, &mut scratch).is_err());
                prop_assert!(out.capacity() <= 2 * data.len() + 8192);
            }
        }
    }

    /// Damaged input is an error or other data, never a panic and never more than a chunk.
    #[test]
    fn every_codec_survives_damage(
        data in data(),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        keep in any::<prop::sample::Index>(),
    ) {
        let mut scratch = Scratch::default();
        for spec in stages() {
            let p = pipeline(std::slice::from_ref(&spec), data.len());
            let (mut encoded, mut decoded) = (Vec::new(), Vec::new());
            p.encode(&data, &mut encoded, &mut scratch).unwrap();
            if encoded.is_empty() {
                continue;
            }
            let cut = &encoded[..keep.index(encoded.len())];
            let _ = p.decode(cut, 0, &mut decoded, &mut scratch);
            for (at, xor) in &hits {
                let at = at.index(encoded.len());
                encoded[at] ^= xor;
            }
            let _ = p.decode(&encoded, 0, &mut decoded, &mut scratch);
            prop_assert!(decoded.len() == data.len() || decoded.is_empty());
        }
    }

    #[test]
    fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..400), len in 0usize..5000) {
        let mut scratch = Scratch::default();
        for spec in stages() {
            let mut decoded = Vec::new();
            let _ = pipeline(&[spec], len).decode(&noise, 0, &mut decoded, &mut scratch);
        }
    }

    #[test]
    fn stages_combine(data in data()) {
        let mut scratch = Scratch::default();
        let all = [spec(3, &[]), spec(2, &[4]), spec(1, &[1]), spec(3, &[]), spec(1, &[1]), spec(3, &[])];
        for n in 0..=all.len() {
            let p = pipeline(&all[..n], data.len());
            let (mut encoded, mut decoded) = (Vec::new(), Vec::new());
            let mask = p.encode(&data, &mut encoded, &mut scratch).unwrap();
            p.decode(&encoded, mask, &mut decoded, &mut scratch).unwrap();
            prop_assert_eq!(&decoded, &data);
        }
    }
}

#[test]
fn a_missing_filter_fails_only_where_it_is_needed() {
    let p = pipeline(&[spec(2, &[4]), spec(32017, &[])], 8);
    let mut scratch = Scratch::default();
    let mut out = Vec::new();
    let error = p.decode(&[0; 8], 0, &mut out, &mut scratch).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(error.message(), "not supported: filter 32017 (SZ)");
    assert!(p.check(0).is_err());
    p.decode(&[1, 2, 1, 2, 1, 2, 1, 2], 0b10, &mut out, &mut scratch).unwrap();
    assert_eq!(out, [1, 1, 1, 1, 2, 2, 2, 2]);
    p.decode(&[1, 2, 1, 2, 1, 2, 1, 2], 0b11, &mut out, &mut scratch).unwrap();
    assert_eq!(out, [1, 2, 1, 2, 1, 2, 1, 2]);
    assert_eq!(p.names().collect::<Vec<_>>(), ["filter 2 (shuffle)", "filter 32017 (SZ)"]);
}

#[test]
fn an_optional_stage_that_does_not_help_is_skipped() {
    let noise = noise(1000);
    let p = pipeline(&[optional(1, &[9]), spec(3, &[])], noise.len());
    let mut scratch = Scratch::default();
    let (mut encoded, mut decoded) = (Vec::new(), Vec::new());
    let mask = p.encode(&noise, &mut encoded, &mut scratch).unwrap();
    assert_eq!((mask, encoded.len()), (1, 1004));
    p.decode(&encoded, mask, &mut decoded, &mut scratch).unwrap();
    assert_eq!(decoded, noise);
}

/// 1 TiB claimed by a few bytes: refused before an allocation.
#[test]
fn an_impossible_chunk_length_is_refused_at_once() {
    let mut scratch = Scratch::default();
    let mut out = Vec::new();
    for spec in stages() {
        let p = pipeline(std::slice::from_ref(&spec), 1 << 40);
        let error = p.decode(&[0x78, 0x9c, 1, 2, 3, 4, 5, 6], 0, &mut out, &mut scratch).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{spec:?}");
        assert_eq!(out.capacity(), 0);
    }
}

/// Streams that grow a thousand times and more stop at the length of a chunk, and a chunk of 1 GiB is not allocated for a
/// hundred bytes.
#[test]
fn bombs_are_bounded() {
    let mut scratch = Scratch::default();
    for (id, parameters) in [(1, &[9u32][..]), (32015, &[3]), (307, &[9]), (32000, &[]), (32004, &[])] {
        if id == 32015 && cfg!(not(feature = "c-codecs")) {
            continue;
        }
        let zeros = vec![0; 20 << 20];
        let mut bomb = Vec::new();
        pipeline(&[spec(id, parameters)], zeros.len()).encode(&zeros, &mut bomb, &mut scratch).unwrap();
        for specs in [vec![spec(id, parameters)], vec![spec(2, &[4]), spec(id, parameters)]] {
            let mut out = Vec::new();
            let mut scratch = Scratch::default();
            let error = pipeline(&specs, 1000).decode(&bomb, 0, &mut out, &mut scratch).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert!(out.capacity() <= 1000);
        }
    }
    for id in [32015, 307] {
        let mut out = Vec::new();
        let p = pipeline(&[spec(id, &[])], 1 << 30);
        assert!(p.decode(&noise(100), 0, &mut out, &mut scratch).is_err());
        assert!(out.capacity() < 1 << 20, "filter {id}");
    }
}

/// Chunks written by h5py and hdf5plugin; see `make_codecs.py` beside them for what a line says.
#[test]
fn chunks_of_the_c_libraries() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    check_fixtures(&folder);
}

/// The same with the many more that `make_codecs.py --all` writes into the folder `HYPERSLAB_CODECS`.
#[test]
#[ignore = "needs a folder of chunks"]
fn many_chunks_of_the_c_libraries() {
    if let Ok(folder) = std::env::var("HYPERSLAB_CODECS") {
        check_fixtures(std::path::Path::new(&folder));
    }
}

fn check_fixtures(folder: &std::path::Path) {
    let text = std::fs::read_to_string(folder.join("codecs.txt")).unwrap();
    let blob = std::fs::read(folder.join("codecs.bin")).unwrap();
    let registry = Registry::default();
    let mut scratch = Scratch::default();
    let (mut out, mut failures, mut count) = (Vec::new(), Vec::new(), 0);
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |i: usize| fields[i].parse::<usize>().unwrap();
        let specs: Vec<FilterSpec> = fields[1]
            .split(';')
            .map(|filter| {
                let (id, values) = filter.split_once(':').unwrap();
                let values: Vec<u32> =
                    values.split(',').filter(|v| !v.is_empty()).map(|v| v.parse().unwrap()).collect();
                spec(id.parse().unwrap(), &values)
            })
            .collect();
        let chunk: Vec<u64> = fields[3].split(',').map(|n| n.parse().unwrap()).collect();
        let encoded = &blob[number(5)..][..number(6)];
        let decoded = &blob[number(7)..][..number(8)];
        let dtype = DType::Opaque { size: number(4), tag: Name::default() };
        let context = BindContext { dtype: &dtype, chunk: &chunk, chunk_bytes: decoded.len() as u64 };
        let mask = number(2) as u32;
        let p = registry.pipeline(&specs, &context).unwrap();
        count += 1;
        match p.decode(encoded, mask, &mut out, &mut scratch) {
            Err(e) => failures.push(format!("{}: {e}", fields[0])),
            Ok(()) if out != decoded => {
                let at = out.iter().zip(decoded).position(|(a, b)| a != b);
                failures.push(format!("{}: other bytes from {at:?} on", fields[0]));
            }
            Ok(()) => {}
        }
    }
    assert!(failures.is_empty(), "{} of {count} chunks:\n{}", failures.len(), failures.join("\n"));
}
