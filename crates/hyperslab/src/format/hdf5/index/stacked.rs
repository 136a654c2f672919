//! The mappings of a virtual dataset that consists of whole chunks of one array, read in one pass and kept in 16 bytes each.

use super::mapping::{BLOCK, DATASET_SHARED, FILE_SHARED, SAME_FILE};
use crate::error::{Error, Result};
use crate::format::hdf5::message::selection;
use crate::format::hdf5::parse::{Cursor, Sizes, lookup3};
use crate::model::ChunkOf;
use crate::shape::{Coord, Name};

/// Where the chunks of such a dataset are.
#[derive(Debug, Default)]
pub struct Stack {
    /// The path of the array that has them; `None` if there are none.
    pub source: Option<Name>,
    /// Its chunk.
    pub chunk: Vec<u64>,
    /// Number of a chunk in C order, and its number in the stack; sorted, no chunk twice.
    pub slots: Vec<(u64, u64)>,
}

impl Stack {
    /// Looks at all mappings of a dataset of the extents `dims`; `at` is where the block lies, for messages. `None` if not
    /// every mapping is one whole chunk of the same array in the same file, or if two are for the same chunk: what a
    /// mapping says is never taken for less or more than it says.
    pub(super) fn parse(
        bytes: &[u8],
        at: u64,
        sizes: Sizes,
        dims: &[u64],
        chunk_of: ChunkOf<'_>,
    ) -> Result<Option<Stack>> {
        let mut c = Cursor::new(bytes, BLOCK, at);
        let version = c.u8()?;
        if version > 1 {
            // The ordinary way says what is wrong.
            return Ok(None);
        }
        let count = c.length(sizes)?;
        if count == 0 {
            c.checksum()?;
            return Ok(Some(Stack::default()));
        }
        let rank = dims.len();
        let zeros: Coord = std::iter::repeat_n(0, rank).collect();
        let [mut low, mut end, mut from, mut to] = std::array::from_fn(|_| zeros.clone());
        let mut stack: Option<(&[u8], Vec<u64>)> = None;
        let mut slots: Vec<(u64, u64)> = Vec::new();
        // A mapping takes bytes, so that this ends.
        for number in 0..count {
            let Some(dataset) = names(&mut c, version, sizes, number)? else { return Ok(None) };
            match (&stack, dataset) {
                (None, Some(path)) => match chunk_of(&Name::from(path))? {
                    Some(chunk) if chunk.len() == rank && !chunk.contains(&0) => stack = Some((path, chunk)),
                    _ => return Ok(None),
                },
                (Some((known, _)), Some(path)) if *known != path => return Ok(None),
                (None, None) => return Ok(None),
                _ => {}
            }
            let Some((_, chunk)) = &stack else { return Ok(None) };
            if !selection::block(&mut c, &mut from, &mut to)?
                || !selection::block(&mut c, &mut low, &mut end)?
            {
                return Ok(None);
            }
            match slot([&low, &end, &from, &to], dims, chunk) {
                Some(found) => slots.push(found),
                None => return Ok(None),
            }
        }
        c.checksum()?;
        if !slots.is_sorted_by(|a, b| a.0 < b.0) {
            slots.sort_unstable();
            if slots.windows(2).any(|pair| matches!(pair, [a, b] if a.0 == b.0)) {
                return Ok(None);
            }
        }
        Ok(stack.map(|(path, chunk)| Stack { source: Some(Name::from(path)), chunk, slots }))
    }
}

