//! What a writer takes: the list of changes, and the commit of staged chunks to a new base slab.

use super::StagedArray;
use super::cells::{Cells, Kind, View, copy};
use super::hash::{Digest, UNKNOWN};
use super::ledger::{ChunkMap, Edit, Ledger};
use super::plan::{BoxCopy, ChangedChunk, ChangesPlan, CommitPlan};
use super::selected::{signed, strides};
use super::slab::{BaseSlab, Inner, Slab};
use super::transfer::box_loops;
use super::values::Block;
use crate::array::Array;
use crate::error::{Error, Result};
use crate::model::write::Content;
use crate::shape::{Coord, byte_count, element_count};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;

impl ChangesPlan {
    pub(super) fn new(ledger: &Ledger) -> ChangesPlan {
        let chunks = (0..ledger.map.len())
            .filter_map(|at| {
                let (slab, offset) = ledger.map.get(at);
                let coord = ledger.map.coord(at);
                let start = coord.iter().zip(&ledger.chunk).map(|(&c, &n)| c * n).collect();
                let extent = ledger.extent(&coord, &ledger.shape);
                let staged = ledger.is_staged(slab);
                (slab != 0).then_some(ChangedChunk { coord, start, extent, slab, offset, staged })
            })
            .collect();
        ChangesPlan { chunks }
    }
}

impl CommitPlan {
    /// Walks all hashes in the order of slabs: who holds a hash first, keeps the chunk.
    pub(super) fn new(ledger: &Ledger, tables: &[Option<Arc<Vec<Digest>>>]) -> Result<CommitPlan> {
        let height = ledger.height();
        let mut staged: Vec<(u32, u64, usize)> = (0..ledger.map.len())
            .filter_map(|at| {
                let (slab, offset) = ledger.map.get(at);
                ledger.is_staged(slab).then_some((slab, offset, at))
            })
            .collect();
        staged.sort_unstable();
        let slab = u32::try_from(ledger.bases + 1)
            .map_err(|_| Error::limit("slabs", ledger.bases as u128, 1 << 32))?;
        let mut plan = CommitPlan {
            appended: None,
            slab,
            copies: Vec::new(),
            hashes: Vec::new(),
            after: Ledger {
                // Only what stays.
                slabs: ledger.slabs.iter().take(ledger.bases + 1).cloned().collect(),
                ..ledger.clone()
            },
        };
        let mut holders: HashMap<Digest, (u32, u64)> = HashMap::new();
        if !staged.is_empty() {
            for (slab, table) in tables.iter().enumerate().take(ledger.bases + 1) {
                let gone = ledger.slabs.get(slab).is_none_or(Option::is_none);
                let rows = table.iter().filter(|_| !gone).flat_map(|t| t.iter()).enumerate();
                for (row, digest) in rows.filter(|(_, digest)| **digest != UNKNOWN) {
                    holders.entry(*digest).or_insert((slab as u32, row as u64 * height));
                }
            }
        }
        let mut edits = Vec::with_capacity(staged.len());
        for (from, offset, at) in staged {
            let table = tables.get(from as usize).and_then(|t| t.as_ref());
            let digest = table.and_then(|t| t.get((offset / height) as usize)).copied().unwrap_or(UNKNOWN);
            if digest == UNKNOWN {
                return Err(Error::invalid(format!(
                    "the chunk at row {offset} of slab {from} was not hashed"
                )));
            }
            let next = plan.copies.len() as u64 * height;
            let (to, row) = *holders.entry(digest).or_insert((slab, next));
            if (to, row) == (slab, next) {
                plan.copies.push(BoxCopy {
                    from,
                    from_at: ledger.start(offset),
                    to: slab,
                    to_at: ledger.start(next),
                    count: ledger.extent(&ledger.map.coord(at), &ledger.shape),
                });
                plan.hashes.push(digest);
            }
            edits.push(Edit { at, slab: to, offset: row });
        }
        if !edits.is_empty() {
            let map: &mut ChunkMap = Arc::make_mut(&mut plan.after.map);
            edits.into_iter().for_each(|edit| map.set(edit));
        }
        if !plan.copies.is_empty() {
            let shape = ledger.slab_shape(plan.copies.len() as u64)?;
            plan.after.slabs.push(Some(shape.clone()));
            plan.after.bases += 1;
            plan.appended = Some(shape);
        }
        Ok(plan)
    }
}

/// One chunk for a writer.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Which chunk, and where it lies.
    pub chunk: ChangedChunk,
    /// Its elements, if it is staged.
    pub data: ChangeData,
}

/// The elements of a change.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangeData {
    /// Those of a staged chunk, cut at the edge of the array.
    Staged(Block),
    /// They are on a base slab, which holds them already.
    Base,
}

/// Whether two handles are of one array of one opened file.
fn is_same(a: &Array, b: &Array) -> bool {
    Arc::ptr_eq(a.hierarchy(), b.hierarchy()) && a.node() == b.node()
}

