//! The format-neutral data model and the waist of the engine: *chunk coordinates in, byte location out*.
//!
//! A format implements [`Hierarchy`] (objects, links, attributes, array metadata) and [`ChunkIndex`] (where the bytes of
//! a chunk are). Nothing above this module knows which format it reads.

mod reference;
mod retry;
mod space;
mod value;
mod workers;
pub mod write;

pub use reference::{Reference, RegionSelection};
pub use retry::Retry;
pub use space::{Hyperslab, SpaceSelection};
pub use value::{Column, Elements, FixedColumn, Value};
pub use workers::{Alone, Employed, Workers};

use crate::codec::FilterSpec;
use crate::dtype::{DType, ReferenceKind};
use crate::error::{Error, Result};
use crate::json::Json;
use crate::shape::{Coord, Name};
use crate::source::store::Store;
use crate::source::{Source, Traffic};
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

/// The identity of an object in one file: equal for all its hard links.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum NodeId {
    /// An address in the file (HDF5: of the object header, relative to the base address).
    Address(u64),
    /// A path in a store (Zarr).
    Path(Arc<str>),
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeId::Address(a) => write!(f, "object at {a:#x}"),
            NodeId::Path(p) => write!(f, "object {p:?}"),
        }
    }
}

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A group of links.
    Group,
    /// A dataset or variable.
    Array,
    /// A committed (named) datatype.
    Datatype,
}

/// Where a link leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkTarget {
    /// An object of the same file.
    Hard(NodeId),
    /// A path in the same file, followed anew each time.
    Soft(Name),
    /// A path in another file.
    External {
        /// The file as stored.
        file: Name,
        /// The path in it.
        path: Name,
    },
    /// A link class that only its owner knows.
    UserDefined {
        /// Class number.
        class: u8,
        /// Its data.
        data: Bytes,
    },
}

/// A named link of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its name.
    pub name: Name,
    /// Where it leads.
    pub target: LinkTarget,
    /// Its place in the order of creation, where tracked.
    pub creation_order: Option<i64>,
}

/// The links of a group, sorted by the bytes of their names.
#[derive(Debug, Default)]
pub struct Links {
    /// The links that could be read.
    pub links: Vec<Link>,
    /// Whether the group tracks the order of creation.
    pub tracks_order: bool,
    /// What could not be read; the rest is in `links`.
    pub faults: Vec<Fault>,
}

/// A named extent that arrays share, where the format itself knows such.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Its name.
    pub name: Name,
    /// Its length now.
    pub length: u64,
    /// Whether it may grow.
    pub unlimited: bool,
}

/// Extents of an array or attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dataspace {
    /// No elements at all, not even zero of them.
    Null,
    /// One element.
    Scalar,
    /// `dims` now, at most `max` later (`None`: unlimited).
    Simple {
        /// Current extents, slowest first.
        dims: Vec<u64>,
        /// Maximum extents.
        max: Vec<Option<u64>>,
    },
}

impl Dataspace {
    /// Current extents; none for a scalar or null space.
    pub fn dims(&self) -> &[u64] {
        match self {
            Dataspace::Simple { dims, .. } => dims,
            _ => &[],
        }
    }

    /// Whether there are no elements by definition.
    pub fn is_null(&self) -> bool {
        matches!(self, Dataspace::Null)
    }
}

/// An attribute with its elements as stored.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Its name.
    pub name: Name,
    /// Element type as stored.
    pub dtype: DType,
    /// Extents.
    pub space: Dataspace,
    /// Elements as stored, in C order; exactly count × size bytes.
    pub data: Bytes,
    /// Its place among the attributes of its object as they were made, where known.
    pub order: Option<u64>,
    /// The committed datatype of the same file that it is of, if it is of one.
    pub committed: Option<NodeId>,
}

/// An attribute that may not be readable; its name is then known if it was.
pub type AttributeEntry = Result<Attribute, (Option<Name>, Error)>;

/// The value of elements that were never written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FillValue {
    /// Nobody said; zeros are given.
    Undefined,
    /// The format's default: zeros.
    Default,
    /// One element as stored.
    Value(Bytes),
}

