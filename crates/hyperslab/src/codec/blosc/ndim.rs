//! The order of the elements of an array of several dimensions in a frame: metalayer `b2nd`.
//!
//! The array is one chunk, padded to whole blocks; blocks stand one behind the other, and elements in a block, both in C
//! order.

use super::super::corrupt;
use crate::error::{Error, Result};
use crate::shape::{MAX_RANK, byte_count, to_usize};
use smallvec::SmallVec;

type Extents = SmallVec<[u64; 4]>;

/// How the array of a frame is cut into blocks.
pub(super) struct Shape {
    /// Bytes of an element.
    size: usize,
    array: Extents,
    block: Extents,
    /// Bytes of the array without padding.
    pub(super) array_len: u64,
}

/// A walk through MessagePack.
struct Pack<'a>(&'a [u8]);

impl Pack<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    /// A small number, an int32 or an int64, none of them negative.
    fn number(&mut self) -> Option<u64> {
        match self.take()? {
            [n @ 0..0x80] => Some(n.into()),
            [0xd2] => u64::try_from(i32::from_be_bytes(self.take()?)).ok(),
            [0xd3] => u64::try_from(i64::from_be_bytes(self.take()?)).ok(),
            _ => None,
        }
    }

    fn extents(&mut self, rank: usize) -> Option<Extents> {
        let [head] = self.take()?;
        (head == 0x90 | u8::try_from(rank).ok()?).then(|| (0..rank).map(|_| self.number()).collect())?
    }
}

impl Shape {
    /// From the metalayer: version, rank, extents of the array, of a chunk and of a block.
    pub(super) fn parse(codec: &'static str, layer: &[u8], size: usize) -> Result<Shape> {
        let mut pack = Pack(layer);
        let parts = (|| {
            pack.take::<1>()?;
            pack.number()?;
            let rank = usize::try_from(pack.number()?).ok().filter(|&r| r <= MAX_RANK.min(15))?;
            Some((pack.extents(rank)?, pack.extents(rank)?, pack.extents(rank)?))
        })();
        let (array, chunk, block) = parts.ok_or_else(|| corrupt(codec, "the b2nd metalayer is damaged"))?;
        if array != chunk {
            return Err(Error::unsupported(format_args!(
                "Blosc2 array of extents {array:?} in chunks of {chunk:?} inside an HDF5 chunk"
            )));
        }
        if block.iter().zip(&array).any(|(&b, &a)| b == 0 || b > a) {
            return Err(corrupt(codec, format_args!("blocks of {block:?} in an array of {array:?}")));
        }
        let array_len = byte_count(&array, size)?;
        Ok(Shape { size, array, block, array_len })
    }

    pub(super) fn rank(&self) -> usize {
        self.array.len()
    }

    /// Whether the elements of the blocks stand as those of the array: blocks span all axes but the first that they
    /// cut, and nothing is padded.
    pub(super) fn is_identity(&self) -> bool {
        match self.array.iter().zip(&self.block).position(|(a, b)| a != b) {
            None => true,
            Some(axis) => {
                let inner = self.array.iter().zip(&self.block).skip(axis + 1).all(|(a, b)| a == b);
                let outer = self.block.iter().take(axis).all(|&b| b == 1);
                let whole = self.array.iter().zip(&self.block).all(|(a, b)| a % b == 0);
                inner && outer && whole
            }
        }
    }

    /// Places the elements of all blocks in the array.
    pub(super) fn place(&self, codec: &'static str, blocks: &[u8], out: &mut [u8]) -> Result<()> {
        let rank = self.rank();
        let grid: Extents = self.array.iter().zip(&self.block).map(|(a, b)| a.div_ceil(*b)).collect();
        let count = grid.iter().try_fold(1u64, |n, &g| n.checked_mul(g));
        let block_len = to_usize(byte_count(&self.block, self.size)?)?;
        if count.and_then(|n| n.checked_mul(block_len as u64)) != Some(blocks.len() as u64) {
            return Err(corrupt(
                codec,
                format_args!("{} bytes are not the blocks of the array", blocks.len()),
            ));
        }
        // Bytes from one element to the next along each axis, in the array and in a block. None overflows, as the whole
        // products fit.
        let steps = |extents: &[u64]| {
            let mut steps: Extents = extents.iter().map(|_| self.size as u64).collect();
            for axis in (1..rank).rev() {
                let step = steps.get(axis).zip(extents.get(axis)).map_or(0, |(s, e)| s * e);
                if let Some(outer) = steps.get_mut(axis - 1) {
                    *outer = step;
                }
            }
            steps
        };
        let (array_steps, block_steps) = (steps(&self.array), steps(&self.block));
        let mut at: Extents = grid.iter().map(|_| 0).collect();
        for block in blocks.chunks_exact(block_len.max(1)) {
            // The part of the block that is inside the array.
            let start: Extents = at.iter().zip(&self.block).map(|(g, b)| g * b).collect();
            let inside: Extents = start
                .iter()
                .zip(&self.array)
                .zip(&self.block)
                .map(|((s, a), b)| a.saturating_sub(*s).min(*b))
                .collect();
            let row = inside.last().map_or(0, |&n| n * self.size as u64);
            let base: u64 = start.iter().zip(&array_steps).map(|(s, step)| s * step).sum();
            let mut row_at: Extents = inside.iter().map(|_| 0).collect();
            loop {
                let from: u64 = row_at.iter().zip(&block_steps).map(|(i, step)| i * step).sum();
                let to: u64 = base + row_at.iter().zip(&array_steps).map(|(i, step)| i * step).sum::<u64>();
                let range = |at: u64| Some(to_usize(at).ok()?..to_usize(at.checked_add(row)?).ok()?);
                let source = range(from).and_then(|r| block.get(r));
                let target = range(to).and_then(|r| out.get_mut(r));
                match (source, target) {
                    (Some(source), Some(target)) => target.copy_from_slice(source),
                    _ => return Err(corrupt(codec, "a block lies outside the array")),
                }
                if !advance(&mut row_at, &inside, rank.saturating_sub(1)) {
                    break;
                }
            }
            advance(&mut at, &grid, rank);
        }
        Ok(())
    }
}

/// The next place in C order over the first `axes` axes; false after the last.
fn advance(at: &mut [u64], extents: &[u64], axes: usize) -> bool {
    for (i, extent) in at.iter_mut().zip(extents).take(axes).rev() {
        *i += 1;
        if *i < *extent {
            return true;
        }
        *i = 0;
    }
    false
}
