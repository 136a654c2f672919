//! Random operations, and what a dense array makes of them.

use super::*;
use crate::select::{Item, List, Mask, Mode, Slice};
use crate::{RawData, Selection};

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// A dense array.
#[derive(Clone, Debug)]
struct Dense {
    shape: Vec<u64>,
    data: Vec<i64>,
    fill: i64,
}

impl Dense {
    /// For each element of a selection, in C order of its shape, where it is. Resolved by the library, but walked
    /// element by element here.
    fn places(&self, selection: &Selection) -> (Vec<u64>, Vec<usize>) {
        let region = selection.resolve(&self.shape, &Limits::default()).unwrap();
        let selectors = region.selectors();
        let count = region.count().unwrap();
        let mut places = vec![0; count as usize];
        for n in 0..count {
            let items = ledger::coord_of(n, &selectors.iter().map(|s| s.len()).collect::<Vec<_>>());
            let mut index = vec![0; self.shape.len()];
            let mut position = 0;
            for ((selector, &item), &extent) in selectors.iter().zip(&items).zip(region.extents()) {
                let out = match selector {
                    crate::select::Selector::Range { axis, start, step, out_start, out_step, .. } => {
                        index[*axis] = start + step * item;
                        (*out_start as i64 + out_step * item as i64) as u64
                    }
                    crate::select::Selector::Points { axes, points, out } => {
                        for (j, &axis) in axes.iter().enumerate() {
                            index[axis] = points[item as usize * axes.len() + j];
                        }
                        out[item as usize]
                    }
                };
                position = position * extent + out;
            }
            let at = index.iter().zip(&self.shape).fold(0, |at, (&i, &n)| at * n + i);
            places[position as usize] = at as usize;
        }
        (region.shape().to_vec(), places)
    }

    fn resize(&mut self, shape: &[u64]) {
        let count: u64 = shape.iter().product();
        let mut data = vec![self.fill; count as usize];
        for (n, slot) in data.iter_mut().enumerate() {
            let coord = ledger::coord_of(n as u64, shape);
            if coord.iter().zip(&self.shape).all(|(c, n)| c < n) {
                let at = coord.iter().zip(&self.shape).fold(0, |at, (&c, &n)| at * n + c);
                *slot = self.data[at as usize];
            }
        }
        (self.shape, self.data) = (shape.to_vec(), data);
    }
}

fn selection(random: &mut Random, shape: &[u64]) -> Selection {
    let mut items = Vec::new();
    let mut axis = 0;
    while axis < shape.len() {
        let n = shape[axis];
        let bound =
            |random: &mut Random| (!random.one_in(4)).then(|| random.below(2 * n + 3) as i64 - n as i64 - 1);
        let index = |random: &mut Random| random.below(2 * n) as i64 - n as i64;
        match random.below(10) {
            0 if n > 0 => items.push(Item::Index(index(random))),
            1 if n > 0 => {
                let count = random.below(6);
                items.push(Item::List(List::from((0..count).map(|_| index(random)).collect::<Vec<_>>())));
            }
            2 => {
                let mask: Vec<bool> = (0..n).map(|_| random.one_in(2)).collect();
                items.push(Item::Mask(Mask::from(mask)));
            }
            3 if axis + 1 < shape.len() && random.one_in(2) => {
                let extents = vec![n, shape[axis + 1]];
                let mask = (0..n * shape[axis + 1]).map(|_| random.one_in(3)).collect();
                items.push(Item::Mask(Mask::new(extents, mask).unwrap()));
                axis += 1;
            }
            4 => {
                let step = [-3, -2, -1, 2, 3, 5][random.below(6) as usize];
                items.push(Item::Slice(Slice { start: bound(random), stop: bound(random), step }));
            }
            5 => {
                items.push(Item::NewAxis);
                continue;
            }
            6 if !items.contains(&Item::Ellipsis) => {
                items.push(Item::Ellipsis);
                break;
            }
            7 => items.push(Item::Slice(Slice::ALL)),
            _ => items.push(Item::Slice(Slice { start: bound(random), stop: bound(random), step: 1 })),
        }
        axis += 1;
    }
    Selection::vectorised(items)
}

/// A selection that has a meaning, and what it picks.
fn picked(random: &mut Random, dense: &Dense) -> (Selection, Vec<u64>, Vec<usize>) {
    loop {
        let mut selection = selection(random, &dense.shape);
        if random.one_in(3) {
            selection = selection.with_mode(Mode::Outer);
        }
        // Lists of different lengths do not go together.
        if selection.resolve(&dense.shape, &Limits::default()).is_ok() {
            let (shape, places) = dense.places(&selection);
            return (selection, shape, places);
        }
    }
}

