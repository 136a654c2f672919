//! What operations will do, as values: shapes, chunks and indices, no elements.

use super::ledger::{ChunkMap, Edit, Ledger};
use super::selected::{Entry, Selected};
use crate::shape::Coord;
use std::fmt;
use std::sync::Arc;

/// Evenly spaced indices of one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First index.
    pub start: u64,
    /// Number of indices.
    pub count: u64,
    /// Distance; negative only in results and values.
    pub step: i64,
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = i128::from(self.start) + i128::from(self.step) * (i128::from(self.count) - 1);
        if self.step > 0 || self.count <= 1 {
            write!(f, "{}:{}", self.start, last + 1)?;
        } else if last > 0 {
            write!(f, "{}:{}", self.start, last - 1)?;
        } else {
            write!(f, "{}:", self.start)?;
        }
        if self.count > 1 && self.step != 1 { write!(f, ":{}", self.step) } else { Ok(()) }
    }
}

/// One slice pair: as many elements of a slab as of what it is copied from or to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// One span for each axis of the slab.
    pub slab: Vec<Span>,
    /// One span for each axis of the other side.
    pub other: Vec<Span>,
}

fn spans(f: &mut fmt::Formatter<'_>, spans: &[Span]) -> fmt::Result {
    f.write_str("[")?;
    for (i, span) in spans.iter().enumerate() {
        write!(f, "{}{span}", if i > 0 { ", " } else { "" })?;
    }
    f.write_str("]")
}

/// A box that is copied from one slab to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BoxCopy {
    pub(super) from: u32,
    pub(super) from_at: Coord,
    pub(super) to: u32,
    pub(super) to_at: Coord,
    pub(super) count: Coord,
}

fn corner(f: &mut fmt::Formatter<'_>, at: &[u64], count: &[u64]) -> fmt::Result {
    let one = |(&start, &count): (&u64, &u64)| Span { start, count, step: 1 };
    let list: Vec<Span> = if count.is_empty() {
        at.iter().map(|start| one((start, &1))).collect()
    } else {
        at.iter().zip(count).map(one).collect()
    };
    spans(f, &list)
}

/// Writes transfers of boxes, a headline for each pair of slabs.
fn boxes(f: &mut fmt::Formatter<'_>, copies: &[BoxCopy]) -> fmt::Result {
    for group in copies.chunk_by(|a, b| (a.from, a.to) == (b.from, b.to)) {
        let Some(first) = group.first() else { continue };
        writeln!(f, "  # {} transfers from slabs[{}] to slabs[{}]", group.len(), first.from, first.to)?;
        for copy in group {
            write!(f, "  slabs[{}]", copy.to)?;
            corner(f, &copy.to_at, &copy.count)?;
            write!(f, " = slabs[{}]", copy.from)?;
            corner(f, &copy.from_at, &copy.count)?;
            writeln!(f)?;
        }
    }
    Ok(())
}

fn tuple(f: &mut fmt::Formatter<'_>, shape: &[u64]) -> fmt::Result {
    f.write_str("(")?;
    for (i, n) in shape.iter().enumerate() {
        write!(f, "{}{n}", if i > 0 { ", " } else { "" })?;
    }
    f.write_str(if shape.len() == 1 { ",)" } else { ")" })
}

/// Runs of `entries` on the same slab.
pub(super) fn by_slab(entries: &[Entry]) -> impl Iterator<Item = (u32, &[Entry])> {
    entries
        .chunk_by(|a, b| a.slab == b.slab)
        .filter_map(|group| group.first().map(|first| (first.slab, group)))
}

/// What a read will do: transfers from each slab to the result.
#[derive(Clone, Debug)]
pub struct GetItemPlan {
    pub(super) selected: Selected,
    /// Sorted by slab and offset.
    pub(super) entries: Vec<Entry>,
}

impl GetItemPlan {
    /// Shape of the result.
    pub fn shape(&self) -> &[u64] {
        self.selected.region.shape()
    }

    /// The slabs that are read, each with its slice pairs.
    pub fn transfers(&self) -> impl Iterator<Item = (u32, Vec<Pair>)> {
        by_slab(&self.entries).map(|(slab, group)| {
            (slab, group.iter().flat_map(|e| self.selected.pairs(e.number, e.offset)).collect())
        })
    }
}