/// How the chunks of an array are laid over its extents.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChunkGrid {
    /// Equal chunks from the origin; edge chunks are stored whole.
    Regular(Vec<u64>),
    /// Chunks whose extents along an axis differ (Zarr's `rectilinear`).
    Rectilinear {
        /// For each axis, runs of chunks with the same extent: that extent, and how many. The last chunk may reach beyond
        /// the array; it is stored whole.
        runs: Vec<Vec<(u64, u64)>>,
        /// The largest extent along each axis.
        largest: Vec<u64>,
    },
    /// One chunk that is the array itself: contiguous and compact data.
    Whole,
}

impl fmt::Display for ChunkGrid {
    /// For people. Runs are spelled `extent × count`: `([2 × 3, 1], [4])`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = |&(extent, count): &(u64, u64)| match count {
            1 => extent.to_string(),
            _ => format!("{extent} × {count}"),
        };
        match self {
            ChunkGrid::Regular(chunk) => write!(f, "{chunk:?}"),
            ChunkGrid::Rectilinear { runs, .. } => {
                let axis =
                    |runs: &Vec<_>| format!("[{}]", runs.iter().map(run).collect::<Vec<_>>().join(", "));
                write!(f, "({})", runs.iter().map(axis).collect::<Vec<_>>().join(", "))
            }
            ChunkGrid::Whole => f.write_str("whole"),
        }
    }
}

/// In the words of the format, how an array is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// In the object header.
    Compact,
    /// One run of bytes.
    Contiguous,
    /// One run spread over other files, with the number of them.
    External(usize),
    /// Chunks found through an index of the named kind, such as `extensible array`.
    Chunked {
        /// The kind of index.
        index: &'static str,
    },
    /// Made of other arrays, with the number of mappings.
    Virtual(usize),
}

/// Everything about an array but its bytes and attributes.
#[derive(Clone, Debug)]
pub struct ArrayMeta {
    /// Element type as stored.
    pub dtype: DType,
    /// The committed datatype of the same file that it is of, if it is of one.
    pub committed: Option<NodeId>,
    /// Extents.
    pub space: Dataspace,
    /// The grid of chunks.
    pub grid: ChunkGrid,
    /// How it is stored.
    pub layout: Layout,
    /// What the file says about its fill value.
    pub fill: FillValue,
    /// One stored element that stands for those never written; empty means zeros.
    pub fill_element: Bytes,
    /// Filters in the order in which they encode.
    pub filters: Vec<FilterSpec>,
    /// Further words about the storage, in order, for people: `("fill time", "if set")`.
    pub notes: Vec<(&'static str, String)>,
}

impl ArrayMeta {
    /// Extents of one chunk: those of the array for contiguous and compact data, the largest ones where they differ.
    pub fn chunk_shape(&self) -> &[u64] {
        match &self.grid {
            ChunkGrid::Regular(chunk) => chunk,
            ChunkGrid::Rectilinear { largest, .. } => largest,
            ChunkGrid::Whole => self.space.dims(),
        }
    }
}

/// Where the bytes of a chunk are.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ChunkRef {
    /// Never written: fill.
    Absent,
    /// Here, encoded as `mask` says.
    Memory {
        /// The encoded bytes.
        bytes: Bytes,
        /// Filters to skip, as in `Range`.
        mask: u32,
    },
    /// In a source.
    Range {
        /// The source.
        source: Arc<dyn Source>,
        /// First byte.
        offset: u64,
        /// Encoded length in bytes.
        length: u64,
        /// Bit *i* set: stage *i* of the pipeline was skipped for this chunk.
        mask: u32,
    },
    /// All of an object, through all stages of the pipeline. If the store says that there is no such object, the chunk
    /// was never written.
    Object {
        /// The store.
        store: Arc<dyn Store>,
        /// The key of the object.
        key: Arc<str>,
    },
}

/// The lookup at the waist. Implementations may read metadata, in batches, and never data.
pub trait ChunkIndex: Send + Sync + fmt::Debug {
    /// Where the chunks at these grid coordinates are; the answers stand in the order of the questions.
    fn locate(&self, chunks: &[Coord]) -> Result<Vec<ChunkRef>>;

