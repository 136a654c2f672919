//! HDF5, written: a transaction on one file.
//!
//! Bottom up: `encoder` (the bytes of one structure), `disk` (one growable run of bytes with room given out and taken
//! back), a serialiser for each structure that the modules beside read (`datatype`, `message`, `header`, `heap`, `btree1`,
//! `btree2`, `local`, `global`, `index`, `group`, `attribute`, `selection`), `object` (what an object will be), and
//! `transaction` with what is done to objects: `array`, `content`, `dimension`, `load`, `commit`.
//!
//! Elements go to the file as they come. Metadata is held as objects until the commit, which lays all of it out at once:
//! trees and heaps are built from everything that they hold, and making an object costs nothing but itself.

mod array;
mod attribute;
mod btree1;
mod btree2;
mod commit;
mod content;
mod copy;
mod datatype;
mod dimension;
mod disk;
mod encoder;
mod fill;
mod global;
mod group;
mod header;
mod heap;
#[cfg(test)]
mod history_tests;
mod index;
mod insert;
mod load;
mod local;
mod message;
mod object;
mod provenance;
mod reclaim;
mod resize;
mod restack;
mod selection;
mod settle;
mod superblock;
mod support;
mod target;
#[cfg(test)]
mod tests;
mod transaction;
mod update;

pub use provenance::Provenance;
pub use target::{MemoryTarget, Target};

use crate::error::{Error, Result};
use crate::format::hdf5::parse::Sizes;
use crate::limits::Limits;
use crate::model::write::{
    Change, Committed, Content, EncodedChunk, HierarchyWriter, ObjectPath, Support, WriteLayout,
};
use crate::shape::Name;
use bytes::Bytes;
use object::{AttributeValue, Body, Group, Object, Value};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transaction::Transaction;

/// The oldest libraries that read a new file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Libver {
    /// HDF5 1.6: structures of the first versions, but for what they cannot hold.
    Earliest,
    /// HDF5 1.8.
    V18,
    /// HDF5 1.10.
    #[default]
    V110,
    /// The latest (HDF5 2.0).
    Latest,
}

/// How a new HDF5 file is written.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Hdf5Options {
    /// The oldest libraries that read it.
    pub libver: Libver,
    /// Whether groups and objects remember the order in which links and attributes were made.
    pub track_order: bool,
    /// Bytes in front that are the user's: 0, or a power of two from 512 on.
    pub user_block: u64,
    /// The text of netCDF's attribute `_NCProperties` of the root group.
    pub properties: Option<String>,
    /// What each array says of where it comes from, with a hash of its elements; `None`: nothing.
    pub provenance: Option<Provenance>,
}

impl Hdf5Options {
    /// The defaults: for HDF5 1.10, no order, no user block.
    pub fn new() -> Self {
        Hdf5Options::default()
    }

    /// A file as netCDF-4 writes it: order tracked, so that netCDF's libraries add to it.
    pub fn netcdf4() -> Self {
        Hdf5Options { libver: Libver::V18, track_order: true, ..Hdf5Options::default() }
    }

    /// Sets the oldest libraries that read it.
    #[must_use]
    pub fn with_libver(mut self, libver: Libver) -> Self {
        self.libver = libver;
        self
    }

    /// Sets whether the order of creation is remembered.
    #[must_use]
    pub fn with_track_order(mut self, track_order: bool) -> Self {
        self.track_order = track_order;
        self
    }

    /// Sets the length of the user block.
    #[must_use]
    pub fn with_user_block(mut self, bytes: u64) -> Self {
        self.user_block = bytes;
        self
    }

    /// Sets the text of `_NCProperties`.
    #[must_use]
    pub fn with_properties(mut self, text: impl Into<String>) -> Self {
        self.properties = Some(text.into());
        self
    }

    /// Sets what each array says of where it comes from.
    #[must_use]
    pub fn with_provenance(mut self, provenance: Provenance) -> Self {
        self.provenance = Some(provenance);
        self
    }
}

/// A transaction on an HDF5 file.
#[derive(Debug)]
pub struct Hdf5Writer {
    state: Mutex<Transaction>,
}

impl Hdf5Writer {
    /// A new file in `target`, which is empty.
    pub fn create(target: Arc<dyn Target>, options: Hdf5Options, limits: Limits) -> Result<Self> {
        let block = options.user_block;
        if block != 0 && (block < 512 || !block.is_power_of_two()) {
            return Err(Error::invalid(format!(
                "a user block of {block} bytes: 0, or a power of two from 512 on"
            )));
        }
        let sizes = Sizes { offset: 8, length: 8 };
        let mut disk = disk::Disk::new(target, block, 0, sizes);
        // The superblock is written last.
        disk.allocate(superblock::length(options.libver, sizes), 8)?;
        let group = Group { tracks: options.track_order, dirty: true, ..Group::default() };
        let mut root = Object::new(Body::Group(group), options.track_order);
        root.references = 1;
        let properties = options.properties.clone();
        let mut transaction = Transaction {
            disk,
            options,
            limits,
            objects: vec![root],
            by_address: HashMap::new(),
            root: object::Id(0),
            heap: global::GlobalHeap::default(),
            reading: None,
            group_k: group::GroupK { leaf: 4, internal: 16 },
            chunk_k: 32,
            root_table: None,
            written: HashMap::new(),
            unhashed: HashSet::new(),
            next_dimension: Some(0),
            chunks: 0,
        };
        if let Some(text) = properties {
            let root = transaction.root;
            let dtype = crate::dtype::DType::String {
                size: text.len().max(1),
                padding: crate::dtype::StringPadding::NullTerminated,
                charset: crate::dtype::CharSet::Ascii,
            };
            let space = crate::model::Dataspace::Scalar;
            let value = Value::Fixed(text.into_bytes().into());
            let what = AttributeValue::New { dtype, committed: None, space, value };
            transaction.put_attribute(root, Name::from("_NCProperties"), what)?;
        }
        Ok(Hdf5Writer { state: Mutex::new(transaction) })
    }

    /// The file in `target`, to be changed in place. New structures are of the versions that it has.
    ///
    /// Fails with [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for files with structures that a change would
    /// make untrue (shared messages, kept free space, pages, a cache image), and with
    /// [`ErrorKind::Permission`](crate::ErrorKind::Permission) if a writer has it open.
    pub fn edit(target: Arc<dyn Target>, limits: Limits) -> Result<Self> {
        Ok(Hdf5Writer { state: Mutex::new(Transaction::edit(target, limits)?) })
    }

    fn lock(&self) -> MutexGuard<'_, Transaction> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&mut self) -> &mut Transaction {
        self.state.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HierarchyWriter for Hdf5Writer {
    fn format(&self) -> &'static str {
        "HDF5"
    }

    fn support(&self, change: &Change) -> Result<Support> {
        self.lock().support(change)
    }

    fn apply(&mut self, change: Change) -> Result<()> {
        self.get().apply(change)
    }

    fn layout(&self, array: &ObjectPath) -> Result<WriteLayout> {
        self.lock().write_layout(array)
    }

    fn flatten(&mut self, array: &ObjectPath, content: &Content) -> Result<Bytes> {
        self.get().flatten_chunk(array, content)
    }

    fn write_chunks(&mut self, array: &ObjectPath, chunks: Vec<EncodedChunk>) -> Result<()> {
        self.get().write_chunks(array, chunks)
    }

    fn commit(mut self: Box<Self>) -> Result<Committed> {
        self.get().commit()
    }
}
