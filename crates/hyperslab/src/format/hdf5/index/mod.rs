//! Chunk coordinates in, byte location out: every way in which HDF5 finds the bytes of a dataset.
//!
//! [`open`] picks the way for a dataset. [`ChunkTable`] serves chunked layouts. Each kind of index is a `Lookup`: it finds one chunk, or walks all of them. Few
//! questions are answered by finding; many by walking once and keeping a table. [`Whole`] serves the other layouts.

mod btree;
mod direct;
mod entry;
mod extensible_array;
mod external;
mod fixed_array;
mod grid;
mod mapping;
mod owner;
mod stacked;
mod storage;
#[cfg(test)]
mod tests;
mod whole;

pub(in crate::format::hdf5) use extensible_array::{Geometry, Place};
pub use external::{ExternalSegment, ExternalSource};
pub(in crate::format::hdf5) use grid::{Grid, Slots};
pub use stacked::restack;
pub use storage::{Surroundings, open, stacked};
pub use whole::Whole;

use super::file::Space;
use super::message::layout::{Chunked, IndexKind};
use super::parse::UNDEFINED;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::model::{ChunkIndex, ChunkRef, Fault};
use crate::shape::Coord;
use entry::{Entry, Table};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Chunks that are found one by one before all of them are read into a table.
const FEW: u64 = 64;

/// What a walk calls with each stored chunk.
type Found<'a> = &'a mut dyn FnMut(&[u64], Entry) -> Result<()>;

/// One kind of chunk index.
trait Lookup: Send + Sync + fmt::Debug {
    /// Visits all stored chunks in the order of the index, perhaps some outside the current extents. A part that cannot
    /// be read goes to `fault`; if that gives `Ok`, the walk goes on behind it.
    fn walk(&self, visit: Found<'_>, fault: &mut dyn FnMut(Error) -> Result<()>) -> Result<()>;

    /// Finds one chunk, reading no more of the index than needed.
    fn find(&self, chunk: &[u64]) -> Result<Option<Entry>>;

    /// What finding one chunk costs.
    fn cost(&self) -> Cost {
        Cost::Part
    }
}

/// What finding one chunk costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cost {
    /// Nothing, so that a table has no use.
    Nothing,
    /// Reading a part of the index.
    Part,
    /// As much as reading all of it.
    All,
}

/// What an index needs to know of its array beside the layout message.
#[derive(Clone, Copy, Debug)]
pub struct ArrayShape<'a> {
    /// Current extents.
    pub dims: &'a [u64],
    /// Maximum extents.
    pub max: &'a [Option<u64>],
    /// Bytes of an element.
    pub element: u64,
    /// Whether there is a filter pipeline with at least one filter.
    pub filtered: bool,
}

/// The index of a chunked dataset.
#[derive(Debug)]
pub struct ChunkTable {
    space: Space,
    grid: Grid,
    filtered: bool,
    edge_unfiltered: bool,
    layout: Chunked,
    /// Made when the first chunk is asked for, so that listing a file reads no index.
    lookup: OnceLock<Arc<dyn Lookup>>,
    /// Whether the file may change: then nothing is kept from call to call.
    live: bool,
    table: OnceLock<Table>,
    /// Held while the table is made.
    loading: Mutex<()>,
    /// The table cannot be made, because part of the index is broken: chunks are found one by one.
    broken: AtomicBool,
    /// Chunks found one by one.
    found: AtomicU64,
}

impl ChunkTable {
    /// The index of a dataset; reads nothing yet.
    ///
    /// Errors: what the layout says contradicts the dataset.
    pub fn new(space: &Space, layout: &Chunked, array: ArrayShape<'_>) -> Result<Self> {
        Ok(ChunkTable {
            space: space.clone(),
            grid: Grid::new(array.dims, array.max, &layout.chunk, array.element)?,
            filtered: array.filtered,
            edge_unfiltered: layout.edge_unfiltered,
            layout: layout.clone(),
            lookup: OnceLock::new(),
            live: false,
            table: OnceLock::new(),
            loading: Mutex::new(()),
            broken: AtomicBool::new(false),
            found: AtomicU64::new(0),
        })
    }

