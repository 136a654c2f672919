//! Chunks to objects: one each, or many in a shard.

use super::super::types::Variable;
use super::ZarrWriter;
use super::array::ArrayState;
use crate::error::{Context, Error, Result};
use crate::model::write::EncodedChunk;
use crate::shape::Coord;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of chunks of shards that are not complete that are held at most.
const HELD: u64 = 256 << 20;

/// Shards of which not all chunks have come.
#[derive(Debug, Default)]
pub(super) struct OpenShards {
    /// By path of the array and coordinates of the shard.
    shards: BTreeMap<(String, Coord), OpenShard>,
    held: u64,
}

#[derive(Debug)]
struct OpenShard {
    array: Arc<ArrayState>,
    /// By number: `None` as long as nothing came, then the chunk or that it is not stored.
    chunks: BTreeMap<usize, Option<Bytes>>,
    /// How many there are within the array.
    wanted: usize,
}

impl OpenShards {
    /// Drops those of an array that is gone.
    pub(super) fn forget(&mut self, path: &str) {
        self.shards.retain(|(p, _), open| {
            let keep = p != path;
            if !keep {
                let bytes: usize = open.chunks.values().flatten().map(Bytes::len).sum();
                self.held = self.held.saturating_sub(bytes as u64);
            }
            keep
        });
    }
}

/// Takes chunks of the array at `path`.
pub(super) fn write(
    writer: &mut ZarrWriter,
    path: &str,
    array: &Arc<ArrayState>,
    chunks: Vec<EncodedChunk>,
) -> Result<()> {
    let grid = array.layout.grid();
    for EncodedChunk { coord, bytes, mask } in chunks {
        let outside = coord.len() != grid.len() || coord.iter().zip(&grid).any(|(c, n)| c >= n);
        if outside || mask != 0 {
            let why = if outside {
                "lies outside of the array"
            } else {
                "leaves out stages, which Zarr cannot tell"
            };
            return Err(Error::invalid(format!("chunk {:?} of /{path} {why}", coord.as_slice())));
        }
        let (object, number) = array.object_of(&coord);
        if array.shard.is_none() {
            let key = array.document.keys.key(path, &object);
            if let Some(variable) = array.variable.as_ref().filter(|v| v.kind == Variable::Json)
                && let Some(old) = writer.stage.get(&key)?
            {
                variable.check_stored(&old).context(|| key.clone())?;
            }
            match bytes {
                Some(bytes) => writer.stage.put(&key, bytes)?,
                None => writer.stage.remove(&key)?,
            }
            continue;
        }
        let id = (path.to_owned(), object);
        if !writer.shards.shards.contains_key(&id) {
            let wanted = array.chunks_in(&id.1)?.len();
            let open = OpenShard { array: array.clone(), chunks: BTreeMap::new(), wanted };
            writer.shards.shards.insert(id.clone(), open);
        }
        let Some(open) = writer.shards.shards.get_mut(&id) else { continue };
        writer.shards.held += bytes.as_ref().map_or(0, |b| b.len() as u64);
        if let Some(Some(old)) = open.chunks.insert(number, bytes) {
            writer.shards.held -= old.len() as u64;
        }
        if open.chunks.len() == open.wanted {
            close(writer, &id)?;
        }
    }
    if writer.shards.held > HELD {
        flush(writer, None)?;
    }
    Ok(())
}

/// Writes all open shards, or those of one array. What did not come stays as it was.
pub(super) fn flush(writer: &mut ZarrWriter, path: Option<&str>) -> Result<()> {
    let ids: Vec<(String, Coord)> =
        writer.shards.shards.keys().filter(|(p, _)| path.is_none_or(|path| p == path)).cloned().collect();
    ids.iter().try_for_each(|id| close(writer, id))
}

fn close(writer: &mut ZarrWriter, id: &(String, Coord)) -> Result<()> {
    let Some(open) = writer.shards.shards.get(id) else { return Ok(()) };
    let array = open.array.clone();
    let Some(shard) = &array.shard else { return Ok(()) };
    let key = array.document.keys.key(&id.0, &id.1);
    let mut chunks = vec![None; shard.count()?];
    if open.chunks.len() < open.wanted
        && let Some(bytes) = writer.stage.get(&key)?
    {
        chunks = shard.open(&bytes).context(|| key.clone())?;
    }
    let mut held = 0;
    for (&number, chunk) in &open.chunks {
        held += chunk.as_ref().map_or(0, |b| b.len() as u64);
        if let Some(slot) = chunks.get_mut(number) {
            slot.clone_from(chunk);
        }
    }
    match shard.close(&chunks)? {
        Some(bytes) => writer.stage.put(&key, bytes)?,
        None => writer.stage.remove(&key)?,
    }
    writer.shards.shards.remove(id);
    writer.shards.held = writer.shards.held.saturating_sub(held);
    Ok(())
}

