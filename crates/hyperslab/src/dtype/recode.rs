//! From elements of one type to those of another that holds the same values, without loss: for writing to formats that
//! spell types otherwise.

use super::convert::Conversion;
use super::{DType, FloatType, IntegerType, StringPadding};
use crate::error::{Error, Result};
use crate::shape::{element_count, to_usize};
use hyperslab_kernels::canvas::Convert;

/// Types do not nest deeper.
const MAX_DEPTH: u32 = 64;

/// How elements of one fixed type become those of another with the same values: members of compounds move, numbers change
/// their byte order and size, text its padding. What could lose a value is not made.
#[derive(Clone, Debug)]
pub struct Recode {
    from: usize,
    to: usize,
    /// The bytes stay as they are.
    same: bool,
    steps: Vec<Step>,
}

/// One part of an element.
#[derive(Clone, Debug)]
struct Step {
    from: usize,
    to: usize,
    how: How,
}

#[derive(Clone, Debug)]
enum How {
    Copy(usize),
    Number(Conversion),
    /// Text of so many bytes, padded in one way, as text of so many bytes with NULs behind.
    Text(usize, StringPadding, usize),
}

impl Recode {
    /// The way from one type to another; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where a value might
    /// change or not fit.
    pub fn new(from: &DType, to: &DType) -> Result<Recode> {
        let mut steps = Vec::new();
        if from != to {
            build(from, to, (0, 0), &mut steps, 0)?;
        }
        // Bytes between the members mean nothing, and may stay.
        let stays = |step: &Step| step.from == step.to && matches!(step.how, How::Copy(_));
        let same = from == to || from.size() == to.size() && steps.iter().all(stays);
        Ok(Recode { from: from.size(), to: to.size(), same, steps })
    }

    /// Whether the bytes stay as they are.
    pub fn is_identity(&self) -> bool {
        self.same
    }

    /// Elements of the first type as those of the second.
    pub fn run(&self, elements: &[u8]) -> Result<Vec<u8>> {
        if self.same {
            return Ok(elements.to_vec());
        }
        let count = elements.len() / self.from.max(1);
        let length =
            count.checked_mul(self.to).ok_or_else(|| Error::invalid("more elements than fit into memory"))?;
        let mut out = vec![0; length];
        if let [Step { from: 0, to: 0, how: How::Number(conversion) }] = self.steps.as_slice() {
            conversion.run(elements, self.from, &mut out)?;
            return Ok(out);
        }
        for (source, target) in
            elements.chunks_exact(self.from.max(1)).zip(out.chunks_exact_mut(self.to.max(1)))
        {
            self.steps.iter().try_for_each(|step| step.run(source, target))?;
        }
        Ok(out)
    }
}

impl Step {
    fn run(&self, source: &[u8], target: &mut [u8]) -> Result<()> {
        let outside = || Error::invalid("a member lies outside of its compound");
        let source = source.get(self.from..).ok_or_else(outside)?;
        let target = target.get_mut(self.to..).ok_or_else(outside)?;
        match &self.how {
            How::Copy(n) => {
                let (to, from) = target.get_mut(..*n).zip(source.get(..*n)).ok_or_else(outside)?;
                to.copy_from_slice(from);
                Ok(())
            }
            How::Number(conversion) => {
                let to = target.get_mut(..conversion.target_size()).ok_or_else(outside)?;
                conversion.run(source, conversion.source_size(), to)
            }
            How::Text(length, padding, room) => {
                let (text, to) = source.get(..*length).zip(target.get_mut(..*room)).ok_or_else(outside)?;
                let text = trimmed(text, *padding);
                to.fill(0);
                to.get_mut(..text.len()).ok_or_else(outside)?.copy_from_slice(text);
                Ok(())
            }
        }
    }
}

/// Text without what fills its element.
fn trimmed(raw: &[u8], padding: StringPadding) -> &[u8] {
    let end = match padding {
        StringPadding::NullTerminated => raw.iter().position(|&b| b == 0).unwrap_or(raw.len()),
        StringPadding::NullPadded => raw.iter().rposition(|&b| b != 0).map_or(0, |i| i + 1),
        StringPadding::SpacePadded => raw.iter().rposition(|&b| b != b' ').map_or(0, |i| i + 1),
    };
    raw.get(..end).unwrap_or(raw)
}

/// The type of numbers that an element of this type is one of; the type itself for all others.
fn bare(dtype: &DType) -> DType {
    match dtype {
        DType::Enum { base, .. } => (**base).clone(),
        DType::Bitfield(t) => DType::Integer(IntegerType { signed: false, ..t.clone() }),
        DType::Time(t) => DType::Integer(t.clone()),
        other => other.clone(),
    }
}