    /// The same index of a file that another process may be writing: every call looks anew.
    #[must_use]
    pub fn live(mut self, live: bool) -> Self {
        self.live = live;
        self
    }

    /// The lookup; `None` if nothing was ever written.
    fn lookup(&self) -> Result<Option<Arc<dyn Lookup>>> {
        if self.layout.address == UNDEFINED {
            return Ok(None);
        }
        if self.live {
            // With a budget of its own: looking again and again uses nothing up.
            return self.open_lookup(&self.space.scoped()).map(Some);
        }
        if let Some(lookup) = self.lookup.get() {
            return Ok(Some(lookup.clone()));
        }
        let opened = self.open_lookup(&self.space)?;
        Ok(Some(self.lookup.get_or_init(|| opened).clone()))
    }

    fn open_lookup(&self, space: &Space) -> Result<Arc<dyn Lookup>> {
        let (layout, grid, address) = (&self.layout, self.grid.clone(), self.layout.address);
        Ok(match layout.index {
            IndexKind::BtreeV1 => Arc::new(btree::BtreeV1 { space: space.clone(), root: address, grid }),
            IndexKind::BtreeV2 { .. } => {
                Arc::new(btree::BtreeV2::open(space, address, &grid, self.filtered)?)
            }
            IndexKind::FixedArray { .. } => Arc::new(fixed_array::FixedArray::open(space, address, &grid)?),
            IndexKind::ExtensibleArray { .. } => {
                Arc::new(extensible_array::ExtensibleArray::open(space, address, &grid)?)
            }
            IndexKind::Implicit => {
                let slots = grid.fixed()?;
                Arc::new(direct::Implicit { space: space.clone(), address, grid, slots })
            }
            IndexKind::Single { filtered } => {
                let (length, mask) = filtered.unwrap_or((grid.chunk_bytes(), 0));
                Arc::new(direct::Single { entry: Entry { address, length, mask }, rank: grid.rank() })
            }
        })
    }

    /// The table, if this many further questions are worth making it.
    fn table(&self, lookup: &dyn Lookup, questions: usize) -> Option<&Table> {
        if let Some(table) = self.table.get() {
            return Some(table);
        }
        let few = match lookup.cost() {
            Cost::Nothing => return None,
            Cost::Part => FEW,
            Cost::All => 0,
        };
        // Numbers of more than 64 bits do not fit into a table.
        self.grid.count()?;
        let before = self.found.fetch_add(questions as u64, Ordering::Relaxed);
        if self.broken.load(Ordering::Relaxed) || before.saturating_add(questions as u64) <= few {
            return None;
        }
        let _loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = self.table.get() {
            return Some(table);
        }
        match self.load(lookup) {
            Ok(table) => Some(self.table.get_or_init(|| table)),
            Err(_) => {
                // Finding says what is wrong, where it matters.
                self.broken.store(true, Ordering::Relaxed);
                None
            }
        }
    }

    fn load(&self, lookup: &dyn Lookup) -> Result<Table> {
        // No entry is stored twice, and none in fewer bytes than an address has.
        let fits = self.space.end() / u64::from(self.space.sizes().offset.max(1));
        let mut table = Table::new(&self.space);
        let mut count = 0;
        let visit = &mut |chunk: &[u64], entry| {
            count += 1;
            if count > fits {
                let text =
                    format!("a chunk index with more than the {fits} chunks that the file has room for");
                return Err(Error::new(ErrorKind::Corrupt, text));
            }
            match self.grid.contains(chunk) {
                true => table.push(self.grid.number(chunk), entry),
                false => Ok(()),
            }
        };
        lookup.walk(visit, &mut Err)?;
        Ok(table.sealed())
    }

