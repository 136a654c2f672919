use super::*;
use crate::codec::tests::{noise, pipeline, spec};
use crate::error::ErrorKind;

fn roundtrip(parameters: &[u32], data: &[u8]) -> usize {
    let p = pipeline(&[spec(HDF5_ID, parameters)], data.len());
    let mut scratch = Scratch::default();
    let (mut encoded, mut decoded) = (Vec::new(), Vec::new());
    p.encode(data, &mut encoded, &mut scratch).unwrap();
    p.decode(&encoded, 0, &mut decoded, &mut scratch).unwrap();
    assert!(decoded == data, "{parameters:?}, {} bytes", data.len());
    encoded.len()
}

#[test]
fn all_compressors_and_shuffles_round_trip() {
    for size in [1, 2, 3, 4, 8, 16, 255] {
        let last = if cfg!(feature = "c-codecs") { 5 } else { 4 };
        for compressor in 0..=last {
            for shuffle in 0..=2 {
                for len in [0, 1, 7, 100, 1000, 70_001, 300_000] {
                    let ramp: Vec<u8> = (0..len).map(|i| (i / 40) as u8).collect();
                    roundtrip(&[2, 2, size, 0, 5, shuffle, compressor], &ramp);
                    let stored = roundtrip(&[2, 2, size, 0, 5, shuffle, compressor], &noise(len));
                    assert!(stored <= len + 16);
                }
                let stored = roundtrip(&[2, 2, size, 0, 5, shuffle, compressor], &[7; 200_000]);
                assert!(stored < 20_000, "{compressor}: {stored}");
            }
        }
    }
}

#[test]
fn stored_at_level_zero() {
    assert_eq!(roundtrip(&[2, 2, 4, 0, 0, 1, 1], &[0; 1000]), 1016);
}

fn decode_chunk(input: &[u8], len: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    Blosc { options: Options { size: 1, level: 5, shuffle: 0, compressor: 0 } }
        .decode(input, &mut out, len, &mut Scratch::default())
        .map(|()| out)
}

/// A version 2 chunk of 16 bytes that is nothing but its header.
fn special(size: u8, kind: u8) -> Vec<u8> {
    let mut chunk = vec![5, 1, 0x05, size];
    for number in [16u32, 16, 32] {
        chunk.extend_from_slice(&number.to_le_bytes());
    }
    chunk.extend_from_slice(&[0; 15]);
    chunk.push(kind << 4);
    chunk
}

#[test]
fn special_chunks() {
    assert_eq!(decode_chunk(&special(4, 1), 16).unwrap(), [0; 16]);
    assert_eq!(decode_chunk(&special(4, 4), 16).unwrap(), [0; 16]);
    assert_eq!(decode_chunk(&special(4, 2), 16).unwrap(), [0, 0, 0xc0, 0x7f].repeat(4));
    assert_eq!(decode_chunk(&special(8, 2), 16).unwrap(), f64::NAN.to_le_bytes().repeat(2));
    assert_eq!(decode_chunk(&special(3, 2), 16).unwrap_err().kind(), ErrorKind::Corrupt);
    let mut value = special(5, 3);
    assert_eq!(decode_chunk(&value, 16).unwrap_err().kind(), ErrorKind::Corrupt);
    value.extend_from_slice(b"abcde");
    assert_eq!(decode_chunk(&value, 16).unwrap(), b"abcdeabcdeabcdea");
    assert!(decode_chunk(&value, 15).is_err());
}

#[test]
fn what_is_not_supported_is_named() {
    let mut chunk = special(4, 0);
    chunk[16] = 35;
    let error = decode_chunk(&chunk, 16).unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::Unsupported, "not supported: Blosc2 chunk with filter plugin 35")
    );
    let mut chunk = special(4, 0);
    chunk[2] |= 6 << 5;
    chunk[22] = 34;
    let error = decode_chunk(&chunk, 16).unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::Unsupported, "not supported: Blosc with compressor 34")
    );
}

/// Runs of one byte take the place of streams in version 2.
#[test]
fn streams_of_one_byte() {
    let mut chunk = special(1, 0);
    chunk[2] |= chunk::FLAG_ONE_STREAM;
    chunk.extend_from_slice(&36u32.to_le_bytes());
    let mut run = chunk.clone();
    run.extend_from_slice(&(-7i32).to_le_bytes());
    run.push(1);
    assert_eq!(decode_chunk(&run, 16).unwrap(), [7; 16]);
    run.pop();
    assert!(decode_chunk(&run, 16).is_err());
    chunk.extend_from_slice(&0i32.to_le_bytes());
    assert_eq!(decode_chunk(&chunk, 16).unwrap(), [0; 16]);
}

/// Blosc's decoder refuses streams that end with a match.
#[test]
fn blosclz_ends_with_literals() {
    let mut out = Vec::new();
    blosclz::compress(&[0; 1000], &mut out);
    assert!(out.len() < 30 && out.ends_with(&[3, 0, 0, 0, 0]));
    let mut back = [1; 1000];
    assert_eq!(blosclz::decompress(&out, &mut back), Some(1000));
    assert_eq!(back, [0; 1000]);
}
