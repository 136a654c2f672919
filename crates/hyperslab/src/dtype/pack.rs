//! The canonical packing of fixed-size elements: little-endian, members one after the other, no paddings.
//!
//! | part | packed as |
//! |---|---|
//! | integer, enum, bit field, time up to 8 bytes | its value, in the smallest of 1, 2, 4, 8 bytes that holds the stored size; integers sign-extended if signed, the others not |
//! | wider ones, and floats | the stored bytes, reversed if big-endian |
//! | string, opaque | the stored bytes |
//! | UTF-32 text, dates and times | little-endian |
//! | compound, array, complex | its parts, in order |
//!
//! A type is compiled once into a few moves of bytes, which are then run for every element.

use super::{ByteOrder, DType, IntegerType};
use crate::error::{Error, ErrorKind, Result};

/// How elements of one type are packed.
#[derive(Clone, Debug)]
pub struct Packing {
    stored: usize,
    packed: usize,
    moves: Vec<Move>,
}

/// One step: from an offset in the stored element to the next free byte of the packed one.
#[derive(Clone, Debug)]
enum Move {
    /// Bytes as they are.
    Copy { from: usize, length: usize },
    /// `count` numbers of `width` bytes, each reversed.
    Reverse { from: usize, width: usize, count: usize },
    /// One integer of partial precision or odd size, in `width` bytes.
    Integer { from: usize, width: usize, integer: IntegerType },
    /// The same moves for each of `count` parts, `stride` stored bytes apart.
    Repeat { from: usize, stride: usize, count: usize, moves: Vec<Move> },
}

/// No type that a format can state nests deeper.
const MAX_DEPTH: u32 = 256;

impl Packing {
    /// Compiles the packing of `dtype`. Fails with [`ErrorKind::InvalidArgument`] if a part of it is a reference or of
    /// variable length, and with [`ErrorKind::Corrupt`] if its members do not lie in it.
    pub fn new(dtype: &DType) -> Result<Packing> {
        let mut moves = Vec::new();
        let packed = compile(dtype, 0, 0, &mut moves)?;
        Ok(Packing { stored: dtype.size(), packed, moves })
    }

    /// Bytes of one element as stored.
    pub fn stored_size(&self) -> usize {
        self.stored
    }

    /// Bytes of one packed element.
    pub fn packed_size(&self) -> usize {
        self.packed
    }

    /// Whether packed elements are the stored ones, byte for byte.
    pub fn is_identity(&self) -> bool {
        self.stored == self.packed
            && match self.moves.as_slice() {
                [] => true,
                [Move::Copy { from: 0, length }] => *length == self.stored,
                _ => false,
            }
    }

    /// Appends `count` packed elements to `out`. `stored` holds at least that many stored ones.
    pub fn pack(&self, stored: &[u8], count: usize, out: &mut Vec<u8>) -> Result<()> {
        let too_large = || Error::new(ErrorKind::LimitExceeded, "packed elements do not fit into memory");
        let bytes = count.checked_mul(self.stored).ok_or_else(too_large)?;
        let packed = count.checked_mul(self.packed).ok_or_else(too_large)?;
        let stored = stored.get(..bytes).ok_or_else(|| {
            Error::invalid(format!(
                "{count} elements of {} bytes to pack, {} given",
                self.stored,
                stored.len()
            ))
        })?;
        out.try_reserve(packed).map_err(|_| too_large())?;
        if self.packed == 0 {
            return Ok(());
        }
        match self.moves.as_slice() {
            [Move::Copy { from: 0, length }] if *length == self.stored => out.extend_from_slice(stored),
            [Move::Reverse { from: 0, width, count: per_element }] if width * per_element == self.stored => {
                reverse(stored, *width, out);
            }
            moves => stored.chunks_exact(self.stored).try_for_each(|element| run(moves, element, out))?,
        }
        Ok(())
    }

