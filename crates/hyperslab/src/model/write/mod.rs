//! The way of a write through the waist: changes in, all of them durable or none.
//!
//! A format implements [`HierarchyWriter`]: a *transaction* on a hierarchy. Structural changes ([`Change`]) are told to it
//! in order; elements come as encoded chunks, whole ones, of which it says beforehand how they are to be encoded
//! ([`WriteLayout`]). Nothing of it is visible before [`HierarchyWriter::commit`], and dropping it means that nothing
//! happened.
//!
//! Elements with everything that they point to are a [`Content`], which means the same in every format.

mod change;
mod content;
mod layout;
mod path;
#[cfg(test)]
mod tests;

pub use change::{
    AllocationTime, ArraySpec, AttributeSpec, Change, ExternalRun, FillSpec, FillTime, LayoutSpec, LinkSpec,
    Restack, ShardSpec, Support,
};
pub use content::{Content, Losses, Target, TargetPart};
pub use layout::{EncodedChunk, WriteLayout};
pub use path::ObjectPath;

use crate::error::Result;
use bytes::Bytes;
use std::fmt;

/// What a commit did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Bytes that were written, of data and metadata.
    pub bytes: u64,
    /// Chunks that were written.
    pub chunks: u64,
}

/// A transaction on a hierarchy.
///
/// Contract: nothing is visible to a reader before [`commit`](Self::commit); then all of it is, also if the program or the
/// system dies meanwhile (the next one who opens the file to write finishes or undoes what was begun). A transaction that
/// is dropped leaves no trace. A call that fails changes nothing, and the transaction goes on. Whatever cannot be written
/// exactly is [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) when it is said, not when it is committed.
pub trait HierarchyWriter: Send + fmt::Debug {
    /// What is written, such as `Zarr 3`.
    fn format(&self) -> &'static str;

    /// What would become of a change in this format, without making it: nothing else is looked at than the change. An
    /// error is one of the change itself (extents that overflow).
    fn support(&self, change: &Change) -> Result<Support>;

    /// Makes a structural change. It is checked at once, against what is there and what this transaction changed before.
    fn apply(&mut self, change: Change) -> Result<()>;

    /// How chunks of an array are to be encoded, as the array is in this transaction.
    fn layout(&self, array: &ObjectPath) -> Result<WriteLayout>;

    /// What the elements of one chunk are as bytes in front of the pipeline, of an array of which some part of an element
    /// is of variable length, or a reference: an HDF5 writer stores them on a heap and gives what points to them.
    /// `content` holds exactly the elements of one chunk as [`WriteLayout::extent_of`] says. The bytes are for one chunk of
    /// this array, written once: what they point to is theirs.
    fn flatten(&mut self, array: &ObjectPath, content: &Content) -> Result<Bytes>;

    /// Takes encoded chunks of one array. Each replaces the chunk at its coordinates; one coordinate may come again.
    /// May write them at once, where nobody sees them.
    fn write_chunks(&mut self, array: &ObjectPath, chunks: Vec<EncodedChunk>) -> Result<()>;

    /// Makes everything durable, all or nothing.
    fn commit(self: Box<Self>) -> Result<Committed>;
}
