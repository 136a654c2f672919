//! Where the chunks of an array are: one object each.

use super::key::KeyEncoding;
use crate::error::Result;
use crate::model::{ChunkIndex, ChunkRef, Fault};
use crate::shape::Coord;
use crate::source::store::Store;
use std::sync::Arc;

/// One object for each chunk.
#[derive(Debug)]
pub(super) struct Objects {
    pub(super) store: Arc<dyn Store>,
    /// Of the array.
    pub(super) path: String,
    pub(super) keys: KeyEncoding,
    /// Chunks along each axis.
    pub(super) grid: Vec<u64>,
}

impl Objects {
    fn at(&self, coord: &[u64]) -> ChunkRef {
        ChunkRef::Object { store: self.store.clone(), key: self.keys.key(&self.path, coord).into() }
    }
}

impl ChunkIndex for Objects {
    fn locate(&self, chunks: &[Coord]) -> Result<Vec<ChunkRef>> {
        Ok(chunks.iter().map(|coord| self.at(coord)).collect())
    }

    fn scan(
        &self,
        visit: &mut dyn FnMut(Coord, ChunkRef) -> Result<()>,
        _: &mut dyn FnMut(Fault),
    ) -> Result<()> {
        let skip = if self.path.is_empty() { 0 } else { self.path.len() + 1 };
        let keys = self.store.list(&self.path)?;
        let mut coords: Vec<Coord> = keys
            .iter()
            .filter_map(|key| self.keys.coord(key.get(skip..)?, self.grid.len()))
            .filter(|coord| coord.iter().zip(&self.grid).all(|(c, n)| c < n))
            .collect();
        coords.sort_unstable();
        coords.into_iter().try_for_each(|coord| {
            let at = self.at(&coord);
            visit(coord, at)
        })
    }
}