fn build(from: &DType, to: &DType, at: (usize, usize), steps: &mut Vec<Step>, depth: u32) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(Error::limit("nesting of datatypes", depth.into(), MAX_DEPTH.into()));
    }
    let unfit = || Error::unsupported(format_args!("elements of {from} as {to}"));
    let how = match (from, to) {
        (DType::Compound { fields: old, .. }, DType::Compound { fields: new, .. }) => {
            if old.len() != new.len() {
                return Err(unfit());
            }
            // By name and place: a member that is called otherwise is another one.
            for (old, new) in old.iter().zip(new).filter(|(old, new)| old.name == new.name) {
                let at = (at.0.saturating_add(old.offset), at.1.saturating_add(new.offset));
                build(&old.dtype, &new.dtype, at, steps, depth + 1)?;
            }
            return if old.iter().zip(new).all(|(old, new)| old.name == new.name) {
                Ok(())
            } else {
                Err(unfit())
            };
        }
        (DType::Array { base: old, dims: a }, DType::Array { base: new, dims: b }) if a == b => {
            if Recode::new(old, new)?.same {
                How::Copy(from.size())
            } else {
                let count = to_usize(element_count(a)?)?;
                if count > 1 << 16 {
                    return Err(Error::limit("items of an array type that change", count as u128, 1 << 16));
                }
                for i in 0..count {
                    let at = (
                        at.0.saturating_add(i.saturating_mul(old.size())),
                        at.1.saturating_add(i.saturating_mul(new.size())),
                    );
                    build(old, new, at, steps, depth + 1)?;
                }
                return Ok(());
            }
        }
        (DType::Complex { base: old }, DType::Complex { base: new }) => {
            build(old, new, at, steps, depth + 1)?;
            return build(old, new, (at.0 + old.size(), at.1 + new.size()), steps, depth + 1);
        }
        (DType::String { size, padding, .. }, DType::String { size: room, padding: other, .. })
            if room >= size && *other != StringPadding::SpacePadded =>
        {
            match padding {
                // What follows the NUL is no part of the text, but no other text either.
                StringPadding::NullPadded if room == size => How::Copy(*size),
                _ => How::Text(*size, *padding, *room),
            }
        }
        // A text as its characters, for formats without texts of fixed length.
        (DType::String { size, .. }, DType::Array { base, dims })
            if matches!(**base, DType::String { size: 1, .. }) && dims.as_slice() == [*size as u64] =>
        {
            How::Copy(*size)
        }
        (DType::Opaque { size, .. }, DType::Opaque { size: other, .. }) if size == other => How::Copy(*size),
        (DType::DateTime(a), DType::DateTime(b))
            if (a.delta, a.count, a.unit) == (b.delta, b.count, b.unit) =>
        {
            let number = |order| DType::Integer(IntegerType::new(8, order, true));
            How::Number(Conversion::between(&number(a.order), &number(b.order))?)
        }
        (DType::Utf32 { length, order: a }, DType::Utf32 { length: other, order: b }) if length == other => {
            if a == b {
                How::Copy(from.size())
            } else {
                for i in 0..*length {
                    let number = |order| DType::Integer(IntegerType::new(4, order, false));
                    let how = How::Number(Conversion::between(&number(*a), &number(*b))?);
                    let step = 4usize.saturating_mul(i);
                    steps.push(Step { from: at.0.saturating_add(step), to: at.1.saturating_add(step), how });
                }
                return Ok(());
            }
        }
        _ => match (bare(from), bare(to)) {
            (a, b) if a == b && a.is_fixed() => How::Copy(a.size()),
            (DType::Integer(a), DType::Integer(b)) if integer_fits(&a, &b) => number(&a.into(), &b.into())?,
            (DType::Float(a), DType::Float(b)) if float_fits(&a, &b) => {
                number(&DType::Float(a), &DType::Float(b))?
            }
            _ => return Err(unfit()),
        },
    };
    steps.push(Step { from: at.0, to: at.1, how });
    Ok(())
}

impl From<IntegerType> for DType {
    fn from(t: IntegerType) -> DType {
        DType::Integer(t)
    }
}

fn number(from: &DType, to: &DType) -> Result<How> {
    Ok(How::Number(Conversion::between(from, to)?))
}

/// Whether every value of one integer type is one of another.
fn integer_fits(from: &IntegerType, to: &IntegerType) -> bool {
    match (from.signed, to.signed) {
        (a, b) if a == b => from.precision <= to.precision,
        (false, true) => from.precision < to.precision,
        _ => false,
    }
}

/// Whether every value of one float type is one of an IEEE type.
fn float_fits(from: &FloatType, to: &FloatType) -> bool {
    if from.is_ieee() && to.is_ieee() {
        return from.size <= to.size;
    }
    // A smaller exponent, with the numbers that have the smallest one, fits with one bit to spare.
    to.is_ieee() && from.mantissa_size <= to.mantissa_size && from.exponent_size < to.exponent_size
        || to.is_ieee() && same_but_order(from, to)
}

/// VAX order and the like: the same layout of bits.
fn same_but_order(from: &FloatType, to: &FloatType) -> bool {
    FloatType { order: to.order, ..from.clone() } == *to
}

#[cfg(test)]
mod tests;
