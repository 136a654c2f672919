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

/// Signatures of structures, checksummed or not, for places worth a mutation.
pub const SIGNATURES: &[&[u8]] = &[
    b"OHDR",
    b"OCHK",
    b"BTHD",
    b"BTIN",
    b"BTLF",
    b"FRHP",
    b"FHDB",
    b"FHIB",
    b"FAHD",
    b"FADB",
    b"EAHD",
    b"EAIB",
    b"EASB",
    b"EADB",
    b"SMTB",
    b"SMLI",
    b"FSHD",
    b"FSSE",
    b"TREE",
    b"HEAP",
    b"SNOD",
    b"GCOL",
    b"\x89HDF\r\n\x1a\n",
];
/// Those without a checksum.
const BARE: &[&[u8]] = &[b"TREE", b"HEAP", b"SNOD", b"GCOL"];
/// The longest structure that is looked for, and the number of them in a file.
const LONGEST: usize = 8 << 10;
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
        if let Some(which) = SIGNATURES.iter().position(|s| here.starts_with(s)) {
            found.push((at, which));
        }
    }
    found
}

/// The checksummed structures of a sound file.
pub fn extents(file: &[u8]) -> Vec<Extent> {
    signatures(file)
        .into_iter()
        .filter(|&(_, which)| !BARE.contains(&SIGNATURES[which]))
        .take(MOST)
        .filter_map(|(at, which)| match SIGNATURES[which] {
            b"FHDB" => direct_block(file, at),
            _ => plain(file, at),
        })
        .collect()
}

/// A structure with its checksum behind it.
fn plain(file: &[u8], start: usize) -> Option<Extent> {
    let longest = file.len().saturating_sub(start + 4).min(LONGEST);
    (8..=longest).map(|n| start + n).find_map(|end| {
        let extent = Extent { start, end, checksum: end };
        (extent.stored(file) == extent.computed(file)).then_some(extent)
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
