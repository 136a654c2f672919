//! From types to the codes of NumPy and the names of Zarr 3: the way back of [`code`](super::code).

use super::{ByteOrder, DType, FloatType, IntegerType};

fn prefix(order: ByteOrder, size: usize) -> Option<char> {
    match order {
        _ if size <= 1 => Some('|'),
        ByteOrder::Little => Some('<'),
        ByteOrder::Big => Some('>'),
        ByteOrder::Vax => None,
    }
}

fn is_plain(t: &IntegerType) -> bool {
    t.is_whole() && matches!(t.size, 1 | 2 | 4 | 8) && (t.order != ByteOrder::Vax || t.size == 1)
}

impl DType {
    /// NumPy's code of this very type (`<f8`); `None` for types that have none. Paddings and character sets of text, and
    /// tags of opaque types, are not in it.
    pub fn to_numpy(&self) -> Option<String> {
        let number = |order, size: usize, kind: char| Some(format!("{}{kind}{size}", prefix(order, size)?));
        match self {
            dtype if dtype.is_bool() => Some("|b1".into()),
            DType::Integer(t) if is_plain(t) => number(t.order, t.size, if t.signed { 'i' } else { 'u' }),
            DType::Float(t) if t.is_ieee() => number(t.order, t.size, 'f'),
            DType::Complex { base } => match &**base {
                DType::Float(t) if t.is_ieee() && t.size >= 4 => number(t.order, 2 * t.size, 'c'),
                _ => None,
            },
            DType::String { size, .. } => Some(format!("|S{size}")),
            DType::Opaque { size, .. } => Some(format!("|V{size}")),
            DType::Utf32 { length, order } => Some(format!("{}U{length}", prefix(*order, 4)?)),
            DType::DateTime(t) => {
                let kind = if t.delta { 'm' } else { 'M' };
                let count = if t.count == 1 { String::new() } else { t.count.to_string() };
                let unit = match t.unit {
                    super::TimeUnit::Generic => String::new(),
                    unit => format!("[{count}{}]", unit.abbreviation()),
                };
                Some(format!("{}{kind}8{unit}", prefix(t.order, 8)?))
            }
            _ => None,
        }
    }

    /// The plain name in Zarr 3 of this type in either byte order (`float64`); `None` for types that have none.
    pub fn to_zarr(&self) -> Option<String> {
        match self {
            dtype if dtype.is_bool() => Some("bool".into()),
            DType::Integer(t) if is_plain(t) => {
                Some(format!("{}int{}", if t.signed { "" } else { "u" }, 8 * t.size))
            }
            DType::Float(t) if t.is_ieee() => Some(format!("float{}", 8 * t.size)),
            DType::Complex { base } => match &**base {
                DType::Float(t) if t.is_ieee() && t.size >= 4 => Some(format!("complex{}", 16 * t.size)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The byte order of the first part of an element that has one.
    pub fn order(&self) -> Option<ByteOrder> {
        match self {
            DType::Integer(IntegerType { size, order, .. }) | DType::Float(FloatType { size, order, .. }) => {
                (*size > 1).then_some(*order)
            }
            DType::Bitfield(t) | DType::Time(t) => (t.size > 1).then_some(t.order),
            DType::Utf32 { order, .. } => Some(*order),
            DType::DateTime(t) => Some(t.order),
            DType::Complex { base } | DType::Array { base, .. } | DType::Enum { base, .. } => base.order(),
            DType::Compound { fields, .. } => fields.iter().find_map(|f| f.dtype.order()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_come_back() {
        for code in [
            "|b1",
            "|i1",
            "|u1",
            "<i2",
            ">u4",
            "<f2",
            ">f8",
            "<c8",
            ">c16",
            "|S3",
            "|V5",
            "<U7",
            ">U1",
            "<M8[10us]",
            ">m8[s]",
            "<M8",
        ] {
            assert_eq!(DType::from_numpy(code).unwrap().to_numpy().as_deref(), Some(code), "{code}");
        }
        for name in ["bool", "int8", "uint64", "float16", "complex128"] {
            let dtype = DType::from_zarr(name, ByteOrder::Big).unwrap();
            assert_eq!(dtype.to_zarr().as_deref(), Some(name), "{name}");
        }
        assert_eq!(DType::from_numpy("|S3").unwrap().to_zarr(), None);
        assert_eq!(DType::from_numpy(">i2").unwrap().order(), Some(ByteOrder::Big));
        assert_eq!(DType::from_numpy("|i1").unwrap().order(), None);
    }
}
