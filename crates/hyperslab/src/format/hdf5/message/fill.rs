//! The fill value messages (types 0x0004 and 0x0005, versions 1 to 3).

use super::take_bytes;
use crate::error::{Error, Result};
use crate::format::hdf5::parse::Cursor;
use crate::model::FillValue;
use bytes::Bytes;
use std::fmt;

/// When the fill value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillTime {
    /// When space is allocated.
    Allocation,
    /// Never.
    Never,
    /// When space is allocated, if the user has set a value.
    IfSet,
}

impl fmt::Display for FillTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FillTime::Allocation => "on allocation",
            FillTime::Never => "never",
            FillTime::IfSet => "if set",
        })
    }
}

/// When space is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationTime {
    /// The message does not say.
    Default,
    /// When the dataset is created.
    Early,
    /// When it is first written.
    Late,
    /// Chunk by chunk.
    Incremental,
}

impl fmt::Display for AllocationTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AllocationTime::Default => "default",
            AllocationTime::Early => "early",
            AllocationTime::Late => "late",
            AllocationTime::Incremental => "incremental",
        })
    }
}

/// A parsed fill value message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fill {
    /// When space is allocated.
    pub allocation: AllocationTime,
    /// When the value is written.
    pub time: FillTime,
    /// The value.
    pub value: FillValue,
}

impl Default for Fill {
    /// What holds for a dataset without any fill value message.
    fn default() -> Self {
        Fill { allocation: AllocationTime::Default, time: FillTime::IfSet, value: FillValue::Undefined }
    }
}

impl Fill {
    /// Parses the message of type 0x0005.
    pub fn parse(bytes: &Bytes, mut c: Cursor<'_>) -> Result<Fill> {
        let version = c.u8()?;
        match version {
            1 | 2 => {
                let allocation = allocation(&c, c.clone().u8()?)?;
                c.skip(1)?;
                let time = time(&c, c.clone().u8()?)?;
                c.skip(1)?;
                let defined = c.u8()? != 0;
                // Version 1 always has the size, which means nothing while the value is undefined.
                let value = if !defined { FillValue::Undefined } else { sized(bytes, &mut c)? };
                Ok(Fill { allocation, time, value })
            }
            3 => {
                let flags = c.u8()?;
                if flags & 0xc0 != 0 || flags & 0x30 == 0x30 {
                    return Err(c.corrupt(format!("fill value flags {flags:#04x}")));
                }
                let allocation = allocation(&c, flags & 0x03)?;
                let time = time(&c, flags >> 2 & 0x03)?;
                let value = match flags & 0x30 {
                    0x10 => FillValue::Undefined,
                    0x20 => sized(bytes, &mut c)?,
                    _ => FillValue::Default,
                };
                Ok(Fill { allocation, time, value })
            }
            _ => Err(Error::unsupported(format!("fill value message version {version}"))),
        }
    }

    /// Parses the message of type 0x0004; without a value it says that there is none.
    pub fn parse_old(bytes: &Bytes, mut c: Cursor<'_>) -> Result<Fill> {
        Ok(match sized(bytes, &mut c)? {
            FillValue::Default => Fill::default(),
            value => Fill { value, ..Fill::default() },
        })
    }
}

fn allocation(c: &Cursor<'_>, code: u8) -> Result<AllocationTime> {
    match code {
        0 => Ok(AllocationTime::Default),
        1 => Ok(AllocationTime::Early),
        2 => Ok(AllocationTime::Late),
        3 => Ok(AllocationTime::Incremental),
        _ => Err(c.corrupt(format!("space allocation time {code}"))),
    }
}

fn time(c: &Cursor<'_>, code: u8) -> Result<FillTime> {
    match code {
        0 => Ok(FillTime::Allocation),
        1 => Ok(FillTime::Never),
        2 => Ok(FillTime::IfSet),
        _ => Err(c.corrupt(format!("fill value write time {code}"))),
    }
}

/// A size and as many bytes; none of them, or a negative size, is the default value.
fn sized(bytes: &Bytes, c: &mut Cursor<'_>) -> Result<FillValue> {
    match c.u32()? {
        0 => Ok(FillValue::Default),
        size if size > i32::MAX as u32 => Ok(FillValue::Undefined),
        size => Ok(FillValue::Value(take_bytes(bytes, c, u64::from(size))?)),
    }
}
