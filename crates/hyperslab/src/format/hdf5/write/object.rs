//! Objects of a file as a transaction holds them: what they will be when it is committed.

use super::header::{Blocks, NewMessage, Prefix};
use super::index::{Chunks, Entry};
use crate::codec::FilterSpec;
use crate::dtype::DType;
use crate::format::hdf5::message::external::ExternalFiles;
use crate::format::hdf5::message::fill::{AllocationTime, FillTime};
use crate::format::hdf5::message::layout::IndexKind;
use crate::format::hdf5::parse::UNDEFINED;
use crate::model::write::{ExternalRun, ObjectPath, TargetPart};
use crate::model::{Dataspace, HeapRef};
use crate::shape::{Coord, Name};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// The number of an object in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Id(pub(super) usize);

/// Where a link leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// An object that the transaction knows.
    Object(Id),
    /// An object of the file that it has not looked at.
    Address(u64),
    /// A path, followed anew each time.
    Soft(Name),
    /// A path in another file.
    External { file: Name, path: Name },
    /// A link class that only its owner knows.
    UserDefined { class: u8, data: Bytes },
}

/// A link of a group.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) target: Target,
    pub(super) order: i64,
}

/// A group.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) links: BTreeMap<Name, Link>,
    /// The number that the next link gets.
    pub(super) next: i64,
    /// Whether the order of creation is tracked.
    pub(super) tracks: bool,
    /// Whether links differ from what is stored.
    pub(super) dirty: bool,
    /// Dimensions that this transaction makes.
    pub(super) dimensions: Vec<NewDimension>,
}

/// A dimension that is to be made.
#[derive(Clone, Debug)]
pub(super) struct NewDimension {
    pub(super) name: Name,
    pub(super) length: u64,
    pub(super) unlimited: bool,
    /// Its number in the file.
    pub(super) number: i32,
}

/// Elements with everything that they point to, targets found.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// As stored.
    Fixed(Bytes),
    /// Objects as [`Content`](crate::model::write::Content) has them.
    Objects { elements: Vec<Bytes>, targets: Vec<(Id, TargetPart)> },
}

impl Value {
    /// Number of elements of `size` bytes.
    pub(super) fn count(&self, size: usize) -> usize {
        match self {
            Value::Fixed(bytes) => bytes.len() / size.max(1),
            Value::Objects { elements, .. } => elements.len(),
        }
    }
}

/// The fill value of an array.
#[derive(Clone, Debug)]
pub(super) enum Fill {
    Undefined,
    Default,
    Value(Value),
    /// As the file has it.
    Stored(Bytes),
}

/// An array.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub(super) dtype: DType,
    pub(super) committed: Option<Id>,
    pub(super) space: Dataspace,
    pub(super) fill: Fill,
    pub(super) fill_time: FillTime,
    pub(super) allocation: AllocationTime,
    pub(super) filters: Vec<FilterSpec>,
    pub(super) storage: Storage,
    /// Version of the layout message.
    pub(super) version: u8,
    /// The dimension of each axis.
    pub(super) dimensions: Vec<Option<ObjectPath>>,
    /// Messages of a stored array that have to be written anew.
    pub(super) dirty: bool,
}

/// Where the elements of an array are.
#[derive(Clone, Debug)]
pub(super) enum Storage {
    /// In the object header.
    Compact(Vec<u8>),
    /// One run of bytes.
    Contiguous {
        address: Option<u64>,
        size: u64,
        /// The pieces that were written, of a run that is new; what is left is filled. `None`: all of it counts.
        written: Option<BTreeSet<Coord>>,
    },
    /// In chunks.
    Chunked(Chunked),
    /// In other arrays: the mappings as the global heap holds them, nothing if there are none.
    Virtual(Vec<u8>),
    /// In other files.
    External(Vec<ExternalRun>),
    /// In other arrays or files; the file says in which, which is read when somebody has to know.
    Elsewhere(Elsewhere),
}

/// Where a file says which other arrays or files hold the elements of an array.
#[derive(Clone, Debug)]
pub(super) enum Elsewhere {
    /// The mappings of a virtual dataset.
    Virtual(HeapRef),
    /// External files.
    External(ExternalFiles),
}

/// Chunked storage.
#[derive(Clone, Debug)]
pub(super) struct Chunked {
    /// Extents of a chunk.
    pub(super) chunk: Coord,
    pub(super) kind: IndexKind,
    pub(super) chunks: Chunks,
    /// Whether `chunks` are all that there are. If not, those of the file are looked up when they are touched.
    pub(super) loaded: bool,
    /// Chunks of the file that were looked up.
    pub(super) known: BTreeMap<Coord, Option<Entry>>,
    /// Chunks that are not as the file has them.
    pub(super) touched: BTreeMap<Coord, Option<Entry>>,
    /// Whether the index has to be written.
    pub(super) dirty: bool,
    /// Address of the index as it is stored.
    pub(super) address: u64,
    pub(super) edge_unfiltered: bool,
}