    /// Visits every stored chunk, in the order of the index. Faults in the index go to `fault` and the walk goes on
    /// where it can.
    fn scan(
        &self,
        visit: &mut dyn FnMut(Coord, ChunkRef) -> Result<()>,
        fault: &mut dyn FnMut(Fault),
    ) -> Result<()>;
}

/// One mapping of a virtual dataset: the elements of `source_selection`, in C order, are those of `selection`.
#[derive(Clone, Debug)]
pub struct VirtualMapping {
    /// File name as stored; `.` is the file itself. May hold `%b` for printf-style blocks.
    pub file: Name,
    /// Path of the dataset in it.
    pub dataset: Name,
    /// Elements of the source dataset.
    pub source_selection: SpaceSelection,
    /// Elements of the virtual dataset.
    pub selection: SpaceSelection,
}

/// A box of an array that has a regular grid of chunks of its own.
#[derive(Clone, Debug)]
pub struct Tile {
    /// Its first element.
    pub start: Vec<u64>,
    /// The coordinates of its first chunk in the grid of the array.
    pub first: Vec<u64>,
    /// What it is as an array by itself.
    pub meta: ArrayMeta,
    /// Its chunks, counted from its own first one.
    pub index: Arc<dyn ChunkIndex>,
}

/// A virtual dataset that consists of whole chunks of one array of the same file, stacked there along the first axis, as
/// versions of an array are kept: each chunk of its grid is that of the other array, edge chunks lie in the low corner of theirs.
#[derive(Clone, Debug)]
pub struct Stacked {
    /// What the dataset says of itself; its grid and its filters are those of the other array.
    pub meta: ArrayMeta,
    /// The path of the other array from the root of the file; `None` if no chunk is mapped.
    pub source: Option<Name>,
    /// The number of a chunk in C order of the grid, and that of the chunk along the first axis of the other array. Sorted,
    /// no chunk twice. A chunk that is not here was never written.
    pub slots: Vec<(u64, u64)>,
}

/// The chunk extents of the array at a path from the root; `None` where it is of no use.
pub type ChunkOf<'a> = &'a mut dyn FnMut(&Name) -> Result<Option<Vec<u64>>>;

/// How to get at the elements of an array.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Storage {
    /// Through a chunk index and the pipeline of the array's filters.
    Chunks(Arc<dyn ChunkIndex>),
    /// Through those of tiles, which cover the array and do not overlap.
    Tiles(Arc<[Tile]>),
    /// From other arrays.
    Virtual(Arc<[VirtualMapping]>),
}

/// A fault found in a file: where it lies and what it is.
#[derive(Debug)]
pub struct Fault {
    /// The object it belongs to, if known.
    pub object: Option<NodeId>,
    /// What is wrong.
    pub error: Error,
}

/// What one reference to variable-length data says: where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeapRef {
    /// Address of the heap collection.
    pub address: u64,
    /// Index of the object in it.
    pub index: u32,
}

impl HeapRef {
    /// In place of a count of items: as many as the object holds; of a text all of it, NULs too.
    pub const WHOLE: u64 = u64::MAX;
}

/// What a file is, in the words of its format, for `info`.
#[derive(Clone, Debug, Default)]
pub struct FileInfo {
    /// Format, such as `HDF5`.
    pub format: &'static str,
    /// Offset of the format's own first byte, after a user block.
    pub user_block: u64,
    /// Version of the outermost structure (HDF5: superblock).
    pub version: u32,
    /// Further words in order: `("root group", "object header at 0x60")`.
    pub notes: Vec<(&'static str, String)>,
}

/// The JSON documents that describe an object of a Zarr store.
#[derive(Clone, Debug)]
pub struct Documents {
    /// The version of the format: 2 or 3.
    pub version: u8,
    /// `zarr.json`, `.zarray` or `.zgroup`.
    pub metadata: Json,
    /// The attributes: a member of `zarr.json`, or `.zattrs`; an empty object if there are none.
    pub attributes: Json,
}

/// Who has a file open to write it. One that died says so for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The file does not say, or not in its present state.
    Unknown,
    /// The file is whole, and no file of its kind ever says more.
    Silent,
    /// Nobody.
    None,
    /// One who lets nobody read.
    Alone,
    /// One who lets others read (HDF5: SWMR).
    Swmr,
}