    /// The stored form of packed elements, zeros between their parts. Fails with [`ErrorKind::InvalidArgument`] for an integer
    /// that does not fit the bits in which it is stored, and for bytes that are no whole elements.
    pub fn unpack(&self, packed: &[u8]) -> Result<Vec<u8>> {
        if self.packed == 0 || !packed.len().is_multiple_of(self.packed) {
            return Err(Error::invalid(format!(
                "{} bytes of elements of {} packed bytes",
                packed.len(),
                self.packed
            )));
        }
        if self.is_identity() {
            return Ok(packed.to_vec());
        }
        let count = packed.len() / self.packed;
        let size = checked(count.checked_mul(self.stored))?;
        let mut out = Vec::new();
        out.try_reserve_exact(size)
            .map_err(|_| Error::new(ErrorKind::LimitExceeded, "unpacked elements do not fit into memory"))?;
        out.resize(size, 0);
        let elements = out.chunks_exact_mut(self.stored.max(1)).zip(packed.chunks_exact(self.packed));
        for (element, mut packed) in elements {
            run_back(&self.moves, &mut packed, element)?;
        }
        Ok(out)
    }
}

/// Appends the moves of a part of type `dtype` at `from`, and gives its packed size.
fn compile(dtype: &DType, from: usize, depth: u32, moves: &mut Vec<Move>) -> Result<usize> {
    if depth > MAX_DEPTH {
        return Err(Error::limit("nesting of datatypes", depth.into(), MAX_DEPTH.into()));
    }
    let size = dtype.size();
    match dtype {
        DType::Integer(t) | DType::Bitfield(t) | DType::Time(t) => {
            let signed = t.signed && matches!(dtype, DType::Integer(_));
            let width = match t.size {
                0..=1 => 1,
                2 => 2,
                3..=4 => 4,
                5..=8 => 8,
                wide => wide,
            };
            if size > 8 || (t.is_whole() && width == size) {
                number(moves, from, size, t.order);
            } else {
                moves.push(Move::Integer { from, width, integer: IntegerType { signed, ..t.clone() } });
            }
            Ok(width)
        }
        DType::Float(t) => {
            number(moves, from, size, t.order);
            Ok(size)
        }
        DType::String { .. } | DType::Opaque { .. } => {
            copy(moves, from, size);
            Ok(size)
        }
        DType::DateTime(t) => {
            number(moves, from, size, t.order);
            Ok(size)
        }
        DType::Utf32 { length, order: ByteOrder::Big } if *length > 0 => {
            moves.push(Move::Reverse { from, width: 4, count: *length });
            Ok(size)
        }
        DType::Utf32 { .. } => {
            copy(moves, from, size);
            Ok(size)
        }
        DType::Enum { base, .. } => compile(base, from, depth + 1, moves),
        DType::Compound { fields, .. } => {
            let mut packed = 0usize;
            for field in fields {
                let end = field.offset.checked_add(field.dtype.size());
                if end.is_none_or(|end| end > size) {
                    return Err(Error::new(
                        ErrorKind::Corrupt,
                        format!("member {:?} reaches beyond its compound of {size} bytes", field.name),
                    ));
                }
                let part = compile(&field.dtype, from.saturating_add(field.offset), depth + 1, moves)?;
                packed = checked(packed.checked_add(part))?;
            }
            Ok(packed)
        }
        DType::Array { base, dims } => {
            let count = checked(usize::try_from(crate::shape::element_count(dims)?).ok())?;
            repeat(base, from, count, depth, moves)
        }
        DType::Complex { base } => repeat(base, from, 2, depth, moves),
        DType::VarString { .. } | DType::VarLen { .. } | DType::Reference { .. } => {
            Err(Error::invalid(format!("elements of type {dtype} have no fixed size to pack")))
        }
    }
}

