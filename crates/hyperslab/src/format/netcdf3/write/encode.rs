//! A header as bytes, and what each version has room for.

use crate::error::{Error, Result};
use crate::format::netcdf3::header::{Attribute, Header, Type, Version};
use crate::shape::byte_count;

/// Length of what follows the records of a header, padded.
fn padded(n: u64) -> u64 {
    n.saturating_add(3) / 4 * 4
}

impl Type {
    /// Its number, `nc_type`.
    pub(super) fn number(self) -> u32 {
        use Type::*;
        match self {
            Byte => 1,
            Char => 2,
            Short => 3,
            Int => 4,
            Float => 5,
            Double => 6,
            UByte => 7,
            UShort => 8,
            UInt => 9,
            Int64 => 10,
            UInt64 => 11,
        }
    }

    /// Its name in CDL.
    pub(super) fn name(self) -> &'static str {
        use Type::*;
        match self {
            Byte => "byte",
            Char => "char",
            Short => "short",
            Int => "int",
            Float => "float",
            Double => "double",
            UByte => "ubyte",
            UShort => "ushort",
            UInt => "uint",
            Int64 => "int64",
            UInt64 => "uint64",
        }
    }

    /// Whether files of a version may have it.
    pub(super) fn is_in(self, version: Version) -> bool {
        version == Version::Data64 || self.number() <= 6
    }
}

struct Writer {
    out: Vec<u8>,
    version: Version,
}

impl Writer {
    fn u32(&mut self, n: u32) {
        self.out.extend(n.to_be_bytes());
    }

    /// A count or a length. Those that do not fit were refused before.
    fn count(&mut self, n: u64) {
        match self.version {
            Version::Data64 => self.out.extend(n.to_be_bytes()),
            _ => self.u32(u32::try_from(n).unwrap_or(u32::MAX)),
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend(bytes);
        self.out.resize(self.out.len().next_multiple_of(4), 0);
    }

    fn name(&mut self, name: &[u8]) {
        self.count(name.len() as u64);
        self.bytes(name);
    }

    fn list(&mut self, tag: u32, count: usize) {
        self.u32(if count == 0 { 0 } else { tag });
        self.count(count as u64);
    }

    fn attributes(&mut self, list: &[Attribute]) {
        self.list(0x0c, list.len());
        for attribute in list {
            self.name(attribute.name.as_bytes());
            self.u32(attribute.kind.number());
            self.count(attribute.count);
            self.bytes(&attribute.data);
        }
    }
}

/// The bytes of a header.
pub(super) fn encode(header: &Header) -> Vec<u8> {
    let mut w = Writer { out: b"CDF".to_vec(), version: header.version };
    w.out.push(header.version.number() as u8);
    w.count(header.records.unwrap_or(0));
    w.list(0x0a, header.dimensions.len());
    for dimension in &header.dimensions {
        w.name(dimension.name.as_bytes());
        w.count(dimension.length);
    }
    w.attributes(&header.attributes);
    w.list(0x0b, header.variables.len());
    for variable in &header.variables {
        w.name(variable.name.as_bytes());
        w.count(variable.dimensions.len() as u64);
        for &dimension in &variable.dimensions {
            w.count(dimension);
        }
        w.attributes(&variable.attributes);
        w.u32(variable.kind.map_or_else(|number| number, Type::number));
        w.count(variable.size);
        match header.version {
            Version::Classic => w.u32(u32::try_from(variable.begin).unwrap_or(u32::MAX)),
            _ => w.out.extend(variable.begin.to_be_bytes()),
        }
    }
    w.out
}

/// Extents of a variable without the record dimension, and whether it has that.
pub(super) fn extents(header: &Header, dimensions: &[u64]) -> (Vec<u64>, bool) {
    let length = |&n: &u64| {
        usize::try_from(n).ok().and_then(|n| header.dimensions.get(n)).map_or(0, |dimension| dimension.length)
    };
    let lengths: Vec<u64> = dimensions.iter().map(length).collect();
    match lengths.split_first() {
        Some((0, rest)) => (rest.to_vec(), true),
        _ => (lengths, false),
    }
}

/// Gives every variable its place: those of fixed length one after the other, then the records. `room` bytes are left
/// behind the header.
///
/// Fails with [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the version has no numbers for it.
pub(super) fn place(header: &mut Header, room: u64) -> Result<()> {
    // Sizes of the header do not depend on the places.
    let start = padded((encode(header).len() as u64).saturating_add(room));
    let most = match header.version {
        Version::Classic => i32::MAX as u64,
        _ => i64::MAX as u64,
    };
    let (largest, unit) = match header.version {
        Version::Classic => (i32::MAX as u64 - 3, "2 GiB"),
        Version::Offset64 => (u64::from(u32::MAX) - 3, "4 GiB"),
        Version::Data64 => (i64::MAX as u64 - 3, "8 EiB"),
    };
    let version = header.version.number();
    let refused = |what: String| {
        Err(Error::unsupported(format!("{what} in CDF-{version}")).hint(match header.version {
            Version::Classic => "CDF-2 has offsets of 64 bits, CDF-5 sizes too",
            _ => "CDF-5 has sizes of 64 bits",
        }))
    };
    if header.records.is_some_and(|n| n > if version == 5 { i64::MAX as u64 } else { i32::MAX as u64 }) {
        return refused(format!("{} records", header.records.unwrap_or(0)));
    }
    let mut parts = Vec::with_capacity(header.variables.len());
    for variable in &header.variables {
        let (extents, is_record) = extents(header, &variable.dimensions);
        let size = variable.kind.map_or(1, Type::size);
        parts.push((byte_count(&extents, size)?, is_record));
    }
    let records = parts.iter().filter(|(_, is_record)| *is_record).count();
    let mut at = start;
    let mut places = vec![(0, 0); parts.len()];
    for of_records in [false, true] {
        let last = parts.iter().rposition(|(_, is_record)| *is_record == of_records);
        for (i, ((length, is_record), place)) in parts.iter().zip(&mut places).enumerate() {
            if *is_record != of_records {
                continue;
            }
            let name = || header.variables.get(i).map(|v| v.name.to_string()).unwrap_or_default();
            // The last one is not followed by any whose place depends on its size.
            let may_be_larger = last == Some(i) && (of_records || records == 0);
            if *length > largest && !may_be_larger {
                return refused(format!("variable {} of more than {unit}, which is not the last", name()));
            }
            if at > most {
                return refused(format!("variable {}, which begins at {at:#x}", name()));
            }
            *place = (at, padded(*length));
            let alone = of_records && records == 1;
            let step = if alone { *length } else { padded(*length) };
            at = match at.checked_add(step).filter(|&at| at <= i64::MAX as u64) {
                Some(at) => at,
                None => return refused(format!("variable {} of {length} bytes", name())),
            };
        }
    }
    for (variable, (begin, size)) in header.variables.iter_mut().zip(places) {
        // What does not fit says so, and is worked out from the extents by readers.
        let most = if version == 5 { u64::MAX } else { u64::from(u32::MAX) };
        (variable.begin, variable.size) = (begin, size.min(most));
    }
    header.length = encode(header).len() as u64;
    Ok(())
}
