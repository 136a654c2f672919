//! The byte shuffle of HDF5 and Blosc: byte 0 of every element, then byte 1 of every element, and so on.
//!
//! Element sizes 2, 4, 8 and 16 run through rounds of interleaving 16-byte blocks; other sizes are transposed in tiles.

use lanes::{interleave, separate};

/// One block of a byte plane.
type Block = [u8; 16];

/// Puts the bytes of `src` into planes: byte *j* of element *i* goes to `j * n + i`, where `n` is the number of whole
/// elements of `size` bytes. Bytes after the last whole element stay where they are.
///
/// # Panics
/// If the slices differ in length.
pub fn shuffle(size: usize, src: &[u8], dst: &mut [u8]) {
    assert_eq!(src.len(), dst.len(), "shuffle of unequal slices");
    let count = if size > 1 { src.len() / size } else { 0 };
    let (body, rest) = src.split_at(count * size);
    let (planes, tail) = dst.split_at_mut(count * size);
    tail.copy_from_slice(rest);
    match size {
        _ if count == 0 => {}
        2 => shuffle_blocks::<2>(body, planes, count),
        4 => shuffle_blocks::<4>(body, planes, count),
        8 => shuffle_blocks::<8>(body, planes, count),
        16 => shuffle_blocks::<16>(body, planes, count),
        _ => shuffle_tiles(size, body, planes, count, 0),
    }
}

/// Undoes [`shuffle`].
///
/// # Panics
/// If the slices differ in length.
pub fn unshuffle(size: usize, src: &[u8], dst: &mut [u8]) {
    assert_eq!(src.len(), dst.len(), "unshuffle of unequal slices");
    let count = if size > 1 { src.len() / size } else { 0 };
    let (planes, rest) = src.split_at(count * size);
    let (body, tail) = dst.split_at_mut(count * size);
    tail.copy_from_slice(rest);
    match size {
        _ if count == 0 => {}
        2 => unshuffle_blocks::<2>(planes, body, count),
        4 => unshuffle_blocks::<4>(planes, body, count),
        8 => unshuffle_blocks::<8>(planes, body, count),
        16 => unshuffle_blocks::<16>(planes, body, count),
        _ => unshuffle_tiles(size, planes, body, count, 0),
    }
}

/// `a0 b0 a1 b1 …` in two blocks, and the way back.
#[cfg(not(target_arch = "x86_64"))]
mod lanes {
    use super::Block;

    #[inline(always)]
    pub(super) fn interleave(a: Block, b: Block) -> (Block, Block) {
        let (mut low, mut high) = ([0; 16], [0; 16]);
        for i in 0..8 {
            (low[2 * i], low[2 * i + 1]) = (a[i], b[i]);
            (high[2 * i], high[2 * i + 1]) = (a[8 + i], b[8 + i]);
        }
        (low, high)
    }

    #[inline(always)]
    pub(super) fn separate(low: Block, high: Block) -> (Block, Block) {
        let (mut a, mut b) = ([0; 16], [0; 16]);
        for i in 0..8 {
            (a[i], b[i]) = (low[2 * i], low[2 * i + 1]);
            (a[8 + i], b[8 + i]) = (high[2 * i], high[2 * i + 1]);
        }
        (a, b)
    }
}

/// `a0 b0 a1 b1 …` in two blocks, and the way back, with SSE2, which every x86-64 has. Compilers do not find these
/// instructions by themselves in the plain version above; it runs at a fifth of the speed.
#[cfg(target_arch = "x86_64")]
mod lanes {
    use super::Block;
    use std::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_packus_epi16, _mm_set1_epi16, _mm_srli_epi16, _mm_unpackhi_epi8,
        _mm_unpacklo_epi8,
    };

    #[inline(always)]
    fn load(block: Block) -> __m128i {
        // SAFETY: both types are 16 bytes without padding, and every bit pattern is valid for both.
        unsafe { std::mem::transmute(block) }
    }

    #[inline(always)]
    fn store(lanes: __m128i) -> Block {
        // SAFETY: as in `load`.
        unsafe { std::mem::transmute(lanes) }
    }

    #[inline(always)]
    pub(super) fn interleave(a: Block, b: Block) -> (Block, Block) {
        let (a, b) = (load(a), load(b));
        // SAFETY: SSE2 is part of x86-64.
        unsafe { (store(_mm_unpacklo_epi8(a, b)), store(_mm_unpackhi_epi8(a, b))) }
    }

    #[inline(always)]
    pub(super) fn separate(low: Block, high: Block) -> (Block, Block) {
        let (low, high) = (load(low), load(high));
        // SAFETY: SSE2 is part of x86-64. The lanes that are packed are below 256, so that nothing saturates.
        unsafe {
            let even = _mm_set1_epi16(0xff);
            let a = _mm_packus_epi16(_mm_and_si128(low, even), _mm_and_si128(high, even));
            let b = _mm_packus_epi16(_mm_srli_epi16::<8>(low), _mm_srli_epi16::<8>(high));
            (store(a), store(b))
        }
    }
}

