//! Arrays whose chunks differ in their extents: read as tiles, each with a regular grid of its own.

use super::Array;
use super::virtual_region::{Pairs, along_axes};
use super::virtual_selection::Blocks;
use crate::error::{Context, Result};
use crate::limits::Budget;
use crate::model::{ChunkRef, Fault, Storage, Tile};
use crate::plan::{Origin, Part, ReadPlan};
use crate::select::Region;
use crate::shape::Coord;

impl Array {
    /// The plan to read a region of an array that consists of tiles.
    pub(super) fn plan_tiles(&self, region: Region) -> Result<ReadPlan> {
        let limits = &self.options().limits;
        let memory = Budget::new("memory for the plan of a rectilinear grid", limits.plan);
        let mut parts = Vec::new();
        let shape = region.shape().to_vec();
        self.in_tiles(&region, &mut |origin, region| {
            let part = Part::new(origin, region, limits)?;
            // Its selectors, tasks and units, roughly.
            memory.charge((size_of::<Part>() + 512 + 48 * part.tasks.len()) as u64)?;
            parts.push(part);
            Ok(())
        })?;
        ReadPlan::of_tiles(shape, self.dtype().clone(), parts, limits)
    }

    /// The parts of a region that fall into the tiles, as regions of these.
    pub(super) fn in_tiles(
        &self,
        region: &Region,
        each: &mut dyn FnMut(&Origin<'_>, Region) -> Result<()>,
    ) -> Result<()> {
        for (tile, array) in self.tiles() {
            let windows = tile.start.iter().zip(array.shape()).enumerate();
            let pairs = windows.map(|(axis, (&start, &length))| {
                (Blocks::run(start, length), Some((axis, Blocks::run(0, length))))
            });
            let pairs = Pairs::new(pairs.collect());
            let inside = along_axes(region, array.shape(), &pairs, &self.options().limits)?;
            let Some(inside) = inside else { continue };
            let origin = Origin {
                name: array.path(),
                identity: array.identity(),
                meta: array.meta(),
                index: &*tile.index,
                pipeline: array.pipeline()?,
            };
            each(&origin, inside).context(|| array.path().to_owned())?;
        }
        Ok(())
    }

    /// The tiles, each with the array that it is by itself; none if this array does not consist of such.
    pub(super) fn tiles(&self) -> impl Iterator<Item = (&Tile, &Array)> {
        let tiles: &[Tile] = match self.storage() {
            Storage::Tiles(tiles) => tiles,
            _ => &[],
        };
        tiles.iter().zip(self.tile_arrays(tiles))
    }
}

/// Visits the stored chunks of all tiles, with their coordinates in the grid of the array.
pub(super) fn scan(
    tiles: &[Tile],
    visit: &mut dyn FnMut(Coord, ChunkRef) -> Result<()>,
    fault: &mut dyn FnMut(Fault),
) -> Result<()> {
    for tile in tiles {
        let there = &mut |mut coord: Coord, chunk| {
            for (c, first) in coord.iter_mut().zip(&tile.first) {
                *c = c.saturating_add(*first);
            }
            visit(coord, chunk)
        };
        tile.index.scan(there, fault)?;
    }
    Ok(())
}
