//! What is done to all versions at once: chunks that nobody uses are taken out, tables of hashes made anew.

use super::survey::{self, Kept, Use};
use super::table::{self, Row};
use super::{FIRST, NEWEST, Order, Versions, log};
use crate::array::{Address, Array, File, OpenOptions};
use crate::error::{Context, Error, Result};
use crate::exec;
use crate::model::write::{Change, Committed, ObjectPath, Restack};
use crate::shape::{Coord, to_usize};
use crate::source::write::WriteOptions;
use crate::staged::{Digest, StagedArray};
use crate::write::{Transaction, edit};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

/// What is done to the versions of a file, ready to be committed. Dropped, nothing happened.
#[derive(Debug)]
pub struct Upkeep {
    pub(super) transaction: Transaction,
    pub(super) versions: Versions,
    /// `_version_data`.
    pub(super) store: ObjectPath,
    pub(super) report: UpkeepReport,
}

/// What an upkeep does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpkeepReport {
    /// Versions that are removed.
    pub deleted: Vec<String>,
    /// Arrays of which no version is left: nothing is kept of them.
    pub arrays_removed: Vec<String>,
    /// Chunks that stay, of the arrays that were looked at.
    pub chunks_kept: u64,
    /// Chunks that nobody uses any more, and those that are like another one, of which one is enough.
    pub chunks_removed: u64,
    /// Stored bytes of these.
    pub bytes_removed: u64,
    /// Tables of hashes that are written anew.
    pub tables: u64,
}

/// What of the chunks and tables of an array is made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Chunks that nobody uses go, and their rows of the table.
    Unused,
    /// The same, but hashes are computed anew, whatever the table says; of chunks with the same one stays.
    Hashes,
}

/// Takes chunks that no version uses out of a local HDF5 file. `group` is the group that is versioned; `None`: that of the
/// file. The file does not get shorter by that: its free bytes are for what is written to it in the same transaction. A
/// [copy](crate::copy) does not have them.
///
/// Errors: `Unsupported` for data versions below 4, and for maps that are not whole chunks.
pub fn remove_unused_chunks(
    address: impl Into<Address>,
    group: Option<&str>,
    open: &OpenOptions,
    write: &WriteOptions,
) -> Result<Upkeep> {
    let mut upkeep = Upkeep::begin(address, group, open, write)?;
    upkeep.newest()?;
    let versions = survey::versions(&upkeep.versions)?;
    upkeep.tidy(&versions, None, Scope::Unused)?;
    Ok(upkeep)
}

/// Computes all hashes anew, from what versions hold, and takes out chunks that nobody uses or that are there twice, so that
/// the rows of a table are the chunks of its stack again, which versioned-hdf5 relies on when it adds some. Versions of the
/// data versions 1 to 3 are of version 4 afterwards.
pub fn rebuild_hash_tables(
    address: impl Into<Address>,
    group: Option<&str>,
    open: &OpenOptions,
    write: &WriteOptions,
) -> Result<Upkeep> {
    let mut upkeep = Upkeep::begin(address, group, open, write)?;
    let versions = survey::versions(&upkeep.versions)?;
    upkeep.tidy(&versions, None, Scope::Hashes)?;
    if upkeep.versions.data_version() < NEWEST as u64 {
        upkeep.renew()?;
    }
    Ok(upkeep)
}

impl Upkeep {
    pub(super) fn begin(
        address: impl Into<Address>,
        group: Option<&str>,
        open: &OpenOptions,
        write: &WriteOptions,
    ) -> Result<Upkeep> {
        let transaction = edit(address, open, write)?;
        let before = match transaction.before() {
            Some(file) if file.info().format == "HDF5" => file.clone(),
            _ => return Err(Error::unsupported(format!("versions in a file of {}", transaction.format()))),
        };
        let versions = match group {
            Some(group) => Versions::open_at(&before, group)?,
            None => Versions::open(&before)?,
        };
        let store = survey::store_of(&versions)?;
        Ok(Upkeep { transaction, versions, store, report: UpkeepReport::default() })
    }

    /// What it does.
    pub fn report(&self) -> &UpkeepReport {
        &self.report
    }

    /// Makes it durable and visible, all or nothing.
    pub fn commit(self) -> Result<Committed> {
        self.transaction.commit()
    }

