//! Which slab each chunk lies on, and where on it: all that plans know.

use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::shape::{Coord, MAX_RANK, byte_count, element_count, to_usize};
use std::fmt;
use std::sync::Arc;

/// The slab and the offset of every chunk of a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkMap {
    grid: Vec<u64>,
    slab_indices: Vec<u32>,
    slab_offsets: Vec<u64>,
}

impl ChunkMap {
    /// A map of a grid of so many chunks on each axis; indices and offsets in C order.
    pub fn new(grid: Vec<u64>, slab_indices: Vec<u32>, slab_offsets: Vec<u64>) -> Result<ChunkMap> {
        let count = element_count(&grid)?;
        if slab_indices.len() as u64 != count || slab_offsets.len() as u64 != count {
            return Err(Error::invalid(format!(
                "{} slab indices and {} slab offsets for a grid of {grid:?} chunks",
                slab_indices.len(),
                slab_offsets.len()
            )));
        }
        Ok(ChunkMap { grid, slab_indices, slab_offsets })
    }

    /// A map with all chunks on the full slab.
    pub(super) fn full(grid: Vec<u64>, limits: &Limits) -> Result<ChunkMap> {
        let count = check(&grid, limits)?;
        Ok(ChunkMap { grid, slab_indices: vec![0; count], slab_offsets: vec![0; count] })
    }

    /// Chunks on each axis.
    pub fn grid(&self) -> &[u64] {
        &self.grid
    }

    /// The slab of each chunk, in C order of the grid.
    pub fn slab_indices(&self) -> &[u32] {
        &self.slab_indices
    }

    /// The offset of each chunk along axis 0 of its slab, in C order of the grid.
    pub fn slab_offsets(&self) -> &[u64] {
        &self.slab_offsets
    }

    /// Number of chunks.
    pub(super) fn len(&self) -> usize {
        self.slab_indices.len()
    }

    /// Slab and offset of a chunk by its number in C order.
    pub(super) fn get(&self, at: usize) -> (u32, u64) {
        match (self.slab_indices.get(at), self.slab_offsets.get(at)) {
            (Some(&slab), Some(&offset)) => (slab, offset),
            _ => (0, 0),
        }
    }

    pub(super) fn set(&mut self, edit: Edit) {
        if let (Some(slab), Some(offset)) =
            (self.slab_indices.get_mut(edit.at), self.slab_offsets.get_mut(edit.at))
        {
            (*slab, *offset) = (edit.slab, edit.offset);
        }
    }

    /// Number of a chunk in C order.
    pub(super) fn number(&self, coord: &[u64]) -> usize {
        coord.iter().zip(&self.grid).fold(0, |at, (&c, &n)| at * n as usize + c as usize)
    }

    /// Coordinates of a chunk.
    pub(super) fn coord(&self, at: usize) -> Coord {
        coord_of(at as u64, &self.grid)
    }

    /// The same chunks in a grid of other extents: those outside of it are gone, new ones are on the full slab.
    pub(super) fn resized(&self, grid: &[u64], limits: &Limits) -> Result<ChunkMap> {
        let mut new = ChunkMap::full(grid.to_vec(), limits)?;
        let common: Vec<u64> = grid.iter().zip(&self.grid).map(|(&a, &b)| a.min(b)).collect();
        // Whole rows of the last axis.
        let (row, rows) = match common.split_last() {
            Some((&last, outer)) => (last as usize, element_count(outer)?),
            None => (1, 1),
        };
        if row == 0 {
            return Ok(new);
        }
        for n in 0..rows {
            let mut coord = coord_of(n, common.split_last().map_or(&[], |(_, outer)| outer));
            if !common.is_empty() {
                coord.push(0);
            }
            let (from, to) = (self.number(&coord), new.number(&coord));
            if let (Some(a), Some(b)) =
                (self.slab_indices.get(from..from + row), new.slab_indices.get_mut(to..to + row))
            {
                b.copy_from_slice(a);
            }
            if let (Some(a), Some(b)) =
                (self.slab_offsets.get(from..from + row), new.slab_offsets.get_mut(to..to + row))
            {
                b.copy_from_slice(a);
            }
        }
        Ok(new)
    }
}

fn check(grid: &[u64], limits: &Limits) -> Result<usize> {
    let bytes = byte_count(grid, size_of::<u32>() + size_of::<u64>())?;
    if bytes > limits.plan {
        return Err(Error::limit("bytes for the map of chunks", bytes.into(), limits.plan.into())
            .hint("use larger chunks, or raise Limits::plan"));
    }
    to_usize(element_count(grid)?)
}

/// Coordinates of item `n` in C order.
pub(super) fn coord_of(mut n: u64, extents: &[u64]) -> Coord {
    let mut coord = Coord::from_elem(0, extents.len());
    for (c, &extent) in coord.iter_mut().zip(extents).rev() {
        *c = n % extent.max(1);
        n /= extent.max(1);
    }
    coord
}

/// More chunks than this are not printed.
const PRINTED: usize = 1000;

/// As NumPy prints arrays of integers.
impl fmt::Display for ChunkMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.len() > PRINTED {
            return writeln!(f, "  # {} chunks", self.len());
        }
        let indices: Vec<u64> = self.slab_indices.iter().map(|&n| n.into()).collect();
        writeln!(f, "slab_indices:")?;
        print(f, &self.grid, &indices)?;
        writeln!(f, "slab_offsets:")?;
        print(f, &self.grid, &self.slab_offsets)
    }
}