/// Changes, in the mappings of a virtual dataset that consists of chunks of the array at the path `stack`, which chunk of it
/// each one is: `slots` has the new number along the first axis of each old one. `chunk` are the extents of its chunks.
///
/// Errors, and `bytes` are as they were: `Unsupported` if a mapping is anything else than one block within one chunk,
/// `Corrupt` if its chunk is none that is kept.
pub fn restack(
    bytes: &mut [u8],
    at: u64,
    sizes: Sizes,
    stack: &[u8],
    chunk: &[u64],
    slots: &[Option<u64>],
) -> Result<()> {
    let mut c = Cursor::new(bytes, BLOCK, at);
    let version = c.u8()?;
    if version > 1 {
        return Err(c.corrupt(format!("version {version} of the mappings of a virtual dataset")));
    }
    let other = |what: &str| Error::unsupported(format!("a virtual dataset with {what}, among versions"));
    let count = c.length(sizes)?;
    let (rank, height) = (chunk.len(), chunk.first().copied().unwrap_or(1).max(1));
    let zeros: Coord = std::iter::repeat_n(0, rank).collect();
    let [mut low, mut end, mut from, mut to] = std::array::from_fn(|_| zeros.clone());
    // Where the numbers to be changed stand, how many bytes they have, and what they become.
    let mut changes: Vec<(usize, usize, u64)> = Vec::new();
    // A mapping takes bytes, so that this ends.
    for number in 0..count {
        match names(&mut c, version, sizes, number)? {
            None => return Err(other("elements of another file")),
            Some(Some(path)) if path != stack => return Err(other("elements of another array")),
            Some(None) if number == 0 => return Err(c.corrupt("a first mapping with an earlier one's name")),
            Some(_) => {}
        }
        let source = c.clone();
        if !selection::block(&mut c, &mut from, &mut to)? || !selection::block(&mut c, &mut low, &mut end)? {
            return Err(other("a mapping that is no block"));
        }
        let (first, last) = (from.first().copied().unwrap_or(0), to.first().copied().unwrap_or(0));
        let slot = first / height;
        if first % height != 0 || last - first > height {
            return Err(other("a mapping that is no chunk"));
        }
        let new = usize::try_from(slot).ok().and_then(|slot| slots.get(slot).copied().flatten());
        let new = new.and_then(|slot| slot.checked_mul(height));
        let new = new.ok_or_else(|| source.corrupt(format!("a mapping of chunk {slot}, which is gone")))?;
        if new == first {
            continue;
        }
        let (at, width, is_regular) = selection::first_number(source)?;
        changes.push((at, width, new));
        if !is_regular {
            changes.push((at + rank * width, width, new + (last - first - 1)));
        }
    }
    let end = c.position();
    c.checksum()?;
    for &(at, width, new) in &changes {
        if width < 8 && new >> (8 * width) != 0 {
            return Err(other("numbers that are too short for its chunks"));
        }
        let number = new.to_le_bytes();
        if let (Some(field), Some(number)) = (bytes.get_mut(at..at + width), number.get(..width)) {
            field.copy_from_slice(number);
        }
    }
    let sum = lookup3(bytes.get(..end).unwrap_or_default()).to_le_bytes();
    if let Some(field) = bytes.get_mut(end..end + sum.len()) {
        field.copy_from_slice(&sum);
    }
    Ok(())
}

/// Passes over the names of a mapping. `None` if it leads to another file; within, the path if it stands here and not with
/// an earlier mapping.
#[allow(clippy::type_complexity)]
fn names<'a>(c: &mut Cursor<'a>, version: u8, sizes: Sizes, number: u64) -> Result<Option<Option<&'a [u8]>>> {
    let flags = if version == 0 { 0 } else { c.u8()? };
    if flags & !(FILE_SHARED | DATASET_SHARED | SAME_FILE) != 0 {
        return Ok(None);
    }
    if flags & SAME_FILE != 0 {
    } else if flags & FILE_SHARED != 0 {
        // All files before this one were the same.
        if c.length(sizes)? >= number {
            return Ok(None);
        }
    } else if c.c_string()? != b"." {
        return Ok(None);
    }
    if flags & DATASET_SHARED == 0 {
        return c.c_string().map(|path| Some(Some(path)));
    }
    // As all paths were.
    Ok((c.length(sizes)? < number).then_some(None))
}

/// The chunk that a block of a dataset is, and the one of the stack; `None` if they are not whole chunks.
fn slot([low, end, from, to]: [&Coord; 4], dims: &[u64], chunk: &[u64]) -> Option<(u64, u64)> {
    let (mut number, mut slot) = (0u64, 0);
    let blocks = low.iter().zip(end).zip(from.iter().zip(to));
    for (axis, (((low, end), (from, to)), (&dim, &chunk))) in blocks.zip(dims.iter().zip(chunk)).enumerate() {
        if low % chunk != 0
            || *low >= dim
            || *end != low.saturating_add(chunk).min(dim)
            || end - low != to - from
        {
            return None;
        }
        match axis {
            0 if from % chunk == 0 => slot = from / chunk,
            0 => return None,
            _ if *from != 0 => return None,
            _ => {}
        }
        number = number.checked_mul(dim.div_ceil(chunk))?.checked_add(low / chunk)?;
    }
    Some((number, slot))
}
