//! How a copy of an array is stored.

use super::{CopyOptions, Extents};
use crate::array::Array;
use crate::codec::FilterSpec;
use crate::dtype::DType;
use crate::error::Result;
use crate::model::write::{ArraySpec, LayoutSpec, ShardSpec};
use crate::model::{ChunkGrid, Dataspace, Layout, Storage, VirtualMapping};
use crate::shape::element_count;
use crate::write::Format;

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
        mapping.file.as_bytes() == b"." && mapping.dataset.as_str().is_some_and(&wants)
    };
    let stays = options.chunks.is_none() && options.shards.is_none() && mappings.iter().all(is_own);
    stays.then(|| mappings.to_vec())
}

/// How an array is to be stored, and what of it is said in other words.
pub(super) fn layout_of(
    array: &Array,
    spec: &ArraySpec,
    format: Format,
    options: &CopyOptions,
) -> Result<(LayoutSpec, Vec<String>)> {
    let mut layout = wanted_layout(array, spec, options)?;
    let mut note: Option<&str> = None;
    // HDF5 has no chunks that reach beyond where an array can grow to.
    if let (LayoutSpec::Chunked { chunk, .. }, Dataspace::Simple { max, .. }) = (&mut layout, &spec.space)
        && matches!(format, Format::Hdf5 | Format::NetCdf4)
    {
        for (extent, max) in chunk.iter_mut().zip(max) {
            if let Some(max) = max
                && *extent > *max
            {
                *extent = (*max).max(1);
                note = Some("chunks no larger than it can grow to");
            }
        }
        if max.contains(&Some(0)) {
            layout = LayoutSpec::Auto;
            note = Some("not in chunks, since it has no elements and cannot grow");
        }
    }
    Ok((layout, note.map(str::to_owned).into_iter().collect()))
}

fn wanted_layout(array: &Array, spec: &ArraySpec, options: &CopyOptions) -> Result<LayoutSpec> {
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

/// Makes the filters of an array those of its copy, which may have other chunks and another type. Those whose parameters
/// hold for the old ones alone, and those that would change values once more, are left out; which these are.
pub(super) fn fit_filters(array: &Array, spec: &mut ArraySpec, format: Format) -> Option<String> {
    let chunk = match &spec.layout {
        LayoutSpec::Chunked { chunk, .. } => Some(chunk.clone()),
        _ => None,
    };
    let same_type = *array.dtype() == spec.dtype;
    let same_chunk = chunk.is_some() && chunk == chunks_of(array);
    let is_hdf5 = matches!(format, Format::Hdf5 | Format::NetCdf4);
    if is_hdf5 && same_type && same_chunk {
        return None;
    }
    // A format without this very type takes another one.
    let keeps_type = same_type
        && (is_hdf5
            || match &spec.dtype {
                DType::Integer(t) => t.is_whole(),
                DType::Float(t) => t.is_ieee(),
                _ => false,
            });
    let size = u32::try_from(spec.dtype.size()).unwrap_or(0);
    let count = chunk.as_ref().and_then(|chunk| u32::try_from(element_count(chunk).ok()?).ok());
    let bytes = count.and_then(|count| count.checked_mul(size)).unwrap_or(0);
    let mut left_out = Vec::new();
    let fitted = |filter: FilterSpec| {
        let FilterSpec::Hdf5 { id, flags, name, mut parameters } = filter else { return Some(filter) };
        let mut set = |at: usize, value: u32| {
            if let Some(slot) = parameters.get_mut(at) {
                *slot = value;
            }
        };
        let stays = match (id, count) {
            (2, _) => {
                set(0, size);
                true
            }
            (4, _) => keeps_type && same_chunk,
            (5, Some(count)) if keeps_type => {
                set(2, count);
                true
            }
            // Integers in as many bits as they need: everything else rounds, or cuts.
            (6, Some(count)) if keeps_type => {
                set(2, count);
                parameters.first() == Some(&2) && parameters.get(1) == Some(&0)
            }
            (5 | 6, _) => false,
            (32000, _) => {
                set(2, bytes);
                true
            }
            (32001, _) => {
                set(2, size);
                set(3, bytes);
                true
            }
            (32008, _) => {
                set(2, size);
                true
            }
            _ => true,
        };
        if !stays {
            left_out.push(match id {
                4 => "szip",
                5 => "nbit",
                _ => "scaleoffset",
            });
            return None;
        }
        Some(FilterSpec::Hdf5 { id, flags, name, parameters })
    };
    spec.filters = std::mem::take(&mut spec.filters).into_iter().filter_map(fitted).collect();
    (!left_out.is_empty())
        .then(|| format!("without {}, which is for the old type and chunks", left_out.join(" and ")))
}
