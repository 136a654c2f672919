//! The dataspace message (type 0x0001, versions 1 and 2).

use crate::error::{Error, Result};
use crate::format::hdf5::parse::{Cursor, Sizes, UNDEFINED};
use crate::model::Dataspace;
use crate::shape::{MAX_RANK, element_count};

/// Parses the message.
pub fn parse(mut c: Cursor<'_>, sizes: Sizes) -> Result<Dataspace> {
    let version = c.u8()?;
    let rank = usize::from(c.u8()?);
    let flags = c.u8()?;
    let class = match version {
        1 => {
            c.skip(5)?;
            u8::from(rank > 0)
        }
        2 => c.u8()?,
        _ => return Err(Error::unsupported(format!("dataspace message version {version}"))),
    };
    if rank > MAX_RANK {
        return Err(c.corrupt(format!("rank {rank}, at most {MAX_RANK} is allowed")));
    }
    match (class, rank) {
        (0, 0) => return Ok(Dataspace::Scalar),
        (2, 0) => return Ok(Dataspace::Null),
        // A simple space without axes has one element.
        (1, 0) => return Ok(Dataspace::Scalar),
        (1, _) => {}
        _ => return Err(c.corrupt(format!("dataspace class {class} of rank {rank}"))),
    }
    let dims = (0..rank).map(|_| c.length(sizes)).collect::<Result<Vec<_>>>()?;
    if dims.contains(&UNDEFINED) {
        return Err(c.corrupt("a current extent is unlimited"));
    }
    let max = if flags & 0x01 != 0 {
        (0..rank)
            .map(|_| Ok(Some(c.length(sizes)?).filter(|&n| n != UNDEFINED)))
            .collect::<Result<Vec<_>>>()?
    } else {
        dims.iter().map(|&n| Some(n)).collect()
    };
    // Every user of the extents may then multiply them.
    element_count(&dims)?;
    Ok(Dataspace::Simple { dims, max })
}