/// `count` parts of type `base`, one after the other from `from`.
fn repeat(base: &DType, from: usize, count: usize, depth: u32, moves: &mut Vec<Move>) -> Result<usize> {
    let stride = base.size();
    let mut body = Vec::new();
    let part = compile(base, 0, depth + 1, &mut body)?;
    let packed = checked(part.checked_mul(count))?;
    if packed == 0 {
        return Ok(0);
    }
    match body.as_slice() {
        [Move::Copy { from: 0, length }] if *length == stride => {
            copy(moves, from, checked(stride.checked_mul(count))?)
        }
        [Move::Reverse { from: 0, width, count: inner }] if width * inner == stride => {
            moves.push(Move::Reverse { from, width: *width, count: checked(inner.checked_mul(count))? })
        }
        _ => moves.push(Move::Repeat { from, stride, count, moves: body }),
    }
    Ok(packed)
}

fn checked(n: Option<usize>) -> Result<usize> {
    n.filter(|&n| n <= isize::MAX as usize)
        .ok_or_else(|| Error::new(ErrorKind::LimitExceeded, "a packed element does not fit into memory"))
}

/// A number of `size` bytes.
fn number(moves: &mut Vec<Move>, from: usize, size: usize, order: ByteOrder) {
    if order == ByteOrder::Big && size > 1 {
        moves.push(Move::Reverse { from, width: size, count: 1 });
    } else {
        copy(moves, from, size);
    }
}

/// Bytes as they are, joined with the move before where they follow on it.
fn copy(moves: &mut Vec<Move>, from: usize, length: usize) {
    if let Some(Move::Copy { from: start, length: before }) = moves.last_mut()
        && *start + *before == from
    {
        *before += length;
    } else if length > 0 {
        moves.push(Move::Copy { from, length });
    }
}

fn run(moves: &[Move], element: &[u8], out: &mut Vec<u8>) -> Result<()> {
    for step in moves {
        match step {
            Move::Copy { from, length } => out.extend_from_slice(part(element, *from, *length)?),
            Move::Reverse { from, width, count } => {
                reverse(part(element, *from, width.saturating_mul(*count))?, *width, out);
            }
            Move::Integer { from, width, integer } => {
                let value = integer.value(part(element, *from, integer.size)?).to_le_bytes();
                out.extend_from_slice(&value[..*width]);
            }
            Move::Repeat { from, stride, count, moves } => {
                let parts = part(element, *from, stride.saturating_mul(*count))?;
                parts.chunks_exact((*stride).max(1)).try_for_each(|p| run(moves, p, out))?;
            }
        }
    }
    Ok(())
}

/// Takes the parts of one packed element from the front of `packed` to where they are stored.
fn run_back(moves: &[Move], packed: &mut &[u8], element: &mut [u8]) -> Result<()> {
    for step in moves {
        match step {
            Move::Copy { from, length } => {
                part_mut(element, *from, *length)?.copy_from_slice(take(packed, *length)?);
            }
            Move::Reverse { from, width, count } => {
                let length = width.saturating_mul(*count);
                let mut back = Vec::with_capacity(length);
                reverse(take(packed, length)?, *width, &mut back);
                part_mut(element, *from, length)?.copy_from_slice(&back);
            }
            Move::Integer { from, width, integer } => {
                let bytes = take(packed, *width)?;
                let stored = part_mut(element, *from, integer.size)?;
                integer_back(integer, bytes, stored)?;
            }
            Move::Repeat { from, stride, count, moves } => {
                let parts = part_mut(element, *from, stride.saturating_mul(*count))?;
                parts.chunks_exact_mut((*stride).max(1)).try_for_each(|p| run_back(moves, packed, p))?;
            }
        }
    }
    Ok(())
}

