//! Selections of a dataspace, written: region references and mappings of virtual datasets.

use super::encoder::Encoder;
use crate::error::{Error, Result};
use crate::format::hdf5::parse::Sizes;
use crate::model::{Hyperslab, SpaceSelection, VirtualMapping};
use crate::shape::{Coord, Name, element_count};

/// Blocks that a regular selection is written out as, at most, for libraries that know no other form.
const MAX_BLOCKS: u64 = 1 << 20;

/// Appends a selection. `early`: in the forms that HDF5 1.8 reads.
pub(super) fn encode(out: &mut Encoder, selection: &SpaceSelection, early: bool) -> Result<()> {
    match selection {
        SpaceSelection::None => {
            out.u32(0).u32(1).zeros(8);
            Ok(())
        }
        SpaceSelection::All => {
            out.u32(3).u32(1).zeros(8);
            Ok(())
        }
        SpaceSelection::Points(points) => {
            let rank = points.first().map_or(1, |p| p.len());
            let numbers: Vec<u64> = points.iter().flat_map(|p| p.iter().copied()).collect();
            listed(out, 1, rank, points.len(), &numbers)
        }
        SpaceSelection::Blocks(blocks) => self::blocks(out, blocks),
        SpaceSelection::Regular(slab) if early && !selection.is_unlimited() => {
            let rank = slab.start.len();
            let count = slab.count.iter().fold(1u64, |n, c| n.saturating_mul(c.unwrap_or(1)));
            if count > MAX_BLOCKS {
                return Err(Error::unsupported(format!(
                    "a selection of {count} blocks in files for HDF5 1.8"
                )));
            }
            let mut list: Vec<(Coord, Coord)> = vec![(Coord::new(), Coord::new())];
            for axis in 0..rank {
                list = spread(&list, slab, axis)?;
            }
            self::blocks(out, &list)
        }
        SpaceSelection::Regular(slab) => {
            let rank = slab.start.len();
            out.u32(2).u32(2).u8(1).u32((4 + 32 * rank) as u32).u32(rank as u32);
            let stored = |n: Option<Option<u64>>| n.flatten().unwrap_or(u64::MAX);
            for axis in 0..rank {
                out.u64(slab.start.get(axis).copied().unwrap_or(0));
                out.u64(slab.stride.get(axis).copied().unwrap_or(1).max(1));
                out.u64(stored(slab.count.get(axis).copied())).u64(stored(slab.block.get(axis).copied()));
            }
            Ok(())
        }
    }
}

/// The blocks of `list` along one more axis.
fn spread(list: &[(Coord, Coord)], slab: &Hyperslab, axis: usize) -> Result<Vec<(Coord, Coord)>> {
    let get = |v: &[u64]| v.get(axis).copied().unwrap_or(0);
    let (start, stride) = (get(&slab.start), get(&slab.stride).max(1));
    let count = slab.count.get(axis).copied().flatten().unwrap_or(1);
    let block = slab.block.get(axis).copied().flatten().unwrap_or(1).max(1);
    let mut out = Vec::new();
    for (low, high) in list {
        for i in 0..count {
            let first = i.checked_mul(stride).and_then(|n| n.checked_add(start));
            let last = first.and_then(|f| f.checked_add(block - 1));
            let (Some(first), Some(last)) = (first, last) else {
                return Err(Error::invalid("a selection beyond 2^64"));
            };
            let (mut l, mut h) = (low.clone(), high.clone());
            l.push(first);
            h.push(last);
            out.push((l, h));
        }
    }
    Ok(out)
}

fn blocks(out: &mut Encoder, blocks: &[(Coord, Coord)]) -> Result<()> {
    let rank = blocks.first().map_or(1, |(low, _)| low.len());
    let numbers: Vec<u64> =
        blocks.iter().flat_map(|(low, high)| low.iter().chain(high.iter()).copied()).collect();
    listed(out, 2, rank, blocks.len(), &numbers)
}

/// Version 1 of points and blocks: numbers of 32 bits.
fn listed(out: &mut Encoder, class: u32, rank: usize, count: usize, numbers: &[u64]) -> Result<()> {
    let wide = || Error::unsupported("a selection with coordinates of more than 32 bits, point by point");
    let count = u32::try_from(count).map_err(|_| wide())?;
    let length = u32::try_from(8 + 4 * numbers.len()).map_err(|_| wide())?;
    out.u32(class).u32(1).zeros(4).u32(length).u32(rank as u32).u32(count);
    for &number in numbers {
        out.u32(u32::try_from(number).map_err(|_| wide())?);
    }
    Ok(())
}

