//! Type codes of NumPy (`<f8`, `|S3`, `<M8[10us]`), which Zarr 2 uses, and type names of Zarr 3 (`float64`).

use super::{
    ByteOrder, CharSet, DType, DateTimeType, EnumMember, FloatType, IntegerType, StringPadding, TimeUnit,
};
use crate::shape::Name;

/// No element of a NumPy type is larger.
const MAX_SIZE: usize = i32::MAX as usize;

/// The floats of Zarr 3 and its extensions that are laid out as IEEE 754 has it, with infinities and subnormal numbers.
/// Those without (`fn`, `fnuz`) are not known.
fn float_of_zarr(name: &str, order: ByteOrder) -> Option<FloatType> {
    match name {
        "float16" => FloatType::ieee(2, order),
        "float32" => FloatType::ieee(4, order),
        "float64" => FloatType::ieee(8, order),
        "bfloat16" => Some(FloatType::like_ieee(2, 8, 7, order)),
        "float8_e3m4" => Some(FloatType::like_ieee(1, 3, 4, ByteOrder::Little)),
        "float8_e4m3" => Some(FloatType::like_ieee(1, 4, 3, ByteOrder::Little)),
        "float8_e5m2" => Some(FloatType::like_ieee(1, 5, 2, ByteOrder::Little)),
        _ => None,
    }
}

fn complex(size: usize, order: ByteOrder) -> Option<DType> {
    Some(DType::Complex { base: Box::new(DType::Float(FloatType::ieee(size, order)?)) })
}

impl DType {
    /// One byte that is 0 for `FALSE` and 1 for `TRUE`.
    pub fn bool() -> DType {
        let member = |name: &str, value: u8| EnumMember { name: Name::from(name), value: vec![value] };
        DType::Enum {
            base: Box::new(DType::Integer(IntegerType::new(1, ByteOrder::Little, true))),
            members: vec![member("FALSE", 0), member("TRUE", 1)],
        }
    }

    /// Whether it is an enumeration in one byte of `FALSE` and `TRUE`.
    pub fn is_bool(&self) -> bool {
        *self == DType::bool()
    }

    /// The type of a NumPy code; `None` for codes that are not known, and for `O`, whose elements are objects.
    pub fn from_numpy(code: &str) -> Option<DType> {
        let (order, rest) = match code.as_bytes().first()? {
            b'<' | b'|' | b'=' => (ByteOrder::Little, &code[1..]),
            b'>' => (ByteOrder::Big, &code[1..]),
            _ => (ByteOrder::Little, code),
        };
        let mut kind = rest.chars();
        let (kind, rest) = (kind.next()?, kind.as_str());
        if matches!(kind, 'M' | 'm') {
            let (count, unit) = match rest.strip_prefix('8')? {
                "" => (1, TimeUnit::Generic),
                unit => {
                    let unit = unit.strip_prefix('[')?.strip_suffix(']')?;
                    let digits = unit.trim_end_matches(|c: char| !c.is_ascii_digit());
                    let count = if digits.is_empty() { 1 } else { digits.parse().ok().filter(|&n| n > 0)? };
                    (count, TimeUnit::parse(&unit[digits.len()..])?)
                }
            };
            return Some(DType::DateTime(DateTimeType { order, delta: kind == 'm', count, unit }));
        }
        let size: usize = rest.parse().ok().filter(|&n| n <= MAX_SIZE)?;
        let order = if size <= 1 { ByteOrder::Little } else { order };
        match (kind, size) {
            ('b', 1) => Some(DType::bool()),
            ('i' | 'u', 1 | 2 | 4 | 8) => Some(DType::Integer(IntegerType::new(size, order, kind == 'i'))),
            ('f', _) => FloatType::ieee(size, order).map(DType::Float),
            ('c', 8 | 16) => complex(size / 2, order),
            ('S' | 'a', _) => {
                Some(DType::String { size, padding: StringPadding::NullPadded, charset: CharSet::Ascii })
            }
            ('U', _) if size <= MAX_SIZE / 4 => Some(DType::Utf32 { length: size, order: order_of(code) }),
            ('V', _) => Some(DType::Opaque { size, tag: Name::default() }),
            _ => None,
        }
    }

