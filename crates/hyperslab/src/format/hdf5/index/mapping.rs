//! The mappings of a virtual dataset, as one object of the global heap (specification, III.F; version 1 as HDF5 2.0
//! writes it: names that occurred before are stored as the number of the mapping that has them).

use crate::error::Result;
use crate::format::hdf5::message::selection;
use crate::format::hdf5::parse::{Cursor, Sizes};
use crate::model::VirtualMapping;
use crate::shape::Name;

pub(super) const BLOCK: &str = "virtual dataset mappings";

/// The file is that of an earlier mapping.
pub(super) const FILE_SHARED: u8 = 0x01;
/// The dataset is that of an earlier mapping.
pub(super) const DATASET_SHARED: u8 = 0x02;
/// The file is that of the virtual dataset.
pub(super) const SAME_FILE: u8 = 0x04;

/// Parses the block; `at` is where it lies, for messages.
pub(super) fn parse(bytes: &[u8], at: u64, sizes: Sizes) -> Result<Vec<VirtualMapping>> {
    let mut c = Cursor::new(bytes, BLOCK, at);
    let version = c.u8()?;
    if version > 1 {
        return Err(c.corrupt(format!("version {version}, only 0 and 1 are known")));
    }
    let count = c.length(sizes)?;
    let mut mappings: Vec<VirtualMapping> = Vec::new();
    // A mapping takes bytes, so that this ends.
    for _ in 0..count {
        let flags = if version == 0 { 0 } else { c.u8()? };
        if flags & !(FILE_SHARED | DATASET_SHARED | SAME_FILE) != 0 {
            return Err(c.corrupt(format!("flags {flags:#04x} of a mapping")));
        }
        let earlier = |c: &mut Cursor<'_>, name: &dyn Fn(&VirtualMapping) -> &Name| {
            let i = c.length(sizes)?;
            let found = usize::try_from(i).ok().and_then(|i| mappings.get(i));
            found.map(|m| name(m).clone()).ok_or_else(|| c.corrupt(format!("no mapping {i} before this one")))
        };
        let file = if flags & SAME_FILE != 0 {
            Name::from(".")
        } else if flags & FILE_SHARED != 0 {
            earlier(&mut c, &|m| &m.file)?
        } else {
            Name::from(c.c_string()?)
        };
        let dataset = match flags & DATASET_SHARED {
            0 => Name::from(c.c_string()?),
            _ => earlier(&mut c, &|m| &m.dataset)?,
        };
        let source_selection = selection::parse(&mut c)?.elements;
        let selection = selection::parse(&mut c)?.elements;
        mappings.push(VirtualMapping { file, dataset, source_selection, selection });
    }
    c.checksum()?;
    Ok(mappings)
}