/// A chunk of a new base slab.
#[derive(Debug)]
pub struct NewChunk<'a> {
    /// First row on the new slab.
    pub row: u64,
    /// Its extents, cut at the edge of the array: the rest of its place on the slab is not defined.
    pub extent: &'a [u64],
    /// Its hash.
    pub hash: Digest,
    staged: &'a StagedArray,
    copy: &'a BoxCopy,
}

impl NewChunk<'_> {
    /// Its elements.
    pub fn data(&self) -> Result<Block> {
        self.staged.block(self.copy.from, &self.copy.from_at, self.extent)
    }

    /// Its elements for a writer. Those of a fixed type that lie in one piece are not copied.
    pub(crate) fn content(&self) -> Result<Content> {
        self.staged.content(self.copy.from, &self.copy.from_at, self.extent)
    }
}

/// Elements that a writer and an array share.
struct Shared(Arc<Cells>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        match &*self.0 {
            Cells::Fixed { bytes, .. } => bytes,
            Cells::Objects(_) => &[],
        }
    }
}

/// Whether the elements of a box follow one another in memory.
fn in_one_piece(extent: &[u64], strides: &[usize]) -> bool {
    let mut run = 1;
    extent.iter().zip(strides).rev().all(|(&n, &stride)| {
        let follows = n == 1 || stride as u64 == run;
        run = run.saturating_mul(n);
        follows
    })
}

/// A new base slab to be made: all chunks that a commit stores.
#[derive(Debug)]
pub struct NewSlab<'a> {
    staged: &'a StagedArray,
    plan: &'a CommitPlan,
    shape: &'a [u64],
}

impl<'a> NewSlab<'a> {
    /// Extents: whole chunks along axis 0.
    pub fn shape(&self) -> &[u64] {
        self.shape
    }

    /// The chunks in their order on the slab.
    pub fn chunks(&self) -> impl Iterator<Item = NewChunk<'a>> {
        let (staged, plan) = (self.staged, self.plan);
        plan.copies.iter().zip(&plan.hashes).map(move |(copy, hash)| NewChunk {
            row: copy.to_at.first().copied().unwrap_or(0),
            extent: &copy.count,
            hash: *hash,
            staged,
            copy,
        })
    }

    /// The slab in memory.
    pub fn in_memory(&self) -> Result<BaseSlab> {
        let mut cells = Cells::new(self.staged.kind, element_count(self.shape)?, self.staged.limits.output)?;
        self.staged.gather(&self.plan.copies, &mut cells, self.shape)?;
        let inner = Inner::Memory { dtype: self.staged.dtype.clone(), shape: self.shape.to_vec(), cells };
        Ok(BaseSlab { inner, hashes: None })
    }
}

impl StagedArray {
    /// Which chunks a writer has to store or to point to.
    pub fn changes_plan(&self) -> ChangesPlan {
        ChangesPlan::new(&self.ledger)
    }

    /// All chunks that are not on the full slab, in C order, staged ones with their elements.
    pub fn changes(&self) -> impl Iterator<Item = Result<Change>> {
        self.changes_plan().chunks.into_iter().map(|chunk| {
            let data = if chunk.staged {
                let at = self.ledger.start(chunk.offset);
                ChangeData::Staged(self.block(chunk.slab, &at, &chunk.extent)?)
            } else {
                ChangeData::Base
            };
            Ok(Change { chunk, data })
        })
    }

    /// The boxes of chunks (first element, extents) that a writer of the array `own` has to write, or of another array if
    /// there is no `own`: those that are not in it already, at their places. `fresh`: it holds nothing but the fill value;
    /// `same_fill`: what it holds beyond its extents before is the fill value of this array.
    pub(crate) fn to_be_written(
        &self,
        own: Option<&Array>,
        fresh: bool,
        same_fill: bool,
    ) -> Vec<(Coord, Coord)> {
        let in_place = |slab: &Slab, offset: u64, coord: &Coord, start: &Coord, extent: &Coord| {
            let (Slab::Array(slab), Some(own)) = (slab, own) else { return false };
            let held = start.iter().zip(own.shape()).map(|(start, d)| d.saturating_sub(*start));
            is_same(&slab.array, own)
                && slab.dtype == *own.dtype()
                && slab.coord(offset) == *coord
                && extent.iter().zip(held).all(|(n, held)| *n <= held)
        };
        let beyond = |start: &Coord| match own {
            Some(own) => same_fill && start.iter().zip(own.shape()).any(|(start, d)| start >= d),
            None => false,
        };
        let chunks = (0..self.ledger.map.len()).filter_map(|at| {
            let (slab, offset) = self.ledger.map.get(at);
            let coord = self.ledger.map.coord(at);
            let start: Coord = coord.iter().zip(&self.ledger.chunk).map(|(&c, &n)| c * n).collect();
            let extent = self.ledger.extent(&coord, &self.ledger.shape);
            let there = match self.slabs.get(slab as usize) {
                _ if slab == 0 => fresh || beyond(&start),
                Some(Some(found)) => in_place(found, offset, &coord, &start, &extent),
                _ => false,
            };
            (!there).then_some((start, extent))
        });
        chunks.collect()
    }

