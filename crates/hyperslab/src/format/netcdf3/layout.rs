//! Where the bytes of each variable are.
//!
//! Variables without the record dimension lie in one piece. The others are interleaved: record 0 of each, record 1 of
//! each, and so on. The part of a variable in a record is padded to four bytes, but not if it is alone in there.

use super::header::{Header, Type, Variable};
use crate::error::{Error, ErrorKind};
use crate::shape::{MAX_RANK, byte_count};

/// The layout of a file.
#[derive(Debug)]
pub struct Layout {
    /// Number of records.
    pub records: u64,
    /// Distance between records in bytes; `None` if it can't be told.
    pub stride: Option<u64>,
    /// The place of each variable, or why it has none.
    pub places: Vec<Result<Place, Wrong>>,
}

/// A reason why a variable can't be read, to be said whenever it is asked for.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// What kind of wrong it is.
    pub kind: ErrorKind,
    /// In words.
    pub text: String,
}

impl Wrong {
    /// The error for the variable whose entry is at `at`.
    pub fn error(&self, at: u64) -> Error {
        Error::new(self.kind, self.text.clone()).at("variable in the netCDF header", at)
    }
}

/// The place of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Type of its elements.
    pub kind: Type,
    /// Its extents now.
    pub dims: Vec<u64>,
    /// Whether the first of them counts records.
    pub is_record: bool,
    /// Offset of the first byte.
    pub begin: u64,
    /// Bytes of the variable, or of its part in one record, without padding.
    pub length: u64,
}

impl Place {
    /// The offset behind the last byte, of `records` records `stride` apart. `None`: beyond 2^64.
    pub fn end(&self, records: u64, stride: u64) -> Option<u64> {
        match (self.is_record, records.checked_sub(1)) {
            (false, _) => self.begin.checked_add(self.length),
            (true, None) => Some(self.begin),
            (true, Some(last)) => last.checked_mul(stride)?.checked_add(self.begin)?.checked_add(self.length),
        }
    }
}

impl Layout {
    /// Works it out for a file of `length` bytes.
    pub fn new(header: &Header, length: u64) -> Layout {
        let mut places: Vec<_> = header.variables.iter().map(|v| place(header, v)).collect();
        let stride = if header.cut.is_some() { None } else { stride(header, &places) };
        let records = match header.records {
            Some(records) => records,
            None => streamed(&places, stride, length),
        };
        for place in &mut places {
            if let Ok(Place { dims, is_record: true, .. }) = place
                && let Some(first) = dims.first_mut()
            {
                *first = records;
            }
            let (kind, text) = match place {
                Ok(place) if place.is_record && header.cut.is_some() => {
                    (ErrorKind::Truncated, "the header is cut, so that the length of a record is not known")
                }
                Ok(place) if place.is_record && stride.is_none() => {
                    (ErrorKind::Corrupt, "a record has more than 2^64 bytes")
                }
                Ok(place) if place.end(records, stride.unwrap_or(0)).is_none() => {
                    (ErrorKind::Corrupt, "it reaches beyond 2^64 bytes")
                }
                _ => continue,
            };
            *place = Err(Wrong { kind, text: text.to_owned() });
        }
        Layout { records, stride, places }
    }
}

/// Whether a variable grows with the records, if its dimensions exist.
fn is_record(header: &Header, variable: &Variable) -> bool {
    let first = variable.dimensions.first().and_then(|&d| usize::try_from(d).ok());
    first.and_then(|d| header.dimensions.get(d)).is_some_and(|d| d.length == 0)
}

fn place(header: &Header, variable: &Variable) -> Result<Place, Wrong> {
    let wrong = |kind, text| Err(Wrong { kind, text });
    let kind = match variable.kind {
        Ok(kind) => kind,
        Err(number) => return wrong(ErrorKind::Corrupt, format!("type {number} does not exist")),
    };
    if variable.dimensions.len() > MAX_RANK {
        let text = format!("not supported: rank {}, {MAX_RANK} is the most", variable.dimensions.len());
        return wrong(ErrorKind::Unsupported, text);
    }
    let mut dims = Vec::with_capacity(variable.dimensions.len());
    for (axis, &number) in variable.dimensions.iter().enumerate() {
        match usize::try_from(number).ok().and_then(|n| header.dimensions.get(n)) {
            None => {
                let count = header.dimensions.len();
                return wrong(ErrorKind::Corrupt, format!("dimension {number} of {count}"));
            }
            Some(d) if d.length == 0 && axis > 0 => {
                let text = format!("the record dimension {} stands at axis {axis}, not first", d.name);
                return wrong(ErrorKind::Corrupt, text);
            }
            Some(d) => dims.push(d.length),
        }
    }
    let is_record = is_record(header, variable);
    let one = dims.get(usize::from(is_record)..).unwrap_or(&[]);
    match byte_count(one, kind.size()) {
        Ok(length) => Ok(Place { kind, dims, is_record, begin: variable.begin, length }),
        Err(e) => wrong(e.kind(), e.message().to_owned()),
    }
}

/// The distance between records.
fn stride(header: &Header, places: &[Result<Place, Wrong>]) -> Option<u64> {
    let parts: Vec<_> = header.variables.iter().zip(places).filter(|(v, _)| is_record(header, v)).collect();
    if let [(_, Ok(place))] = parts.as_slice() {
        return Some(place.length);
    }
    parts.iter().try_fold(0u64, |sum, (variable, place)| {
        // Of a variable that makes no sense the header at least says the size.
        let length = place.as_ref().map_or(variable.size, |p| p.length);
        sum.checked_add(length.checked_next_multiple_of(4)?)
    })
}

/// How many records a streamed file holds.
fn streamed(places: &[Result<Place, Wrong>], stride: Option<u64>, length: u64) -> u64 {
    let parts = || places.iter().flatten().filter(|p| p.is_record && p.length > 0);
    let Some(stride) = stride.filter(|&s| s > 0) else { return 0 };
    // A record counts if every variable has all of its part: the padding of the last one may be missing.
    let counts = parts().map(|p| match length.checked_sub(p.begin).and_then(|n| n.checked_sub(p.length)) {
        Some(rest) => rest / stride + 1,
        None => 0,
    });
    counts.min().unwrap_or(0)
}
