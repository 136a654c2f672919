//! Chunk coordinates in, byte location out: plain arithmetic.

use crate::error::{Error, ErrorKind, Result};
use crate::model::{ChunkIndex, ChunkRef, Fault};
use crate::shape::Coord;
use crate::source::Source;
use std::sync::Arc;

/// The chunks of a variable: one for a variable in one piece, else one for each record.
#[derive(Debug)]
pub struct Records {
    /// Where the bytes are.
    pub source: Arc<dyn Source>,
    /// Bytes of the file.
    pub file_length: u64,
    /// Offset of the first chunk.
    pub begin: u64,
    /// Bytes of a chunk.
    pub length: u64,
    /// Bytes from one chunk to the next.
    pub stride: u64,
    /// Number of chunks.
    pub count: u64,
    /// Number of axes.
    pub rank: usize,
}

impl Records {
    fn place(&self, record: u64) -> Result<ChunkRef> {
        if record >= self.count {
            return Err(Error::new(ErrorKind::OutOfBounds, "there is no such chunk"));
        }
        if self.length == 0 {
            return Ok(ChunkRef::Absent);
        }
        let offset = record.checked_mul(self.stride).and_then(|n| n.checked_add(self.begin));
        // Of a chunk that the end of the file cuts, what is there can be read; the source refuses the rest.
        match offset {
            Some(offset) if offset < self.file_length => {
                Ok(ChunkRef::Range { source: self.source.clone(), offset, length: self.length, mask: 0 })
            }
            _ => Err(self.missing(record, offset.unwrap_or(u64::MAX))),
        }
    }

    fn missing(&self, record: u64, offset: u64) -> Error {
        let what = if self.count == 1 { "the data".to_owned() } else { format!("record {record}") };
        let text = format!("{what} lies beyond the end of the file, which has {} bytes", self.file_length);
        let hint = match self.whole() {
            0 => "the file is cut short".to_owned(),
            whole => format!("the file is cut short: select [:{whole}], the records that it has"),
        };
        Error::new(ErrorKind::Truncated, text).at("data", offset).hint(hint)
    }

    /// Number of chunks that the file has all bytes of.
    fn whole(&self) -> u64 {
        let rest = self.file_length.checked_sub(self.begin).and_then(|n| n.checked_sub(self.length));
        rest.map_or(0, |rest| {
            rest.checked_div(self.stride).map_or(1, |n| n.saturating_add(1)).min(self.count)
        })
    }
}

impl ChunkIndex for Records {
    fn locate(&self, chunks: &[Coord]) -> Result<Vec<ChunkRef>> {
        let record = |chunk: &Coord| {
            // One chunk has any coordinates; of records only the first axis has more than one.
            let first = if self.count == 1 { 0 } else { chunk.first().copied().unwrap_or(0) };
            self.place(first)
        };
        chunks.iter().map(record).collect()
    }

    fn scan(
        &self,
        visit: &mut dyn FnMut(Coord, ChunkRef) -> Result<()>,
        fault: &mut dyn FnMut(Fault),
    ) -> Result<()> {
        if self.length == 0 {
            return Ok(());
        }
        for record in 0..self.count {
            let mut chunk: Coord = std::iter::repeat_n(0, self.rank).collect();
            if let Some(first) = chunk.first_mut() {
                *first = record;
            }
            match self.place(record) {
                Ok(place) => visit(chunk, place)?,
                Err(error) => {
                    // All that follow are missing too.
                    fault(Fault { object: None, error });
                    break;
                }
            }
        }
        Ok(())
    }
}
