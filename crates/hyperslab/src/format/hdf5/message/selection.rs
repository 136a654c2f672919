//! Stored selections of a dataspace, as region references and virtual mappings hold them (specification, "dataspace
//! selection": versions 1 to 3 of hyperslabs, 1 and 2 of points).

use crate::error::{Error, Result};
use crate::format::hdf5::parse::Cursor;
use crate::model::{Hyperslab, SpaceSelection};
use crate::shape::{Coord, MAX_RANK};

/// A parsed selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Rank of the dataspace; unknown for "all" and "none".
    pub rank: Option<usize>,
    /// The elements.
    pub elements: SpaceSelection,
}

/// Parses a selection and leaves the cursor behind it.
pub fn parse(c: &mut Cursor<'_>) -> Result<Selection> {
    let class = c.u32()?;
    let version = c.u32()?;
    match (class, version) {
        (0 | 3, 1) => {
            c.skip(8)?;
            let elements = if class == 0 { SpaceSelection::None } else { SpaceSelection::All };
            Ok(Selection { rank: None, elements })
        }
        (1, 1) => {
            c.skip(8)?;
            points(c, 4)
        }
        (1, 2) => {
            let width = width(c)?;
            points(c, width)
        }
        (2, 1) => {
            c.skip(8)?;
            let rank = rank(c)?;
            blocks(c, rank, 4)
        }
        (2, 2) => {
            let flags = c.u8()?;
            c.skip(4)?;
            let rank = rank(c)?;
            if flags & 0x01 == 0 {
                return Err(c.corrupt("a version 2 hyperslab that is not regular"));
            }
            regular(c, rank, 8)
        }
        (2, 3) => {
            let flags = c.u8()?;
            let width = width(c)?;
            let rank = rank(c)?;
            if flags & 0x01 != 0 { regular(c, rank, width) } else { blocks(c, rank, width) }
        }
        (0..=3, _) => Err(Error::unsupported(format!("version {version} of selection class {class}"))),
        _ => Err(c.corrupt(format!("selection class {class}"))),
    }
}

/// Passes over a selection that is one block of rank `low.len()`, and puts its first element and the one behind its last into
/// `low` and `end`. False if it is anything else; the cursor is then somewhere inside. Allocates nothing.
pub fn block(c: &mut Cursor<'_>, low: &mut [u64], end: &mut [u64]) -> Result<bool> {
    let (class, version) = (c.u32()?, c.u32()?);
    let (is_regular, width) = match (class, version) {
        (2, 1) => {
            c.skip(8)?;
            (false, 4)
        }
        (2, 2) => {
            let flags = c.u8()?;
            c.skip(4)?;
            (flags & 0x01 != 0, 8)
        }
        (2, 3) => {
            let flags = c.u8()?;
            (flags & 0x01 != 0, width(c)?)
        }
        _ => return Ok(false),
    };
    if rank(c)? != low.len() {
        return Ok(false);
    }
    if !is_regular {
        if version == 2 || c.uint(width)? != 1 {
            return Ok(false);
        }
        for low in low.iter_mut() {
            *low = c.uint(width)?;
        }
        for (low, end) in low.iter().zip(end) {
            let last = c.uint(width)?;
            match last.checked_add(1) {
                Some(behind) if last >= *low => *end = behind,
                _ => return Ok(false),
            }
        }
        return Ok(true);
    }
    let unlimited = if width == 8 { u64::MAX } else { (1 << (8 * width)) - 1 };
    for (low, end) in low.iter_mut().zip(end) {
        *low = c.uint(width)?;
        let (stride, count, block) = (c.uint(width)?, c.uint(width)?, c.uint(width)?);
        if count == unlimited
            || block == unlimited
            || count == 0
            || block == 0
            || (count > 1 && stride != block)
        {
            return Ok(false);
        }
        match count.checked_mul(block).and_then(|n| n.checked_add(*low)) {
            Some(behind) => *end = behind,
            None => return Ok(false),
        }
    }
    Ok(true)
}

/// Where in its block the first number of a selection stands that [`block`] takes, how many bytes it has, and whether the
/// selection is regular; the last element of one that is not stands one number for each axis behind it.
pub fn first_number(mut c: Cursor<'_>) -> Result<(usize, usize, bool)> {
    c.skip(4)?;
    let (is_regular, width) = match c.u32()? {
        1 => {
            // Reserved, length, rank, number of blocks.
            c.skip(16)?;
            (false, 4)
        }
        2 => {
            c.skip(9)?;
            (true, 8)
        }
        _ => {
            let flags = c.u8()?;
            let width = width(&mut c)?;
            c.skip(4)?;
            if flags & 0x01 == 0 {
                c.skip(width)?;
            }
            (flags & 0x01 != 0, width)
        }
    };
    Ok((c.position(), width, is_regular))
}

fn width(c: &mut Cursor<'_>) -> Result<usize> {
    match c.u8()? {
        n @ (2 | 4 | 8) => Ok(usize::from(n)),
        n => Err(c.corrupt(format!("coordinates of {n} bytes"))),
    }
}

fn rank(c: &mut Cursor<'_>) -> Result<usize> {
    match c.u32()? {
        n if (1..=MAX_RANK as u32).contains(&n) => Ok(n as usize),
        n => Err(c.corrupt(format!("a selection of rank {n}"))),
    }
}

fn coordinates(c: &mut Cursor<'_>, rank: usize, width: usize) -> Result<Coord> {
    (0..rank).map(|_| c.uint(width)).collect()
}

/// Fails unless `count` items of `size` bytes can be there, before any memory is taken for them.
fn check_count(c: &Cursor<'_>, count: u64, size: usize) -> Result<()> {
    match count.checked_mul(size as u64) {
        Some(bytes) if bytes <= c.remaining() as u64 => Ok(()),
        _ => Err(c.corrupt(format!("{count} items of {size} bytes, {} bytes left", c.remaining()))),
    }
}

fn points(c: &mut Cursor<'_>, width: usize) -> Result<Selection> {
    let rank = rank(c)?;
    let count = c.uint(width)?;
    check_count(c, count, rank * width)?;
    let points = (0..count).map(|_| coordinates(c, rank, width)).collect::<Result<_>>()?;
    Ok(Selection { rank: Some(rank), elements: SpaceSelection::Points(points) })
}

fn blocks(c: &mut Cursor<'_>, rank: usize, width: usize) -> Result<Selection> {
    let count = c.uint(width)?;
    check_count(c, count, 2 * rank * width)?;
    let mut blocks = Vec::new();
    for _ in 0..count {
        let low = coordinates(c, rank, width)?;
        let high = coordinates(c, rank, width)?;
        if low.iter().zip(&high).any(|(l, h)| l > h) {
            return Err(c.corrupt("a block that ends before it starts"));
        }
        blocks.push((low, high));
    }
    Ok(Selection { rank: Some(rank), elements: SpaceSelection::Blocks(blocks) })
}

fn regular(c: &mut Cursor<'_>, rank: usize, width: usize) -> Result<Selection> {
    let unlimited = if width == 8 { u64::MAX } else { (1 << (8 * width)) - 1 };
    let mut slab =
        Hyperslab { start: Coord::new(), stride: Coord::new(), count: Vec::new(), block: Vec::new() };
    for _ in 0..rank {
        slab.start.push(c.uint(width)?);
        slab.stride.push(c.uint(width)?);
        slab.count.push(Some(c.uint(width)?).filter(|&n| n != unlimited));
        slab.block.push(Some(c.uint(width)?).filter(|&n| n != unlimited));
    }
    Ok(Selection { rank: Some(rank), elements: SpaceSelection::Regular(slab) })
}
