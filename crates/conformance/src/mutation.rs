//! Makes damaged files out of sound ones, by seed and number.

use crate::archive::{self, Entry};
use crate::extent::{Extent, extents, signatures};
use crate::rng::Rng;
use hyperslab::Limits;
use hyperslab::format::netcdf3::header;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// HDF5 files: any of their structures.
    #[default]
    Hdf5,
    /// Classic netCDF files: their headers.
    Netcdf3,
    /// Zip files of Zarr stores: their directories, and the documents and shards in them.
    Zarr,
}

impl Format {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Format::Hdf5 => "hdf5",
            Format::Netcdf3 => "netcdf3",
            Format::Zarr => "zarr",
        }
    }

    /// The format called so.
    pub fn named(name: &str) -> Option<Format> {
        [Format::Hdf5, Format::Netcdf3, Format::Zarr].into_iter().find(|f| f.name() == name)
    }

    fn holds(self, bytes: &[u8]) -> bool {
        match self {
            Format::Hdf5 => is_hdf5(bytes),
            Format::Netcdf3 => header::Version::find(bytes).is_some(),
            Format::Zarr => archive::is_zip(bytes),
        }
    }
}

/// Sound files, and what is known about each that was used.
#[derive(Debug)]
pub struct Seeds {
    format: Format,
    paths: Vec<PathBuf>,
    known: HashMap<usize, Arc<Seed>>,
}

/// A sound file.
#[derive(Debug)]
pub struct Seed {
    format: Format,
    bytes: Vec<u8>,
    extents: Vec<Extent>,
    /// Offsets at which structures begin.
    places: Vec<usize>,
    /// Of an archive, what is in it.
    entries: Vec<Entry>,
}