    /// The type of a plain name of Zarr 3 in this byte order: `bool`, `int16`, `float32`, `complex64`, `r24`.
    pub fn from_zarr(name: &str, order: ByteOrder) -> Option<DType> {
        if let Some(bits) = name.strip_prefix('r').and_then(|bits| bits.parse::<usize>().ok()) {
            let size = (bits % 8 == 0).then_some(bits / 8).filter(|&n| n <= MAX_SIZE)?;
            return Some(DType::Opaque { size, tag: Name::default() });
        }
        let integer = |size: usize, signed| {
            let order = if size == 1 { ByteOrder::Little } else { order };
            Some(DType::Integer(IntegerType::new(size, order, signed)))
        };
        match name {
            "bool" => Some(DType::bool()),
            "int8" => integer(1, true),
            "int16" => integer(2, true),
            "int32" => integer(4, true),
            "int64" => integer(8, true),
            "uint8" => integer(1, false),
            "uint16" => integer(2, false),
            "uint32" => integer(4, false),
            "uint64" => integer(8, false),
            "complex32" => complex(2, order),
            "complex64" => complex(4, order),
            "complex128" => complex(8, order),
            _ => match name.strip_prefix("complex_") {
                Some(part) => {
                    Some(DType::Complex { base: Box::new(DType::Float(float_of_zarr(part, order)?)) })
                }
                None => float_of_zarr(name, order).map(DType::Float),
            },
        }
    }

    /// Whether one element is a number that has a byte order. Texts of UTF-32 and structures are none, whatever they are
    /// made of: Zarr 3 is written with these without a word about it.
    pub fn has_order(&self) -> bool {
        let other = |order| self.with_order(order) != *self;
        !matches!(self, DType::Compound { .. } | DType::Utf32 { .. })
            && (other(ByteOrder::Little) || other(ByteOrder::Big))
    }

    /// The same type with all its numbers in this byte order.
    pub fn with_order(&self, order: ByteOrder) -> DType {
        let base = |base: &DType| Box::new(base.with_order(order));
        match self {
            DType::Integer(t) if t.size > 1 => DType::Integer(IntegerType { order, ..t.clone() }),
            DType::Float(t) if t.size > 1 => DType::Float(FloatType { order, ..t.clone() }),
            DType::DateTime(t) => DType::DateTime(DateTimeType { order, ..t.clone() }),
            DType::Utf32 { length, .. } => DType::Utf32 { length: *length, order },
            DType::Complex { base: b } => DType::Complex { base: base(b) },
            DType::Array { base: b, dims } => DType::Array { base: base(b), dims: dims.clone() },
            DType::Compound { size, fields } => DType::Compound {
                size: *size,
                fields: fields
                    .iter()
                    .map(|f| super::Field {
                        name: f.name.clone(),
                        offset: f.offset,
                        dtype: f.dtype.with_order(order),
                    })
                    .collect(),
            },
            other => other.clone(),
        }
    }
}

fn order_of(code: &str) -> ByteOrder {
    if code.starts_with('>') { ByteOrder::Big } else { ByteOrder::Little }
}

impl TimeUnit {
    /// The unit of NumPy's abbreviation.
    pub fn parse(text: &str) -> Option<TimeUnit> {
        TimeUnit::ALL.into_iter().find(|unit| unit.abbreviation() == text)
    }

    const ALL: [TimeUnit; 14] = [
        TimeUnit::Generic,
        TimeUnit::Year,
        TimeUnit::Month,
        TimeUnit::Week,
        TimeUnit::Day,
        TimeUnit::Hour,
        TimeUnit::Minute,
        TimeUnit::Second,
        TimeUnit::Milli,
        TimeUnit::Micro,
        TimeUnit::Nano,
        TimeUnit::Pico,
        TimeUnit::Femto,
        TimeUnit::Atto,
    ];

    /// NumPy's abbreviation: `ms`.
    pub fn abbreviation(self) -> &'static str {
        match self {
            TimeUnit::Generic => "generic",
            TimeUnit::Year => "Y",
            TimeUnit::Month => "M",
            TimeUnit::Week => "W",
            TimeUnit::Day => "D",
            TimeUnit::Hour => "h",
            TimeUnit::Minute => "m",
            TimeUnit::Second => "s",
            TimeUnit::Milli => "ms",
            TimeUnit::Micro => "us",
            TimeUnit::Nano => "ns",
            TimeUnit::Pico => "ps",
            TimeUnit::Femto => "fs",
            TimeUnit::Atto => "as",
        }
    }

    /// Units in a second, and seconds in a unit; one of them is 1. `None` for what has no fixed length.
    fn seconds(self) -> Option<(i128, i128)> {
        let part = |digits: u32| Some((10i128.pow(digits), 1));
        match self {
            TimeUnit::Generic | TimeUnit::Year | TimeUnit::Month => None,
            TimeUnit::Week => Some((1, 7 * 86_400)),
            TimeUnit::Day => Some((1, 86_400)),
            TimeUnit::Hour => Some((1, 3600)),
            TimeUnit::Minute => Some((1, 60)),
            TimeUnit::Second => Some((1, 1)),
            TimeUnit::Milli => part(3),
            TimeUnit::Micro => part(6),
            TimeUnit::Nano => part(9),
            TimeUnit::Pico => part(12),
            TimeUnit::Femto => part(15),
            TimeUnit::Atto => part(18),
        }
    }
}

