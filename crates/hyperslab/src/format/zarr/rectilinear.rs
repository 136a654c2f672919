//! The chunk grid `rectilinear` of Zarr 3: along each axis a list of the extents of its chunks.
//!
//! A stretch of chunks with the same extent is a run. Where a run of each axis meet is a *tile*, which is an array with a
//! regular grid: the chunks of all tiles together are those of the array, so that everything else deals with tiles.

use crate::error::{Error, ErrorKind, Result};
use crate::json::{Json, wrong_member};
use crate::limits::Limits;

/// Bytes that a tile needs in memory, its codecs left out.
const TILE: u64 = 2048;

/// Chunks of one extent, side by side on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// Extent of each of its chunks.
    edge: u64,
    /// Chunks in it.
    count: u64,
    /// Number of its first chunk.
    first: u64,
    /// First index.
    start: u64,
    /// Indices within the array: those of its chunks, but for the last one that may reach beyond it.
    length: u64,
}

/// The runs of all axes.
#[derive(Debug)]
pub(super) struct Rectilinear {
    axes: Vec<Vec<Run>>,
}

/// Where a run of each axis meet.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Crossing {
    /// First element.
    pub(super) start: Vec<u64>,
    /// Extents.
    pub(super) shape: Vec<u64>,
    /// Coordinates of the first chunk.
    pub(super) first: Vec<u64>,
    /// Extents of its chunks.
    pub(super) chunk: Vec<u64>,
}

impl Rectilinear {
    /// The grid that a configuration states for an array of `shape`.
    pub(super) fn parse(configuration: &Json, shape: &[u64]) -> Result<Rectilinear> {
        match configuration.get("kind").and_then(Json::as_str) {
            Some("inline") => {}
            Some(other) => {
                return Err(Error::unsupported(format_args!("a rectilinear grid of kind {other:?}")));
            }
            None => return Err(wrong_member("kind", "missing in a rectilinear grid")),
        }
        let list = configuration.get("chunk_shapes").and_then(Json::as_list);
        let list = list.ok_or_else(|| wrong_member("chunk_shapes", "missing in a rectilinear grid"))?;
        if list.len() != shape.len() {
            let what = format!("{} axes, the array has {}", list.len(), shape.len());
            return Err(wrong_member("chunk_shapes", what));
        }
        let axes = list.iter().zip(shape).map(|(edges, &extent)| axis(edges, extent));
        Ok(Rectilinear { axes: axes.collect::<Result<_>>()? })
    }

    /// Whether all chunks are equal.
    pub(super) fn is_regular(&self) -> bool {
        self.axes.iter().all(|runs| runs.len() < 2)
    }

    /// The largest extent of a chunk along each axis; 1 where there is none.
    pub(super) fn largest(&self) -> Vec<u64> {
        self.axes.iter().map(|runs| runs.iter().map(|run| run.edge).max().unwrap_or(1)).collect()
    }

    /// For each axis the extents of its chunks, and how many there are of each in a row.
    pub(super) fn runs(&self) -> Vec<Vec<(u64, u64)>> {
        self.axes.iter().map(|runs| runs.iter().map(|run| (run.edge, run.count)).collect()).collect()
    }

    /// The tiles, in C order. `each`: bytes that one needs for its codecs.
    pub(super) fn tiles(&self, each: u64, limits: &Limits) -> Result<Vec<Crossing>> {
        let count = self.axes.iter().fold(1u128, |n, runs| n.saturating_mul(runs.len() as u128));
        let memory = count.saturating_mul(u128::from(TILE.saturating_add(each)));
        if memory > u128::from(limits.plan) {
            let what = format!("memory for the {count} regular parts of a rectilinear grid");
            return Err(Error::limit(what, memory, limits.plan.into()));
        }
        let mut tiles = vec![Crossing::default()];
        for runs in &self.axes {
            let mut crossed = Vec::with_capacity(tiles.len().saturating_mul(runs.len()));
            for tile in &tiles {
                crossed.extend(runs.iter().map(|run| tile.crossed(run)));
            }
            tiles = crossed;
        }
        Ok(tiles)
    }
}

impl Crossing {
    /// With one axis more.
    fn crossed(&self, run: &Run) -> Crossing {
        let with = |v: &[u64], last| v.iter().copied().chain([last]).collect();
        Crossing {
            start: with(&self.start, run.start),
            shape: with(&self.shape, run.length),
            first: with(&self.first, run.first),
            chunk: with(&self.chunk, run.edge),
        }
    }
}