    /// Whether it stands on the same array as `own`, looked at through another opened file: what was read for it may not
    /// be what is there now.
    pub(crate) fn stands_on_another_look(&self, own: &Array) -> bool {
        let store = |array: &Array| {
            let notes = array.hierarchy().info().notes;
            notes.into_iter().find(|(name, _)| *name == "store").map(|(_, store)| store)
        };
        self.slabs.iter().flatten().any(|slab| match slab {
            Slab::Array(slab) => {
                slab.array.node() == own.node()
                    && !is_same(&slab.array, own)
                    && store(&slab.array).is_some()
                    && store(&slab.array) == store(own)
            }
            Slab::Memory(_) => false,
        })
    }

    /// A copy of a box of a slab in memory.
    fn block(&self, slab: u32, at: &Coord, extent: &[u64]) -> Result<Block> {
        let Slab::Memory(memory) = self.slab(slab)? else {
            return Err(Error::invalid("a plan takes a chunk of a file for a staged one"));
        };
        let source = self.buffer(memory.buffer)?.cells()?;
        let mut cells = Cells::new(self.kind, element_count(extent)?, self.limits.output)?;
        let loops = box_loops(extent, &signed(&memory.strides), &signed(&strides(extent)?));
        let view: View<'_> = source.view();
        copy(view, memory.place(at)?, &mut cells.view_mut(), 0, &loops)?;
        Ok(Block { shape: extent.to_vec(), dtype: self.dtype.clone(), cells })
    }

    fn content(&self, slab: u32, at: &Coord, extent: &[u64]) -> Result<Content> {
        if let Slab::Memory(memory) = self.slab(slab)?
            && let Kind::Fixed(size) = self.kind
            && in_one_piece(extent, memory.steps(extent.len()))
        {
            let from = memory.place(at)?.checked_mul(size);
            let length = byte_count(extent, size)?;
            let end = from.and_then(|from| from.checked_add(usize::try_from(length).ok()?));
            let all = Bytes::from_owner(Shared(self.buffer(memory.buffer)?.cells()?));
            if let (Some(from), Some(end)) = (from, end)
                && end <= all.len()
            {
                return Ok(Content::Fixed(all.slice(from..end)));
            }
        }
        Ok(match self.block(slab, at, extent)?.cells {
            Cells::Fixed { bytes, .. } => Content::Fixed(bytes.into()),
            Cells::Objects(elements) => Content::Objects { elements, targets: Vec::new() },
        })
    }

    /// The new base slab of a commit, for a writer that has no more use for this array; `None` if nothing is stored anew.
    pub(crate) fn new_slab<'a>(&'a self, plan: &'a CommitPlan) -> Option<NewSlab<'a>> {
        plan.appended.as_deref().map(|shape| NewSlab { staged: self, plan, shape })
    }

    /// What a commit would do. Every staged chunk has to be [hashed](StagedArray::hash) before.
    pub fn commit_plan(&self) -> Result<CommitPlan> {
        CommitPlan::new(&self.ledger, &self.hash_tables)
    }

    /// Moves all staged chunks to one new base slab in memory; chunks equal to others, stored or staged, only once.
    pub fn commit(&mut self) -> Result<CommitPlan> {
        self.commit_with(|slab| slab.in_memory())
    }

    /// Moves all staged chunks to one new base slab that `store` makes, and gives what was done. Chunks equal to the
    /// fill value, to a chunk of a base slab with known hashes, or to another staged one are not stored again: the slab
    /// with the lowest number wins. `store` is not called if nothing is left to be stored. After an error the array is
    /// as it was.
    pub fn commit_with(
        &mut self,
        store: impl FnOnce(&NewSlab<'_>) -> Result<BaseSlab>,
    ) -> Result<CommitPlan> {
        self.check_writeable()?;
        self.hash()?;
        let plan = self.commit_plan()?;
        let new = match &plan.appended {
            Some(shape) => {
                let base = store(&NewSlab { staged: self, plan: &plan, shape })?;
                if base.dtype() != &self.dtype {
                    return Err(Error::invalid(format!(
                        "a new base slab of {} for {}",
                        base.dtype(),
                        self.dtype
                    )));
                }
                let base = base.with_hashes(plan.hashes.clone());
                Some(self.adopt(base, Some(shape))?)
            }
            None => None,
        };
        // From here on nothing fails.
        self.slabs.truncate(self.ledger.bases + 1);
        self.hash_tables.truncate(self.ledger.bases + 1);
        if let Some((slab, _, table)) = new {
            self.slabs.push(Some(slab));
            self.hash_tables.push(table);
        }
        self.ledger = plan.after.clone();
        self.committed.clone_from(&self.ledger.shape);
        self.reclaim();
        Ok(plan)
    }
}
