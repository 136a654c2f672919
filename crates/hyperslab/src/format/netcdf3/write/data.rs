//! The bytes of variables in a file that is being written.

use super::ranges::Ranges;
use crate::error::{Error, Result};
use crate::format::netcdf3::header::Header;
use crate::format::netcdf3::layout::{Layout, Place};
use crate::source::WriteFile;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes that are moved at a time.
const BLOCK: u64 = 4 << 20;

/// A file, and where the variables are in it now. A variable is known by a number that never changes.
#[derive(Debug)]
pub(super) struct Data {
    pub(super) file: Arc<WriteFile>,
    places: HashMap<usize, Place>,
    pub(super) stride: u64,
    /// Offset of the first byte of data: how far the header may reach.
    pub(super) first: u64,
}

impl Data {
    /// The places that a header says. `ids` are the numbers of its variables.
    pub(super) fn new(file: Arc<WriteFile>, header: &Header, ids: &[usize]) -> Result<Data> {
        let layout = Layout::new(header, 0);
        let mut places = HashMap::with_capacity(ids.len());
        let mut first = u64::MAX;
        for ((place, variable), &id) in layout.places.into_iter().zip(&header.variables).zip(ids) {
            let place = place
                .map_err(|wrong| wrong.error(variable.at).context(format!("variable {}", variable.name)))?;
            first = first.min(place.begin);
            places.insert(id, place);
        }
        Ok(Data { file, places, stride: layout.stride.unwrap_or(0), first })
    }

    fn place(&self, id: usize) -> Result<&Place> {
        self.places.get(&id).ok_or_else(|| Error::invalid("a variable without a place"))
    }

    /// Calls `part` with offset in the file, offset in the bytes and length of each run of a range of bytes of a variable.
    fn runs(
        &self,
        id: usize,
        offset: u64,
        length: u64,
        mut part: impl FnMut(u64, u64, u64) -> Result<()>,
    ) -> Result<()> {
        let place = self.place(id)?;
        if !place.is_record || self.stride == place.length {
            return part(place.begin.saturating_add(offset), 0, length);
        }
        let one = place.length.max(1);
        let mut done = 0;
        while done < length {
            let (record, within) = ((offset + done) / one, (offset + done) % one);
            let n = (one - within).min(length - done);
            let begin = record.checked_mul(self.stride).and_then(|n| n.checked_add(place.begin + within));
            part(begin.ok_or_else(|| Error::invalid("a record beyond any file"))?, done, n)?;
            done += n;
        }
        Ok(())
    }

    /// Writes bytes of a variable, counted from its first element as if its records lay one after the other.
    pub(super) fn write(&self, id: usize, offset: u64, bytes: &[u8]) -> Result<()> {
        self.runs(id, offset, bytes.len() as u64, |at, from, n| {
            let part = bytes.get(from as usize..(from + n) as usize).unwrap_or_default();
            self.file.write_at(at, part)
        })
    }

    fn read(&self, id: usize, offset: u64, length: u64) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(length.min(BLOCK) as usize);
        self.runs(id, offset, length, |at, _, n| {
            out.extend_from_slice(&self.file.read_at(at, n)?);
            Ok(())
        })?;
        Ok(out)
    }

    /// Copies what was written of a variable to a variable of the same type and extents, in this or another file.
    pub(super) fn copy(&self, from: usize, to: &Data, id: usize, written: &Ranges) -> Result<()> {
        for (mut at, end) in written.iter() {
            while at < end {
                let n = (end - at).min(BLOCK);
                to.write(id, at, &self.read(from, at, n)?)?;
                at += n;
            }
        }
        Ok(())
    }

    /// Writes an element over and over again.
    pub(super) fn fill(&self, id: usize, start: u64, end: u64, element: &[u8]) -> Result<()> {
        let block = element.repeat(((end - start).min(BLOCK) as usize).div_ceil(element.len().max(1)));
        let mut at = start;
        while at < end && !block.is_empty() {
            let n = (end - at).min(block.len() as u64);
            self.write(id, at, block.get(..n as usize).unwrap_or_default())?;
            at += n;
        }
        Ok(())
    }

    /// The end of all data, when there are `records`; paddings included where others follow.
    pub(super) fn end(&self, records: u64) -> u64 {
        let end = |place: &Place| {
            let end = place.end(records, self.stride).unwrap_or(u64::MAX);
            let alone = place.is_record && place.length == self.stride;
            if alone { end } else { end.saturating_add(3) / 4 * 4 }
        };
        self.places.values().map(end).max().unwrap_or(0)
    }
}
