//! The chunks of an array of a version: which of the stacked ones they are.

use crate::array::Array;
use crate::error::{Error, Result};
use crate::model::{ChunkIndex, ChunkRef, Fault, Storage};
use crate::shape::{Coord, Name};

/// Chunks looked up at a time by a walk.
const BATCH: usize = 1024;

/// A chunk map over an array of chunks that are stacked along the first axis.
#[derive(Debug)]
pub(super) struct ChunkMap {
    /// Chunks along each axis.
    grid: Coord,
    /// Number of a chunk in C order, and its number in the stack; sorted.
    slots: Vec<(u64, u64)>,
    raw: Array,
    /// Whether chunks that the stack does not have read as the version's own fill value does.
    same_fill: bool,
}

impl ChunkMap {
    /// The map of an array of `dims` whose chunks lie in `raw`.
    pub(super) fn new(
        dims: &[u64],
        chunk: &[u64],
        slots: Vec<(u64, u64)>,
        raw: Array,
        same_fill: bool,
    ) -> ChunkMap {
        let grid = dims.iter().zip(chunk).map(|(&dim, &chunk)| dim.div_ceil(chunk.max(1))).collect();
        ChunkMap { grid, slots, raw, same_fill }
    }

    fn slot(&self, chunk: &[u64]) -> Option<u64> {
        let number = chunk.iter().zip(&self.grid).try_fold(0u64, |number, (&at, &count)| {
            if at < count { number.checked_mul(count)?.checked_add(at) } else { None }
        })?;
        let found = self.slots.binary_search_by_key(&number, |slot| slot.0).ok()?;
        self.slots.get(found).map(|slot| slot.1)
    }

    fn chunk(&self, mut number: u64) -> Coord {
        let mut chunk: Coord = self
            .grid
            .iter()
            .rev()
            .map(|&count| {
                let at = number % count.max(1);
                number /= count.max(1);
                at
            })
            .collect();
        chunk.reverse();
        chunk
    }

    /// Where the chunks of the stack with these numbers are.
    fn stacked(&self, slots: &[u64]) -> Result<Vec<ChunkRef>> {
        let Storage::Chunks(index) = self.raw.storage() else {
            return Err(Error::invalid(format!("{} is not chunked", self.raw.path())));
        };
        let rank = self.grid.len();
        let chunks: Vec<Coord> = slots
            .iter()
            .map(|&slot| (0..rank).map(|axis| if axis == 0 { slot } else { 0 }).collect())
            .collect();
        let found = index.locate(&chunks).map_err(|e| e.context(format!("chunks in {}", self.raw.path())))?;
        match found.iter().zip(slots).find(|(chunk, _)| matches!(chunk, ChunkRef::Absent)) {
            Some((_, slot)) if !self.same_fill => Err(Error::unsupported(format!(
                "chunk {slot} of {}, which was never written, as its fill value is not that of the version",
                self.raw.path()
            ))),
            _ => Ok(found),
        }
    }
}

impl ChunkIndex for ChunkMap {
    fn locate(&self, chunks: &[Coord]) -> Result<Vec<ChunkRef>> {
        let slots: Vec<Option<u64>> = chunks.iter().map(|chunk| self.slot(chunk)).collect();
        let there: Vec<u64> = slots.iter().copied().flatten().collect();
        let mut found = self.stacked(&there)?.into_iter();
        Ok(slots.iter().map(|slot| slot.and_then(|_| found.next()).unwrap_or(ChunkRef::Absent)).collect())
    }

    fn scan(
        &self,
        visit: &mut dyn FnMut(Coord, ChunkRef) -> Result<()>,
        fault: &mut dyn FnMut(Fault),
    ) -> Result<()> {
        for batch in self.slots.chunks(BATCH) {
            let slots: Vec<u64> = batch.iter().map(|slot| slot.1).collect();
            match self.stacked(&slots) {
                Ok(found) => {
                    for (&(number, _), chunk) in batch.iter().zip(found) {
                        if !matches!(chunk, ChunkRef::Absent) {
                            visit(self.chunk(number), chunk)?;
                        }
                    }
                }
                Err(error) => fault(Fault { object: None, error }),
            }
        }
        Ok(())
    }
}

/// The slots of a map, with the path of the stack.
#[derive(Debug)]
pub(super) struct Mapped {
    pub(super) source: Option<Name>,
    pub(super) slots: Vec<(u64, u64)>,
}