impl fmt::Display for GetItemPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GetItemPlan\n  result = empty(")?;
        tuple(f, self.shape())?;
        writeln!(f, ")")?;
        for (slab, pairs) in self.transfers() {
            writeln!(f, "  # {} transfers from slabs[{slab}] to result", pairs.len())?;
            for pair in pairs {
                f.write_str("  result")?;
                spans(f, &pair.other)?;
                write!(f, " = slabs[{slab}]")?;
                spans(f, &pair.slab)?;
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

/// What an assignment will do: chunks that are covered in part are copied to a new slab first, those covered wholly
/// get a place on another new one, and then the value is copied.
#[derive(Clone, Debug)]
pub struct SetItemPlan {
    pub(super) selected: Selected,
    pub(super) before: Arc<ChunkMap>,
    /// New slabs: number and extents.
    pub(super) appended: Vec<(u32, Vec<u64>)>,
    /// Whole chunks from the full slab and base slabs to a new one.
    pub(super) copies: Vec<BoxCopy>,
    /// Chunks that take a part of the value, where they will lie; grouped by slab.
    pub(super) updates: Vec<Entry>,
    pub(super) edits: Vec<Edit>,
}

impl SetItemPlan {
    /// Shape of the selection, which the value is broadcast to.
    pub fn shape(&self) -> &[u64] {
        self.selected.region.shape()
    }

    /// The slabs that take a part of the value, each with its slice pairs.
    pub fn transfers(&self) -> impl Iterator<Item = (u32, Vec<Pair>)> {
        by_slab(&self.updates).map(|(slab, group)| {
            (slab, group.iter().flat_map(|e| self.selected.pairs(e.number, e.offset)).collect())
        })
    }

    /// Where each chunk will lie.
    pub fn map(&self) -> ChunkMap {
        edited(&self.before, &self.edits)
    }
}

fn edited(before: &ChunkMap, edits: &[Edit]) -> ChunkMap {
    let mut map = before.clone();
    edits.iter().for_each(|&edit| map.set(edit));
    map
}

fn append(f: &mut fmt::Formatter<'_>, slab: u32, shape: &[u64]) -> fmt::Result {
    f.write_str("  slabs.append(empty(")?;
    tuple(f, shape)?;
    writeln!(f, "))  # slabs[{slab}]")
}

impl fmt::Display for SetItemPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "SetItemPlan")?;
        self.appended.iter().try_for_each(|(slab, shape)| append(f, *slab, shape))?;
        boxes(f, &self.copies)?;
        for (slab, pairs) in self.transfers() {
            writeln!(f, "  # {} transfers from value to slabs[{slab}]", pairs.len())?;
            for pair in pairs {
                write!(f, "  slabs[{slab}]")?;
                spans(f, &pair.slab)?;
                f.write_str(" = value")?;
                spans(f, &pair.other)?;
                writeln!(f)?;
            }
        }
        write!(f, "{}", self.map())
    }
}

/// One step of a change of the slabs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A new slab with so many elements that nobody has written.
    Append { slab: u32, shape: Vec<u64> },
    /// Boxes between slabs.
    Copy(Vec<BoxCopy>),
    /// Only so many rows of a slab stay.
    Cut { slab: u32, rows: u64 },
    /// A slab is replaced by a copy in whole chunks.
    Pad { slab: u32, shape: Vec<u64> },
    /// A slab that no chunk lies on any more.
    Drop { slab: u32 },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Append { slab, shape } => append(f, *slab, shape),
            Step::Copy(copies) => boxes(f, copies),
            Step::Cut { slab, rows } => writeln!(f, "  slabs[{slab}] = slabs[{slab}][0:{rows}]"),
            Step::Pad { slab, shape } => {
                write!(f, "  slabs[{slab}] = pad(slabs[{slab}], ")?;
                tuple(f, shape)?;
                writeln!(f, ")")
            }
            Step::Drop { slab } => writeln!(f, "  slabs[{slab}] = None"),
        }
    }
}

/// What a change of extents will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResizePlan {
    pub(super) steps: Vec<Step>,
    pub(super) after: Ledger,
}

impl ResizePlan {
    /// Shapes and indices as they will be.
    pub fn ledger(&self) -> &Ledger {
        &self.after
    }
}

impl fmt::Display for ResizePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "ResizePlan")?;
        self.steps.iter().try_for_each(|step| write!(f, "{step}"))?;
        write!(f, "{}", self.after.map)
    }
}

/// What bringing all base chunks into memory will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadPlan {
    pub(super) steps: Vec<Step>,
    pub(super) after: Ledger,
}

