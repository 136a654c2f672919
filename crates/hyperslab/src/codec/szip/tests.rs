use super::*;
use crate::codec::tests::{noise, pipeline, spec};

#[test]
fn all_widths_round_trip() {
    let mut scratch = Scratch::default();
    for options in [4, 4 | OPTION_MSB, OPTION_NEAREST_NEIGHBOUR, OPTION_NEAREST_NEIGHBOUR | OPTION_MSB] {
        for (bits, size) in [(1, 1), (5, 1), (8, 1), (9, 2), (16, 2), (17, 4), (24, 4), (32, 4), (64, 8)] {
            for (block, line) in [(2, 2), (8, 37), (16, 4096), (32, 33)] {
                for count in [1, 7, 100, 5000] {
                    let kinds = [
                        vec![0; count * size],
                        noise(count * size),
                        (0..count * size).map(|i| (i / 9) as u8).collect(),
                    ];
                    for mut data in kinds {
                        // Bits above those of the sample are not stored.
                        let keep = ((1u64 << (bits % 64)) - 1).to_le_bytes();
                        if bits < 32 {
                            for sample in data.chunks_exact_mut(size) {
                                sample.iter_mut().zip(keep).for_each(|(byte, keep)| *byte &= keep);
                                if options & OPTION_MSB != 0 {
                                    sample.reverse();
                                }
                            }
                        }
                        let p = pipeline(&[spec(HDF5_ID, &[options, block, bits, line])], data.len());
                        let (mut encoded, mut decoded) = (Vec::new(), Vec::new());
                        p.encode(&data, &mut encoded, &mut scratch).unwrap();
                        p.decode(&encoded, 0, &mut decoded, &mut scratch).unwrap();
                        assert!(
                            decoded == data,
                            "options {options}, {bits} bits, blocks of {block}, lines of {line}"
                        );
                    }
                }
            }
        }
    }
}

/// A count of zero blocks that goes far beyond the line.
#[test]
fn too_many_zero_blocks_are_refused() {
    let p = pipeline(&[spec(HDF5_ID, &[4, 8, 8, 16])], 100);
    let mut input = 100u32.to_le_bytes().to_vec();
    input.extend_from_slice(&[0; 5000]);
    input.push(1);
    let error = p.decode(&input, 0, &mut Vec::new(), &mut Scratch::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}