    /// Fails for layouts whose tables of hashes are of no use.
    pub(super) fn newest(&self) -> Result<()> {
        match self.versions.data_version() {
            n if n < NEWEST as u64 => {
                Err(Error::unsupported(format!("this in the layout of data version {n}"))
                    .hint("make its tables of hashes anew first: hyperslab versions rebuild"))
            }
            _ => Ok(()),
        }
    }

    /// Takes out what the versions that stay do not use; of all arrays, or of those at some paths.
    pub(super) fn tidy(
        &mut self,
        stay: &[Kept],
        paths: Option<&BTreeSet<ObjectPath>>,
        scope: Scope,
    ) -> Result<()> {
        let mut uses = BTreeMap::new();
        for version in stay {
            survey::look(&self.versions, &self.store, version, &mut uses)?;
        }
        let before = self.versions.file.clone();
        for path in survey::stacks(&before, &self.store)? {
            if paths.is_some_and(|paths| !paths.contains(&path)) {
                continue;
            }
            let place = survey::joined(&self.store, &path);
            match uses.get(&path) {
                Some(found) => self.tidy_one(&before, &place, found, scope),
                None => self.remove(&before, &place, &path),
            }
            .context(|| format!("array {path}"))?;
        }
        Ok(())
    }

    /// Removes all chunks of an array.
    fn remove(&mut self, before: &File, place: &ObjectPath, path: &ObjectPath) -> Result<()> {
        let group = before.group(&place.to_string())?;
        let raw = group.array("raw_data")?;
        let slots: Vec<u64> = (0..stacked(&raw)).collect();
        self.report.chunks_removed += slots.len() as u64;
        self.report.bytes_removed += log::stored(raw.storage(), &slots, raw.shape().len())?;
        self.report.arrays_removed.push(path.to_string());
        let own = |name: &[u8]| matches!(name, b"raw_data" | b"hash_table");
        let names: Vec<_> = group.links()?.links.into_iter().map(|link| link.name).collect();
        if names.iter().all(|name| own(name.as_bytes())) {
            return self.transaction.apply(Change::Delete { path: place.clone() });
        }
        // Arrays below it have their chunks in the same group.
        for name in names.into_iter().filter(|name| own(name.as_bytes())) {
            self.transaction.apply(Change::Delete { path: place.join(name) })?;
        }
        Ok(())
    }

    fn tidy_one(&mut self, before: &File, place: &ObjectPath, found: &Use, scope: Scope) -> Result<()> {
        found.check()?;
        let group = before.group(&place.to_string())?;
        let raw = match &found.raw {
            Some(raw) => raw.clone(),
            None => group.array("raw_data")?,
        };
        let used = found.slots();
        let count = stacked(&raw);
        let height = raw.meta().chunk_shape().first().copied().unwrap_or(1).max(1);
        let has_table = group.links()?.links.iter().any(|link| link.name.as_bytes() == b"hash_table");
        let path = place.join("hash_table");
        let rows = match scope {
            Scope::Unused => table::read(before, &path)?,
            Scope::Hashes => Vec::new(),
        };
        let mut digests: HashMap<u64, Digest> = HashMap::new();
        for row in rows.iter().filter(|row| row.digest != Digest::default() && row.rows.0 % height == 0) {
            digests.entry(row.rows.0 / height).or_insert(row.digest);
        }
        let unknown: Vec<(u64, &Coord)> =
            used.iter().filter(|(slot, _)| !digests.contains_key(slot)).map(|(s, e)| (*s, e)).collect();
        digests.extend(computed(&raw, &unknown)?);
        let mut slots = vec![None; to_usize(count)?];
        let mut new = Vec::with_capacity(used.len());
        let mut same: HashMap<Digest, u64> = HashMap::new();
        for (&slot, extent) in &used {
            let digest = digests.get(&slot).copied().unwrap_or_default();
            // What a table says is no proof that two chunks are the same.
            let number = match same.get(&digest).filter(|_| scope == Scope::Hashes) {
                Some(&number) => number,
                None => {
                    let number = new.len() as u64;
                    let start = number * height;
                    let stop = start + extent.first().copied().unwrap_or(0);
                    new.push(Row { digest, rows: (start, stop) });
                    same.insert(digest, number);
                    number
                }
            };
            if let Some(place) = slots.get_mut(to_usize(slot)?) {
                *place = Some(number);
            }
        }
        let is_moved = slots.iter().zip(0..).any(|(slot, number)| *slot != Some(number));
        if new != rows || scope == Scope::Hashes || !has_table {
            self.report.tables += 1;
            table::write(&mut self.transaction, &path, &new, has_table)?;
        }
        let kept = new.len() as u64;
        self.report.chunks_kept += kept;
        if !is_moved {
            return Ok(());
        }
        self.report.chunks_removed += count - kept;
        let mut first = BTreeSet::new();
        let gone: Vec<u64> = (0..)
            .zip(&slots)
            .filter(|(_, new)| new.is_none_or(|new| !first.insert(new)))
            .map(|p| p.0)
            .collect();
        self.report.bytes_removed += log::stored(raw.storage(), &gone, raw.shape().len())?;
        let maps = found.maps.iter().map(|map| map.at.clone()).collect();
        let restack = Restack { stack: place.join("raw_data"), slots, maps };
        self.transaction.apply(Change::Restack(Box::new(restack)))
    }

