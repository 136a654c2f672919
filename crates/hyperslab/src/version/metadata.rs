//! Other element types, chunks, fill values and filters of an array, in all versions at once.

use super::log;
use super::stage::spec;
use super::store::{self, fill, padded, signed};
use super::survey::{self, Map};
use super::table::{self, Row};
use super::take;
use super::upkeep::{Upkeep, stacked};
use crate::array::{Address, Array, File, OpenOptions};
use crate::codec::FilterSpec;
use crate::dtype::DType;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::exec::encode::{ChunkData, NewChunk};
use crate::model::write::{ArraySpec, AttributeSpec, Change, Content, LayoutSpec, ObjectPath};
use crate::model::{ArrayMeta, FillValue};
use crate::shape::{Coord, element_count};
use crate::source::write::WriteOptions;
use crate::staged::{Digest, StagedArray, Values};
use crate::write::Transaction;
use std::collections::{BTreeMap, HashMap};

/// What is to be changed of an array. What is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// Another element type: all elements are converted, as by HDF5.
    pub dtype: Option<DType>,
    /// Other extents of chunks.
    pub chunk: Option<Vec<u64>>,
    /// Another fill value, one element as stored; elements that are equal to the old one become it, too.
    pub fill: Option<Vec<u8>>,
    /// Other filters, in the order in which they encode; none: elements are stored as they are.
    pub filters: Option<Vec<FilterSpec>>,
}

/// Changes an array in all versions of a local HDF5 file: its chunks are written anew. Nothing happens before the
/// [`commit`](Upkeep::commit).
///
/// Errors: `NotFound` if no version has an array at `path`; `Unsupported` for data versions below 4, for types that do not
/// convert, and where versions have arrays of different kinds at this path.
pub fn modify_metadata(
    address: impl Into<Address>,
    group: Option<&str>,
    path: &str,
    metadata: &Metadata,
    open: &OpenOptions,
    write: &WriteOptions,
) -> Result<Upkeep> {
    let mut upkeep = Upkeep::begin(address, group, open, write)?;
    upkeep.newest()?;
    let at = ObjectPath::parse(path)?;
    let all = survey::versions(&upkeep.versions)?;
    let mut uses = BTreeMap::new();
    for version in &all {
        survey::look(&upkeep.versions, &upkeep.store, version, &mut uses)?;
    }
    let place = survey::joined(&upkeep.store, &at);
    let before = upkeep.versions.base().clone();
    let found = uses.get(&at).ok_or_else(|| {
        Error::new(
            ErrorKind::NotFound,
            format!("no version of {} has an array {path}", upkeep.versions.place()),
        )
    })?;
    found.check()?;
    if found.is_bare {
        return Err(Error::unsupported(format!(
            "changing {path}, which is no map of chunks in some version"
        )));
    }
    let raw = match &found.raw {
        Some(raw) => raw.clone(),
        None => before.array(&place.join("raw_data").to_string())?,
    };
    let frame = || format!("array {path}");
    let old = raw.meta().clone();
    let mut stack = Stack::new(&place, &old, metadata).context(frame)?;
    let gone: Vec<u64> = (0..stacked(&raw)).collect();
    upkeep.report.chunks_removed = gone.len() as u64;
    upkeep.report.bytes_removed = log::stored(raw.storage(), &gone, raw.shape().len())?;
    let transaction = &mut upkeep.transaction;
    transaction.apply(Change::Delete { path: stack.data.clone() })?;
    transaction.apply(Change::Delete { path: stack.table.clone() })?;
    store::create(transaction, &stack.data, &stack.table, &stack.meta).context(frame)?;
    for version in &all {
        let here = survey::joined(&survey::place_of(&upkeep.store, &version.name), &at);
        let Some(map) = found.maps.iter().find(|map| map.at == here) else { continue };
        let file = survey::file_of(&upkeep.versions, version);
        stack
            .add(transaction, &file.array(path)?, &file, map, &old)
            .context(frame)
            .context(|| format!("version {}", version.name))?;
    }
    table::write(transaction, &stack.table, &stack.rows, true)?;
    upkeep.report.chunks_kept = stack.rows.len() as u64;
    upkeep.report.tables = 1;
    Ok(upkeep)
}