fn start(random: &mut Random) -> (StagedArray, Dense) {
    let rank = 1 + random.below(3) as usize;
    let extent = |random: &mut Random| random.below(if rank == 1 { 40 } else { 12 });
    let shape: Vec<u64> = (0..rank).map(|_| extent(random)).collect();
    let chunk: Vec<u64> = (0..rank).map(|_| 1 + random.below(5)).collect();
    let fill = if random.one_in(2) { 0 } else { 7 };
    let count = shape.iter().product::<u64>() as usize;
    let data: Vec<i64> = (0..count).map(|_| random.below(5) as i64).collect();
    let block = || Block::from_values(&Values::new(&shape, &data).unwrap()).unwrap();
    let staged = match random.below(4) {
        0 => StagedArray::full(&shape, &chunk, &i64_type(), Some(fill.into())).unwrap(),
        1 => StagedArray::from_base(block(), &chunk, Some(fill.into())).unwrap(),
        2 => StagedArray::from_staged(block(), &chunk, Some(fill.into())).unwrap(),
        _ => stacked(random, &shape, &chunk, &data, fill),
    };
    let all = staged.ledger().slabs().len() == 1;
    let data = if all { vec![fill; count] } else { data };
    (staged, Dense { shape, data, fill })
}

/// Chunks on two base slabs in any order.
fn stacked(random: &mut Random, shape: &[u64], chunk: &[u64], data: &[i64], fill: i64) -> StagedArray {
    let grid = grid_of(shape, chunk).unwrap();
    let count = element_count(&grid).unwrap();
    let mut slabs: [Vec<u8>; 2] = Default::default();
    let (mut indices, mut offsets) = (Vec::new(), Vec::new());
    let whole = chunk.iter().product::<u64>();
    for n in 0..count {
        let coord = ledger::coord_of(n, &grid);
        let slab = random.below(2) as usize;
        indices.push(slab as u32 + 1);
        offsets.push(slabs[slab].len() as u64 / 8 / whole * chunk[0]);
        for inside in 0..whole {
            let inside = ledger::coord_of(inside, chunk);
            let at: Vec<u64> = (0..chunk.len()).map(|i| coord[i] * chunk[i] + inside[i]).collect();
            let value = if at.iter().zip(shape).all(|(a, n)| a < n) {
                data[at.iter().zip(shape).fold(0, |s, (&a, &n)| s * n + a) as usize]
            } else {
                // Nobody may ever see what lies beyond the edge.
                -999
            };
            slabs[slab].extend(value.to_le_bytes());
        }
    }
    let bases = slabs.map(|bytes| {
        let rows = bytes.len() as u64 / 8 / whole * chunk[0];
        let shape = [rows].into_iter().chain(chunk[1..].iter().copied()).collect();
        BaseSlab::memory(RawData { shape, dtype: i64_type(), bytes }).unwrap()
    });
    let map = ChunkMap::new(grid, indices, offsets).unwrap();
    StagedArray::new(shape, chunk, &i64_type(), bases.to_vec(), map, Some(fill.into())).unwrap()
}

/// No two chunks share a place on a staged slab, and each lies within its slab.
fn check_ledger(staged: &StagedArray) {
    let ledger = staged.ledger();
    let mut seen = std::collections::HashSet::new();
    for (at, (&slab, &offset)) in
        ledger.map().slab_indices().iter().zip(ledger.map().slab_offsets()).enumerate()
    {
        let shape = ledger.slabs()[slab as usize].as_ref().expect("a chunk lies on a slab that is gone");
        let extent = ledger.extent(&ledger.map.coord(at), ledger.shape());
        assert!(slab == 0 || offset + extent[0] <= shape[0], "chunk {at} ends beyond slab {slab}");
        assert!(!ledger.is_staged(slab) || seen.insert((slab, offset)), "two chunks share a staged place");
    }
    assert_eq!(staged.slabs.len(), ledger.slabs().len());
    assert_eq!(staged.hash_tables.len(), ledger.slabs().len());
    for (slab, shape) in staged.slabs.iter().zip(ledger.slabs()) {
        assert_eq!(slab.is_some(), shape.is_some());
    }
}

fn values(random: &mut Random, shape: &[u64]) -> (Vec<u64>, Vec<i64>) {
    // Some axes of extent 1, some in front left out.
    let mut own: Vec<u64> = shape.iter().map(|&n| if random.one_in(4) { 1 } else { n }).collect();
    if random.one_in(4) {
        own.drain(..random.below(own.len() as u64 + 1) as usize);
    }
    let count = own.iter().product::<u64>();
    (own, (0..count).map(|_| random.below(5) as i64).collect())
}