impl LoadPlan {
    /// Shapes and indices as they will be.
    pub fn ledger(&self) -> &Ledger {
        &self.after
    }
}

impl fmt::Display for LoadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "LoadPlan")?;
        self.steps.iter().try_for_each(|step| write!(f, "{step}"))?;
        write!(f, "{}", self.after.map)
    }
}

/// One chunk to be hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HashStep {
    pub(super) slab: u32,
    pub(super) offset: u64,
    /// Its valid part, from its first element.
    pub(super) extent: Coord,
}

/// Which chunks have no known hash yet: those of the full slab and of staged slabs that the array still shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashPlan {
    pub(super) steps: Vec<HashStep>,
    /// Rows of a chunk.
    pub(super) height: u64,
}

impl HashPlan {
    /// Number of chunks to be hashed.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether all hashes are known.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

impl fmt::Display for HashPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "HashPlan")?;
        for step in &self.steps {
            let row = step.offset / self.height.max(1);
            write!(f, "  hash_tables[{}][{row}] = hash(slabs[{}]", step.slab, step.slab)?;
            let mut at = Coord::from_elem(0, step.extent.len().max(1));
            if let Some(first) = at.first_mut() {
                *first = step.offset;
            }
            corner(f, &at, &step.extent)?;
            writeln!(f, ")")?;
        }
        Ok(())
    }
}

/// What a commit will do: which staged chunks survive deduplication, and where all others are found already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitPlan {
    /// Extents of the new base slab; `None` if no chunk survives.
    pub(super) appended: Option<Vec<u64>>,
    /// Number of the new base slab.
    pub(super) slab: u32,
    pub(super) copies: Vec<BoxCopy>,
    /// Hashes of the chunks of the new slab.
    pub(super) hashes: Vec<super::hash::Digest>,
    pub(super) after: Ledger,
}

impl CommitPlan {
    /// Extents of the new base slab; `None` if every staged chunk is stored already.
    pub fn new_slab(&self) -> Option<&[u64]> {
        self.appended.as_deref()
    }

    /// Number of chunks that are stored anew.
    pub fn survivors(&self) -> usize {
        self.copies.len()
    }

    /// Shapes and indices as they will be.
    pub fn ledger(&self) -> &Ledger {
        &self.after
    }
}

impl fmt::Display for CommitPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "CommitPlan")?;
        if let Some(shape) = &self.appended {
            f.write_str("  base_slabs.append(empty(")?;
            tuple(f, shape)?;
            writeln!(f, "))  # slabs[{}]", self.slab)?;
        }
        for group in self.copies.chunk_by(|a, b| a.from == b.from) {
            let from = group.first().map_or(0, |copy| copy.from);
            writeln!(f, "  # {} transfers from slabs[{from}] to the new base slab", group.len())?;
            for copy in group {
                f.write_str("  new")?;
                corner(f, &copy.to_at, &copy.count)?;
                write!(f, " = slabs[{from}]")?;
                corner(f, &copy.from_at, &copy.count)?;
                writeln!(f)?;
            }
        }
        writeln!(f, "  drop all staged slabs")?;
        write!(f, "{}", self.after.map)
    }
}

/// One chunk that is not on the full slab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedChunk {
    /// Coordinates of the chunk.
    pub coord: Coord,
    /// First element of the array that it holds.
    pub start: Coord,
    /// Its extents within the array.
    pub extent: Coord,
    /// The slab that it lies on.
    pub slab: u32,
    /// Where on that slab, along axis 0.
    pub offset: u64,
    /// Whether it is on a staged slab, not on a base slab.
    pub staged: bool,
}

/// Which chunks a writer has to store or to point to; all others are the fill value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangesPlan {
    pub(super) chunks: Vec<ChangedChunk>,
}

impl ChangesPlan {
    /// The chunks in C order.
    pub fn chunks(&self) -> &[ChangedChunk] {
        &self.chunks
    }
}

impl fmt::Display for ChangesPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "ChangesPlan")?;
        for chunk in &self.chunks {
            f.write_str("  base")?;
            corner(f, &chunk.start, &chunk.extent)?;
            let mut at = Coord::from_elem(0, chunk.extent.len().max(1));
            if let Some(first) = at.first_mut() {
                *first = chunk.offset;
            }
            write!(f, " = slabs[{}]", chunk.slab)?;
            corner(f, &at, &chunk.extent)?;
            writeln!(f, "{}", if chunk.staged { "  # staged" } else { "" })?;
        }
        Ok(())
    }
}