/// The chunks of an array as they are written anew.
struct Stack {
    data: ObjectPath,
    table: ObjectPath,
    meta: ArrayMeta,
    /// Another fill value than the old one.
    fill: Option<Vec<u8>>,
    rows: Vec<Row>,
    known: HashMap<Digest, u64>,
    /// Where chunks of the old stack went, with their extents, if chunks are as they were.
    went: HashMap<(u64, Coord), u64>,
    /// The hash of a whole chunk of the fill value, which is not stored.
    full: Option<Digest>,
}

impl Stack {
    fn new(place: &ObjectPath, old: &ArrayMeta, metadata: &Metadata) -> Result<Stack> {
        let dtype = metadata.dtype.clone().unwrap_or_else(|| old.dtype.clone());
        let chunk = metadata.chunk.clone().unwrap_or_else(|| old.chunk_shape().to_vec());
        let mut spec = ArraySpec::simple(dtype.clone(), &chunk).with_chunk(&chunk);
        if chunk.len() != old.chunk_shape().len() {
            return Err(Error::invalid(format!("chunks {chunk:?} for {} axes", old.chunk_shape().len())));
        }
        spec.filters = metadata.filters.clone().unwrap_or_else(|| old.filters.clone());
        let is_given = metadata.fill.is_some() || matches!(old.fill, FillValue::Value(_));
        if let Some(fill) = &metadata.fill {
            spec = spec.with_fill(fill);
        } else if is_given && dtype.is_fixed() && old.dtype.is_fixed() && !old.fill_element.is_empty() {
            let one = Values::stored(&[], &old.dtype, &old.fill_element)?;
            let converted = StagedArray::full(&[1], &[1], &old.dtype, Some(one))?.astype(&dtype)?;
            spec = spec.with_fill(converted.fill()?.bytes().unwrap_or_default());
        }
        Ok(Stack {
            data: place.join("raw_data"),
            table: place.join("hash_table"),
            meta: store::meta(&spec)?,
            fill: metadata.fill.clone(),
            rows: Vec::new(),
            known: HashMap::new(),
            went: HashMap::new(),
            full: None,
        })
    }

    /// An array of a version as it will be.
    fn changed(&self, array: &Array, old: &ArrayMeta) -> Result<StagedArray> {
        let mut staged = StagedArray::over_chunked(array, old.chunk_shape())?;
        if self.meta.dtype != old.dtype {
            staged = match take::is_text(&old.dtype) && take::is_text(&self.meta.dtype) {
                true => {
                    let block = staged.get(..)?;
                    let texts = take::texts(&block)?;
                    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                    let mut new =
                        StagedArray::full(array.shape(), old.chunk_shape(), &self.meta.dtype, None)?;
                    new.set(.., Values::texts(block.shape(), &texts)?)?;
                    new
                }
                false => staged.astype(&self.meta.dtype)?,
            };
        }
        match &self.fill {
            Some(fill) => staged.refill(Values::stored(&[], &self.meta.dtype, fill)?),
            None => Ok(staged),
        }
    }