fn edge(spelled: &Json) -> Result<u64> {
    let edge = spelled.as_u64().filter(|&edge| edge > 0);
    edge.ok_or_else(|| wrong_member("chunk_shapes", format_args!("{spelled} is no extent of a chunk")))
}

/// The runs of an axis of `extent`: a list of extents and pairs of an extent and a count, or one extent for all chunks.
fn axis(spelled: &Json, extent: u64) -> Result<Vec<Run>> {
    let Some(list) = spelled.as_list() else {
        let edge = edge(spelled)?;
        let mut runs = Vec::new();
        push(&mut runs, edge, extent.div_ceil(edge), extent);
        return Ok(runs);
    };
    let mut runs = Vec::new();
    let mut sum = 0u64;
    for item in list {
        let (edge, count) = match item.as_list() {
            None => (edge(item)?, 1),
            Some([length, count]) => {
                let count = count.as_u64().ok_or_else(|| {
                    wrong_member("chunk_shapes", format_args!("{item} states no number of chunks"))
                })?;
                (edge(length)?, count)
            }
            Some(_) => {
                return Err(wrong_member("chunk_shapes", format_args!("{item} is no extent and count")));
            }
        };
        let more = edge.checked_mul(count).and_then(|length| sum.checked_add(length));
        sum = more.ok_or_else(|| wrong_member("chunk_shapes", "chunks that reach beyond 2^64"))?;
        push(&mut runs, edge, count, extent);
    }
    if sum < extent {
        let text = format!("chunks of {sum} in all along an axis of {extent}");
        return Err(Error::new(ErrorKind::Corrupt, text).context("chunk_shapes"));
    }
    Ok(runs)
}

/// Adds those of `count` chunks that begin within the array.
fn push(runs: &mut Vec<Run>, edge: u64, count: u64, extent: u64) {
    let (start, first) = runs
        .last()
        .map_or((0, 0), |run| (run.start.saturating_add(run.length), run.first.saturating_add(run.count)));
    let room = extent.saturating_sub(start);
    let count = count.min(room.div_ceil(edge));
    if count == 0 {
        return;
    }
    let length = edge.saturating_mul(count).min(room);
    match runs.last_mut() {
        Some(last) if last.edge == edge => {
            last.count = last.count.saturating_add(count);
            last.length = last.length.saturating_add(length);
        }
        _ => runs.push(Run { edge, count, first, start, length }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(edges: &str, extent: u64) -> Result<Vec<(u64, u64)>> {
        let text = format!(r#"{{"kind":"inline","chunk_shapes":[{edges}]}}"#);
        let parsed = Json::parse(text.as_bytes()).unwrap();
        Ok(Rectilinear::parse(&parsed, &[extent])?.runs().remove(0))
    }

    #[test]
    fn edges_are_lists_runs_and_numbers() {
        assert_eq!(runs("[[2,3]]", 6).unwrap(), [(2, 3)]);
        assert_eq!(runs("[1,[2,1],3]", 6).unwrap(), [(1, 1), (2, 1), (3, 1)]);
        assert_eq!(runs("[[1,3],3]", 6).unwrap(), [(1, 3), (3, 1)]);
        assert_eq!(runs("[2,2,[2,1]]", 6).unwrap(), [(2, 3)]);
        assert_eq!(runs("4", 6).unwrap(), [(4, 2)]);
        // What begins behind the end is not there.
        assert_eq!(runs("[3,4,5,[1,7]]", 6).unwrap(), [(3, 1), (4, 1)]);
        assert_eq!(runs("[3]", 0).unwrap(), []);
        for wrong in ["[2,3]", "[0,6]", "[[6]]", "[[2,3,4]]", "[-6]", "\"6\"", "[[9223372036854775808,2]]"] {
            assert_eq!(runs(wrong, 6).unwrap_err().kind(), ErrorKind::Corrupt, "{wrong}");
        }
    }

    #[test]
    fn tiles_are_bounded() {
        let axes = |n: u64| (0..n).map(|i| (1 + i % 2).to_string()).collect::<Vec<_>>().join(",");
        let text = format!(r#"{{"kind":"inline","chunk_shapes":[[{0}],[{0}]]}}"#, axes(2000));
        let parsed = Json::parse(text.as_bytes()).unwrap();
        let grid = Rectilinear::parse(&parsed, &[3000, 3000]).unwrap();
        assert_eq!(grid.tiles(0, &Limits::default()).unwrap_err().kind(), ErrorKind::LimitExceeded);
    }
}