/// The mappings of a virtual dataset, as an object of the global heap holds them (specification, III.F).
pub(super) fn mappings(mappings: &[VirtualMapping], sizes: Sizes) -> Result<Vec<u8>> {
    let mut out = Encoder::new(sizes);
    out.u8(0).length(mappings.len() as u64);
    for mapping in mappings {
        for name in [&mapping.file, &mapping.dataset] {
            if name.as_bytes().contains(&0) {
                return Err(Error::unsupported("a source of a virtual dataset with a NUL in its name"));
            }
            out.c_string(name.as_bytes());
        }
        encode(&mut out, &mapping.source_selection, false)?;
        encode(&mut out, &mapping.selection, false)?;
    }
    out.checksum();
    Ok(out.finish())
}

/// The same for whole chunks stacked in one array of the file: see [`LayoutSpec::Stacked`]. Mappings are of one size, and are
/// put together in one pass.
///
/// [`LayoutSpec::Stacked`]: crate::model::write::LayoutSpec::Stacked
pub(super) fn stacked(
    dims: &[u64],
    chunk: &[u64],
    source: &Name,
    slots: &[(u64, u64)],
    sizes: Sizes,
) -> Result<Vec<u8>> {
    let rank = dims.len();
    if chunk.len() != rank || chunk.contains(&0) || rank == 0 {
        return Err(Error::invalid(format!("stacked chunks of {chunk:?} for extents of {dims:?}")));
    }
    if source.as_bytes().contains(&0) {
        return Err(Error::unsupported("a source of a virtual dataset with a NUL in its name"));
    }
    let height = chunk.first().copied().unwrap_or(1);
    let highest = slots.iter().map(|slot| slot.1).max().unwrap_or(0);
    let rows = highest.checked_add(1).and_then(|n| n.checked_mul(height));
    let rows = rows.ok_or_else(|| Error::invalid("more rows of chunks than 2^64"))?;
    // The form with 32 bits, which all libraries with virtual datasets read, as long as it does.
    let is_wide = dims.iter().chain([&rows]).any(|&n| n > u64::from(u32::MAX));
    let mut side = Encoder::new(sizes);
    match is_wide {
        false => side.u32(2).u32(1).zeros(4).u32((8 + 8 * rank) as u32).u32(rank as u32).u32(1),
        true => side.u32(2).u32(2).u8(1).u32((4 + 32 * rank) as u32).u32(rank as u32),
    };
    let put = |out: &mut Encoder, low: &[u64], extent: &[u64]| {
        out.put(side.as_bytes());
        let ends = low.iter().zip(extent);
        if is_wide {
            ends.for_each(|(&low, &n)| {
                out.u64(low).u64(n).u64(1).u64(n);
            });
            return;
        }
        low.iter().for_each(|&low| {
            out.u32(low as u32);
        });
        ends.for_each(|(&low, &n)| {
            out.u32((low + n - 1) as u32);
        });
    };
    let grid: Coord = dims.iter().zip(chunk).map(|(&dim, &chunk)| dim.div_ceil(chunk)).collect();
    let count = element_count(&grid)?;
    let zeros = Coord::from_elem(0, rank);
    let [mut low, mut extent, mut from] = std::array::from_fn(|_| zeros.clone());
    let mut out = Encoder::new(sizes);
    out.u8(0).length(slots.len() as u64);
    let mut next = 0;
    for &(number, slot) in slots {
        if number >= count || number < next {
            return Err(Error::invalid(format!("chunk {number} of {count}, out of order")));
        }
        next = number + 1;
        let mut rest = number;
        let sides = low.iter_mut().zip(&mut extent).zip(grid.iter().zip(dims).zip(chunk));
        for ((low, extent), ((&count, &dim), &chunk)) in sides.rev() {
            *low = rest % count * chunk;
            *extent = chunk.min(dim - *low);
            rest /= count;
        }
        if let Some(from) = from.first_mut() {
            *from = slot * height;
        }
        out.c_string(b".").c_string(source.as_bytes());
        put(&mut out, &from, &extent);
        put(&mut out, &low, &extent);
    }
    out.checksum();
    Ok(out.finish())
}
