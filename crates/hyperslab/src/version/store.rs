//! What all versions share, to be written: chunks, tables of hashes, and the maps that lead to chunks.

use super::stage::Staged;
use super::{FIRST, NEWEST, STORE, Versions};
use super::{survey, take};
use crate::array::{Array, File};
use crate::codec::FilterSpec;
use crate::dtype::{ByteOrder, DType, EnumMember, Field, IntegerType};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::encode::{ChunkData, NewChunk};
use crate::model::write::{
    ArraySpec, AttributeSpec, Change, Content, FillSpec, FillTime, LayoutSpec, ObjectPath,
};
use crate::model::{ArrayMeta, ChunkGrid, Dataspace, FillValue, Layout};
use crate::shape::{Coord, to_usize};
use crate::staged::{BaseSlab, Block, ChunkMap, Digest, NewSlab, StagedArray, Values};
use crate::write::{Transaction, content_of};
use bytes::Bytes;
use std::collections::BTreeSet;

/// Bytes of a row of a table: 32 of the hash, first and last row of the chunk.
pub(super) const ROW: usize = 48;

/// Rows of a table in one chunk.
pub(super) const TABLE_CHUNK: u64 = 4096;

/// The place where versions of a group are kept.
#[derive(Debug)]
pub(super) struct Store {
    before: File,
    /// `_version_data`.
    place: ObjectPath,
    /// Groups in it that were made, or known to be there.
    groups: BTreeSet<ObjectPath>,
}

/// What is known of an array of a version.
pub(super) struct Parts<'a> {
    pub(super) meta: &'a ArrayMeta,
    pub(super) slots: &'a [(u64, u64)],
    pub(super) array: Option<&'a mut StagedArray>,
}

