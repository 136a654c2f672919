//! A file with versions, written anew without what nobody uses.

use super::upkeep::{UpkeepReport, remove_unused_chunks};
use crate::array::{Address, OpenOptions};
use crate::copy::{CopyOptions, copy_to};
use crate::error::{Error, Result};
use crate::format::hdf5::write::{Hdf5Options, Libver};
use crate::source::write::WriteOptions;
use crate::write::{CreateOptions, Format, create};

/// Takes chunks that no version uses out of a local HDF5 file, and writes the file anew, with everything else that is in it,
/// so that it gets as short as it can be. Gives what was taken out, and the length of the file before and after.
///
/// There are two commits: after the first one the chunks are gone, after the second one the file is shorter. Each is all or
/// nothing.
///
/// Errors: `Unsupported` for a file with a user block, and with anything that a copy would not keep.
pub fn repack(
    address: impl Into<Address>,
    group: Option<&str>,
    open: &OpenOptions,
    write: &WriteOptions,
) -> Result<(UpkeepReport, (u64, u64))> {
    let address = address.into();
    let upkeep = remove_unused_chunks(address.clone(), group, open, write)?;
    let info = upkeep.versions.base().info();
    if info.user_block > 0 {
        return Err(Error::unsupported(format!(
            "writing a file with a user block of {} bytes anew",
            info.user_block
        ))
        .hint("take unused chunks out in place instead"));
    }
    let root = upkeep.versions.base().root();
    let tracks = root.links()?.tracks_order;
    let report = upkeep.report().clone();
    let length = || {
        let path = address.local();
        let found = std::fs::metadata(path);
        found.map(|m| m.len()).map_err(|e| Error::io(format!("cannot look at {}", path.display()), e))
    };
    let before = length()?;
    upkeep.commit()?;
    let libver = if info.version < 2 { Libver::Earliest } else { Libver::V110 };
    let create_options = CreateOptions {
        open: open.clone(),
        write: write.clone().with_overwrite(true),
        hdf5: Hdf5Options::new().with_libver(libver).with_track_order(tracks),
        ..CreateOptions::default()
    };
    let options = CopyOptions { create: create_options, strict: true, ..CopyOptions::default() };
    // Locked from here on.
    let transaction = create(address.clone(), Format::Hdf5, &options.create)?;
    let source = crate::open_with(address.clone(), open)?;
    copy_to(&source, transaction, Format::Hdf5, &options)?;
    Ok((report, (before, length()?)))
}
