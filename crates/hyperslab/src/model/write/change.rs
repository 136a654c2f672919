//! Structural changes of a hierarchy.

use super::{Content, ObjectPath};
use crate::codec::FilterSpec;
use crate::dtype::DType;
use crate::model::{Dataspace, Dimension, VirtualMapping};
use crate::shape::Name;

/// One structural change. Those of elements are chunks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Change {
    /// A new empty group. Its own group is there; the root is there from the start.
    CreateGroup {
        /// Where.
        path: ObjectPath,
    },
    /// A named extent that arrays in the group, and in those below it, can share.
    CreateDimension {
        /// The group.
        group: ObjectPath,
        /// Name and length.
        dimension: Dimension,
    },
    /// A new array of nothing but its fill value.
    CreateArray {
        /// Where.
        path: ObjectPath,
        /// What it is.
        spec: Box<ArraySpec>,
    },
    /// A committed (named) datatype.
    CommitType {
        /// Where.
        path: ObjectPath,
        /// The type.
        dtype: DType,
    },
    /// A new attribute, or another value of one that is there, which keeps its place.
    SetAttribute {
        /// The object.
        object: ObjectPath,
        /// The attribute.
        attribute: AttributeSpec,
    },
    /// Removes an attribute, which is there.
    DeleteAttribute {
        /// The object.
        object: ObjectPath,
        /// Its name.
        name: Name,
    },
    /// A new link.
    CreateLink {
        /// Where.
        path: ObjectPath,
        /// Where it leads.
        link: LinkSpec,
    },
    /// Removes a link, and the object if it was its last one, with everything below a group.
    Delete {
        /// What.
        path: ObjectPath,
    },
    /// Moves a link to another name or group, in which there is nothing of that name.
    Rename {
        /// From.
        from: ObjectPath,
        /// To.
        to: ObjectPath,
    },
    /// A copy of an object of this hierarchy, with its attributes and everything below a group.
    CopyObject {
        /// What.
        from: ObjectPath,
        /// Where to.
        to: ObjectPath,
    },
    /// Other extents. What is cut off is gone: growing again shows the fill value.
    Resize {
        /// The array.
        array: ObjectPath,
        /// Extents.
        shape: Vec<u64>,
    },
    /// Other places for the chunks of an array that virtual datasets are made of, as versions are kept (HDF5).
    Restack(Box<Restack>),
}

/// Moves chunks of an array that are stacked along its first axis, without reading them, and says so to the virtual
/// datasets that are made of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restack {
    /// The array; its chunks have its own extents on all axes but the first.
    pub stack: ObjectPath,
    /// The new number along the first axis of each chunk; `None`: it is gone. New numbers begin at 0 and leave none out; of
    /// several chunks with the same one the first is kept.
    pub slots: Vec<Option<u64>>,
    /// Virtual datasets of the same file, each mapping of which is one block within one chunk of the stack.
    pub maps: Vec<ObjectPath>,
}

/// A new array.
#[derive(Clone, Debug)]
pub struct ArraySpec {
    /// Element type. A format without this very type takes one that holds the same values, or refuses it.
    pub dtype: DType,
    /// The committed type that it is of, if it is of one of the same hierarchy.
    pub committed: Option<ObjectPath>,
    /// Extents, and how far they may grow.
    pub space: Dataspace,
    /// How it is stored.
    pub layout: LayoutSpec,
    /// Filters in the order in which they encode, in either spelling.
    pub filters: Vec<FilterSpec>,
    /// The value of elements that nobody wrote.
    pub fill: FillSpec,
    /// When fill values are written (HDF5).
    pub fill_time: Option<FillTime>,
    /// When storage is allocated (HDF5).
    pub allocation_time: Option<AllocationTime>,
    /// The dimension of each axis, by its path (`/g/x` is the dimension `x` of the group `/g`); `None` for an axis
    /// without one. Empty: no axis has a dimension.
    pub dimensions: Vec<Option<ObjectPath>>,
}

impl ArraySpec {
    /// An array of these extents and nothing else said.
    pub fn new(dtype: DType, space: Dataspace) -> ArraySpec {
        ArraySpec {
            dtype,
            committed: None,
            space,
            layout: LayoutSpec::Auto,
            filters: Vec::new(),
            fill: FillSpec::Default,
            fill_time: None,
            allocation_time: None,
            dimensions: Vec::new(),
        }
    }
}

/// How an array is to be stored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LayoutSpec {
    /// As the format does it best: whole, or in chunks where something needs them.
    Auto,
    /// In the object header.
    Compact,
    /// One run of bytes.
    Contiguous,
    /// In chunks.
    Chunked {
        /// Extents of one.
        chunk: Vec<u64>,
        /// Many of them in one object.
        shard: Option<ShardSpec>,
    },
    /// Made of other arrays.
    Virtual(Vec<VirtualMapping>),
    /// Made of whole chunks of one array of the same file, stacked there along the first axis, each by a mapping of its own.
    Stacked {
        /// The path of that array.
        source: Name,
        /// Its chunk.
        chunk: Vec<u64>,
        /// The number of a chunk in C order of the grid, and that of the chunk in the stack; ascending.
        slots: Vec<(u64, u64)>,
    },
    /// In other files.
    External(Vec<ExternalRun>),
}

/// Shards: many chunks in one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardSpec {
    /// Extents of one in elements: whole chunks.
    pub extents: Vec<u64>,
    /// Whether its index comes first.
    pub index_at_start: bool,
}

/// A run of bytes of another file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalRun {
    /// The file.
    pub file: Name,
    /// Its first byte.
    pub offset: u64,
    /// Its length; `None` for as many as there will be.
    pub length: Option<u64>,
}

/// A fill value.
#[derive(Clone, Debug, PartialEq)]
pub enum FillSpec {
    /// None: what was never written is not defined.
    Undefined,
    /// That of the format.
    Default,
    /// One element.
    Value(Content),
}

/// When HDF5 writes fill values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillTime {
    /// When storage is allocated.
    Allocation,
    /// Never.
    Never,
    /// When it is allocated, if a fill value was set.
    IfSet,
}

/// When HDF5 allocates storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationTime {
    /// When the array is made.
    Early,
    /// When something is written.
    Late,
    /// Chunk by chunk.
    Incremental,
}

/// An attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeSpec {
    /// Its name.
    pub name: Name,
    /// Element type.
    pub dtype: DType,
    /// The committed type that it is of, if it is of one of the same hierarchy.
    pub committed: Option<ObjectPath>,
    /// Extents.
    pub space: Dataspace,
    /// As many elements as the extents say; none for a null space.
    pub content: Content,
}

/// Where a new link leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkSpec {
    /// To an object of this hierarchy.
    Hard(ObjectPath),
    /// To a path, followed anew each time.
    Soft(Name),
    /// To a path in another file.
    External {
        /// The file.
        file: Name,
        /// The path in it.
        path: Name,
    },
}

/// What becomes of a change in a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// It is kept as it is.
    Kept,
    /// It is kept in other words, which say the same: what these are.
    Mapped(String),
    /// It cannot be kept: why.
    Dropped(String),
}
