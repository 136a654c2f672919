//! The atomic types of netCDF: their numbers, names in CDL, elements, and what stands for those never written. All forms
//! of netCDF share them.

use super::{ByteOrder, CharSet, DType, FloatType, IntegerType, StringPadding};

/// An atomic type of netCDF but `string`, which only netCDF-4 has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetcdfType {
    /// 8-bit signed integer.
    Byte,
    /// A byte of text.
    Char,
    /// 16-bit signed integer.
    Short,
    /// 32-bit signed integer.
    Int,
    /// IEEE binary32.
    Float,
    /// IEEE binary64.
    Double,
    /// 8-bit unsigned integer.
    UByte,
    /// 16-bit unsigned integer.
    UShort,
    /// 32-bit unsigned integer.
    UInt,
    /// 64-bit signed integer.
    Int64,
    /// 64-bit unsigned integer.
    UInt64,
}

use NetcdfType::*;

/// All of them, by their number (`nc_type`) less one, with their names and their default fill values in big-endian order.
const TABLE: [(NetcdfType, &str, &[u8]); 11] = [
    (Byte, "byte", &[0x81]),
    (Char, "char", &[0]),
    (Short, "short", &[0x80, 0x01]),
    (Int, "int", &[0x80, 0, 0, 0x01]),
    (Float, "float", &[0x7c, 0xf0, 0, 0]),
    (Double, "double", &[0x47, 0x9e, 0, 0, 0, 0, 0, 0]),
    (UByte, "ubyte", &[0xff]),
    (UShort, "ushort", &[0xff; 2]),
    (UInt, "uint", &[0xff; 4]),
    (Int64, "int64", &[0x80, 0, 0, 0, 0, 0, 0, 0x02]),
    (UInt64, "uint64", &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]),
];

impl NetcdfType {
    /// The type with this number; 7 to 11 belong to CDF-5, and are taken in other files too, as netCDF-C does.
    pub fn of(number: u32) -> Option<NetcdfType> {
        TABLE.get(usize::try_from(number.checked_sub(1)?).ok()?).map(|row| row.0)
    }

    /// The type of integers of so many bits, rounded up.
    pub fn of_integer(bits: u32, signed: bool) -> Option<NetcdfType> {
        Some(match (bits, signed) {
            (0..=8, true) => Byte,
            (0..=8, false) => UByte,
            (9..=16, true) => Short,
            (9..=16, false) => UShort,
            (17..=32, true) => Int,
            (17..=32, false) => UInt,
            (33..=64, true) => Int64,
            (33..=64, false) => UInt64,
            _ => return None,
        })
    }

    fn row(self) -> &'static (NetcdfType, &'static str, &'static [u8]) {
        // The table is in the order of the variants.
        const FIRST: &(NetcdfType, &str, &[u8]) = &TABLE[0];
        TABLE.get(self as usize).unwrap_or(FIRST)
    }

    /// Its name in CDL.
    pub fn word(self) -> &'static str {
        self.row().1
    }

    /// What stands for elements that were never written, where no attribute says otherwise: one element, big-endian.
    pub fn fill(self) -> &'static [u8] {
        self.row().2
    }

    /// Bytes of a value.
    pub fn size(self) -> usize {
        self.fill().len()
    }

    /// The type of one element as netCDF-3 stores it. Text is one byte of it at a time.
    pub fn dtype(self) -> DType {
        let integer = |signed| {
            let order = if self.size() == 1 { ByteOrder::Little } else { ByteOrder::Big };
            DType::Integer(IntegerType::new(self.size(), order, signed))
        };
        match self {
            Char => DType::String { size: 1, padding: StringPadding::NullPadded, charset: CharSet::Utf8 },
            Float | Double => match FloatType::ieee(self.size(), ByteOrder::Big) {
                Some(t) => DType::Float(t),
                None => integer(false),
            },
            Byte | Short | Int | Int64 => integer(true),
            UByte | UShort | UInt | UInt64 => integer(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_numbers() {
        for (number, (kind, word, fill)) in (1..).zip(TABLE) {
            assert_eq!(NetcdfType::of(number), Some(kind));
            assert_eq!((kind.word(), kind.fill()), (word, fill));
            assert_eq!(kind.dtype().size(), kind.size(), "{word}");
        }
        assert_eq!((NetcdfType::of(0), NetcdfType::of(12)), (None, None));
    }
}