    /// Writes the array of one version anew: its new chunks, and its map.
    fn add(
        &mut self,
        transaction: &mut Transaction,
        array: &Array,
        file: &File,
        map: &Map,
        old: &ArrayMeta,
    ) -> Result<()> {
        let chunk = self.meta.chunk_shape().to_vec();
        let is_same_grid = chunk == old.chunk_shape();
        let staged = self.changed(array, old)?;
        if self.full.is_none() {
            // A whole chunk of nothing but fill.
            let full = StagedArray::full(&chunk, &chunk, &self.meta.dtype, self.fill_values()?)?;
            self.full = Some(full.get(..)?.digest()?);
        }
        let grid: Vec<u64> = map.dims.iter().zip(&chunk).map(|(&dim, &chunk)| dim.div_ceil(chunk)).collect();
        let (mut slots, mut new) = (Vec::new(), Vec::new());
        for number in 0..element_count(&grid)? {
            let extent = survey::extent(number, &map.dims, &chunk);
            let from = match is_same_grid {
                true => map.slots.binary_search_by_key(&number, |slot| slot.0).ok(),
                false => None,
            };
            let from = from.and_then(|at| map.slots.get(at)).map(|slot| (slot.1, extent.clone()));
            if is_same_grid && from.is_none() && extent.as_slice() == chunk {
                continue;
            }
            if let Some(&slot) = from.as_ref().and_then(|from| self.went.get(from)) {
                slots.push((number, slot));
                continue;
            }
            let block = staged.get(survey::region(number, &grid, &chunk, &extent).as_str())?;
            let digest = block.digest()?;
            if self.full == Some(digest) {
                continue;
            }
            let slot = match self.known.get(&digest) {
                Some(&slot) => slot,
                None => {
                    let slot = self.rows.len() as u64;
                    let height = chunk.first().copied().unwrap_or(1);
                    let start = slot.saturating_mul(height);
                    let stop = start.saturating_add(extent.first().copied().unwrap_or(0));
                    self.rows.push(Row { digest, rows: (start, stop) });
                    self.known.insert(digest, slot);
                    new.push((slot, padded(block, &self.meta)?));
                    slot
                }
            };
            self.went.extend(from.map(|from| (from, slot)));
            slots.push((number, slot));
        }
        self.stack(transaction, new)?;
        // The array itself, with the attributes that it had.
        let mut attributes: Vec<AttributeSpec> = Vec::new();
        for attribute in array.attributes()? {
            let attribute = attribute.map_err(|(_, e)| e)?;
            attributes.push(spec(file, &attribute).context(|| format!("attribute {}", attribute.name))?);
        }
        let source = format!("/{}", self.data.to_string().trim_start_matches('/'));
        let made = ArraySpec {
            layout: LayoutSpec::Stacked { source: source.as_str().into(), chunk: chunk.clone(), slots },
            fill: fill(&self.meta),
            ..ArraySpec::simple(self.meta.dtype.clone(), &map.dims)
        };
        transaction.apply(Change::Delete { path: map.at.clone() })?;
        transaction.apply(Change::CreateArray { path: map.at.clone(), spec: Box::new(made) })?;
        for attribute in attributes {
            transaction.apply(Change::SetAttribute { object: map.at.clone(), attribute })?;
        }
        let here = map.at.to_string();
        transaction.set_attribute(&here, "raw_data", source.as_str())?;
        transaction.set_attribute(&here, "chunks", &signed(&chunk))
    }

    fn fill_values(&self) -> Result<Option<Values<'_>>> {
        match self.meta.fill_element.as_ref() {
            bytes if bytes.is_empty() || !self.meta.dtype.is_fixed() => Ok(None),
            bytes => Values::stored(&[], &self.meta.dtype, bytes).map(Some),
        }
    }

    /// Puts chunks on the stack.
    fn stack(&self, transaction: &mut Transaction, new: Vec<(u64, Content)>) -> Result<()> {
        if new.is_empty() {
            return Ok(());
        }
        let chunk = self.meta.chunk_shape();
        let rows = chunk.first().and_then(|&height| height.checked_mul(self.rows.len() as u64));
        let rows = rows.ok_or_else(|| Error::invalid("more rows of chunks than 2^64"))?;
        let shape = std::iter::once(rows).chain(chunk.iter().skip(1).copied()).collect();
        transaction.apply(Change::Resize { array: self.data.clone(), shape })?;
        let rank = chunk.len();
        let mut chunks = new.into_iter().map(|(slot, content)| {
            let coord = (0..rank).map(|axis| if axis == 0 { slot } else { 0 }).collect();
            Ok(NewChunk { coord, data: ChunkData::Elements(content) })
        });
        transaction.write_chunks(&self.data, &mut chunks).map(|_| ())
    }
}
