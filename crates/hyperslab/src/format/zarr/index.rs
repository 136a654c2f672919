//! Where the chunks of an array are: one object each.

use super::key::KeyEncoding;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{ChunkIndex, ChunkRef, Fault};
use crate::shape::{Coord, element_count};
use crate::source::Latency;
use crate::source::store::Store;
use std::sync::Arc;

/// One object for each chunk.
#[derive(Debug)]
pub(super) struct Objects {
    pub(super) store: Arc<dyn Store>,
    /// Of the array.
    pub(super) path: String,
    pub(super) keys: KeyEncoding,
    /// Coordinates of the first chunk, where these are but some of the array's.
    pub(super) first: Option<Vec<u64>>,
    /// Chunks along each axis.
    pub(super) grid: Vec<u64>,
}

/// Of so few chunks each is asked for, rather than that all objects of the array are listed: an array has many windows.
const FEW: u64 = 1 << 12;

/// Of so many chunks that a store did not list, each is asked for.
const ASKED: u64 = 1 << 16;

impl Objects {
    fn key(&self, coord: &[u64]) -> String {
        match &self.first {
            None => self.keys.key(&self.path, coord),
            Some(first) => {
                // The chunks of a window are some of the array's, whose number fits.
                let there: Coord = coord.iter().zip(first).map(|(c, f)| c.saturating_add(*f)).collect();
                self.keys.key(&self.path, &there)
            }
        }
    }

    fn at(&self, coord: &[u64]) -> ChunkRef {
        ChunkRef::Object { store: self.store.clone(), key: self.key(coord).into() }
    }

    /// The coordinates here of a chunk of the array; `None` for one in front of the first.
    fn own(&self, mut coord: Coord) -> Option<Coord> {
        for (c, first) in coord.iter_mut().zip(self.first.iter().flatten()) {
            *c = c.checked_sub(*first)?;
        }
        Some(coord)
    }

    /// Whether a name is that of a chunk, if the array called its chunks as many others do: then all of it would seem to
    /// be missing.
    fn is_key_elsewhere(&self, name: &str) -> bool {
        let usual = [KeyEncoding::v2('.'), KeyEncoding::v2('/'), KeyEncoding::v3('/'), KeyEncoding::v3('.')];
        let coords = usual.iter().filter_map(|keys| keys.coord(name, self.grid.len()));
        coords.into_iter().any(|coord| coord.iter().zip(&self.grid).all(|(c, n)| c < n))
    }

    /// Asks the store for chunks that it did not list: what is in their place may be no object, and is not nothing. Far
    /// away that would be a request each, and what is not listed is not there.
    fn check_absent(&self, there: &[Coord], count: u64, fault: &mut dyn FnMut(Fault)) {
        if self.store.hints().latency == Latency::Remote {
            return;
        }
        let mut there = there.iter().peekable();
        for number in 0..count.min(ASKED) {
            let coord = self.coord(number);
            while there.peek().is_some_and(|next| **next < coord) {
                there.next();
            }
            if there.peek() != Some(&&coord)
                && let Err(error) = self.store.len(&self.key(&coord))
            {
                fault(Fault { object: None, error: error.context(format!("chunk {:?}", coord.as_slice())) });
            }
        }
    }

    /// The coordinates of a chunk by its number in C order.
    fn coord(&self, number: u64) -> Coord {
        let mut rest = number;
        let mut coord: Coord = self.grid.iter().map(|_| 0).collect();
        for (slot, &extent) in coord.iter_mut().zip(&self.grid).rev() {
            (*slot, rest) = (rest % extent.max(1), rest / extent.max(1));
        }
        coord
    }

    /// Visits those of a few chunks that are there.
    fn scan_few(
        &self,
        count: u64,
        visit: &mut dyn FnMut(Coord, ChunkRef) -> Result<()>,
        fault: &mut dyn FnMut(Fault),
    ) -> Result<()> {
        for number in 0..count {
            let coord = self.coord(number);
            match self.store.len(&self.key(&coord)) {
                Ok(Some(_)) => {
                    let at = self.at(&coord);
                    visit(coord, at)?;
                }
                Ok(None) => {}
                Err(error) => fault(Fault { object: None, error: error.context(self.key(&coord)) }),
            }
        }
        Ok(())
    }
}

impl ChunkIndex for Objects {
    fn locate(&self, chunks: &[Coord]) -> Result<Vec<ChunkRef>> {
        Ok(chunks.iter().map(|coord| self.at(coord)).collect())
    }

    fn scan(
        &self,
        visit: &mut dyn FnMut(Coord, ChunkRef) -> Result<()>,
        fault: &mut dyn FnMut(Fault),
    ) -> Result<()> {
        let count = element_count(&self.grid)?;
        if self.first.is_some() && count <= FEW {
            return self.scan_few(count, visit, fault);
        }
        let skip = if self.path.is_empty() { 0 } else { self.path.len() + 1 };
        let keys = self.store.list(&self.path)?;
        let names = || keys.iter().filter_map(|key| key.get(skip..));
        let mut coords: Vec<Coord> = names()
            .filter_map(|name| self.own(self.keys.coord(name, self.grid.len())?))
            .filter(|coord| coord.iter().zip(&self.grid).all(|(c, n)| c < n))
            .collect();
        coords.sort_unstable();
        if self.first.is_none() {
            for name in names().filter(|name| self.keys.is_folder(name, self.grid.len())) {
                let text = format!("{name} is an object, where a folder with chunks belongs");
                fault(Fault { object: None, error: Error::new(ErrorKind::Corrupt, text) });
            }
            let other = names().find(|name| coords.is_empty() && self.is_key_elsewhere(name));
            if let Some(name) = other {
                let text = format!("no chunk is called as the array says, but {name} as in other arrays");
                let error = Error::new(ErrorKind::Corrupt, text)
                    .hint("the separator of its keys may be wrong (dimension_separator, chunk_key_encoding)");
                fault(Fault { object: None, error });
            }
            self.check_absent(&coords, count, fault);
        }
        coords.into_iter().try_for_each(|coord| {
            let at = self.at(&coord);
            visit(coord, at)
        })
    }
}
