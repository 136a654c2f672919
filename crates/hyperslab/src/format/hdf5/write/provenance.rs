//! Where arrays come from, said in their attributes with a hash of their elements: made on request with a new file, and
//! taken back when somebody changes the elements.

use super::array::{coordinates, pieces};
use super::dimension::text;
use super::object::{Array, AttributeValue, Body, Id, Storage};
use super::transaction::Transaction;
use crate::codec::{BindContext, Registry, Scratch};
use crate::error::{Context, Error, Result};
use crate::format::hdf5::parse::UNDEFINED;
use crate::model::Dataspace;
use crate::shape::{Coord, Name, byte_count, element_count, to_usize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The attribute with the hash of the elements.
const HASH: &str = "_provenance_sha256";

/// The most bytes of the chunks that lie beside each other and are hashed row by row.
const MAX_BAND: u64 = 1 << 30;

/// What is said of the arrays of a new file, beside the SHA-256 of their elements as stored (`_provenance_sha256`).
///
/// Arrays of elements of variable length, references, and of elements that lie in other files or arrays get none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provenance {
    /// `_provenance_creator`: who made the data.
    pub creator: Option<String>,
    /// `_provenance_timestamp`: when.
    pub timestamp: Option<String>,
    /// `_provenance_source`: from what.
    pub source: Option<String>,
}

impl Provenance {
    /// A hash, and nothing else said.
    pub fn new() -> Self {
        Provenance::default()
    }

    /// Sets who made the data.
    #[must_use]
    pub fn with_creator(mut self, creator: impl Into<String>) -> Self {
        self.creator = Some(creator.into());
        self
    }

    /// Sets when it was made.
    #[must_use]
    pub fn with_timestamp(mut self, timestamp: impl Into<String>) -> Self {
        self.timestamp = Some(timestamp.into());
        self
    }

    /// Sets what it was made from.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }
}

/// The leading axes along which chunks have one element.
fn leading(chunk: &[u64]) -> usize {
    chunk.iter().take_while(|&&n| n == 1).count().min(chunk.len().saturating_sub(1))
}

/// Bytes of the chunks that lie beside each other, which are put together before they are hashed.
fn band_bytes(dims: &[u64], chunk: &[u64], size: usize) -> u64 {
    let lead = leading(chunk);
    let rows = chunk.get(lead).zip(dims.get(lead)).map_or(1, |(&n, &d)| n.min(d));
    let inner = dims.get(lead + 1..).unwrap_or(&[]);
    inner.iter().fold(rows.saturating_mul(size as u64), |n, &d| n.saturating_mul(d))
}

/// Whether the elements of an array are bytes of its own, which mean the same whenever they are read.
fn is_hashed(array: &Array) -> bool {
    let is_own =
        matches!(array.storage, Storage::Compact(_) | Storage::Contiguous { .. } | Storage::Chunked(_));
    is_own && array.dtype.is_fixed() && !array.space.is_null()
}

impl Transaction {
    /// Fails if the elements of a new array are more than can be hashed.
    pub(super) fn check_provenance(&self, array: &Array) -> Result<()> {
        let Storage::Chunked(chunked) = &array.storage else { return Ok(()) };
        if self.options.provenance.is_none() || !is_hashed(array) {
            return Ok(());
        }
        match band_bytes(array.space.dims(), &chunked.chunk, array.dtype.size()) {
            0..=MAX_BAND => Ok(()),
            bytes => Err(Error::limit("bytes of a row of chunks to hash", bytes.into(), MAX_BAND.into())
                .hint("choose chunks that are not as high, or ask for no provenance")),
        }
    }

    /// Says of all new arrays where they come from.
    pub(super) fn state_provenance(&mut self) -> Result<()> {
        let Some(provenance) = self.options.provenance.clone() else { return Ok(()) };
        for number in 0..self.objects.len() {
            let id = Id(number);
            let object = self.object(id)?;
            let Body::Array(array) = &object.body else { continue };
            if object.references == 0 || object.stored.is_some() || !is_hashed(array) {
                continue;
            }
            self.check_provenance(array)?;
            let mut hash = Sha256::new();
            self.hash(id, &mut hash).context(|| "provenance")?;
            let hex: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
            let Provenance { creator, timestamp, source } = provenance.clone();
            let others = [("creator", creator), ("timestamp", timestamp), ("source", source)];
            let others = others.into_iter().filter_map(|(name, text)| Some((name, text?)));
            for (name, value) in [("sha256", hex)].into_iter().chain(others) {
                let (dtype, value) = text(value.as_bytes());
                let space = Dataspace::Scalar;
                let what = AttributeValue::New { dtype, committed: None, space, value };
                self.put_attribute(id, Name::from(format!("_provenance_{name}").as_str()), what)?;
            }
        }
        Ok(())
    }

    /// Takes back the hash of an array of the file, whose elements are about to change.
    pub(super) fn forget_provenance(&mut self, id: Id) -> Result<()> {
        if self.object(id)?.stored.is_none() || !self.unhashed.insert(id) {
            return Ok(());
        }
        self.load_attributes(id)?;
        let object = self.object_mut(id)?;
        let Some(i) = object.attributes.iter().position(|a| a.name.as_bytes() == HASH.as_bytes()) else {
            return Ok(());
        };
        let old = object.attributes.remove(i);
        object.attributes_dirty = true;
        self.forget_attribute(Some(&old.what))
    }