impl Chunked {
    /// Chunks found in an index of `kind` that is not written yet.
    pub(super) fn new(chunk: Coord) -> Self {
        Chunked {
            chunk,
            kind: IndexKind::BtreeV1,
            chunks: Chunks::new(),
            loaded: true,
            known: BTreeMap::new(),
            touched: BTreeMap::new(),
            dirty: true,
            address: UNDEFINED,
            edge_unfiltered: false,
        }
    }

    /// A chunk, which was looked up.
    pub(super) fn entry(&self, at: &[u64]) -> Option<Entry> {
        if self.loaded {
            return self.chunks.get(at).copied();
        }
        self.touched.get(at).or_else(|| self.known.get(at)).copied().flatten()
    }

    /// Sets or removes a chunk.
    pub(super) fn set(&mut self, at: Coord, entry: Option<Entry>) {
        self.dirty = true;
        match (self.loaded, entry) {
            (false, entry) => {
                self.touched.insert(at, entry);
            }
            (true, Some(entry)) => {
                self.chunks.insert(at, entry);
            }
            (true, None) => {
                self.chunks.remove(&at);
            }
        }
    }
}

/// An attribute.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    pub(super) name: Name,
    pub(super) order: u64,
    pub(super) what: AttributeValue,
}

/// What an attribute is.
#[derive(Clone, Debug)]
pub(super) enum AttributeValue {
    /// The message as stored.
    Kept { body: Bytes, flags: u8, committed: Option<Id> },
    /// Made in this transaction.
    New { dtype: DType, committed: Option<Id>, space: Dataspace, value: Value },
}

/// What an object is.
#[derive(Clone, Debug)]
pub(super) enum Body {
    Group(Group),
    Array(Box<Array>),
    Datatype(DType),
}

/// What is stored of an object that the file has.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) prefix: Prefix,
    /// Messages that are kept as they are, whatever changes.
    pub(super) messages: Vec<NewMessage>,
    /// Those that say what the links are; kept while these do not change.
    pub(super) link_messages: Vec<NewMessage>,
    /// Those of attributes.
    pub(super) attribute_messages: Vec<NewMessage>,
    /// Extents and layout of an array.
    pub(super) array_messages: Vec<NewMessage>,
    pub(super) blocks: Blocks,
    /// Whether links are in a symbol table, and where.
    pub(super) table: Option<super::group::Table>,
}

/// An object.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) body: Body,
    pub(super) attributes: Vec<Attribute>,
    /// The number that the next attribute gets.
    pub(super) next_attribute: u64,
    /// Whether the order of creation of attributes is tracked.
    pub(super) tracks: bool,
    /// Whether attributes were read.
    pub(super) attributes_loaded: bool,
    /// Whether attributes differ from what is stored.
    pub(super) attributes_dirty: bool,
    /// Hard links, and for datatypes also their users.
    pub(super) references: u32,
    /// Whether that differs from what is stored.
    pub(super) references_dirty: bool,
    /// Where the first block of its header is, and how long it is.
    pub(super) place: Option<(u64, u64)>,
    /// Why it cannot be changed, if so.
    pub(super) refused: Option<String>,
    /// What the file has of it.
    pub(super) stored: Option<Stored>,
    /// Messages of the object that it is a copy of, which are written as they are.
    pub(super) carried: Vec<NewMessage>,
    /// Times of the object that it is a copy of: access, modification, change and birth.
    pub(super) times: Option<[u32; 4]>,
}

impl Object {
    /// An object that is made now.
    pub(super) fn new(body: Body, tracks: bool) -> Self {
        Object {
            body,
            attributes: Vec::new(),
            next_attribute: 0,
            tracks,
            attributes_loaded: true,
            attributes_dirty: true,
            references: 0,
            references_dirty: true,
            place: None,
            refused: None,
            stored: None,
            carried: Vec::new(),
            times: None,
        }
    }

    /// Whether its header has to be written.
    pub(super) fn is_dirty(&self) -> bool {
        let body = match &self.body {
            Body::Group(group) => group.dirty,
            Body::Array(array) => array.dirty || matches!(&array.storage, Storage::Chunked(c) if c.dirty),
            Body::Datatype(_) => false,
        };
        body || self.attributes_dirty || self.references_dirty || self.stored.is_none()
    }
}
