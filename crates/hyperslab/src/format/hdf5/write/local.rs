//! Local heaps, written (specification, III.D): names of links and of external files.

use super::disk::Disk;
use super::encoder::Encoder;
use crate::error::Result;
use std::collections::HashMap;

/// "There is no free block."
const NO_FREE_BLOCK: u64 = 1;

/// Texts that go into a heap, each once, at multiples of 8 bytes. The empty text stands first.
#[derive(Debug, Default)]
pub(super) struct Texts {
    data: Vec<u8>,
    known: HashMap<Vec<u8>, u64>,
}

impl Texts {
    /// A heap with the empty text at offset 0.
    pub(super) fn new() -> Self {
        let mut texts = Texts::default();
        texts.add(b"");
        texts
    }

    /// Offset of a text.
    pub(super) fn add(&mut self, text: &[u8]) -> u64 {
        if let Some(&offset) = self.known.get(text) {
            return offset;
        }
        let offset = self.data.len();
        self.data.extend_from_slice(text);
        self.data.push(0);
        self.data.resize(self.data.len().next_multiple_of(8), 0);
        self.known.insert(text.to_vec(), offset as u64);
        offset as u64
    }

    /// Writes the heap; its header at `header` if there is one to be kept. Gives the address of the header, and address and
    /// length of the data.
    pub(super) fn write(&self, disk: &mut Disk, header: Option<u64>) -> Result<(u64, (u64, u64))> {
        let sizes = disk.sizes();
        let segment = disk.place(&self.data)?;
        let mut out = Encoder::new(sizes);
        out.put(b"HEAP").u8(0).zeros(3).length(self.data.len() as u64).length(NO_FREE_BLOCK).address(segment);
        let bytes = out.finish();
        let header = match header {
            Some(header) => {
                disk.put(header, &bytes)?;
                header
            }
            None => disk.place(&bytes)?,
        };
        Ok((header, (segment, self.data.len() as u64)))
    }
}
