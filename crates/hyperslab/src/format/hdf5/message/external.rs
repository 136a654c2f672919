//! The external data files message (type 0x0007): where contiguous data lies if not in this file.

use crate::error::{Error, Result};
use crate::format::hdf5::parse::{Cursor, Sizes, UNDEFINED};

/// A parsed external data files message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalFiles {
    /// Address of the local heap that holds the names.
    pub heap: u64,
    /// The files in the order of the data.
    pub slots: Vec<ExternalSlot>,
}

/// A run of bytes in an external file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalSlot {
    /// Offset of the file's name in the local heap.
    pub name: u64,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes of this run; `None`: as many as there are.
    pub size: Option<u64>,
}

impl ExternalFiles {
    /// Parses the message.
    pub fn parse(mut c: Cursor<'_>, sizes: Sizes) -> Result<Self> {
        let version = c.u8()?;
        if version != 1 {
            return Err(Error::unsupported(format!("external data files message version {version}")));
        }
        c.skip(3)?;
        let _allocated = c.u16()?;
        let used = c.u16()?;
        let heap = c.address(sizes)?;
        let slots = (0..used)
            .map(|_| {
                let name = c.length(sizes)?;
                let offset = c.length(sizes)?;
                let size = Some(c.length(sizes)?).filter(|&size| size != UNDEFINED);
                Ok(ExternalSlot { name, offset, size })
            })
            .collect::<Result<_>>()?;
        Ok(ExternalFiles { heap, slots })
    }
}