impl DateTimeType {
    /// The value of a stored element in units of `count` times the unit; `None` for "not a time".
    pub fn value(&self, stored: &[u8]) -> Option<i64> {
        let bytes: [u8; 8] = stored.first_chunk().copied()?;
        let value =
            if self.order == ByteOrder::Big { i64::from_be_bytes(bytes) } else { i64::from_le_bytes(bytes) };
        (value != i64::MIN).then_some(value)
    }

    /// A stored date and time as ISO 8601 writes it, as far as the unit tells; `None` where there is no such text: for
    /// "not a time", for differences, and for units without meaning.
    pub fn text(&self, stored: &[u8]) -> Option<String> {
        if self.delta {
            return None;
        }
        let value = i128::from(self.value(stored)?) * i128::from(self.count);
        match self.unit {
            TimeUnit::Generic => None,
            TimeUnit::Year => Some(format!("{:04}", value + 1970)),
            TimeUnit::Month => {
                Some(format!("{:04}-{:02}", value.div_euclid(12) + 1970, value.rem_euclid(12) + 1))
            }
            unit => {
                let (parts, seconds) = unit.seconds()?;
                let whole = value.div_euclid(parts) * seconds;
                let fraction = value.rem_euclid(parts);
                let (year, month, day) = civil(whole.div_euclid(86_400));
                let of_day = whole.rem_euclid(86_400);
                let mut text = format!("{year:04}-{month:02}-{day:02}");
                if !matches!(unit, TimeUnit::Week | TimeUnit::Day) {
                    text.push_str(&format!("T{:02}", of_day / 3600));
                    if unit != TimeUnit::Hour {
                        text.push_str(&format!(":{:02}", of_day / 60 % 60));
                    }
                    if !matches!(unit, TimeUnit::Hour | TimeUnit::Minute) {
                        text.push_str(&format!(":{:02}", of_day % 60));
                    }
                    if parts > 1 {
                        let digits = parts.ilog10() as usize;
                        text.push_str(&format!(".{fraction:0digits$}"));
                    }
                }
                Some(text)
            }
        }
    }
}

/// Year, month and day of the Gregorian calendar, extended both ways, of a day counted from 1970-01-01.
fn civil(day: i128) -> (i128, i128, i128) {
    // Years that begin in March, in eras of 400 years.
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i128::from(month <= 2), month, date)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(code: &str, value: i64) -> String {
        match DType::from_numpy(code) {
            Some(DType::DateTime(t)) => t.text(&value.to_le_bytes()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn codes_are_types() {
        let name = |code: &str| DType::from_numpy(code).map(|t| t.to_string());
        for (code, wanted) in [
            ("<i4", "i32le"),
            (">f8", "f64be"),
            ("|u1", "u8"),
            (">i1", "i8"),
            ("|b1", "enum<i8>{\"FALSE\"=0,\"TRUE\"=1}"),
            ("<c8", "complex<f32le>"),
            ("|S3", "str3:ascii:nullpad"),
            ("<U7", "ucs4:7le"),
            (">U1", "ucs4:1be"),
            ("|V5", "opaque5:\"\""),
            ("<M8[10us]", "datetime64[10us]le"),
            (">m8[s]", "timedelta64[s]be"),
        ] {
            assert_eq!(name(code).as_deref(), Some(wanted), "{code}");
        }
        for code in ["", "|O", "<i3", "<f16", "<M8[x]", "<M8[0s]", "<U99999999999", "é4", "<"] {
            assert_eq!(name(code), None, "{code}");
        }
        assert_eq!(DType::from_zarr("r16", ByteOrder::Little).map(|t| t.size()), Some(2));
        assert_eq!(DType::from_zarr("int32", ByteOrder::Big), DType::from_numpy(">i4"));
    }

    #[test]
    fn times_are_dates() {
        assert_eq!(text("<M8[D]", 0), "1970-01-01");
        assert_eq!(text("<M8[D]", -1), "1969-12-31");
        assert_eq!(text("<M8[D]", 11_016), "2000-02-29");
        assert_eq!(text("<M8[ms]", 1_700_000_000_123), "2023-11-14T22:13:20.123");
        assert_eq!(text("<M8[10us]", -1), "1969-12-31T23:59:59.999990");
        assert_eq!(text("<M8[M]", -1), "1969-12");
        assert_eq!(text("<M8[Y]", 30), "2000");
        assert_eq!(text("<M8[h]", 25), "1970-01-02T01");
        assert!(text("<M8[W]", i64::MAX).starts_with("1767"));
    }
}