/// What to write where numbers decide sizes, counts and addresses.
const INTERESTING: &[u64] = &[
    0,
    1,
    2,
    3,
    7,
    8,
    16,
    31,
    32,
    33,
    64,
    127,
    128,
    255,
    256,
    511,
    512,
    1023,
    1024,
    4096,
    0x7fff,
    0x8000,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffe,
    0xffff_ffff,
    0x1_0000_0000,
    1 << 40,
    1 << 62,
    i64::MAX as u64,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

/// Files larger than this are not mutated: most of their bytes are data.
const LARGEST: u64 = 400 << 10;

impl Seeds {
    /// All files of a format below the folders, in a fixed order.
    pub fn below(folders: &[PathBuf], format: Format) -> std::io::Result<Seeds> {
        let mut paths = Vec::new();
        let mut todo = folders.to_vec();
        while let Some(folder) = todo.pop() {
            for entry in std::fs::read_dir(folder)? {
                let path = entry?.path();
                let size = path.metadata()?.len();
                if path.is_dir() {
                    todo.push(path);
                } else if (1..=LARGEST).contains(&size) && format.holds(&std::fs::read(&path)?) {
                    paths.push(path);
                }
            }
        }
        paths.sort();
        Ok(Seeds { format, paths, known: HashMap::new() })
    }

    /// How many files there are.
    pub fn count(&self) -> usize {
        self.paths.len()
    }

    fn seed(&mut self, which: usize) -> std::io::Result<Arc<Seed>> {
        if let Some(seed) = self.known.get(&which) {
            return Ok(seed.clone());
        }
        let bytes = std::fs::read(&self.paths[which])?;
        let mut entries = Vec::new();
        let (extents, places) = match self.format {
            Format::Zarr => {
                let (found, places) = archive::entries(&bytes);
                entries = found;
                (Vec::new(), places)
            }
            Format::Hdf5 => (extents(&bytes), hdf5_places(&self.paths[which], &bytes)),
            Format::Netcdf3 => (Vec::new(), netcdf3_places(&bytes)),
        };
        let seed = Arc::new(Seed { format: self.format, extents, bytes, places, entries });
        self.known.insert(which, seed.clone());
        Ok(seed)
    }

    /// Input `number` of run `seed`, and a word about how it was made.
    pub fn input(&mut self, seed: u64, number: u64) -> std::io::Result<(Vec<u8>, String)> {
        let mut rng = Rng::new(seed, number);
        let which = rng.below(self.paths.len());
        let original = self.seed(which)?;
        let mut bytes = original.bytes.clone();
        let mut story = format!("{}:", self.paths[which].display());
        if !original.entries.is_empty() && rng.chance(75) {
            let mut entries = original.entries.clone();
            for _ in 0..rng.pick(&[1, 1, 2, 3]) {
                story = format!("{story} {}", archive::mutate(&mut entries, &mut rng));
            }
            return Ok((archive::pack(&entries), story));
        }
        for _ in 0..rng.pick(&[1, 1, 1, 2, 3, 6]) {
            let word = mutate(&mut bytes, &original, &mut rng);
            story = format!("{story} {word}");
        }
        if number.is_multiple_of(2) {
            for extent in &original.extents {
                if !extent.is_sound(&bytes) {
                    extent.repair(&mut bytes);
                }
            }
            story += " repaired";
        }
        Ok((bytes, story))
    }
}

fn is_hdf5(bytes: &[u8]) -> bool {
    let signature = b"\x89HDF\r\n\x1a\n";
    let places = std::iter::successors(Some(0usize), |&at| Some(if at == 0 { 512 } else { 2 * at }));
    places.take_while(|&at| at < bytes.len()).any(|at| bytes[at..].starts_with(signature))
}

/// Signatures and object headers.
fn hdf5_places(path: &Path, bytes: &[u8]) -> Vec<usize> {
    let mut places: Vec<usize> = signatures(bytes).into_iter().map(|(at, _)| at).collect();
    places.truncate(4000); // A file of text may look like signatures.
    places.extend(crate::probe::headers(path, bytes.len()));
    places.push(0);
    places
}

/// The fields of the header, which are aligned to four bytes.
fn netcdf3_places(bytes: &[u8]) -> Vec<usize> {
    let header = header::Header::parse(&bytes.to_vec().into(), true, &Limits::default());
    let length = header.map_or(256, |h| usize::try_from(h.length).unwrap_or(0)).clamp(4, bytes.len().max(4));
    (0..length).step_by(4).collect()
}

/// Changes `bytes` in one way; most often near the start of a structure.
fn mutate(bytes: &mut Vec<u8>, seed: &Seed, rng: &mut Rng) -> String {
    if bytes.is_empty() {
        return "empty".into();
    }
    let at = if rng.chance(80) {
        let span = match seed.format {
            Format::Hdf5 => rng.pick(&[16, 64, 64, 256, 1024]),
            Format::Netcdf3 => rng.pick(&[1, 1, 4]),
            Format::Zarr => rng.pick(&[4, 32, 64]),
        };
        (rng.pick(&seed.places) + rng.below(span)).min(bytes.len() - 1)
    } else {
        rng.below(bytes.len())
    };
    match rng.below(20) {
        0..=3 => {
            bytes[at] ^= 1 << rng.below(8);
            format!("flip {at:#x}")
        }
        4..=7 => {
            bytes[at] = rng.pick(&[0, 1, 2, 3, 4, 5, 6, 8, 16, 32, 0x7f, 0x80, 0xfe, 0xff]);
            format!("byte {at:#x}")
        }
        8..=13 => {
            let width = rng.pick(&[2, 4, 8, 8]);
            let length = bytes.len() as u64;
            let value = match rng.below(6) {
                0 => length.wrapping_add(rng.pick(&[0, 1, u64::MAX, 8, 1 << 20])),
                1 => rng.pick(&seed.places) as u64,
                2 => rng.below(bytes.len()) as u64,
                3 => rng.next(),
                _ => rng.pick(INTERESTING),
            };
            let width = width.min(bytes.len() - at);
            match seed.format {
                Format::Hdf5 | Format::Zarr => {
                    bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width])
                }
                Format::Netcdf3 => bytes[at..at + width].copy_from_slice(&value.to_be_bytes()[8 - width..]),
            }
            format!("field {at:#x}+{width}={value:#x}")
        }
        14..=15 => {
            let delta = rng.pick(&[1, 2, 8, 0xff, 0xfe, 0xf8]);
            bytes[at] = bytes[at].wrapping_add(delta);
            format!("add {at:#x}")
        }
        16 => {
            let length = if rng.chance(50) { at } else { rng.below(bytes.len()) };
            bytes.truncate(length);
            format!("truncate {length:#x}")
        }
        17..=18 => {
            let from = if rng.chance(60) {
                rng.pick(&seed.places).min(bytes.len() - 1)
            } else {
                rng.below(bytes.len())
            };
            let n = rng.pick(&[4, 8, 24, 64, 512]).min(bytes.len() - at.max(from));
            bytes.copy_within(from..from + n, at);
            format!("copy {from:#x}+{n} to {at:#x}")
        }
        _ => {
            let n = rng.pick(&[4, 8, 64, 512]).min(bytes.len() - at);
            bytes[at..at + n].fill(rng.pick(&[0, 0xff]));
            format!("fill {at:#x}+{n}")
        }
    }
}
