//! The header: a pure function of bytes.
//!
//! ```text
//! header   = magic numrecs dimensions attributes variables
//! list     = zero zero | tag count entry*
//! dimension = name length                                  length 0: the record dimension
//! attribute = name type count value* padding
//! variable  = name count dimension-number* attributes type size begin
//! ```
//!
//! All numbers are big-endian. Counts and lengths have four bytes, eight in CDF-5; offsets four in CDF-1, else eight.
//! Names and values are padded to four bytes.

use crate::dtype::{CharSet, DType, StringPadding};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{Budget, Limits};
use crate::shape::{Name, to_usize};
use bytes::Bytes;
use std::borrow::Cow;

const HEADER: &str = "netCDF header";

/// What an entry costs in memory beyond its bytes in the file, roughly.
const ENTRY: u64 = 96;

/// The variants of the format, by the fourth byte of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 1: 32-bit offsets.
    Classic,
    /// 2: 64-bit offsets.
    Offset64,
    /// 5: 64-bit offsets, sizes and counts.
    Data64,
}

impl Version {
    /// The version of a file that starts with `head`; `None` for any other file.
    pub fn find(head: &[u8]) -> Option<Version> {
        match head {
            [b'C', b'D', b'F', 1, ..] => Some(Version::Classic),
            [b'C', b'D', b'F', 2, ..] => Some(Version::Offset64),
            [b'C', b'D', b'F', 5, ..] => Some(Version::Data64),
            _ => None,
        }
    }

    /// Its number.
    pub fn number(self) -> u32 {
        match self {
            Version::Classic => 1,
            Version::Offset64 => 2,
            Version::Data64 => 5,
        }
    }
}

/// External types, `nc_type` in the specification.
pub use crate::dtype::NetcdfType as Type;

/// Text in `size` bytes.
pub fn text(size: usize) -> DType {
    DType::String { size, padding: StringPadding::NullPadded, charset: CharSet::Utf8 }
}

/// A dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Its name.
    pub name: Name,
    /// Its length; 0 for the record dimension.
    pub length: u64,
}

/// An attribute.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Its name.
    pub name: Name,
    /// Type of its values.
    pub kind: Type,
    /// Number of values.
    pub count: u64,
    /// The values as stored, without padding.
    pub data: Bytes,
}

/// A variable as the header tells of it.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name.
    pub name: Name,
    /// Numbers of its dimensions.
    pub dimensions: Vec<u64>,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
    /// Type of its elements; the number where it is none.
    pub kind: Result<Type, u32>,
    /// Bytes that it takes, or one record of it. Redundant, often wrong, and not used where it can be worked out.
    pub size: u64,
    /// Offset of its first byte.
    pub begin: u64,
    /// Offset of its entry in the header, which is its identity.
    pub at: u64,
}

/// A parsed header.
#[derive(Debug)]
pub struct Header {
    /// The variant.
    pub version: Version,
    /// Number of records; `None` in a file that was streamed, where its length tells.
    pub records: Option<u64>,
    /// Dimensions, by number.
    pub dimensions: Vec<Dimension>,
    /// Attributes of the file.
    pub attributes: Vec<Attribute>,
    /// Variables in the order of definition.
    pub variables: Vec<Variable>,
    /// The file ends in the list of variables, after those above.
    pub cut: Option<Error>,
    /// Padding that is not zero, by the name of what it follows. Harmless.
    pub odd_padding: Vec<(String, u64)>,
    /// Bytes of the header.
    pub length: u64,
}

impl Header {
    /// Parses the header at the start of `bytes`.
    ///
    /// Errors: [`ErrorKind::Truncated`] if `bytes` ends in it; where they are all the file has (`whole`) and it is
    /// the list of variables that ends early, what was read is given, with the error in [`Header::cut`].
    pub fn parse(bytes: &Bytes, whole: bool, limits: &Limits) -> Result<Header> {
        let Some(version) = Version::find(bytes) else {
            return Err(Error::corrupt(HEADER, 0, "no CDF signature"));
        };
        let budget = Budget::new("netCDF header in memory", limits.metadata);
        let mut r = Reader { bytes, position: 4, version, budget, odd_padding: Vec::new() };
        let (records, streaming) = match version {
            Version::Data64 => (r.u64()?, u64::MAX),
            _ => (u64::from(r.u32()?), u64::from(u32::MAX)),
        };
        let records = (records != streaming).then_some(records);
        let mut dimensions = Vec::new();
        r.list(0x0a, "dimensions", |r| {
            dimensions.push(r.dimension()?);
            Ok(())
        })?;
        let attributes = r.attributes()?;
        let mut variables = Vec::new();
        let done = r.list(0x0b, "variables", |r| {
            variables.push(r.variable()?);
            Ok(())
        });
        let cut = match done {
            Err(e) if whole && e.kind() == ErrorKind::Truncated => Some(e),
            Err(e) => return Err(e),
            Ok(()) => None,
        };
        let length = r.position as u64;
        let odd_padding = r.odd_padding;
        Ok(Header { version, records, dimensions, attributes, variables, cut, odd_padding, length })
    }
}