/// Puts an integer into its bits, the others 0.
fn integer_back(t: &IntegerType, packed: &[u8], stored: &mut [u8]) -> Result<()> {
    let value = packed.iter().rev().fold(0u64, |n, &b| n << 8 | u64::from(b));
    let mask = u64::MAX.checked_shr(64u32.saturating_sub(t.precision)).unwrap_or(0);
    let bits = (value & mask).checked_shl(t.offset).unwrap_or(0).to_le_bytes();
    for (i, &byte) in bits.iter().enumerate().take(stored.len()) {
        let at = if t.order == ByteOrder::Big { stored.len() - 1 - i } else { i };
        if let Some(slot) = stored.get_mut(at) {
            *slot = byte;
        }
    }
    let back = t.value(stored).to_le_bytes();
    if back.get(..packed.len()) == Some(packed) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a number that does not fit the {} bits of {}",
        t.precision,
        DType::Integer(t.clone())
    )))
}

fn take<'a>(packed: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    let (taken, rest) = packed
        .split_at_checked(length)
        .ok_or_else(|| Error::invalid("a packed element that is too short"))?;
    *packed = rest;
    Ok(taken)
}

fn part_mut(element: &mut [u8], from: usize, length: usize) -> Result<&mut [u8]> {
    from.checked_add(length)
        .and_then(|end| element.get_mut(from..end))
        .ok_or_else(|| Error::new(ErrorKind::Corrupt, "a part of the element lies outside of it"))
}

fn part(element: &[u8], from: usize, length: usize) -> Result<&[u8]> {
    from.checked_add(length)
        .and_then(|end| element.get(from..end))
        .ok_or_else(|| Error::new(ErrorKind::Corrupt, "a part of the element lies outside of it"))
}

