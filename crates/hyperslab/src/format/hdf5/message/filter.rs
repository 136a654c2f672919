//! The filter pipeline message (type 0x000B, versions 1 and 2).

use crate::codec::FilterSpec;
use crate::error::{Error, Result};
use crate::format::hdf5::parse::Cursor;
use crate::shape::Name;

/// The most stages that a pipeline has: a chunk's filter mask has that many bits.
const MAX_FILTERS: usize = 32;

/// Parses the stages in the order in which they encode.
pub fn parse(mut c: Cursor<'_>) -> Result<Vec<FilterSpec>> {
    let version = c.u8()?;
    let count = usize::from(c.u8()?);
    match version {
        1 => c.skip(6)?,
        2 => {}
        _ => return Err(Error::unsupported(format!("filter pipeline message version {version}"))),
    }
    if count > MAX_FILTERS {
        return Err(c.corrupt(format!("{count} filters, at most {MAX_FILTERS} are allowed")));
    }
    (0..count).map(|_| filter(&mut c, version)).collect()
}

fn filter(c: &mut Cursor<'_>, version: u8) -> Result<FilterSpec> {
    let id = c.u16()?;
    let name_length = if version == 1 || id >= 256 { usize::from(c.u16()?) } else { 0 };
    let flags = c.u16()?;
    let count = usize::from(c.u16()?);
    let padded = if version == 1 { name_length.next_multiple_of(8) } else { name_length };
    let name = c.take(padded)?;
    let name = name.split(|&b| b == 0).next().unwrap_or(name);
    let parameters = (0..count).map(|_| c.u32()).collect::<Result<Vec<_>>>()?;
    // The last stage may lack its padding.
    if version == 1 && count % 2 == 1 && c.remaining() >= 4 {
        c.skip(4)?;
    }
    Ok(FilterSpec::Hdf5 { id, flags, name: Name::from(name), parameters })
}
