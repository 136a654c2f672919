//! The format of a file, by its content.

use crate::output::{Failure, Outcome};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
const ZARR: [&str; 3] = [".zarray", ".zgroup", "zarr.json"];

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detected {
    /// HDF5, its superblock at `offset`.
    Hdf5 {
        offset: u64,
        version: Option<u8>,
    },
    NetCdf3,
    Zarr,
    Unknown,
}

impl Detected {
    /// What an open file is.
    pub(super) fn of(file: &hyperslab::File) -> Detected {
        let info = file.info();
        match info.format {
            "HDF5" => Detected::Hdf5 { offset: info.user_block, version: u8::try_from(info.version).ok() },
            "Zarr" => Detected::Zarr,
            _ => Detected::NetCdf3,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Detected::Hdf5 { .. } => "hdf5",
            Detected::NetCdf3 => "netcdf3",
            Detected::Zarr => "zarr",
            Detected::Unknown => "unknown",
        }
    }

    /// The key of its part of the description.
    pub(super) fn section(self) -> &'static str {
        match self {
            Detected::NetCdf3 => "netcdf",
            Detected::Zarr => "zarr",
            _ => "hdf5",
        }
    }
}

/// Looks at a file, or at the names below a folder.
pub(super) fn detect(path: &Path) -> Outcome<Detected> {
    let fail = |e: std::io::Error| Failure::Other(format!("cannot open {}: {e}", path.display()));
    if path.is_dir() {
        return Ok(if holds_zarr(path) { Detected::Zarr } else { Detected::Unknown });
    }
    let mut file = File::open(path).map_err(fail)?;
    let size = file.metadata().map_err(fail)?.len();
    let mut head = [0; 8];
    let got = read_at(&mut file, 0, &mut head);
    if got && matches!(&head[..4], b"CDF\x01" | b"CDF\x02" | b"CDF\x05") {
        return Ok(Detected::NetCdf3);
    }
    if got && &head[..4] == b"PK\x03\x04" && zip_names(&mut file, size).is_some_and(|n| is_zarr(&n)) {
        return Ok(Detected::Zarr);
    }
    let mut offset = 0u64;
    while offset.checked_add(8).is_some_and(|end| end <= size) {
        if read_at(&mut file, offset, &mut head) && &head == SIGNATURE {
            let mut version = [0];
            let version = read_at(&mut file, offset + 8, &mut version).then_some(version[0]);
            return Ok(Detected::Hdf5 { offset, version });
        }
        offset = if offset == 0 { 512 } else { offset.saturating_mul(2) };
    }
    Ok(Detected::Unknown)
}

fn read_at(file: &mut File, offset: u64, buffer: &mut [u8]) -> bool {
    file.seek(SeekFrom::Start(offset)).is_ok() && file.read_exact(buffer).is_ok()
}

/// Whether a folder holds a Zarr document, at most 16 levels and 100,000 names down.
fn holds_zarr(path: &Path) -> bool {
    let mut open = vec![(path.to_path_buf(), 0)];
    let mut names = 0;
    while let Some((folder, depth)) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            names += 1;
            if names > 100_000 {
                return false;
            }
            if ZARR.iter().any(|z| entry.file_name() == *z) {
                return true;
            }
            if depth < 16 && entry.file_type().is_ok_and(|t| t.is_dir()) {
                open.push((entry.path(), depth + 1));
            }
        }
    }
    false
}

/// The central directory of a zip file, in which the names stand as they are.
fn zip_names(file: &mut File, size: u64) -> Option<Vec<u8>> {
    let tail = size.min(22 + 65_535);
    let mut end = vec![0; usize::try_from(tail).ok()?];
    read_at(file, size - tail, &mut end).then_some(())?;
    let at = end.windows(4).rposition(|w| w == b"PK\x05\x06")?;
    let number =
        |i: usize| Some(u64::from(u32::from_le_bytes(end.get(at + i..at + i + 4)?.try_into().ok()?)));
    let (length, offset) = (number(12)?, number(16)?);
    if length > 64 << 20 || offset.checked_add(length)? > size {
        return None;
    }
    let mut names = vec![0; usize::try_from(length).ok()?];
    read_at(file, offset, &mut names).then_some(names)
}

/// Whether a name in the directory is that of a Zarr document.
fn is_zarr(directory: &[u8]) -> bool {
    let mut rest = directory;
    while let Some(header) = rest.get(..46).filter(|h| h.starts_with(b"PK\x01\x02")) {
        let length = |i: usize| usize::from(u16::from_le_bytes([header[i], header[i + 1]]));
        let name = rest.get(46..46 + length(28)).unwrap_or(&[]);
        let last = name.rsplit(|&b| b == b'/').next().unwrap_or(&[]);
        if ZARR.iter().any(|z| z.as_bytes() == last) {
            return true;
        }
        rest = rest.get(46 + length(28) + length(30) + length(32)..).unwrap_or(&[]);
    }
    false
}