/// A tree of objects in one file or store, to be read. Every call may read metadata.
///
/// Contract: a fault in one object is an error of that object only; nothing is followed without a bound.
pub trait Hierarchy: Send + Sync + fmt::Debug {
    /// What the file is.
    fn info(&self) -> FileInfo;

    /// The root group.
    fn root(&self) -> NodeId;

    /// What an object is.
    fn kind(&self, node: &NodeId) -> Result<NodeKind>;

    /// All links of a group.
    fn links(&self, group: &NodeId) -> Result<Links>;

    /// One link of a group, found without reading the others where the format allows.
    fn link(&self, group: &NodeId, name: &Name) -> Result<Option<Link>>;

    /// All attributes of an object, sorted by the bytes of their names.
    fn attributes(&self, node: &NodeId) -> Result<Vec<AttributeEntry>>;

    /// Type, extents, layout and filters of an array.
    fn array(&self, node: &NodeId) -> Result<(ArrayMeta, Storage)>;

    /// What of a virtual dataset is needed to read it as chunks of one other array, if it is made of such; `None` if it is
    /// not, or if the format has nothing like it: then [`Hierarchy::array`] says how to read it.
    fn stacked(&self, _array: &NodeId, _chunk_of: ChunkOf<'_>) -> Result<Option<Stacked>> {
        Ok(None)
    }

    /// The dimensions that a group declares, in the order of declaration; none in a format without such a notion.
    fn dimensions(&self, _group: &NodeId) -> Result<Vec<Dimension>> {
        Ok(Vec::new())
    }

    /// What the format itself calls the axes of an array, slowest first; `None` where it has no names for them.
    /// What attributes say about names is a convention, and not meant here.
    fn dimension_names(&self, _array: &NodeId) -> Result<Option<Vec<Option<Name>>>> {
        Ok(None)
    }

    /// A committed datatype.
    fn datatype(&self, node: &NodeId) -> Result<DType>;

    /// The heap reference and element count in a stored variable-length element; `None` for an unset one.
    fn heap_ref(&self, stored: &[u8]) -> Result<Option<(u64, HeapRef)>>;

    /// The bytes of heap objects, in the order of the questions.
    fn heap_objects(&self, refs: &[HeapRef]) -> Result<Vec<Bytes>>;

    /// Gives threads to a format that decodes by itself what its heap objects are in.
    fn employ(&self, _workers: Arc<dyn Workers>) {}

    /// The documents that describe an object, where the format keeps such; `None` elsewhere, and for groups that only
    /// the names of their members tell of.
    fn documents(&self, _node: &NodeId) -> Result<Option<Documents>> {
        Ok(None)
    }

    /// A further document in the folder of an object, called `name`; `None` if there is none. The first layout of NCZarr
    /// keeps such.
    fn document(&self, _node: &NodeId, _name: &str) -> Result<Option<Json>> {
        Ok(None)
    }

    /// What a stored reference points to.
    fn reference(&self, kind: ReferenceKind, stored: &[u8]) -> Result<Reference>;

    /// A file that this one names (external link, virtual source). `None`: there is no such file. A file
    /// outside the allowed folder is [`ErrorKind::Permission`](crate::ErrorKind::Permission).
    fn neighbour(&self, file: &Name) -> Result<Option<Arc<dyn Hierarchy>>>;

    /// Verifies every structure of the file that the walk of objects does not reach by itself (superblock, free space,
    /// shared message tables); faults of objects come from the other calls.
    fn check(&self, fault: &mut dyn FnMut(Fault));

    /// Verifies the structures of one object that no other call reads (HDF5: indexes over the order of creation, free
    /// space of heaps). Most formats have none.
    fn check_node(&self, node: &NodeId, fault: &mut dyn FnMut(Fault)) {
        let _ = (node, fault);
    }

    /// How operations are run again that a writer has torn, where the file was opened to be read while it is written.
    fn retry(&self) -> Option<&Retry> {
        None
    }

    /// Who has the file open to write it, as the file says now.
    fn writer(&self) -> Result<Writer> {
        Ok(Writer::Unknown)
    }

    /// What was asked of a server so far; nothing for what is local.
    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
}