/// 16 elements of `T` bytes at a time. Interleaving plane *i* with plane *i + T/2*, log2(T) times over, is the whole
/// transposition.
fn unshuffle_blocks<const T: usize>(planes: &[u8], body: &mut [u8], count: usize) {
    let whole = count / 16 * 16;
    for (block, out) in body.chunks_exact_mut(16 * T).enumerate() {
        let mut v = [[0u8; 16]; T];
        for (j, v) in v.iter_mut().enumerate() {
            let at = j * count + block * 16;
            v.copy_from_slice(&planes[at..at + 16]);
        }
        let mut round = 1;
        while round < T {
            let old = v;
            for i in 0..T / 2 {
                (v[2 * i], v[2 * i + 1]) = interleave(old[i], old[i + T / 2]);
            }
            round *= 2;
        }
        for (out, v) in out.chunks_exact_mut(16).zip(&v) {
            out.copy_from_slice(v);
        }
    }
    unshuffle_tiles(T, planes, body, count, whole);
}

fn shuffle_blocks<const T: usize>(body: &[u8], planes: &mut [u8], count: usize) {
    let whole = count / 16 * 16;
    for (block, input) in body.chunks_exact(16 * T).enumerate() {
        let mut v = [[0u8; 16]; T];
        for (v, input) in v.iter_mut().zip(input.chunks_exact(16)) {
            v.copy_from_slice(input);
        }
        let mut round = 1;
        while round < T {
            let old = v;
            for i in 0..T / 2 {
                (v[i], v[i + T / 2]) = separate(old[2 * i], old[2 * i + 1]);
            }
            round *= 2;
        }
        for (j, v) in v.iter().enumerate() {
            let at = j * count + block * 16;
            planes[at..at + 16].copy_from_slice(v);
        }
    }
    shuffle_tiles(T, body, planes, count, whole);
}

/// Elements transposed in one tile, so that the strided side stays in the first-level cache.
const TILE: usize = 64;

/// Any size, from element `first` on.
fn unshuffle_tiles(size: usize, planes: &[u8], body: &mut [u8], count: usize, first: usize) {
    for start in (first..count).step_by(TILE) {
        let end = count.min(start + TILE);
        let tile = &mut body[start * size..end * size];
        for j in 0..size {
            let plane = &planes[j * count + start..j * count + end];
            for (out, &byte) in tile[j..].iter_mut().step_by(size).zip(plane) {
                *out = byte;
            }
        }
    }
}

fn shuffle_tiles(size: usize, body: &[u8], planes: &mut [u8], count: usize, first: usize) {
    for start in (first..count).step_by(TILE) {
        let end = count.min(start + TILE);
        let tile = &body[start * size..end * size];
        for j in 0..size {
            let plane = &mut planes[j * count + start..j * count + end];
            for (out, &byte) in plane.iter_mut().zip(tile[j..].iter().step_by(size)) {
                *out = byte;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(size: usize, src: &[u8]) -> Vec<u8> {
        let mut out = src.to_vec();
        if let Some(count) = src.len().checked_div(size) {
            for i in 0..count {
                for j in 0..size {
                    out[j * count + i] = src[i * size + j];
                }
            }
        }
        out
    }

    /// Every size up to 40 with every length up to 700: all block, tile and tail cases.
    #[test]
    fn equals_the_definition() {
        let bytes: Vec<u8> = (0..4000u32).map(|i| (i.wrapping_mul(2654435761) >> 13) as u8).collect();
        // Miri is a thousand times slower, and wants to see each path once.
        let (sizes, step) = if cfg!(miri) { (17, 149) } else { (40, 1) };
        for size in (0..sizes).chain([100, 300]) {
            for len in (0..700).step_by(step).chain([2047, 2048, 4000]) {
                let (mut there, mut back) = (vec![0; len], vec![0; len]);
                shuffle(size, &bytes[..len], &mut there);
                assert_eq!(there, reference(size, &bytes[..len]), "size {size}, length {len}");
                unshuffle(size, &there, &mut back);
                assert_eq!(back, bytes[..len], "size {size}, length {len}");
            }
        }
    }
}
