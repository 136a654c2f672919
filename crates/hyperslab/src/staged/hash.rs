//! What chunks are recognised by: SHA-256 over the elements within the array in C order, as they are held, and then the
//! extents as text, as Python writes a tuple. Element type and fill value are no part of it.

use super::cells::{Cells, View};
use super::ledger::Ledger;
use super::plan::{HashPlan, HashStep};
use super::selected::strides;
use super::slab::{Memory, Slab};
use super::{Block, StagedArray};
use crate::error::{Error, Result};
use crate::exec;
use crate::shape::{Coord, element_count, to_usize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A SHA-256, 256 bits in four numbers of this machine; all of them 0 stands for "not known".
pub type Digest = [u64; 4];

/// No hash is known.
pub(super) const UNKNOWN: Digest = [0; 4];

/// The 32 bytes of a hash as a row of a hash table.
pub(super) fn row(bytes: &[u8; 32]) -> Digest {
    let mut row = UNKNOWN;
    for (number, bytes) in row.iter_mut().zip(bytes.chunks_exact(8)) {
        if let Some(bytes) = bytes.first_chunk() {
            *number = u64::from_ne_bytes(*bytes);
        }
    }
    row
}

/// `(4,)`, `(2, 3)`, `()`.
fn tuple(extent: &[u64]) -> String {
    match extent {
        [one] => format!("({one},)"),
        many => {
            let list: Vec<String> = many.iter().map(u64::to_string).collect();
            format!("({})", list.join(", "))
        }
    }
}

/// The hash of a box of elements, the first one at `at`, neighbours `strides` apart.
pub(super) fn hash(view: View<'_>, at: usize, strides: &[usize], extent: &[u64]) -> Result<Digest> {
    let outside = || Error::invalid("a chunk to be hashed lies outside of its slab");
    let mut sha = Sha256::new();
    // Rows whose elements follow one another: axes from the last one, as long as they continue each other.
    let (mut run, mut outer) = (1u64, extent.len());
    while let Some(axis) = outer.checked_sub(1)
        && let (Some(&stride), Some(&n)) = (strides.get(axis), extent.get(axis))
        && (stride as u64 == run || n == 1)
    {
        run = run.saturating_mul(n);
        outer = axis;
    }
    let rows = extent.get(..outer).unwrap_or(&[]);
    let run = to_usize(run)?;
    for n in 0..if extent.contains(&0) { 0 } else { element_count(rows)? } {
        let coord = super::ledger::coord_of(n, rows);
        let from = coord.iter().zip(strides).try_fold(at, |sum, (&c, &stride)| {
            to_usize(c).ok()?.checked_mul(stride).and_then(|more| sum.checked_add(more))
        });
        let from = from.ok_or_else(outside)?;
        let end = from.checked_add(run).ok_or_else(outside)?;
        match view {
            View::Bytes(size, bytes) => {
                let range = from.checked_mul(size).zip(end.checked_mul(size));
                let (from, end) = range.ok_or_else(outside)?;
                sha.update(bytes.get(from..end).ok_or_else(outside)?);
            }
            View::Objects(objects) => {
                objects.get(from..end).ok_or_else(outside)?.iter().for_each(|o| sha.update(o));
            }
        }
    }
    sha.update(tuple(extent));
    Ok(row(&sha.finalize().into()))
}

impl Block {
    /// The hash of a chunk that holds these elements.
    pub fn digest(&self) -> Result<Digest> {
        hash(self.cells.view(), 0, &strides(&self.shape)?, &self.shape)
    }
}

impl HashPlan {
    /// `known` says whether the hash in a row of a slab's table is known.
    pub(super) fn new(ledger: &Ledger, known: impl Fn(u32, u64) -> bool) -> HashPlan {
        let height = ledger.height();
        let mut plan = HashPlan { steps: Vec::new(), height };
        for at in 0..ledger.map.len() {
            let (slab, offset) = ledger.map.get(at);
            if ledger.is_staged(slab) && !known(slab, offset / height) {
                let extent = ledger.extent(&ledger.map.coord(at), &ledger.shape);
                plan.steps.push(HashStep { slab, offset, extent });
            }
        }
        if ledger.map.len() > 0 && !known(0, 0) {
            plan.steps.push(HashStep { slab: 0, offset: 0, extent: Coord::from_slice(&ledger.chunk) });
        }
        // No two chunks share a place on a staged slab.
        plan.steps.sort_by_key(|s| (s.slab, s.offset));
        plan
    }
}

impl StagedArray {
    /// Which chunks would have to be hashed for a commit.
    pub fn hash_plan(&self) -> HashPlan {
        HashPlan::new(&self.ledger, |slab, row| {
            let table = self.hash_tables.get(slab as usize).and_then(|t| t.as_ref());
            table.and_then(|t| t.get(row as usize)).is_some_and(|row| *row != UNKNOWN)
        })
    }

    /// Computes the hashes that a commit needs and that are not known yet.
    pub fn hash(&mut self) -> Result<()> {
        let plan = self.hash_plan();
        let mut sources: BTreeMap<u32, (Memory, Arc<Cells>)> = BTreeMap::new();
        for step in &plan.steps {
            if let Slab::Memory(memory) = self.slab(step.slab)?
                && !sources.contains_key(&step.slab)
            {
                sources.insert(step.slab, (memory.clone(), self.buffer(memory.buffer)?.cells()?));
            }
        }
        let found: Mutex<Vec<(usize, Digest)>> = Mutex::new(Vec::with_capacity(plan.steps.len()));
        let whole = strides(&self.ledger.chunk)?;
        let bytes = plan.steps.len() as u64 * element_count(&self.ledger.chunk)?;
        // A hash takes several times as long as a copy.
        let threads = self.threads(bytes.saturating_mul(4));
        exec::each(threads, (0..plan.steps.len()).collect(), |i| {
            let Some(step) = plan.steps.get(i) else { return Ok(()) };
            let Some((memory, cells)) = sources.get(&step.slab) else {
                return Err(Error::invalid("a plan hashes an array of a file"));
            };
            let digest = if step.slab == 0 {
                // The one element, over and over.
                let mut full = Cells::new(self.kind, element_count(&step.extent)?, self.limits.output)?;
                let loops = super::transfer::box_loops(
                    &step.extent,
                    &vec![0; step.extent.len()],
                    &super::selected::signed(&whole),
                );
                super::cells::copy(cells.view(), 0, &mut full.view_mut(), 0, &loops)?;
                hash(full.view(), 0, &whole, &step.extent)?
            } else {
                let at = memory.place(&self.ledger.start(step.offset))?;
                hash(cells.view(), at, &memory.strides, &step.extent)?
            };
            found.lock().unwrap_or_else(|e| e.into_inner()).push((i, digest));
            Ok(())
        })?;
        for (i, digest) in found.into_inner().unwrap_or_else(|e| e.into_inner()) {
            let Some(step) = plan.steps.get(i) else { continue };
            let shape = self.ledger.slabs.get(step.slab as usize).and_then(|s| s.as_ref()?.first().copied());
            let rows = to_usize(shape.unwrap_or(1).div_ceil(plan.height))?;
            let row = to_usize(step.offset / plan.height)?;
            if let Some(slot) = self.hash_tables.get_mut(step.slab as usize) {
                let table = Arc::make_mut(slot.get_or_insert_with(|| Arc::new(vec![UNKNOWN; rows])));
                if let Some(slot) = table.get_mut(row) {
                    *slot = digest;
                }
            }
        }
        Ok(())
    }
}
