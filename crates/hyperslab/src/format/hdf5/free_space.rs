//! Free-space managers (specification, III.I): of use to writers; readers only verify them.

use super::file::Space;
use super::parse::UNDEFINED;
use crate::error::{Error, Result};

const HEADER: &str = "free-space manager header";
const SECTIONS: &str = "free-space section list";

/// Verifies the manager whose header is at `address`; gives the bytes that it says are free.
pub fn check(space: &Space, address: u64) -> Result<u64> {
    let space = &space.scoped();
    let sizes = space.sizes();
    let length = 18 + 7 * u64::from(sizes.length) + u64::from(sizes.offset);
    let bytes = space.read(HEADER, address, length)?;
    let mut c = space.cursor(&bytes, HEADER, address);
    c.signature(b"FSHD")?;
    let version = c.u8()?;
    if version != 0 {
        return Err(Error::unsupported(format!("free-space manager version {version}")));
    }
    let _client = c.u8()?;
    let free = c.length(sizes)?;
    // Sections: all, serialized and not.
    for _ in 0..3 {
        c.length(sizes)?;
    }
    // Section classes, when to shrink and grow, bits of an address.
    c.skip(2 + 2 + 2 + 2)?;
    let _largest = c.length(sizes)?;
    let list = c.address(sizes)?;
    let used = c.length(sizes)?;
    let allocated = c.length(sizes)?;
    c.checksum()?;
    if list == UNDEFINED {
        return Ok(free);
    }
    if used > allocated {
        return Err(c.corrupt(format!("{used} bytes used of a list of {allocated}")));
    }
    let bytes = space.read(SECTIONS, list, used)?;
    let mut c = space.cursor(&bytes, SECTIONS, list);
    c.signature(b"FSSE")?;
    let version = c.u8()?;
    if version != 0 {
        return Err(Error::unsupported(format!("free-space section list version {version}")));
    }
    let owner = c.address(sizes)?;
    if owner != address {
        return Err(
            c.corrupt(format!("it belongs to the manager at {owner:#x}, not to the one at {address:#x}"))
        );
    }
    c.skip(c.remaining().saturating_sub(4))?;
    c.checksum()?;
    Ok(free)
}