/// Appends `numbers` of `width` bytes, each reversed.
fn reverse(numbers: &[u8], width: usize, out: &mut Vec<u8>) {
    fn swap<const N: usize>(numbers: &[u8], out: &mut Vec<u8>) {
        let (numbers, _) = numbers.as_chunks::<N>();
        out.extend(numbers.iter().flat_map(|n| {
            let mut n = *n;
            n.reverse();
            n
        }));
    }
    match width {
        2 => swap::<2>(numbers, out),
        4 => swap::<4>(numbers, out),
        8 => swap::<8>(numbers, out),
        _ => numbers.chunks_exact(width.max(1)).for_each(|n| out.extend(n.iter().rev())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{Field, FloatType};

    fn int(size: usize, order: ByteOrder, signed: bool) -> DType {
        DType::Integer(IntegerType::new(size, order, signed))
    }

    fn pack(dtype: &DType, stored: &[u8]) -> Vec<u8> {
        let packing = Packing::new(dtype).unwrap();
        let mut out = Vec::new();
        packing.pack(stored, stored.len() / dtype.size(), &mut out).unwrap();
        assert_eq!(out.len(), stored.len() / dtype.size() * packing.packed_size());
        out
    }

    #[test]
    fn plain_types_are_copied_or_swapped() {
        assert!(Packing::new(&int(4, ByteOrder::Little, true)).unwrap().is_identity());
        assert_eq!(pack(&int(2, ByteOrder::Big, true), &[1, 2, 3, 4]), [2, 1, 4, 3]);
        assert_eq!(
            pack(&DType::Float(FloatType::ieee(4, ByteOrder::Big).unwrap()), &[1, 2, 3, 4]),
            [4, 3, 2, 1]
        );
        let wide = int(16, ByteOrder::Big, false);
        assert_eq!(pack(&wide, &std::array::from_fn::<u8, 16, _>(|i| i as u8))[..2], [15, 14]);
    }

    #[test]
    fn partial_integers_become_their_value() {
        // 3 bytes, bits 2 to 12, signed: all set is -1.
        let t = IntegerType { size: 3, order: ByteOrder::Big, signed: true, precision: 11, offset: 2 };
        assert_eq!(pack(&DType::Integer(t.clone()), &[0xff, 0xff, 0xff]), [0xff; 4]);
        // The same bits as a bit field are not sign-extended.
        assert_eq!(pack(&DType::Bitfield(t), &[0xff, 0xff, 0xff]), [0xff, 0x07, 0, 0]);
    }

    #[test]
    fn compounds_lose_their_paddings_and_arrays_keep_their_order() {
        let point = DType::Compound {
            size: 8,
            fields: vec![
                Field { name: "a".into(), offset: 1, dtype: int(2, ByteOrder::Big, false) },
                Field { name: "b".into(), offset: 4, dtype: int(1, ByteOrder::Little, false) },
            ],
        };
        let pair = DType::Array { base: Box::new(point), dims: vec![2] };
        let stored: Vec<u8> = (0..16).collect();
        assert_eq!(pack(&pair, &stored), [2, 1, 4, 10, 9, 12]);
        let grid = DType::Array { base: Box::new(int(2, ByteOrder::Big, false)), dims: vec![2, 2] };
        assert_eq!(pack(&grid, &[0, 1, 2, 3, 4, 5, 6, 7]), [1, 0, 3, 2, 5, 4, 7, 6]);
    }

    #[test]
    fn packed_elements_become_stored_ones_again() {
        let odd = IntegerType { size: 3, order: ByteOrder::Big, signed: true, precision: 11, offset: 2 };
        let mixed = DType::Compound {
            size: 24,
            fields: vec![
                Field { name: "a".into(), offset: 1, dtype: int(2, ByteOrder::Big, false) },
                Field { name: "b".into(), offset: 4, dtype: DType::Integer(odd.clone()) },
                Field {
                    name: "c".into(),
                    offset: 8,
                    dtype: DType::Array { base: Box::new(int(4, ByteOrder::Big, true)), dims: vec![2, 2] },
                },
            ],
        };
        let packing = Packing::new(&mixed).unwrap();
        let packed: Vec<u8> =
            [&[1, 2][..], &(-3i32).to_le_bytes(), &[9; 16], &[3, 4], &1023i32.to_le_bytes(), &[7; 16]]
                .concat();
        let stored = packing.unpack(&packed).unwrap();
        assert_eq!(stored.len(), 48);
        assert_eq!(pack(&mixed, &stored), packed);
        // What lies between the members is 0.
        assert_eq!((stored[0], stored[3], stored[7]), (0, 0, 0));
        let alone = Packing::new(&DType::Integer(odd)).unwrap();
        assert!(alone.unpack(&1024i32.to_le_bytes()).is_err() && alone.unpack(&[0; 5]).is_err());
        assert_eq!(alone.unpack(&(-1024i32).to_le_bytes()).unwrap(), [0, 0x10, 0]);
    }

    #[test]
    fn odd_types_are_errors_and_empty_ones_are_empty() {
        let outside = DType::Compound {
            size: 4,
            fields: vec![Field { name: "a".into(), offset: 3, dtype: int(2, ByteOrder::Little, false) }],
        };
        assert_eq!(Packing::new(&outside).unwrap_err().kind(), ErrorKind::Corrupt);
        let string = DType::VarString {
            size: 16,
            padding: crate::dtype::StringPadding::NullTerminated,
            charset: crate::dtype::CharSet::Utf8,
        };
        assert_eq!(Packing::new(&string).unwrap_err().kind(), ErrorKind::InvalidArgument);
        // An endless array of nothing, and an array that is too large.
        let nothing = DType::Compound { size: 0, fields: vec![] };
        let array = DType::Array { base: Box::new(nothing), dims: vec![1 << 40] };
        let mut out = Vec::new();
        Packing::new(&array).unwrap().pack(&[], 5, &mut out).unwrap();
        assert!(out.is_empty());
        let large =
            DType::Array { base: Box::new(int(8, ByteOrder::Little, true)), dims: vec![1 << 62, 1 << 3] };
        assert_eq!(Packing::new(&large).unwrap_err().kind(), ErrorKind::LimitExceeded);
        assert!(Packing::new(&int(4, ByteOrder::Little, true)).unwrap().pack(&[0; 7], 2, &mut out).is_err());
    }
}