fn broadcast_at(own: &[u64], shape: &[u64], n: usize) -> usize {
    let coord = ledger::coord_of(n as u64, shape);
    let from = shape.len() - own.len();
    own.iter().zip(&coord[from..]).fold(0, |at, (&n, &c)| at * n + if n == 1 { 0 } else { c }) as usize
}

/// One sequence of operations.
fn sequence(seed: u64) {
    let mut random = Random(seed);
    let (mut staged, mut dense) = start(&mut random);
    let mut kept: Vec<(StagedArray, Dense)> = Vec::new();
    for step in 0..2 + random.below(10) {
        let what = random.below(16);
        match what {
            0..=5 => {
                let (selection, shape, places) = picked(&mut random, &dense);
                let (own, data) = values(&mut random, &shape);
                let plan = staged.set_plan(&selection).unwrap();
                let after = plan.map();
                staged.set(&selection, Values::new(&own, &data).unwrap()).unwrap();
                assert_eq!(staged.ledger().map(), &after);
                for (n, &place) in places.iter().enumerate() {
                    dense.data[place] = data[broadcast_at(&own, &shape, n)];
                }
            }
            6..=8 => {
                let shape: Vec<u64> = dense
                    .shape
                    .iter()
                    .map(|&n| if random.one_in(3) { n } else { (n + random.below(9)).saturating_sub(4) })
                    .collect();
                let plan = staged.resize_plan(&shape).unwrap();
                staged.resize(&shape).unwrap();
                assert_eq!(staged.ledger(), plan.ledger());
                dense.resize(&shape);
            }
            9 => staged.load().unwrap(),
            10 | 11 => {
                let plan = staged.commit().unwrap();
                assert_eq!(staged.ledger(), plan.ledger());
                assert!(!staged.has_changes());
            }
            12 => {
                kept.push((staged.copy(), dense.clone()));
                if random.one_in(2) {
                    std::mem::swap(&mut staged, &mut kept.last_mut().unwrap().0);
                }
            }
            13 => {
                let fill = random.below(9) as i64;
                kept.push((staged.clone(), dense.clone()));
                staged = staged.refill(fill).unwrap();
                dense.data.iter_mut().filter(|v| **v == dense.fill).for_each(|v| *v = fill);
                dense.fill = fill;
            }
            14 => {
                // There and back again, through a narrower type that holds all values.
                let narrow = DType::Integer(IntegerType::new(2, ByteOrder::Big, true));
                kept.push((staged.clone(), dense.clone()));
                staged = staged.astype(&narrow).unwrap();
                if random.one_in(2) {
                    let (selection, _, places) = picked(&mut random, &dense);
                    staged.set(&selection, 3i64).unwrap();
                    places.iter().for_each(|&p| dense.data[p] = 3);
                }
                staged = staged.astype(&i64_type()).unwrap();
            }
            _ => {
                // What is not listed is the fill value.
                let mut rest = dense.clone();
                for change in staged.changes() {
                    let Change { chunk, data } = change.unwrap();
                    let block = match &data {
                        ChangeData::Staged(block) => Some(block.to::<i64>().unwrap()),
                        ChangeData::Base => None,
                    };
                    assert_eq!(block.is_some(), chunk.staged);
                    for n in 0..chunk.extent.iter().product::<u64>() {
                        let inside = ledger::coord_of(n, &chunk.extent);
                        let at = (0..inside.len())
                            .fold(0, |at, i| at * dense.shape[i] + chunk.start[i] + inside[i])
                            as usize;
                        if let Some(block) = &block {
                            assert_eq!(dense.data[at], block.data[n as usize]);
                        }
                        rest.data[at] = rest.fill;
                    }
                }
                assert!(rest.data.iter().all(|&v| v == rest.fill));
            }
        }
        check_ledger(&staged);
        let (selection, shape, places) = picked(&mut random, &dense);
        let read = staged.read::<i64>(&selection).unwrap();
        let wanted: Vec<i64> = places.iter().map(|&p| dense.data[p]).collect();
        assert_eq!((read.shape, read.data), (shape, wanted), "seed {seed}, step {step}, {selection}");
        let all = staged.read::<i64>(..).unwrap();
        assert_eq!((&all.shape, &all.data), (&dense.shape, &dense.data), "seed {seed}, step {step} ({what})");
    }
    for (copy, dense) in kept {
        assert_eq!(copy.read::<i64>(..).unwrap().data, dense.data, "seed {seed}: a copy changed");
    }
}

/// As many as `HYPERSLAB_STAGED_SEQUENCES` says, from the seed `HYPERSLAB_STAGED_SEED`.
#[test]
fn random_operations_are_those_of_a_dense_array() {
    let number =
        |name: &str, default| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let first = number("HYPERSLAB_STAGED_SEED", 1);
    for seed in first..first + number("HYPERSLAB_STAGED_SEQUENCES", 500) {
        sequence(seed);
    }
}
