//! An array: its description, and reads.

use super::node::{self, whole};
use super::options::{OpenOptions, ReadOptions};
use super::tiles;
use super::virtual_plan::{Nesting, Sources, with_dims};
use crate::codec::{BindContext, Pipeline};
use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{self, Form, Output, ReadStats, RunOptions};
use crate::model::{
    ArrayMeta, AttributeEntry, ChunkGrid, ChunkRef, Fault, Hierarchy, NodeId, Retry, Storage, Tile,
};
use crate::plan::{Origin, ReadPlan};
use crate::select::{IntoSelection, Region};
use crate::shape::{Coord, byte_count};
use hyperslab_kernels::{Plain, bytes_of_mut, zeroed};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A dataset or variable of a file. Cheap to clone; may be read from any number of threads at once.
#[derive(Clone, Debug)]
pub struct Array {
    inner: Arc<Inner>,
}

/// The next handle's number.
static NUMBER: AtomicU64 = AtomicU64::new(1);

#[derive(Debug)]
struct Inner {
    hierarchy: Arc<dyn Hierarchy>,
    node: NodeId,
    path: String,
    /// What no other handle of this program has.
    number: u64,
    options: Arc<OpenOptions>,
    meta: ArrayMeta,
    storage: Storage,
    pipeline: OnceLock<Arc<Pipeline>>,
    sources: Sources,
    /// Of an array that consists of tiles, these.
    tiles: OnceLock<Vec<Array>>,
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
        Array::open(hierarchy, node, path.into(), options, None)
    }

    /// The same for a source of a virtual dataset: `nesting` says how far down.
    pub(super) fn open(
        hierarchy: Arc<dyn Hierarchy>,
        node: NodeId,
        path: String,
        options: Arc<OpenOptions>,
        nesting: Option<Nesting>,
    ) -> Result<Array> {
        let (meta, storage) =
            whole(&*hierarchy, || hierarchy.array(&node)).map_err(|e| e.context(format!("array {path}")))?;
        let mut array = Array::of(hierarchy, node, path, options, (meta, storage), nesting);
        if let Storage::Virtual(mappings) = &array.inner.storage
            && let Some(dims) =
                array.virtual_dims(mappings).map_err(|e| e.context(format!("array {}", array.inner.path)))?
            && let Some(inner) = Arc::get_mut(&mut array.inner)
        {
            inner.meta.space = with_dims(&inner.meta.space, dims);
        }
        Ok(array)
    }

    fn of(
        hierarchy: Arc<dyn Hierarchy>,
        node: NodeId,
        path: String,
        options: Arc<OpenOptions>,
        (meta, storage): (ArrayMeta, Storage),
        nesting: Option<Nesting>,
    ) -> Array {
        let (pipeline, sources, tiles) = (OnceLock::new(), Sources::new(nesting), OnceLock::new());
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let inner = Inner { hierarchy, node, path, number, options, meta, storage, pipeline, sources, tiles };
        Array { inner: Arc::new(inner) }
    }

    /// What its tiles are as arrays by themselves.
    pub(super) fn tile_arrays(&self, tiles: &[Tile]) -> &[Array] {
        let Inner { hierarchy, node, path, options, .. } = &*self.inner;
        self.inner.tiles.get_or_init(|| {
            let array = |tile: &Tile| {
                let path = format!("{path} from {:?} on", tile.start);
                let storage = Storage::Chunks(tile.index.clone());
                let description = (tile.meta.clone(), storage);
                Array::of(hierarchy.clone(), node.clone(), path, options.clone(), description, None)
            };
            tiles.iter().map(array).collect()
        })
    }

    /// The same array with its description read again. What was prepared for its filters is kept.
    pub(super) fn reopened(&self) -> Result<Array> {
        let Inner { hierarchy, node, path, options, meta, pipeline, sources, .. } = &*self.inner;
        let nesting = sources.nesting().cloned();
        let fresh = Array::open(hierarchy.clone(), node.clone(), path.clone(), options.clone(), nesting)?;
        let now = &fresh.inner.meta;
        let same =
            now.filters == meta.filters && now.dtype == meta.dtype && now.chunk_shape() == meta.chunk_shape();
        if let (true, Some(pipeline)) = (same, pipeline.get()) {
            let _ = fresh.inner.pipeline.set(pipeline.clone());
        }
        Ok(fresh)
    }

    /// The sources of a virtual dataset that were opened.
    pub(super) fn sources(&self) -> &Sources {
        &self.inner.sources
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
        node::attributes(&*self.inner.hierarchy, &self.inner.node)
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
        let selection = selection.into_selection()?;
        self.attempt(|| {
            let plan = self.plan(&selection)?;
            let mut raw = self.memory::<T::Raw>(plan.count()?)?;
            let output = Output { bytes: bytes_of_mut(&mut raw), zeroed: true };
            let form = Form::Native { native: T::NATIVE, exact: options.exact };
            let stats = self.run(&plan, form, output, options)?;
            Ok((ArrayData { shape: plan.shape().to_vec(), data: T::from_raw(raw) }, stats))
        })
    }

    /// Reads elements as `T` into a buffer that has room for exactly the selected ones.
    pub fn read_into<T: Element>(&self, selection: impl IntoSelection, out: &mut [T]) -> Result<ReadStats> {
        let options = ReadOptions::default();
        if T::as_raw(&mut []).is_none() {
            let (read, stats) = self.read_with::<T>(selection, &options)?;
            if read.data.len() != out.len() {
                return Err(Error::invalid(format!(
                    "a buffer of {} elements for {:?}",
                    out.len(),
                    read.shape
                )));
            }
            out.copy_from_slice(&read.data);
            return Ok(stats);
        }
        let selection = selection.into_selection()?;
        let raw = T::as_raw(out).unwrap_or_default();
        self.attempt(|| {
            let plan = self.plan(&selection)?;
            let output = Output { bytes: bytes_of_mut(raw), zeroed: false };
            self.run(&plan, Form::Native { native: T::NATIVE, exact: false }, output, &options)
        })
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
        let selection = selection.into_selection()?;
        self.attempt(|| {
            let plan = self.plan(&selection)?;
            let size = self.dtype().size();
            let length = plan.count()?.saturating_mul(size);
            let mut bytes = self.memory::<u8>(length)?;
            let output = Output { bytes: &mut bytes, zeroed: true };
            let stats = self.run(&plan, Form::Stored, output, options)?;
            Ok((RawData { shape: plan.shape().to_vec(), dtype: self.dtype().clone(), bytes }, stats))
        })
    }

    /// Reads the elements of a region as stored.
    pub(crate) fn read_region(&self, region: Region, options: &ReadOptions) -> Result<RawData> {
        self.attempt(|| {
            let plan = self.plan_region(region.clone())?;
            let mut bytes = self.memory::<u8>(plan.count()?.saturating_mul(self.dtype().size()))?;
            let output = Output { bytes: &mut bytes, zeroed: true };
            self.run(&plan, Form::Stored, output, options)?;
            Ok(RawData { shape: plan.shape().to_vec(), dtype: self.dtype().clone(), bytes })
        })
    }

    /// What a read of this selection would do. Looks up chunks, reads no data.
    pub fn plan(&self, selection: impl IntoSelection) -> Result<ReadPlan> {
        let name = || format!("array {}", self.inner.path);
        let selection = selection.into_selection()?;
        let limits = &self.inner.options.limits;
        if self.inner.meta.space.is_null() {
            return Err(Error::invalid("a null dataspace holds no elements").context(name()));
        }
        let region = selection
            .resolve(self.shape(), limits)
            .map_err(|e| e.context(format!("selection {selection}")).context(name()))?;
        self.attempt(|| self.plan_region(region.clone())).map_err(|e| e.context(name()))
    }

    /// Runs a whole operation, again where somebody who writes the file, or a source of a virtual dataset, has torn it.
    pub(crate) fn attempt<T>(&self, work: impl FnMut() -> Result<T>) -> Result<T> {
        let mut work = work;
        match self.inner.hierarchy.retry() {
            Some(retry) => {
                let is_virtual = matches!(self.inner.storage, Storage::Virtual(_));
                retry.with_live(retry.is_live() || is_virtual).run(work)
            }
            None => work(),
        }
    }

    /// The number under which decoded chunks are kept; 0 where they may change.
    pub(super) fn identity(&self) -> u64 {
        if self.is_live() { 0 } else { self.inner.number }
    }

    /// Whether it is read while it is written.
    pub(crate) fn is_live(&self) -> bool {
        self.inner.hierarchy.retry().is_some_and(Retry::is_live)
    }

    /// The way to its elements as it is now: of a live file the object header is read again, since what it says of the
    /// index may have changed. The extents stay those of this handle.
    pub(crate) fn storage_now(&self) -> Result<Storage> {
        if self.is_live() {
            return Ok(self.inner.hierarchy.array(&self.inner.node)?.1);
        }
        Ok(self.inner.storage.clone())
    }

    /// The same for a region of it.
    pub(crate) fn plan_region(&self, region: Region) -> Result<ReadPlan> {
        match &self.storage_now()? {
            Storage::Chunks(index) => {
                let origin = Origin {
                    name: &self.inner.path,
                    identity: self.identity(),
                    meta: &self.inner.meta,
                    index: &**index,
                    pipeline: self.pipeline()?,
                };
                ReadPlan::new(&origin, region, &self.inner.options.limits)
            }
            Storage::Tiles(_) => self.plan_tiles(region),
            Storage::Virtual(mappings) => self.plan_virtual(mappings, region),
        }
    }

    /// The filters, prepared at the first use.
    pub(crate) fn pipeline(&self) -> Result<&Arc<Pipeline>> {
        if let Some(known) = self.inner.pipeline.get() {
            return Ok(known);
        }
        let meta = &self.inner.meta;
        let chunk: Vec<u64> = meta.chunk_shape().iter().map(|&d| d.max(1)).collect();
        let chunk_bytes = byte_count(&chunk, meta.dtype.size())?;
        let context = BindContext { dtype: &meta.dtype, chunk: &chunk, chunk_bytes };
        let pipeline = self.inner.options.registry.pipeline(&meta.filters, &context)?;
        Ok(self.inner.pipeline.get_or_init(|| Arc::new(pipeline)))
    }

    fn run(
        &self,
        plan: &ReadPlan,
        form: Form,
        output: Output<'_>,
        options: &ReadOptions,
    ) -> Result<ReadStats> {
        let options = RunOptions {
            threads: options.threads.or(self.inner.options.threads),
            cancel: options.cancel.clone().or_else(|| self.inner.options.cancel.clone()),
            missing: options.missing.unwrap_or(self.inner.options.missing),
            // What is being written may be other bytes at the same place at the next read.
            cache: self.inner.hierarchy.retry().is_none().then(|| self.inner.options.cache.clone()),
        };
        exec::run(plan, form, output, &options).map_err(|e| match e.kind() {
            ErrorKind::Truncated => self.hint_at_rest(e),
            _ => e,
        })
    }

    /// Of an array in one piece that the end of its file cuts, says what can be read.
    fn hint_at_rest(&self, error: Error) -> Error {
        let meta = &self.inner.meta;
        let row = match (self.shape().split_first(), &meta.grid, self.storage()) {
            (Some((_, rest)), ChunkGrid::Whole, Storage::Chunks(_)) if meta.filters.is_empty() => {
                byte_count(rest, meta.dtype.size()).ok()
            }
            _ => None,
        };
        let there = || {
            let Storage::Chunks(index) = self.storage() else { return None };
            let first: Coord = std::iter::repeat_n(0, self.shape().len()).collect();
            let ChunkRef::Range { source, offset, .. } = index.locate(&[first]).ok()?.pop()? else {
                return None;
            };
            source.len().ok()?.saturating_sub(offset).checked_div(row?)
        };
        match there() {
            Some(rows @ 1..) => error.hint(format!("the file is cut short: select [:{rows}], which it has")),
            Some(0) => error.hint("the file is cut short"),
            None => error,
        }
    }

    /// Zeroed elements, if they are allowed and there is memory.
    fn memory<T: Plain>(&self, count: usize) -> Result<Vec<T>> {
        let bytes = count as u128 * size_of::<T>() as u128;
        let allowed = self.inner.options.limits.output;
        if bytes > allowed as u128 {
            return Err(Error::limit("bytes of the result", bytes, allowed as u128));
        }
        zeroed(count).ok_or_else(|| {
            Error::new(ErrorKind::LimitExceeded, format!("no memory for a result of {bytes} bytes"))
        })
    }

    /// Visits every stored chunk in the order of the index; faults in the index go to `fault`.
    pub fn chunks(
        &self,
        visit: &mut dyn FnMut(Coord, ChunkRef) -> Result<()>,
        fault: &mut dyn FnMut(Fault),
    ) -> Result<()> {
        let Some(retry) = self.inner.hierarchy.retry().filter(|retry| retry.is_live()) else {
            return scan(&self.inner.storage, visit, fault);
        };
        // All of them first: a walk that was torn is made again, and the visitor sees each chunk once.
        let look = || {
            let (mut chunks, mut faults) = (Vec::new(), Vec::new());
            let found = &mut |coord, chunk| {
                chunks.push((coord, chunk));
                Ok(())
            };
            scan(&self.storage_now()?, found, &mut |fault| faults.push(fault))?;
            Ok((chunks, faults))
        };
        let torn = |done: &Result<(Vec<_>, Vec<Fault>)>| match done {
            Ok((_, faults)) => faults.iter().any(|fault| fault.error.is_torn()),
            Err(e) => e.is_torn(),
        };
        let (chunks, faults) = retry.run_until(look, torn)?;
        faults.into_iter().for_each(fault);
        chunks.into_iter().try_for_each(|(coord, chunk)| visit(coord, chunk))
    }
}

fn scan(
    storage: &Storage,
    visit: &mut dyn FnMut(Coord, ChunkRef) -> Result<()>,
    fault: &mut dyn FnMut(Fault),
) -> Result<()> {
    match storage {
        Storage::Chunks(index) => index.scan(visit, fault),
        Storage::Tiles(tiles) => tiles::scan(tiles, visit, fault),
        Storage::Virtual(_) => Ok(()),
    }
}