/// Makes the objects of an array those of other extents: what lies outside goes, and what of a chunk lies beyond the
/// smaller extents becomes the fill value.
pub(super) fn trim(writer: &mut ZarrWriter, path: &str, array: &ArrayState, shape: &[u64]) -> Result<()> {
    let old = &array.layout.shape;
    let keep: Vec<u64> = old.iter().zip(shape).map(|(a, b)| *a.min(b)).collect();
    let object = &array.document.chunk;
    // An axis whose new end lies within a chunk, or that became shorter.
    let touched =
        |axis: usize| match (old.get(axis), shape.get(axis), keep.get(axis), array.layout.chunk.get(axis)) {
            (Some(a), Some(b), Some(keep), Some(chunk)) => {
                a > b || a < b && !keep.is_multiple_of((*chunk).max(1))
            }
            _ => false,
        };
    if !(0..old.len()).any(touched) {
        return Ok(());
    }
    let skip = if path.is_empty() { 0 } else { path.len() + 1 };
    for key in writer.stage.list(path)? {
        let coord = key.get(skip..).and_then(|name| array.document.keys.coord(name, old.len()));
        let Some(coord) = coord else { continue };
        let start = |axis: usize| Some(coord.get(axis)?.saturating_mul(*object.get(axis)?));
        let outside =
            (0..old.len()).any(|axis| start(axis).zip(keep.get(axis)).is_some_and(|(s, k)| s >= *k));
        if outside {
            // Beyond the old extents, too: what stands there was never part of the array.
            writer.stage.remove(&key)?;
            continue;
        }
        let straddles = (0..old.len()).any(|axis| {
            let end = start(axis).zip(object.get(axis)).map(|(s, n)| s.saturating_add(*n));
            old.get(axis) != shape.get(axis) && end.zip(keep.get(axis)).is_some_and(|(end, keep)| end > *keep)
        });
        if !straddles {
            continue;
        }
        let Some(bytes) = writer.stage.get(&key)? else { continue };
        let trimmed = trim_object(array, &coord, &bytes, &keep).context(|| key.clone())?;
        match trimmed {
            Some(Some(bytes)) => writer.stage.put(&key, bytes)?,
            Some(None) => writer.stage.remove(&key)?,
            None => {}
        }
    }
    Ok(())
}

/// An object without what lies beyond `keep`: `None` if it is as it was, `Some(None)` if nothing is left.
fn trim_object(
    array: &ArrayState,
    object: &[u64],
    bytes: &Bytes,
    keep: &[u64],
) -> Result<Option<Option<Bytes>>> {
    let Some(shard) = &array.shard else {
        return Ok(array.trimmed(object, bytes, keep)?.map(Some));
    };
    let mut chunks = shard.open(bytes)?;
    let mut changed = false;
    for (number, slot) in chunks.iter_mut().enumerate() {
        let Some(chunk) = slot else { continue };
        let mut rest = number as u64;
        let mut coord: Coord = object.iter().zip(&shard.ratio).map(|(o, r)| o.saturating_mul(*r)).collect();
        for (c, r) in coord.iter_mut().zip(&shard.ratio).rev() {
            *c = c.saturating_add(rest % (*r).max(1));
            rest /= (*r).max(1);
        }
        let start = array.layout.start_of(&coord);
        let ends = start.iter().zip(&array.layout.chunk).map(|(s, n)| s.saturating_add(*n));
        if start.iter().zip(keep).any(|(s, k)| s >= k) {
            *slot = None;
            changed = true;
        } else if ends.zip(keep).any(|(end, keep)| end > *keep)
            && let Some(trimmed) = array.trimmed(&coord, chunk, keep)?
        {
            *slot = Some(trimmed);
            changed = true;
        }
    }
    if changed { Ok(Some(shard.close(&chunks)?)) } else { Ok(None) }
}