impl Store {
    /// The place in a group, made if it is not there.
    pub(super) fn open(
        transaction: &mut Transaction,
        before: &File,
        group: &str,
    ) -> Result<(Option<Versions>, Store)> {
        let at = ObjectPath::parse(group)?;
        let place = at.join(STORE);
        let store = Store { before: before.clone(), place, groups: BTreeSet::new() };
        match Versions::open_at(before, group) {
            Ok(versions) if versions.data_version() < NEWEST as u64 => {
                let text = format!("new versions in the layout of data version {}", versions.data_version());
                return Err(Error::unsupported(text));
            }
            Ok(versions) => return Ok((Some(versions), store)),
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
        if !at.is_root() && before.get(group).is_err() {
            transaction.apply(Change::CreateGroup { path: at })?;
        }
        transaction.apply(Change::CreateGroup { path: store.place.clone() })?;
        let versions = store.versions();
        transaction.apply(Change::CreateGroup { path: versions.clone() })?;
        let first = versions.join(FIRST);
        transaction.apply(Change::CreateGroup { path: first.clone() })?;
        let now = super::Timestamp::now()?;
        transaction.set_attribute(&first.to_string(), "timestamp", now.as_str())?;
        transaction.set_attribute(&versions.to_string(), "data_version", NEWEST as i64)?;
        transaction.set_attribute(&versions.to_string(), "current_version", FIRST)?;
        Ok((None, store))
    }

    /// The group of all versions.
    pub(super) fn versions(&self) -> ObjectPath {
        self.place.join("versions")
    }

    fn group_of(&self, path: &ObjectPath) -> ObjectPath {
        self.place.names().iter().chain(path.names()).cloned().collect()
    }

    /// The stacked chunks of an array that some version has, or had.
    fn raw(&self, path: &ObjectPath) -> Result<Option<Array>> {
        match self.before.array(&self.group_of(path).join("raw_data").to_string()) {
            Ok(array) => Ok(Some(array)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// An array over the chunks that are stacked already, with their hashes.
    pub(super) fn staged(
        &self,
        path: &ObjectPath,
        meta: &ArrayMeta,
        slots: &[(u64, u64)],
    ) -> Result<StagedArray> {
        let (dims, chunk) = (meta.space.dims(), meta.chunk_shape());
        let fill = match meta.fill_element.as_ref() {
            bytes if bytes.is_empty() || !meta.dtype.is_fixed() => None,
            bytes => Some(Values::stored(&[], &meta.dtype, bytes)?),
        };
        let Some(raw) = self.raw(path)? else { return StagedArray::full(dims, chunk, &meta.dtype, fill) };
        pinned(&raw, meta)?;
        let base = BaseSlab::array(&raw, chunk)?.with_hashes(self.hashes(path, &raw)?);
        let grid: Vec<u64> =
            dims.iter().zip(chunk).map(|(&dim, &chunk)| dim.div_ceil(chunk.max(1))).collect();
        let count = to_usize(crate::shape::element_count(&grid)?)?;
        let height = chunk.first().copied().unwrap_or(1);
        let (mut slabs, mut offsets) = (vec![0u32; count], vec![0u64; count]);
        for &(number, slot) in slots {
            let at = to_usize(number)?;
            if let (Some(slab), Some(offset)) = (slabs.get_mut(at), offsets.get_mut(at)) {
                (*slab, *offset) = (1, slot.saturating_mul(height));
            }
        }
        let map = ChunkMap::new(grid, slabs, offsets)?;
        let staged = StagedArray::new(dims, chunk, &meta.dtype, vec![base], map, fill)?;
        Ok(staged.with_limits(self.before.options().limits.clone()))
    }

    /// An array with what another one holds: in the chunks of `old` if its elements are of the same type.
    pub(super) fn taken(&self, path: &ObjectPath, old: Option<&Staged>, array: &Array) -> Result<Staged> {
        let source = StagedArray::over(array)?;
        let fits = |old: &&Staged| {
            let is_alike = match (&old.meta.dtype, array.dtype()) {
                (DType::VarString { .. }, DType::VarString { .. }) => true,
                (DType::String { size, .. }, DType::String { size: other, .. }) => size == other,
                (own, other) => own.with_order(ByteOrder::Little) == other.with_order(ByteOrder::Little),
            };
            is_alike && old.meta.space.dims().len() == array.shape().len()
        };
        let (meta, slots) = match old.filter(fits) {
            Some(old) => (old.meta.clone(), old.slots.clone()),
            None => {
                let mut spec = ArraySpec::simple(array.dtype().clone(), array.shape());
                spec = spec.with_chunk(source.chunk_shape());
                let is_hdf5 = |filter: &FilterSpec| matches!(filter, FilterSpec::Hdf5 { .. });
                if array.meta().filters.iter().all(is_hdf5) {
                    spec.filters.clone_from(&array.meta().filters);
                }
                if array.dtype().is_fixed() && !array.meta().fill_element.is_empty() {
                    spec = spec.with_fill(&array.meta().fill_element);
                }
                (meta(&spec)?, Vec::new())
            }
        };
        let mut staged = self.staged(path, &meta, &slots)?;
        staged.resize(array.shape())?;
        // What differs, chunk by chunk: the rest stays where it is.
        let grid: Vec<u64> =
            array.shape().iter().zip(meta.chunk_shape()).map(|(&d, &c)| d.div_ceil(c)).collect();
        for number in 0..crate::shape::element_count(&grid)? {
            let extent = survey::extent(number, array.shape(), meta.chunk_shape());
            let region = survey::region(number, &grid, meta.chunk_shape(), &extent);
            let (theirs, ours) = (source.get(region.as_str())?, staged.get(region.as_str())?);
            let is_relabelled = theirs.dtype() != ours.dtype() && take::is_text(ours.dtype());
            if is_relabelled {
                // Texts in another spelling of their type.
                let texts = take::texts(&theirs)?;
                if texts != take::texts(&ours)? {
                    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                    staged.set(region.as_str(), Values::texts(theirs.shape(), &texts)?)?;
                }
            } else if ours != theirs {
                staged.set(region.as_str(), &theirs)?;
            }
        }
        Ok(Staged { meta, slots, array: Some(staged) })
    }

    /// The hash of each stacked chunk, as far as the table knows it.
    fn hashes(&self, path: &ObjectPath, raw: &Array) -> Result<Vec<Digest>> {
        let table = self.before.array(&self.group_of(path).join("hash_table").to_string())?;
        let height = raw.meta().chunk_shape().first().copied().unwrap_or(1).max(1);
        let slots = raw.shape().first().copied().unwrap_or(0) / height;
        let mut digests = vec![[0; 4]; to_usize(slots)?];
        let wrong = |what: &str| Error::new(ErrorKind::Corrupt, format!("{}: {what}", table.path()));
        if table.dtype() != &row_type() {
            return Err(wrong("not the element type of a table of hashes"));
        }
        let rows = self.rows(&table)?;
        if rows > table.shape().first().copied().unwrap_or(0) {
            return Err(wrong("fewer rows than its largest_index"));
        }
        let stored = table.read_raw(format!("0:{rows}").as_str())?;
        for row in stored.bytes.chunks_exact(ROW) {
            let number = |at: usize| {
                row.get(at..at + 8).and_then(|b| b.first_chunk()).map_or(-1, |b| i64::from_le_bytes(*b))
            };
            let start = u64::try_from(number(32)).ok().filter(|start| start % height == 0);
            let start = start.ok_or_else(|| wrong("a chunk that does not begin where a chunk begins"))?;
            // What died before its chunk was written is no chunk.
            let Some(digest) = digests.get_mut(to_usize(start / height)?) else { continue };
            for (part, bytes) in digest.iter_mut().zip(row.chunks_exact(8)) {
                *part = bytes.first_chunk().map_or(0, |b| u64::from_ne_bytes(*b));
            }
        }
        Ok(digests)
    }

    /// The number of chunks of a stack behind which new ones go: as many as the table has rows, which is where
    /// versioned-hdf5 would put them, too. What stands behind was never committed, and is written over.
    fn end(&self, path: &ObjectPath, raw: &Array) -> Result<u64> {
        let rows = self.rows(&self.before.array(&self.group_of(path).join("hash_table").to_string())?)?;
        let height = raw.meta().chunk_shape().first().copied().unwrap_or(1).max(1);
        let stacked = raw.shape().first().copied().unwrap_or(0).div_ceil(height);
        if rows == stacked {
            return Ok(rows);
        }
        let group = self.place.split().map_or(ObjectPath::root(), |(group, _)| group);
        let versions = Versions::open_at(&self.before, &group.to_string())?;
        let mut uses = std::collections::BTreeMap::new();
        for version in survey::versions(&versions)? {
            survey::look(&versions, &self.place, &version, &mut uses)?;
        }
        uses.get(path).map_or(Ok(()), survey::Use::check)?;
        let last = uses.get(path).and_then(|found| found.slots().keys().next_back().copied());
        if rows > stacked || last.is_some_and(|last| last >= rows) {
            let what = format!(
                "adding to {}, whose table of hashes has {rows} rows for {stacked} chunks",
                raw.path()
            );
            return Err(Error::unsupported(what)
                .hint("make the tables of hashes anew first: hyperslab versions rebuild"));
        }
        Ok(rows)
    }

    /// The rows of a table that count.
    fn rows(&self, table: &Array) -> Result<u64> {
        let object = self.before.get(table.path())?;
        for attribute in object.attributes()?.into_iter().flatten() {
            if attribute.name.as_bytes() == b"largest_index" {
                let value = object.attribute_value(&attribute)?.as_integer();
                return value.and_then(|n| u64::try_from(n).ok()).ok_or_else(|| {
                    Error::new(ErrorKind::Corrupt, format!("{}: largest_index is no number", table.path()))
                });
            }
        }
        Err(Error::new(ErrorKind::Corrupt, format!("{} has no largest_index", table.path())))
    }

    /// Writes an array of a version to `here`: its new chunks, their hashes, and the map.
    pub(super) fn write(
        &mut self,
        transaction: &mut Transaction,
        path: &ObjectPath,
        here: &ObjectPath,
        parts: Parts<'_>,
    ) -> Result<()> {
        let Parts { meta, slots, array } = parts;
        let group = self.group_of(path);
        let chunk = meta.chunk_shape();
        let height = chunk.first().copied().unwrap_or(1).max(1);
        let raw = self.raw(path)?;
        let (dims, slots) = match array {
            None => (meta.space.dims().to_vec(), slots.to_vec()),
            Some(array) => {
                let stacked = raw.as_ref().map_or(Ok(0), |raw| self.end(path, raw))?;
                array.hash()?;
                let plan = array.commit_plan()?;
                self.append(transaction, path, meta, raw.as_ref(), stacked, array.new_slab(&plan))?;
                let map = plan.ledger().map();
                let places = map.slab_indices().iter().zip(map.slab_offsets()).enumerate();
                let first_new = plan.new_slab().map(|_| plan.ledger().base_count() as u32);
                let slot = |(number, (&slab, &offset)): (usize, (&u32, &u64))| {
                    let slot = offset / height + if Some(slab) == first_new { stacked } else { 0 };
                    (slab != 0).then_some((number as u64, slot))
                };
                (array.shape().to_vec(), places.filter_map(slot).collect())
            }
        };
        let source = group.join("raw_data").to_string();
        let layout = LayoutSpec::Stacked { source: source.as_str().into(), chunk: chunk.to_vec(), slots };
        let spec = ArraySpec { layout, fill: fill(meta), ..ArraySpec::simple(meta.dtype.clone(), &dims) };
        transaction.apply(Change::CreateArray { path: here.clone(), spec: Box::new(spec) })?;
        let here = here.to_string();
        transaction.set_attribute(&here, "raw_data", source.as_str())?;
        transaction.set_attribute(&here, "chunks", &signed(chunk))
    }

    /// Adds chunks to the stack of an array, which is made if it is not there, and their hashes to its table.
    fn append(
        &mut self,
        transaction: &mut Transaction,
        path: &ObjectPath,
        meta: &ArrayMeta,
        raw: Option<&Array>,
        stacked: u64,
        new: Option<NewSlab<'_>>,
    ) -> Result<()> {
        let group = self.group_of(path);
        let (data, table) = (group.join("raw_data"), group.join("hash_table"));
        let chunk = meta.chunk_shape();
        let height = chunk.first().copied().unwrap_or(1).max(1);
        if raw.is_none() {
            self.make_groups(transaction, &group)?;
            create(transaction, &data, &table, meta)?;
        }
        let Some(new) = new else { return Ok(()) };
        let rows = match raw {
            Some(_) => self.rows(&self.before.array(&table.to_string())?)?,
            None => 0,
        };
        let mut entries = Vec::new();
        let mut end = stacked;
        for new in new.chunks() {
            let start = end.checked_mul(height).filter(|start| *start <= u64::MAX - height);
            let start = start.ok_or_else(|| Error::invalid("more rows of chunks than 2^64"))?;
            new.hash.iter().for_each(|part| entries.extend_from_slice(&part.to_ne_bytes()));
            entries.extend_from_slice(&start.to_le_bytes());
            entries.extend_from_slice(&(start + new.extent.first().copied().unwrap_or(1)).to_le_bytes());
            end += 1;
        }
        let count = end - stacked;
        let shape: Vec<u64> = std::iter::once(end * height).chain(chunk.iter().skip(1).copied()).collect();
        transaction.apply(Change::Resize { array: data.clone(), shape })?;
        let rank = chunk.len();
        let mut chunks = (stacked..).zip(new.chunks()).map(|(slot, new)| {
            let coord: Coord = (0..rank).map(|axis| if axis == 0 { slot } else { 0 }).collect();
            let content = match new.extent == chunk {
                true => new.content()?,
                false => padded(new.data()?, meta)?,
            };
            Ok(NewChunk { coord, data: ChunkData::Elements(content) })
        });
        transaction.write_chunks(&data, &mut chunks)?;
        let mut all = Vec::new();
        if rows > 0 {
            // The chunk of the table that is begun is written again, with all of its rows.
            let before = self.before.array(&table.to_string())?;
            let first = rows / TABLE_CHUNK * TABLE_CHUNK;
            all = before.read_raw(format!("{first}:{rows}").as_str())?.bytes;
        }
        all.extend_from_slice(&entries);
        let total = rows + count;
        transaction.apply(Change::Resize { array: table.clone(), shape: vec![total] })?;
        let size = TABLE_CHUNK as usize * ROW;
        let first = rows / TABLE_CHUNK;
        let mut chunks = all.chunks(size).enumerate().map(|(at, rows)| {
            let content = Content::Fixed(Bytes::copy_from_slice(rows));
            Ok(NewChunk {
                coord: [first + at as u64].into_iter().collect(),
                data: ChunkData::Elements(content),
            })
        });
        transaction.write_chunks(&table, &mut chunks)?;
        transaction.set_attribute(&table.to_string(), "largest_index", total as i64)
    }

    fn make_groups(&mut self, transaction: &mut Transaction, group: &ObjectPath) -> Result<()> {
        let mut at = self.place.clone();
        for name in group.below(&self.place).unwrap_or(&[]) {
            at = at.join(name.clone());
            if self.groups.insert(at.clone()) && self.before.get(&at.to_string()).is_err() {
                transaction.apply(Change::CreateGroup { path: at.clone() })?;
            }
        }
        Ok(())
    }
}

/// Makes the stack of an array, and its table of hashes, both empty.
pub(super) fn create(
    transaction: &mut Transaction,
    data: &ObjectPath,
    table: &ObjectPath,
    meta: &ArrayMeta,
) -> Result<()> {
    let chunk = meta.chunk_shape();
    let dims: Vec<u64> = std::iter::once(0).chain(chunk.iter().skip(1).copied()).collect();
    let max = dims.iter().enumerate().map(|(axis, &dim)| (axis > 0).then_some(dim)).collect();
    let spec = ArraySpec {
        layout: LayoutSpec::Chunked { chunk: chunk.to_vec(), shard: None },
        filters: meta.filters.clone(),
        fill: fill(meta),
        fill_time: Some(FillTime::IfSet),
        ..ArraySpec::new(meta.dtype.clone(), Dataspace::Simple { dims, max })
    };
    transaction.apply(Change::CreateArray { path: data.clone(), spec: Box::new(spec) })?;
    transaction.set_attribute(&data.to_string(), "chunks", &signed(chunk))?;
    create_table(transaction, table)
}

/// Makes an empty table of hashes.
pub(super) fn create_table(transaction: &mut Transaction, table: &ObjectPath) -> Result<()> {
    // h5py's LZF: optional, its own revision, that of the format, bytes of a chunk.
    let bytes = (TABLE_CHUNK as usize * ROW) as u32;
    let lzf = FilterSpec::Hdf5 { id: 32000, flags: 1, name: "lzf".into(), parameters: vec![4, 0x105, bytes] };
    let spec = ArraySpec {
        layout: LayoutSpec::Chunked { chunk: vec![TABLE_CHUNK], shard: None },
        filters: vec![lzf],
        // A table of nothing has one row that does not count.
        ..ArraySpec::new(row_type(), Dataspace::Simple { dims: vec![1], max: vec![None] })
    };
    transaction.apply(Change::CreateArray { path: table.clone(), spec: Box::new(spec) })?;
    transaction.set_attribute(&table.to_string(), "largest_index", 0i64)
}

/// Fails unless a new array at the place of an older one is like it.
fn pinned(raw: &Array, meta: &ArrayMeta) -> Result<()> {
    let own = raw.meta();
    let what = if own.dtype != meta.dtype {
        format!("elements of {}", own.dtype)
    } else if own.chunk_shape() != meta.chunk_shape() {
        format!("chunks of {:?}", own.chunk_shape())
    } else if own.filters != meta.filters {
        "other filters".to_owned()
    } else if meta.dtype.is_fixed() && !same(&own.fill_element, &meta.fill_element) {
        "another fill value".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::invalid(format!("{} keeps {what} for an array that is or was here", raw.path())))
}

/// Whether two fill values are the same; empty stands for zeros.
pub(super) fn same(a: &[u8], b: &[u8]) -> bool {
    let is_zero = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
    a == b || is_zero(a) && is_zero(b)
}

pub(super) fn fill(meta: &ArrayMeta) -> FillSpec {
    match meta.fill_element.as_ref() {
        bytes if bytes.is_empty() || !meta.dtype.is_fixed() => FillSpec::Default,
        _ => FillSpec::Value(Content::Fixed(meta.fill_element.clone())),
    }
}

/// The description of a new array.
pub(super) fn meta(spec: &ArraySpec) -> Result<ArrayMeta> {
    let dims = spec.space.dims();
    let LayoutSpec::Chunked { chunk, shard: None } = &spec.layout else {
        return Err(
            Error::invalid("an array of a version has chunks").hint("say which: ArraySpec::with_chunk")
        );
    };
    if dims.is_empty() || spec.space.is_null() {
        return Err(Error::unsupported("a scalar as an array of a version"));
    }
    if chunk.len() != dims.len() || chunk.contains(&0) {
        return Err(Error::invalid(format!("chunks {chunk:?} for extents {dims:?}")));
    }
    if !spec.dtype.is_fixed() && !matches!(spec.dtype, DType::VarString { .. }) {
        return Err(Error::unsupported(format!("elements of {} in versions", spec.dtype)));
    }
    let fill_element = match &spec.fill {
        FillSpec::Value(Content::Fixed(bytes)) if bytes.len() == spec.dtype.size() => bytes.clone(),
        FillSpec::Value(_) => {
            return Err(Error::unsupported(format!("a fill value for {} in versions", spec.dtype)));
        }
        _ => Bytes::new(),
    };
    Ok(ArrayMeta {
        dtype: spec.dtype.clone(),
        committed: None,
        space: spec.space.clone(),
        grid: ChunkGrid::Regular(chunk.clone()),
        layout: Layout::Virtual(0),
        fill: if fill_element.is_empty() {
            FillValue::Default
        } else {
            FillValue::Value(fill_element.clone())
        },
        fill_element,
        filters: spec.filters.clone(),
        notes: Vec::new(),
    })
}

/// A chunk cut at the edge of its array, filled up.
pub(super) fn padded(block: Block, meta: &ArrayMeta) -> Result<Content> {
    let chunk = meta.chunk_shape();
    if block.shape() == chunk {
        return Ok(content_of(block));
    }
    let fill = match meta.fill_element.as_ref() {
        bytes if bytes.is_empty() || !meta.dtype.is_fixed() => None,
        bytes => Some(Values::stored(&[], &meta.dtype, bytes)?),
    };
    let mut whole = StagedArray::full(chunk, chunk, &meta.dtype, fill)?;
    let corner: Vec<String> = block.shape().iter().map(|n| format!("0:{n}")).collect();
    whole.set(corner.join(", ").as_str(), &block)?;
    Ok(content_of(whole.get(..)?))
}

pub(super) fn signed(chunk: &[u64]) -> Vec<i64> {
    chunk.iter().map(|&n| i64::try_from(n).unwrap_or(i64::MAX)).collect()
}

/// An element of a table of hashes.
pub(super) fn row_type() -> DType {
    let list = |size, signed, count| DType::Array {
        base: Box::new(DType::Integer(IntegerType::new(size, ByteOrder::Little, signed))),
        dims: vec![count],
    };
    let field = |name: &str, offset, dtype| Field { name: name.into(), offset, dtype };
    let fields = vec![field("hash", 0, list(1, false, 32)), field("shape", 32, list(8, true, 2))];
    DType::Compound { size: ROW, fields }
}

/// The attribute that says that a version is whole: h5py's Boolean.
pub(super) fn committed() -> AttributeSpec {
    let member = |name: &str, value| EnumMember { name: name.into(), value: vec![value] };
    let base = Box::new(DType::Integer(IntegerType::new(1, ByteOrder::Little, true)));
    AttributeSpec {
        name: "committed".into(),
        dtype: DType::Enum { base, members: vec![member("FALSE", 0), member("TRUE", 1)] },
        committed: None,
        space: Dataspace::Scalar,
        content: Content::Fixed(Bytes::from_static(&[1])),
    }
}