    /// Hashes the elements of a new array, as they are stored and in C order. What was allocated is filled.
    fn hash(&mut self, id: Id, hash: &mut Sha256) -> Result<()> {
        let array = self.array(id)?;
        let meta = array.meta();
        let size = meta.dtype.size();
        let dims = meta.space.dims().to_vec();
        match &array.storage {
            Storage::Compact(bytes) => hash.update(bytes),
            Storage::Contiguous { address, .. } => {
                let address = *address;
                let piece = pieces(&dims, size as u64);
                let grid: Vec<u64> = dims.iter().zip(&piece).map(|(&d, &n)| d.div_ceil(n.max(1))).collect();
                // Pieces are runs, one behind the other.
                let mut at = address;
                for coord in coordinates(&grid)? {
                    let extent: Coord = coord
                        .iter()
                        .zip(&piece)
                        .zip(&dims)
                        .map(|((&c, &n), &d)| d.saturating_sub(c.saturating_mul(n)).min(n))
                        .collect();
                    let bytes = byte_count(&extent, size)?;
                    match &mut at {
                        Some(at) => {
                            hash.update(self.disk.read(*at, to_usize(bytes)?)?);
                            *at = at.saturating_add(bytes);
                        }
                        None => hash.update(self.filled(&meta, element_count(&extent)?)?),
                    }
                }
            }
            Storage::Chunked(chunked) => {
                let (chunk, chunks) = (chunked.chunk.clone(), chunked.chunks.clone());
                let context =
                    BindContext { dtype: &meta.dtype, chunk: &chunk, chunk_bytes: byte_count(&chunk, size)? };
                let pipeline = Registry::default().pipeline(&meta.filters, &context)?;
                let lead = leading(&chunk);
                let grid: Vec<u64> = dims.iter().zip(&chunk).map(|(&d, &n)| d.div_ceil(n.max(1))).collect();
                let mut scratch = Scratch::default();
                for front in coordinates(grid.get(..=lead).unwrap_or(&grid))? {
                    let row = front.get(lead).zip(chunk.get(lead)).zip(dims.get(lead));
                    let rows = row.map_or(1, |((&c, &n), &d)| d.saturating_sub(c.saturating_mul(n)).min(n));
                    let inner = dims.get(lead + 1..).unwrap_or(&[]);
                    let count = inner.iter().fold(rows, |n, &d| n.saturating_mul(d));
                    let mut band = self.filled(&meta, count)?;
                    let mut last = front.clone();
                    last.extend(grid.iter().skip(lead + 1).map(|_| u64::MAX));
                    let own: BTreeMap<Coord, _> =
                        chunks.range(front.clone()..=last).map(|(at, entry)| (at.clone(), *entry)).collect();
                    for (at, entry) in own.into_iter().filter(|(_, entry)| entry.address != UNDEFINED) {
                        let stored = self.disk.read(entry.address, to_usize(entry.length)?)?;
                        let mut bytes = Vec::new();
                        pipeline
                            .decode(&stored, entry.mask, &mut bytes, &mut scratch)
                            .context(|| format!("chunk {at:?}"))?;
                        let tail = |v: &[u64]| v.get(lead..).unwrap_or(&[]).to_vec();
                        let mut extent = tail(&dims);
                        extent.first_mut().into_iter().for_each(|d| *d = rows);
                        let mut start: Vec<u64> =
                            tail(&at).iter().zip(tail(&chunk)).map(|(&c, n)| c.saturating_mul(n)).collect();
                        start.first_mut().into_iter().for_each(|s| *s = 0);
                        place(&mut band, &extent, &bytes, &start, &tail(&chunk), size);
                    }
                    hash.update(&band);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Copies the elements of a chunk, as far as they lie within, into a box of these extents, of which `start` is the chunk's
/// first element.
fn place(into: &mut [u8], extent: &[u64], bytes: &[u8], start: &[u64], chunk: &[u64], size: usize) {
    let valid: Vec<u64> =
        extent.iter().zip(start).zip(chunk).map(|((&d, &s), &n)| d.saturating_sub(s).min(n)).collect();
    let Some((&run, rows)) = valid.split_last() else { return };
    let count = rows.iter().fold(1u64, |n, &d| n.saturating_mul(d));
    for number in 0..count {
        // The place of the row in both: its coordinates, the last axis aside.
        let (mut rest, mut at) = (number, vec![0; rows.len()]);
        for (slot, &d) in at.iter_mut().zip(rows).rev() {
            (*slot, rest) = (rest % d.max(1), rest / d.max(1));
        }
        at.push(0);
        let from = at.iter().zip(chunk).fold(0u64, |n, (&a, &d)| n.saturating_mul(d).saturating_add(a));
        let to = at
            .iter()
            .zip(start)
            .zip(extent)
            .fold(0u64, |n, ((&a, &s), &d)| n.saturating_mul(d).saturating_add(a.saturating_add(s)));
        let range = |first: u64| {
            let first = to_usize(first).ok()?.checked_mul(size)?;
            Some(first..first.checked_add(to_usize(run).ok()?.checked_mul(size)?)?)
        };
        let (Some(from), Some(to)) = (range(from), range(to)) else { continue };
        if let (Some(from), Some(to)) = (bytes.get(from), into.get_mut(to)) {
            to.copy_from_slice(from);
        }
    }
}
