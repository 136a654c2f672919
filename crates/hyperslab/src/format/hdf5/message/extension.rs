//! Messages of the superblock extension: shared message table (type 0x000F), B-tree K values (0x0013), driver info
//! (0x0014), file space info (0x0017) and metadata cache image (0x0018).

use crate::error::{Error, Result};
use crate::format::hdf5::parse::{Cursor, Sizes, UNDEFINED};
use crate::shape::Name;

/// Where the shared message table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedTableMessage {
    /// Its address.
    pub address: u64,
    /// Indexes in it.
    pub indexes: u8,
}

impl SharedTableMessage {
    /// Parses the message.
    pub fn parse(mut c: Cursor<'_>, sizes: Sizes) -> Result<Self> {
        version(&mut c, "shared message table message", 0)?;
        Ok(SharedTableMessage { address: c.address(sizes)?, indexes: c.u8()? })
    }
}

/// B-tree K values: half the number of children of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BtreeK {
    /// Of chunk indexes.
    pub chunk: u16,
    /// Of internal nodes of groups.
    pub group_internal: u16,
    /// Of leaf nodes of groups.
    pub group_leaf: u16,
}

impl BtreeK {
    /// Parses the message.
    pub fn parse(mut c: Cursor<'_>) -> Result<Self> {
        version(&mut c, "B-tree K values message", 0)?;
        Ok(BtreeK { chunk: c.u16()?, group_internal: c.u16()?, group_leaf: c.u16()? })
    }
}

/// The name of the file driver that wrote the file.
pub fn driver(mut c: Cursor<'_>) -> Result<Name> {
    version(&mut c, "driver info message", 0)?;
    Ok(Name::from(c.take(8)?))
}

/// How space in the file is managed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSpace {
    /// Version of the message.
    pub version: u8,
    /// What people call the strategy.
    pub strategy: &'static str,
    /// Whether free space is remembered when the file is closed.
    pub persistent: bool,
    /// Smallest free section that is remembered, in bytes.
    pub threshold: u64,
    /// Bytes of a page, where space is managed in pages.
    pub page_size: Option<u64>,
    /// Addresses of the free-space managers that exist.
    pub managers: Vec<u64>,
}

impl FileSpace {
    /// Parses the message.
    pub fn parse(mut c: Cursor<'_>, sizes: Sizes) -> Result<Self> {
        let version = c.u8()?;
        let strategy = c.u8()?;
        match version {
            0 => {
                let threshold = c.length(sizes)?;
                // Strategies of version 1.9 and 1.10.0 had other numbers.
                let (strategy, persistent, count) = match strategy {
                    1 => ("all, persistent", true, 6),
                    2 => ("all", false, 0),
                    3 => ("aggregators and driver", false, 0),
                    4 => ("driver", false, 0),
                    _ => return Err(c.corrupt(format!("file space strategy {strategy}"))),
                };
                let managers = managers(&mut c, sizes, count)?;
                Ok(FileSpace { version, strategy, persistent, threshold, page_size: None, managers })
            }
            1 => {
                let persistent = c.u8()? != 0;
                let threshold = c.length(sizes)?;
                let page_size = Some(c.length(sizes)?);
                let _page_end_threshold = c.u16()?;
                let _end_before_managers = c.address(sizes)?;
                let strategy = match strategy {
                    0 => "free-space managers and aggregators",
                    1 => "paged",
                    2 => "aggregators",
                    3 => "none",
                    _ => return Err(c.corrupt(format!("file space strategy {strategy}"))),
                };
                let managers = managers(&mut c, sizes, if persistent { 12 } else { 0 })?;
                Ok(FileSpace { version, strategy, persistent, threshold, page_size, managers })
            }
            _ => Err(Error::unsupported(format!("file space info message version {version}"))),
        }
    }
}

fn managers(c: &mut Cursor<'_>, sizes: Sizes, count: usize) -> Result<Vec<u64>> {
    let all = (0..count).map(|_| c.address(sizes)).collect::<Result<Vec<_>>>()?;
    Ok(all.into_iter().filter(|&a| a != UNDEFINED).collect())
}

/// Where the metadata cache image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheImage {
    /// Its address.
    pub address: u64,
    /// Its length in bytes.
    pub length: u64,
}

impl CacheImage {
    /// Parses the message.
    pub fn parse(mut c: Cursor<'_>, sizes: Sizes) -> Result<Self> {
        version(&mut c, "metadata cache image message", 0)?;
        Ok(CacheImage { address: c.address(sizes)?, length: c.length(sizes)? })
    }
}

fn version(c: &mut Cursor<'_>, what: &'static str, known: u8) -> Result<()> {
    let version = c.u8()?;
    if version != known {
        return Err(Error::unsupported(format!("{what} version {version}")));
    }
    Ok(())
}