/// A cursor over the bytes of the header, which start at offset 0 of the file.
struct Reader<'a> {
    bytes: &'a Bytes,
    position: usize,
    version: Version,
    budget: Budget,
    odd_padding: Vec<(String, u64)>,
}

impl Reader<'_> {
    #[cold]
    fn corrupt(&self, message: impl Into<Cow<'static, str>>) -> Error {
        Error::corrupt(HEADER, self.position as u64, message)
    }

    fn take(&mut self, n: u64) -> Result<Bytes> {
        let left = self.bytes.len() - self.position;
        match to_usize(n) {
            Ok(n) if n <= left => {
                let part = self.bytes.slice(self.position..self.position + n);
                self.position += n;
                Ok(part)
            }
            _ => Err(Error::new(ErrorKind::Truncated, format!("{n} bytes wanted, {left} left"))
                .at(HEADER, self.position as u64)),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(&self.take(N as u64)?);
        Ok(out)
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// A count, length or number: signed in the file, never negative.
    fn count(&mut self) -> Result<u64> {
        let here = self.position as u64;
        let (n, most) = match self.version {
            Version::Data64 => (self.u64()?, i64::MAX as u64),
            // Some writers go beyond 2^31 - 1.
            _ => (u64::from(self.u32()?), u64::from(u32::MAX)),
        };
        if n > most {
            return Err(Error::corrupt(HEADER, here, format!("the negative count {}", n as i64)));
        }
        Ok(n)
    }

    /// Passes over the padding after `length` bytes.
    fn pad(&mut self, length: u64, what: impl Fn() -> String) -> Result<()> {
        let here = self.position as u64;
        let padding = self.take((4 - length % 4) % 4)?;
        if padding.iter().any(|&b| b != 0) && self.odd_padding.len() < 100 {
            self.odd_padding.push((what(), here));
        }
        Ok(())
    }

    fn name(&mut self) -> Result<Name> {
        let length = self.count()?;
        let name = self.take(length)?;
        // Some writers count a NUL that ends the name.
        let name = Name::from(name.split(|&b| b == 0).next().unwrap_or(&name));
        self.pad(length, || format!("name {name}"))?;
        self.budget.charge(length.saturating_add(ENTRY))?;
        Ok(name)
    }

    /// A list of entries with the given tag.
    fn list(&mut self, tag: u32, what: &str, mut entry: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let here = self.position as u64;
        let found = self.u32()?;
        let count = self.count()?;
        match (found, count) {
            (0, 0) => return Ok(()),
            (found, _) if found != tag => {
                let text = format!("list of {what}: tag {tag:#x} expected, {found:#x} found");
                return Err(Error::corrupt(HEADER, here, text));
            }
            _ => {}
        }
        // No entry takes less than a name's length.
        (0..count).try_for_each(|_| entry(self))
    }

    fn dimension(&mut self) -> Result<Dimension> {
        Ok(Dimension { name: self.name()?, length: self.count()? })
    }

    fn attributes(&mut self) -> Result<Vec<Attribute>> {
        let mut attributes = Vec::new();
        self.list(0x0c, "attributes", |r| {
            let name = r.name()?;
            let number = r.u32()?;
            // Without its size there is no way to the next entry.
            let kind = Type::of(number)
                .ok_or_else(|| r.corrupt(format!("attribute {name}: type {number} does not exist")))?;
            let count = r.count()?;
            let length = count
                .checked_mul(kind.size() as u64)
                .ok_or_else(|| r.corrupt(format!("attribute {name}: {count} values")))?;
            let data = r.take(length)?;
            r.pad(length, || format!("attribute {name}"))?;
            attributes.push(Attribute { name, kind, count, data });
            Ok(())
        })?;
        Ok(attributes)
    }

    fn variable(&mut self) -> Result<Variable> {
        let at = self.position as u64;
        let name = self.name()?;
        let rank = self.count()?;
        let mut dimensions = Vec::new();
        for _ in 0..rank {
            dimensions.push(self.count()?);
        }
        self.budget.charge(rank.saturating_mul(8))?;
        let attributes = self.attributes()?;
        let number = self.u32()?;
        let kind = Type::of(number).ok_or(number);
        let size = match self.version {
            Version::Data64 => self.u64()?,
            _ => u64::from(self.u32()?),
        };
        let begin = match self.version {
            Version::Classic => u64::from(self.u32()?),
            _ => self.u64()?,
        };
        Ok(Variable { name, dimensions, attributes, kind, size, begin, at })
    }
}