    /// Where the bytes of an entry are; they must lie in the file.
    fn place(&self, chunk: &[u64], entry: Entry) -> Result<ChunkRef> {
        let whole = self.grid.chunk_bytes();
        let allowed = self.space.limits().chunk;
        if whole > allowed {
            return Err(Error::limit("bytes of a decoded chunk", whole.into(), allowed.into()));
        }
        let plain = self.edge_unfiltered && self.grid.is_partial(chunk);
        let offset = self.space.resolve("chunk", entry.address, entry.length)?;
        if (plain || !self.filtered) && entry.length != whole {
            let text = format!("{} bytes stored for an unfiltered chunk of {whole}", entry.length);
            return Err(Error::corrupt("chunk", offset, text));
        }
        let mask = if plain { u32::MAX } else { entry.mask };
        Ok(ChunkRef::Range { source: self.space.data().clone(), offset, length: entry.length, mask })
    }
}

/// Names a chunk in messages.
fn name(chunk: &[u64]) -> String {
    format!("chunk {chunk:?}")
}

impl ChunkIndex for ChunkTable {
    fn locate(&self, chunks: &[Coord]) -> Result<Vec<ChunkRef>> {
        let Some(lookup) = self.lookup()? else { return Ok(vec![ChunkRef::Absent; chunks.len()]) };
        let fresh;
        let table = if self.live {
            let many =
                lookup.cost() != Cost::Nothing && chunks.len() as u64 > FEW && self.grid.count().is_some();
            fresh = match many.then(|| self.load(lookup.as_ref())) {
                Some(Err(e)) if e.is_torn() => return Err(e),
                // Finding says what is wrong, where it matters.
                Some(Err(_)) | None => None,
                Some(Ok(table)) => Some(table),
            };
            fresh.as_ref()
        } else {
            self.table(lookup.as_ref(), chunks.len())
        };
        let one = |chunk: &Coord| {
            if !self.grid.contains(chunk) {
                return Err(Error::new(ErrorKind::OutOfBounds, "there is no such chunk"));
            }
            let entry = match table {
                Some(table) => table.get(self.grid.number(chunk)),
                None => lookup.find(chunk)?,
            };
            entry.map_or(Ok(ChunkRef::Absent), |entry| self.place(chunk, entry))
        };
        chunks.iter().map(|chunk| one(chunk).context(|| name(chunk))).collect()
    }

    fn scan(
        &self,
        visit: &mut dyn FnMut(Coord, ChunkRef) -> Result<()>,
        fault: &mut dyn FnMut(Fault),
    ) -> Result<()> {
        let lookup = match self.lookup() {
            Ok(Some(lookup)) => lookup,
            Ok(None) => return Ok(()),
            Err(error) => {
                fault(Fault { object: None, error });
                return Ok(());
            }
        };
        // Both walks below report faults.
        let fault = std::cell::RefCell::new(fault);
        let report = |error| (fault.borrow_mut())(Fault { object: None, error });
        // An error of the visitor ends the walk; one of the index is reported.
        let mut stopped = None;
        let each = &mut |chunk: &[u64], entry| {
            // Arrays that shrank, and those of early libhdf5 1.10, have entries that nobody asks for.
            if !self.grid.contains(chunk) {
                return Ok(());
            }
            let done = match self.place(chunk, entry) {
                Ok(place) => visit(chunk.into(), place),
                Err(error) => {
                    report(error.context(name(chunk)));
                    Ok(())
                }
            };
            done.map_err(|e| {
                stopped = Some(e);
                Error::new(ErrorKind::Cancelled, "the walk was stopped")
            })
        };
        let done = lookup.walk(each, &mut |error| {
            report(error);
            Ok(())
        });
        match (stopped, done) {
            (Some(error), _) => Err(error),
            (None, Err(error)) => {
                report(error);
                Ok(())
            }
            (None, Ok(())) => Ok(()),
        }
    }
}

/// Whether bit `i` of a bitmap of written pages is set; the highest bit of a byte comes first.
fn page_is_written(bitmap: Option<&[u8]>, i: u64) -> bool {
    let byte = usize::try_from(i / 8).ok().and_then(|at| bitmap?.get(at).copied());
    byte.is_some_and(|b| b & (0x80 >> (i % 8)) != 0)
}
