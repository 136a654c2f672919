//! An array: its description, and reads.

use super::options::{OpenOptions, ReadOptions};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::exec::ReadStats;
use crate::model::ChunkRef;
use crate::model::{ArrayMeta, AttributeEntry, Fault, Hierarchy, NodeId, Storage};
use crate::plan::ReadPlan;
use crate::select::IntoSelection;
use crate::shape::Coord;
use std::sync::Arc;

/// A dataset or variable of a file. Cheap to clone; may be read from any number of threads at once.
#[derive(Clone, Debug)]
pub struct Array {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    hierarchy: Arc<dyn Hierarchy>,
    node: NodeId,
    path: String,
    options: Arc<OpenOptions>,
    meta: ArrayMeta,
    storage: Storage,
}

/// Elements in memory, in C order.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayData<T> {
    /// Extents.
    pub shape: Vec<u64>,
    /// Elements.
    pub data: Vec<T>,
}

/// Elements as stored, in C order.
#[derive(Clone, Debug, PartialEq)]
pub struct RawData {
    /// Extents.
    pub shape: Vec<u64>,
    /// Type of one element.
    pub dtype: DType,
    /// The elements side by side, `dtype.size()` bytes each.
    pub bytes: Vec<u8>,
}

impl Array {
    /// The array at `node`, called `path` in messages. Reads its description.
    pub fn new(
        hierarchy: Arc<dyn Hierarchy>,
        node: NodeId,
        path: impl Into<String>,
        options: Arc<OpenOptions>,
    ) -> Result<Array> {
        let path = path.into();
        let (meta, storage) = hierarchy.array(&node).map_err(|e| e.context(format!("array {path}")))?;
        Ok(Array { inner: Arc::new(Inner { hierarchy, node, path, options, meta, storage }) })
    }

    /// The path by which it was found.
    pub fn path(&self) -> &str {
        &self.inner.path
    }

    /// Its identity in the file.
    pub fn node(&self) -> &NodeId {
        &self.inner.node
    }

    /// The file it lies in.
    pub fn hierarchy(&self) -> &Arc<dyn Hierarchy> {
        &self.inner.hierarchy
    }

    /// How its file was opened.
    pub fn options(&self) -> &Arc<OpenOptions> {
        &self.inner.options
    }

    /// Type, extents, layout and filters.
    pub fn meta(&self) -> &ArrayMeta {
        &self.inner.meta
    }

    /// How to get at its elements.
    pub fn storage(&self) -> &Storage {
        &self.inner.storage
    }

    /// Extents, slowest first; none for a scalar.
    pub fn shape(&self) -> &[u64] {
        self.inner.meta.space.dims()
    }

    /// Element type as stored.
    pub fn dtype(&self) -> &DType {
        &self.inner.meta.dtype
    }

    /// All attributes, sorted by the bytes of their names.
    pub fn attributes(&self) -> Result<Vec<AttributeEntry>> {
        self.inner.hierarchy.attributes(&self.inner.node)
    }

    /// Reads elements as `T`. Values that `T` cannot hold are clamped and fractions cut, as HDF5 does; see
    /// [`ReadOptions::exact`].
    pub fn read<T: Element>(&self, selection: impl IntoSelection) -> Result<ArrayData<T>> {
        Ok(self.read_with(selection, &ReadOptions::default())?.0)
    }

    /// Reads elements as `T` with options, and says what was done.
    pub fn read_with<T: Element>(
        &self,
        selection: impl IntoSelection,
        options: &ReadOptions,
    ) -> Result<(ArrayData<T>, ReadStats)> {
        let _ = (selection.into_selection()?, options);
        Err(Error::unsupported("reading"))
    }

    /// Reads elements as `T` into a buffer that has room for exactly the selected ones.
    pub fn read_into<T: Element>(&self, selection: impl IntoSelection, out: &mut [T]) -> Result<ReadStats> {
        let _ = (selection.into_selection()?, out);
        Err(Error::unsupported("reading"))
    }

    /// Reads elements as stored.
    pub fn read_raw(&self, selection: impl IntoSelection) -> Result<RawData> {
        Ok(self.read_raw_with(selection, &ReadOptions::default())?.0)
    }

    /// Reads elements as stored with options, and says what was done.
    pub fn read_raw_with(
        &self,
        selection: impl IntoSelection,
        options: &ReadOptions,
    ) -> Result<(RawData, ReadStats)> {
        let _ = (selection.into_selection()?, options);
        Err(Error::unsupported("reading"))
    }

    /// What a read of this selection would do. Looks up chunks, reads no data.
    pub fn plan(&self, selection: impl IntoSelection) -> Result<ReadPlan> {
        let _ = selection.into_selection()?;
        Err(Error::unsupported("planning"))
    }

    /// Visits every stored chunk in the order of the index; faults in the index go to `fault`.
    pub fn chunks(
        &self,
        visit: &mut dyn FnMut(Coord, ChunkRef) -> Result<()>,
        fault: &mut dyn FnMut(Fault),
    ) -> Result<()> {
        match &self.inner.storage {
            Storage::Chunks(index) => index.scan(visit, fault),
            Storage::Virtual(_) => Ok(()),
        }
    }
}
