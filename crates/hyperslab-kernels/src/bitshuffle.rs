//! The bit shuffle of the bitshuffle library and Blosc: bit 0 of byte 0 of every element, then bit 1, and so on.
//!
//! It is made of two byte shuffles and a transposition of 8×8 bits between them, so that all of it moves whole vectors.

use crate::shuffle::{shuffle, unshuffle};

/// Puts the bits of `src` into planes: bit *b* of byte *j* of element *i* becomes bit *i* of row `8 * j + b`, least
/// significant bits first; a row is `n / 8` bytes, where `n` is the number of elements of `size` bytes. `spare` is a
/// buffer to be used again.
///
/// # Panics
/// If the slices differ in length or do not hold a multiple of 8 elements.
pub fn bitshuffle(size: usize, src: &[u8], dst: &mut [u8], spare: &mut Vec<u8>) {
    let plane = plane_len(size, src, dst);
    if plane == 0 {
        return;
    }
    spare.resize(src.len(), 0);
    shuffle(size, src, spare);
    transpose(spare);
    for (from, to) in spare.chunks_exact(plane).zip(dst.chunks_exact_mut(plane)) {
        shuffle(8, from, to);
    }
}

/// Undoes [`bitshuffle`].
///
/// # Panics
/// If the slices differ in length or do not hold a multiple of 8 elements.
pub fn bitunshuffle(size: usize, src: &[u8], dst: &mut [u8], spare: &mut Vec<u8>) {
    let plane = plane_len(size, src, dst);
    if plane == 0 {
        return;
    }
    if size == 1 {
        unshuffle(8, src, dst);
        transpose(dst);
        return;
    }
    spare.resize(src.len(), 0);
    for (from, to) in src.chunks_exact(plane).zip(spare.chunks_exact_mut(plane)) {
        unshuffle(8, from, to);
        transpose(to);
    }
    unshuffle(size, spare, dst);
}

/// Bytes of one byte plane, which is the number of elements.
fn plane_len(size: usize, src: &[u8], dst: &[u8]) -> usize {
    assert_eq!(src.len(), dst.len(), "bit shuffle of unequal slices");
    assert!(size > 0 && src.len().is_multiple_of(8 * size), "bit shuffle of a part of eight elements");
    src.len() / size
}

/// Transposes every 8 bytes as a matrix of 8×8 bits, byte *i* being row *i* with its least significant bit first.
fn transpose(bytes: &mut [u8]) {
    for eight in bytes.as_chunks_mut::<8>().0 {
        let mut x = u64::from_le_bytes(*eight);
        // Swap the bits off the diagonal of all 2×2, then 4×4, then 8×8 blocks.
        for (distance, mask) in
            [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0_u64)]
        {
            let swap = (x ^ x >> distance) & mask;
            x ^= swap ^ swap << distance;
        }
        *eight = x.to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(size: usize, src: &[u8]) -> Vec<u8> {
        let count = src.len() / size;
        let mut out = vec![0u8; src.len()];
        for i in 0..count {
            for bit in 0..8 * size {
                let value = src[i * size + bit / 8] >> (bit % 8) & 1;
                out[bit * (count / 8) + i / 8] |= value << (i % 8);
            }
        }
        out
    }

    const SIZES: &[usize] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 24, 32, 100];

    #[test]
    fn equals_the_definition() {
        let bytes: Vec<u8> = (0..40_000u32).map(|i| (i.wrapping_mul(2654435761) >> 13) as u8).collect();
        let mut spare = Vec::new();
        let (sizes, most): (&[usize], usize) = if cfg!(miri) { (&[1, 4, 7, 16], 4) } else { (SIZES, 12) };
        for &size in sizes {
            for eights in (0..most).chain([33, 48]) {
                let src = &bytes[..8 * eights * size];
                let (mut there, mut back) = (vec![0; src.len()], vec![0; src.len()]);
                bitshuffle(size, src, &mut there, &mut spare);
                assert_eq!(there, reference(size, src), "size {size}, {eights} times 8 elements");
                bitunshuffle(size, &there, &mut back, &mut spare);
                assert_eq!(back, src, "size {size}, {eights} times 8 elements");
            }
        }
    }
}