fn print(f: &mut fmt::Formatter<'_>, grid: &[u64], numbers: &[u64]) -> fmt::Result {
    let width = numbers.iter().map(|n| n.to_string().len()).max().unwrap_or(0);
    let last = grid.last().map_or(1, |&n| n as usize);
    if numbers.is_empty() {
        return writeln!(f, "[]");
    }
    for (i, row) in numbers.chunks(last.max(1)).enumerate() {
        // A bracket for each axis that starts here, and one that ends.
        let mut axes = 0;
        let mut block = 1usize;
        for &n in grid.iter().rev().skip(1) {
            block = block.saturating_mul(n as usize);
            axes += usize::from(i % block == 0);
        }
        let (mut closing, mut block) = (0, 1usize);
        for &n in grid.iter().rev().skip(1) {
            block = block.saturating_mul(n as usize);
            closing += usize::from((i + 1) % block == 0);
        }
        let outer = grid.len().saturating_sub(1);
        write!(f, "{}{}", " ".repeat(outer - axes.min(outer)), "[".repeat(axes.min(outer) + 1))?;
        for (j, n) in row.iter().enumerate() {
            write!(f, "{}{n:>width$}", if j > 0 { " " } else { "" })?;
        }
        writeln!(f, "{}", "]".repeat(closing.min(outer) + 1))?;
    }
    Ok(())
}

/// A chunk that comes to lie elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    /// Its number in C order.
    pub(super) at: usize,
    pub(super) slab: u32,
    pub(super) offset: u64,
}

/// Shapes, chunks and indices of a staged array, without elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    pub(super) shape: Vec<u64>,
    pub(super) chunk: Vec<u64>,
    pub(super) map: Arc<ChunkMap>,
    /// Base slabs are those from 1 to here.
    pub(super) bases: usize,
    /// Extents of each slab, the full one first; `None` for one that is gone.
    pub(super) slabs: Vec<Option<Vec<u64>>>,
}

impl Ledger {
    /// All on the full slab.
    pub(super) fn full(shape: Vec<u64>, chunk: Vec<u64>, limits: &Limits) -> Result<Ledger> {
        let grid = grid_of(&shape, &chunk)?;
        let map = Arc::new(ChunkMap::full(grid, limits)?);
        Ok(Ledger { shape, slabs: vec![Some(chunk.clone())], chunk, map, bases: 0 })
    }

    /// Extents of the array.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Extents of a chunk.
    pub fn chunk_shape(&self) -> &[u64] {
        &self.chunk
    }

    /// Where each chunk lies.
    pub fn map(&self) -> &ChunkMap {
        &self.map
    }

    /// Number of base slabs, gone ones included.
    pub fn base_count(&self) -> usize {
        self.bases
    }

    /// Extents of each slab, the full slab first; `None` for one that is gone.
    pub fn slabs(&self) -> &[Option<Vec<u64>>] {
        &self.slabs
    }

    pub(super) fn is_staged(&self, slab: u32) -> bool {
        slab as usize > self.bases
    }

    /// Rows of a chunk along axis 0 of its slab.
    pub(super) fn height(&self) -> u64 {
        self.chunk.first().copied().unwrap_or(1)
    }

    /// Extents of a slab of `count` whole chunks.
    pub(super) fn slab_shape(&self, count: u64) -> Result<Vec<u64>> {
        let rows = count.checked_mul(self.height()).ok_or_else(|| Error::invalid("a slab of 2^64 rows"))?;
        Ok(std::iter::once(rows).chain(self.chunk.iter().skip(1).copied()).collect())
    }

    /// Extents of the part of a chunk that lies within an array of extents `shape`.
    pub(super) fn extent(&self, coord: &[u64], shape: &[u64]) -> Coord {
        let axes = coord.iter().zip(&self.chunk).zip(shape);
        axes.map(|((&c, &chunk), &n)| chunk.min(n.saturating_sub(c.saturating_mul(chunk)))).collect()
    }

    /// Where a chunk starts on its slab.
    pub(super) fn start(&self, offset: u64) -> Coord {
        let mut start = Coord::from_elem(0, self.chunk.len().max(1));
        if let Some(first) = start.first_mut() {
            *first = offset;
        }
        start
    }

    /// The number of the next new slab.
    pub(super) fn next_slab(&self) -> Result<u32> {
        u32::try_from(self.slabs.len()).map_err(|_| Error::limit("slabs", self.slabs.len() as u128, 1 << 32))
    }

    /// Which slabs some chunk lies on.
    pub(super) fn referenced(&self) -> Vec<bool> {
        let mut seen = vec![false; self.slabs.len()];
        for &slab in self.map.slab_indices() {
            if let Some(seen) = seen.get_mut(slab as usize) {
                *seen = true;
            }
        }
        seen
    }
}

/// Chunks on each axis.
pub(super) fn grid_of(shape: &[u64], chunk: &[u64]) -> Result<Vec<u64>> {
    if shape.len() != chunk.len() || chunk.contains(&0) {
        return Err(Error::invalid(format!("chunks of {chunk:?} for an array of {shape:?}")));
    }
    if shape.len() > MAX_RANK {
        return Err(Error::limit("rank", shape.len() as u128, MAX_RANK as u128));
    }
    Ok(shape.iter().zip(chunk).map(|(&n, &c)| n.div_ceil(c)).collect())
}
