//! What becomes of a change in HDF5, before anything is written.

use super::Libver;
use super::transaction::Transaction;
use crate::codec::BindContext;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::model::write::{ArraySpec, Change, LayoutSpec, LinkSpec, Support};
use crate::shape::byte_count;

impl Transaction {
    /// What would become of a change, which alone is looked at.
    pub(super) fn support(&self, change: &Change) -> Result<Support> {
        Ok(match change {
            Change::CreateDimension { .. } => Support::Mapped("a dimension scale".into()),
            Change::CreateArray { spec, .. } => self.array_support(spec)?,
            Change::CommitType { dtype, .. } => self.type_support(dtype)?.unwrap_or(Support::Kept),
            Change::SetAttribute { attribute, .. } => {
                self.type_support(&attribute.dtype)?.unwrap_or(Support::Kept)
            }
            Change::CreateLink { link: LinkSpec::External { .. }, .. }
                if self.is_early() && !self.options.track_order =>
            {
                Support::Mapped("a group of the newer style, which HDF5 1.8 reads".into())
            }
            _ => Support::Kept,
        })
    }

    /// Why a type cannot be stored; `None` if it can.
    fn type_support(&self, dtype: &DType) -> Result<Option<Support>> {
        match self.check_type(&self.adapted(dtype)) {
            Ok(()) => Ok(None),
            Err(e) if e.kind() == ErrorKind::Unsupported => {
                Ok(Some(Support::Dropped(e.message().to_owned())))
            }
            Err(e) => Err(e),
        }
    }

    /// Whether there can be virtual datasets: they have one form only, which HDF5 1.8 does not read. A file that is edited
    /// gets them whatever its superblock is, as the reference library gives them to it.
    pub(super) fn has_virtual(&self) -> bool {
        self.options.libver != Libver::V18 || self.reading.is_some()
    }

    fn array_support(&self, spec: &ArraySpec) -> Result<Support> {
        if let Some(dropped) = self.type_support(&spec.dtype)? {
            return Ok(dropped);
        }
        let dtype = self.adapted(&spec.dtype);
        let dims = spec.space.dims();
        byte_count(dims, dtype.size())?;
        let chunk = match &spec.layout {
            LayoutSpec::Chunked { chunk, .. } => chunk.as_slice(),
            _ => dims,
        };
        let chunk_bytes = byte_count(chunk, dtype.size())?;
        let context = BindContext { dtype: &dtype, chunk, chunk_bytes };
        for filter in &spec.filters {
            if let Err(e) = filter.to_hdf5(&context) {
                return Ok(Support::Dropped(e.message().to_owned()));
            }
        }
        match &spec.layout {
            LayoutSpec::Chunked { shard: Some(_), .. } => {
                Ok(Support::Mapped("chunks, each stored on its own, without shards".into()))
            }
            LayoutSpec::Virtual(_) | LayoutSpec::Stacked { .. } if !self.has_virtual() => {
                Ok(Support::Dropped("HDF5 1.8 has no virtual datasets".into()))
            }
            _ => Ok(Support::Kept),
        }
    }
}
