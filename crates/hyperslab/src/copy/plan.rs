//! How a copy of an array is stored.

use super::{CopyOptions, Extents};
use crate::array::Array;
use crate::codec::FilterSpec;
use crate::error::Result;
use crate::model::write::{ArraySpec, LayoutSpec, ShardSpec};
use crate::model::{ChunkGrid, Dataspace, Layout, Storage, VirtualMapping};

/// The filters of an array.
pub(super) fn filters_of(array: &Array) -> Vec<FilterSpec> {
    array.meta().filters.clone()
}

/// Extents of the chunks that an array is stored in; `None` if it is in one piece.
pub(super) fn chunks_of(array: &Array) -> Option<Vec<u64>> {
    match &array.meta().grid {
        ChunkGrid::Regular(chunk) => Some(chunk.clone()),
        ChunkGrid::Rectilinear { largest, .. } => Some(largest.clone()),
        ChunkGrid::Whole => None,
    }
}

/// The mappings of a virtual dataset of nothing but arrays that are copied too, so that it stays one. In other chunks they
/// would not be what whoever wrote it (versions of arrays) relies on.
pub(super) fn own_mappings(
    array: &Array,
    options: &CopyOptions,
    wants: impl Fn(&str) -> bool,
) -> Option<Vec<VirtualMapping>> {
    let Storage::Virtual(mappings) = array.storage() else { return None };
    let is_own = |mapping: &VirtualMapping| {
        mapping.file.as_bytes() == b"." && mapping.dataset.as_str().is_some_and(|path| wants(path))
    };
    let stays = options.chunks.is_none() && options.shards.is_none() && mappings.iter().all(is_own);
    stays.then(|| mappings.to_vec())
}

pub(super) fn layout_of(array: &Array, spec: &ArraySpec, options: &CopyOptions) -> Result<LayoutSpec> {
    let dims = spec.space.dims();
    let stored = chunks_of(array).filter(|chunk| chunk.len() == dims.len() && !chunk.contains(&0));
    let chunk = match (&options.chunks, stored) {
        _ if dims.is_empty() => None,
        (Some(Extents::Auto), _) => None,
        (Some(wanted), stored) => {
            // Where an axis is not named, the chunk goes as far as it did, or as the array.
            let base = stored.unwrap_or_else(|| dims.iter().map(|&d| d.max(1)).collect());
            Some(changed(wanted, base, spec))
        }
        (None, stored) => stored,
    };
    if let (Some(wanted), true) = (&options.shards, chunk.is_some()) {
        let chunk = chunk.unwrap_or_default();
        let whole = |chunk: &[u64]| -> Vec<u64> {
            // About a hundred megabytes.
            let mut shard = chunk.to_vec();
            let size = spec.dtype.size().max(1) as u64;
            for axis in (0..shard.len()).rev() {
                loop {
                    let bytes = shard.iter().fold(size, |n, &e| n.saturating_mul(e));
                    let (Some(slot), Some(&d)) = (shard.get_mut(axis), dims.get(axis)) else { break };
                    if bytes >= 64 << 20 || *slot >= d {
                        break;
                    }
                    *slot = slot.saturating_mul(2);
                }
            }
            shard
        };
        let mut extents = match wanted {
            Extents::Auto => whole(&chunk),
            wanted => changed(wanted, chunk.clone(), spec),
        };
        for (extent, chunk) in extents.iter_mut().zip(&chunk) {
            *extent = extent.div_ceil(*chunk).saturating_mul(*chunk);
        }
        return Ok(LayoutSpec::Chunked { chunk, shard: Some(ShardSpec { extents, index_at_start: false }) });
    }
    let grows = match &spec.space {
        Dataspace::Simple { dims, max } => max.iter().zip(dims).any(|(max, d)| *max != Some(*d)),
        _ => false,
    };
    Ok(match (chunk, &array.meta().layout) {
        (Some(chunk), _) => LayoutSpec::Chunked { chunk, shard: None },
        (None, _) if grows || !spec.filters.is_empty() || options.chunks.is_some() => LayoutSpec::Auto,
        (None, Layout::Compact) => LayoutSpec::Compact,
        (None, Layout::Contiguous | Layout::External(_)) => LayoutSpec::Contiguous,
        (None, _) => LayoutSpec::Auto,
    })
}

/// Extents with those that are named changed.
fn changed(wanted: &Extents, base: Vec<u64>, spec: &ArraySpec) -> Vec<u64> {
    let Extents::Dimensions(pairs) = wanted else { return base };
    let name = |axis: usize| {
        let path = spec.dimensions.get(axis)?.as_ref()?;
        path.names().last().map(ToString::to_string)
    };
    let dims = spec.space.dims();
    let extent = |(axis, old): (usize, u64)| {
        let named = pairs.iter().find(|(n, _)| Some(n) == name(axis).as_ref() || *n == axis.to_string());
        let length = dims.get(axis).copied().unwrap_or(1).max(1);
        named.map_or(old, |(_, extent)| (*extent).min(length))
    };
    base.into_iter().enumerate().map(extent).collect()
}
