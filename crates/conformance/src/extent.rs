//! Finds the checksummed structures of an HDF5 file without knowing what they hold: at the signature of one, the
//! length is the one at which the stored checksum matches. So a mutated structure can be given a right checksum again,
//! and what lies behind the checksum is tested too.

use hyperslab::format::hdf5::parse::lookup3;

/// A checksummed run of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First byte.
    pub start: usize,
    /// The byte after the last one that is summed.
    pub end: usize,
    /// Where the checksum is stored: at `end`, or inside, and then taken as zero.
    pub checksum: usize,
}

/// Signatures of structures, for places worth a mutation, and the longest that each is looked for; 0 has no checksum.
pub const SIGNATURES: &[(&[u8], usize)] = &[
    (b"OHDR", 0),
    (b"OCHK", 1 << 10),
    (b"BTHD", 64),
    (b"BTIN", 2 << 10),
    (b"BTLF", 2 << 10),
    (b"FRHP", 256),
    (b"FHDB", 0),
    (b"FHIB", 2 << 10),
    (b"FAHD", 64),
    (b"FADB", 4 << 10),
    (b"EAHD", 96),
    (b"EAIB", 1 << 10),
    (b"EASB", 1 << 10),
    (b"EADB", 2 << 10),
    (b"SMTB", 256),
    (b"SMLI", 2 << 10),
    (b"FSHD", 128),
    (b"FSSE", 1 << 10),
    (b"\x89HDF\r\n\x1a\n", 64),
    (b"TREE", 0),
    (b"HEAP", 0),
    (b"SNOD", 0),
    (b"GCOL", 0),
];
/// The most structures of a file.
const MOST: usize = 400;

/// Every place at which a signature stands, with its index in [`SIGNATURES`].
pub fn signatures(file: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for at in 0..file.len() {
        let here = &file[at..];
        // All but one begin with a capital letter.
        if !(here[0].is_ascii_uppercase() || here[0] == 0x89) {
            continue;
        }
        if let Some(which) = SIGNATURES.iter().position(|(s, _)| here.starts_with(s)) {
            found.push((at, which));
        }
    }
    found
}

/// The checksummed structures of a sound file.
pub fn extents(file: &[u8]) -> Vec<Extent> {
    signatures(file)
        .into_iter()
        .take(MOST)
        .filter_map(|(at, which)| match SIGNATURES[which] {
            (b"OHDR", _) => header(file, at),
            (b"OCHK", longest) => continuation(file, at).or_else(|| search(file, at, longest)),
            (b"FHDB", _) => direct_block(file, at),
            (_, 0) => None,
            (_, longest) => search(file, at, longest),
        })
        .collect()
}

/// A structure with its checksum behind it, of any length up to `longest`.
fn search(file: &[u8], start: usize, longest: usize) -> Option<Extent> {
    let longest = file.len().saturating_sub(start + 4).min(longest);
    (8..=longest).find_map(|length| sound(file, start, length))
}

fn sound(file: &[u8], start: usize, length: usize) -> Option<Extent> {
    let end = start.checked_add(length)?;
    let extent = Extent { start, end, checksum: end };
    extent.is_sound(file).then_some(extent)
}

/// An object header, which says its own length.
fn header(file: &[u8], start: usize) -> Option<Extent> {
    let flags = *file.get(start + 5)?;
    let mut at = start + 6;
    at += if flags & 0x20 != 0 { 16 } else { 0 };
    at += if flags & 0x10 != 0 { 4 } else { 0 };
    let width = 1 << (flags & 3);
    let length = file.get(at..at + width)?.iter().rev().fold(0usize, |n, &b| n << 8 | usize::from(b));
    sound(file, start, (at + width - start).checked_add(length)?)
}

/// A continuation: whoever points at it also knows its length.
fn continuation(file: &[u8], start: usize) -> Option<Extent> {
    let base = file.windows(8).position(|w| w == b"\x89HDF\r\n\x1a\n")?;
    let address = (start.checked_sub(base)? as u64).to_le_bytes();
    file.windows(16).filter(|w| w[..8] == address).find_map(|w| {
        let length = u64::from_le_bytes(w[8..].try_into().ok()?);
        sound(file, start, usize::try_from(length).ok()?.checked_sub(4)?)
    })
}

/// A block of a fractal heap has its checksum in its own header, and a size that the heap knows.
fn direct_block(file: &[u8], start: usize) -> Option<Extent> {
    for bits in 6..20 {
        let end = start + (1 << bits);
        if end > file.len() {
            return None;
        }
        for checksum in start + 8..start + 24 {
            let extent = Extent { start, end, checksum };
            if extent.stored(file) == extent.computed(file) {
                return Some(extent);
            }
        }
    }
    None
}

impl Extent {
    fn stored(&self, file: &[u8]) -> Option<u32> {
        Some(u32::from_le_bytes(file.get(self.checksum..self.checksum + 4)?.try_into().ok()?))
    }

    fn computed(&self, file: &[u8]) -> Option<u32> {
        let bytes = file.get(self.start..self.end)?;
        if self.checksum == self.end {
            return Some(lookup3(bytes));
        }
        let mut bytes = bytes.to_vec();
        let at = self.checksum - self.start;
        bytes.get_mut(at..at + 4)?.fill(0);
        Some(lookup3(&bytes))
    }

    /// Whether its checksum is right.
    pub fn is_sound(&self, file: &[u8]) -> bool {
        self.stored(file).is_some() && self.stored(file) == self.computed(file)
    }

    /// Makes its checksum right, if all of it is there.
    pub fn repair(&self, file: &mut [u8]) {
        if let Some(sum) = self.computed(file)
            && let Some(place) = file.get_mut(self.checksum..self.checksum + 4)
        {
            place.copy_from_slice(&sum.to_le_bytes());
        }
    }
}
