//! The body of a message whose flag "shared" is set: where the real one is (specification, IV.A.2, "shared message").

use crate::error::{Error, Result};
use crate::format::hdf5::parse::{Cursor, Sizes};

/// Where a shared message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// In the object header at this address (a committed datatype).
    Object(u64),
    /// In the heap of the file's shared message table, under this identifier.
    Heap([u8; 8]),
}

impl Shared {
    /// The address of the object header that has the message.
    pub fn object(self) -> Option<u64> {
        match self {
            Shared::Object(address) => Some(address),
            Shared::Heap(_) => None,
        }
    }

    /// Parses the body.
    pub fn parse(c: &mut Cursor<'_>, sizes: Sizes) -> Result<Shared> {
        let version = c.u8()?;
        let class = c.u8()?;
        match version {
            1 => {
                // Reserved bytes, then a symbol table entry of which only the address counts.
                c.skip(6 + usize::from(sizes.length))?;
                Ok(Shared::Object(c.address(sizes)?))
            }
            // Version 2 of old libraries has 0 here.
            2 => Ok(Shared::Object(c.address(sizes)?)),
            3 if class == 1 => {
                let mut id = [0; 8];
                id.copy_from_slice(c.take(8)?);
                Ok(Shared::Heap(id))
            }
            3 if class == 2 => Ok(Shared::Object(c.address(sizes)?)),
            3 => Err(c.corrupt(format!("shared message class {class}"))),
            _ => Err(Error::unsupported(format!("shared message version {version}"))),
        }
    }
}
