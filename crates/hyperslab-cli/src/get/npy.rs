//! Elements in NumPy's file format (version 1.0, or 3.0 where names need UTF-8).

use super::{Read, packing};
use crate::output::{Out, Outcome};
use crate::words;
use hyperslab::Error;
use hyperslab::dtype::DType;
use hyperslab::model::Value;
use hyperslab::shape::{element_count, to_usize};

pub(super) fn write(read: &mut Read<'_>, out: &mut Out) -> Outcome<()> {
    if read.is_null() {
        return Err(Error::unsupported("an array without any elements (null dataspace) as .npy").into());
    }
    match read.array.dtype().clone() {
        DType::VarString { .. } => strings(read, out),
        // A layout that NumPy lacks: its values, which 64 bits hold for every layout below that size.
        DType::Float(t) if !t.is_ieee() => {
            out.write(&header("'<f8'", &read.shape))?;
            let mut doubles = Vec::new();
            read.slabs(|_, raw| {
                doubles.clear();
                let values = raw.bytes.chunks_exact(t.size.max(1)).map(|element| t.value(element));
                doubles.extend(values.flat_map(f64::to_le_bytes));
                out.write(&doubles)
            })
        }
        dtype => {
            let packing = packing(read.array)?;
            let (base, dims) = match &dtype {
                DType::Array { base, dims } => (base.as_ref(), dims.clone()),
                other => (other, Vec::new()),
            };
            let shape: Vec<u64> = read.shape.iter().copied().chain(dims).collect();
            out.write(&header(&descr(base)?, &shape))?;
            let mut packed = Vec::new();
            read.slabs(|_, raw| {
                packed.clear();
                packing.pack(&raw.bytes, to_usize(element_count(&raw.shape)?)?, &mut packed)?;
                out.write(&packed)
            })
        }
    }
}

/// Variable-length strings as fixed ones of the longest length, in UTF-32 as NumPy's text is.
fn strings(read: &mut Read<'_>, out: &mut Out) -> Outcome<()> {
    let mut texts: Vec<Vec<char>> = Vec::new();
    let (mut longest, mut total, limit) = (1, 0u64, read.limit());
    read.values(|value| {
        let text: Vec<char> = match value {
            Value::Text(text) => text.chars().collect(),
            Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).chars().collect(),
            _ => Vec::new(),
        };
        longest = longest.max(text.len());
        total = total.saturating_add(4 * text.len() as u64 + 24);
        if total > limit {
            return Err(Error::limit("text of one .npy file in bytes", total.into(), limit.into()).into());
        }
        texts.push(text);
        Ok(())
    })?;
    out.write(&header(&format!("'<U{longest}'"), &read.shape))?;
    for text in texts {
        let padding = std::iter::repeat_n('\0', longest - text.len());
        let units: Vec<u8> =
            text.iter().copied().chain(padding).flat_map(|c| u32::from(c).to_le_bytes()).collect();
        out.write(&units)?;
    }
    Ok(())
}

/// Magic, version and the dictionary, padded to a multiple of 64 bytes.
pub(super) fn header(descr: &str, shape: &[u64]) -> Vec<u8> {
    let shape = words::tuple(shape);
    let dictionary = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
    let (version, length) = match dictionary.len() {
        n if n < 65_000 && dictionary.is_ascii() => (1, 2),
        _ if dictionary.is_ascii() => (2, 4),
        _ => (3, 4),
    };
    let before = 6 + 2 + length;
    let total = (before + dictionary.len() + 1).next_multiple_of(64);
    let mut out = vec![0x93];
    out.extend_from_slice(b"NUMPY");
    out.extend_from_slice(&[version, 0]);
    // The dictionary of a type that fits into memory is far below 2^32 bytes.
    out.extend_from_slice(&((total - before) as u32).to_le_bytes()[..length]);
    out.extend_from_slice(dictionary.as_bytes());
    out.resize(total - 1, b' ');
    out.push(b'\n');
    out
}

/// NumPy's description of packed elements of a type.
pub(super) fn descr(dtype: &DType) -> Outcome<String> {
    let number = |kind: char, size: usize| match size {
        0..=1 => format!("'|{kind}1'"),
        2 => format!("'<{kind}2'"),
        3..=4 => format!("'<{kind}4'"),
        5..=8 => format!("'<{kind}8'"),
        wide => format!("'|V{wide}'"),
    };
    Ok(match dtype {
        DType::Integer(t) => number(if t.signed { 'i' } else { 'u' }, t.size),
        DType::Bitfield(t) | DType::Time(t) => number('u', t.size),
        DType::Float(t) if t.is_ieee() => format!("'<f{}'", t.size),
        DType::Float(t) => format!("'|V{}'", t.size),
        DType::String { size, .. } => format!("'|S{size}'"),
        DType::Opaque { size, .. } => format!("'|V{size}'"),
        DType::Utf32 { length, .. } => format!("'<U{length}'"),
        DType::DateTime(t) => {
            let kind = if t.delta { 'm' } else { 'M' };
            let unit = match (t.unit, t.count) {
                (hyperslab::dtype::TimeUnit::Generic, _) => String::new(),
                (unit, 1) => format!("[{}]", unit.abbreviation()),
                (unit, count) => format!("[{count}{}]", unit.abbreviation()),
            };
            format!("'<{kind}8{unit}'")
        }
        DType::Enum { base, members } => match (base.as_ref(), members.as_slice()) {
            (DType::Integer(t), [no, yes])
                if t.size == 1 && no.name.as_bytes() == b"FALSE" && yes.name.as_bytes() == b"TRUE" =>
            {
                "'|b1'".into()
            }
            (base, _) => descr(base)?,
        },
        DType::Complex { base } => match base.as_ref() {
            DType::Float(t) if t.is_ieee() && t.size >= 4 => format!("'<c{}'", 2 * t.size),
            base => {
                let part = descr(base)?;
                format!("[('r', {part}), ('i', {part})]")
            }
        },
        DType::Compound { fields, .. } => {
            let fields: Vec<String> = fields.iter().map(field).collect::<Outcome<_>>()?;
            format!("[{}]", fields.join(", "))
        }
        other => {
            return Err(Error::unsupported(format!(
                "elements of type {} in a .npy file",
                words::dtype(other, 60)
            ))
            .hint("use --format json")
            .into());
        }
    })
}

/// `('name', descr)`, or `('name', descr, (3,))` for an array.
fn field(field: &hyperslab::dtype::Field) -> Outcome<String> {
    let name: String = field
        .name
        .to_string()
        .chars()
        .flat_map(|c| match c {
            '\'' | '\\' => vec!['\\', c],
            c if c.is_control() => c.escape_unicode().filter(|c| !matches!(c, '{' | '}')).collect(),
            c => vec![c],
        })
        .collect();
    // Nested arrays are one array of more axes.
    let (mut base, mut dims) = (&field.dtype, Vec::new());
    while let DType::Array { base: inner, dims: more } = base {
        dims.extend(more.iter().copied());
        base = inner;
    }
    let descr = descr(base)?;
    Ok(if dims.is_empty() {
        format!("('{name}', {descr})")
    } else {
        format!("('{name}', {descr}, {})", words::tuple(dims))
    })
}