    /// Makes versions of data version 1 to 3 those of version 4.
    fn renew(&mut self) -> Result<()> {
        let before = self.versions.file.clone();
        let all = survey::versions(&self.versions)?;
        let mut uses = BTreeMap::new();
        for version in &all {
            survey::look(&self.versions, &self.store, version, &mut uses)?;
        }
        for (path, found) in &uses {
            let Some(raw) = &found.raw else { continue };
            let stack = survey::joined(&self.store, path).join("raw_data");
            let stack = format!("/{}", stack.to_string().trim_start_matches('/'));
            let chunks = super::store::signed(raw.meta().chunk_shape());
            for map in &found.maps {
                let at = map.at.to_string();
                if !has(&before, &at, "raw_data")? {
                    self.transaction.set_attribute(&at, "raw_data", stack.as_str())?;
                }
                if !has(&before, &at, "chunks")? {
                    self.transaction.set_attribute(&at, "chunks", &chunks)?;
                }
            }
            if !has(&before, &stack, "chunks")? {
                self.transaction.set_attribute(&stack, "chunks", &chunks)?;
            }
        }
        let versions = self.store.join("versions");
        let first = versions.join(FIRST);
        let oldest = self.versions.list(Order::Time)?.into_iter().next();
        let is_first_there = before.get(&first.to_string()).is_ok();
        if !is_first_there {
            self.transaction.apply(Change::CreateGroup { path: first.clone() })?;
        }
        let has_time = is_first_there && has(&before, &first.to_string(), "timestamp")?;
        if let Some(oldest) = oldest.filter(|_| !has_time) {
            self.transaction.set_attribute(&first.to_string(), "timestamp", oldest.time.as_str())?;
        }
        self.transaction.set_attribute(&versions.to_string(), "data_version", NEWEST as i64)
    }
}

/// Whether an object has an attribute.
fn has(file: &File, at: &str, name: &str) -> Result<bool> {
    let attributes = file.get(at)?.attributes()?;
    Ok(attributes.into_iter().flatten().any(|attribute| attribute.name.as_bytes() == name.as_bytes()))
}

/// The number of chunks of a stack.
pub(super) fn stacked(raw: &Array) -> u64 {
    let height = raw.meta().chunk_shape().first().copied().unwrap_or(1).max(1);
    raw.shape().first().copied().unwrap_or(0).div_ceil(height)
}

/// The hashes of chunks, of the elements within their extents.
fn computed(raw: &Array, slots: &[(u64, &Coord)]) -> Result<Vec<(u64, Digest)>> {
    if slots.is_empty() {
        return Ok(Vec::new());
    }
    let staged = StagedArray::over(raw)?.with_threads(1);
    let height = raw.meta().chunk_shape().first().copied().unwrap_or(1).max(1);
    let found = Mutex::new(Vec::with_capacity(slots.len()));
    let threads = exec::copying_threads(u64::MAX, raw.options().threads);
    exec::each(threads, slots.to_vec(), |(slot, extent)| {
        let start = slot.saturating_mul(height);
        let axes = extent.iter().enumerate().map(|(axis, n)| match axis {
            0 => format!("{start}:{}", start.saturating_add(*n)),
            _ => format!("0:{n}"),
        });
        let selection = axes.collect::<Vec<_>>().join(", ");
        let digest = staged.get(selection.as_str()).and_then(|block| block.digest());
        let digest = digest.context(|| format!("chunk {slot} of {}", raw.path()))?;
        found.lock().unwrap_or_else(PoisonError::into_inner).push((slot, digest));
        Ok(())
    })?;
    Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
}
