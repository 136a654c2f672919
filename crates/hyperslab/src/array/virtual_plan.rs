//! Virtual datasets: a plan made of plans.
//!
//! For each mapping, the part of the caller's region that falls into the mapping's virtual selection is a region of the
//! source array, which the ordinary path reads straight into its place of the result. Sources may be virtual themselves.

use super::array::Array;
use super::node::Node;
use super::resolve::resolve;
use super::virtual_region::{alike, along_axes, by_number, pick_all};
use super::virtual_selection::{Blocks, Elements, block_of, extent_for, indices_below, unlimited_axis};
use crate::dtype::DType;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::exec;
use crate::limits::{Budget, Limits};
use crate::model::{
    ArrayMeta, ChunkGrid, ChunkIndex, ChunkRef, Dataspace, Fault, NodeId, SpaceSelection, Storage,
    VirtualMapping,
};
use crate::plan::{Origin, Part, ReadPlan};
use crate::select::{Region, Selector};
use crate::shape::{Coord, Name};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Source arrays kept open.
const SOURCES_KEPT: usize = 4096;

/// Sources that are opened and looked up at a time where they are far away, and how many before what they gave is looked at.
const TOGETHER: usize = 16;
const BATCH: usize = 1024;

/// Mappings looked at for one plan or extent, those of sources that are virtual themselves included.
const MAPPINGS: u64 = 1 << 21;

/// Sources of one source that are opened, all levels together.
const NESTED: u64 = 1 << 16;

/// The sources of a virtual dataset that were opened; `None`: there is no such dataset.
#[derive(Debug, Default)]
pub(super) struct Sources {
    opened: Mutex<HashMap<(Name, Name), Option<Array>>>,
    /// How far down this array is, where it is a source itself.
    nesting: Option<Nesting>,
}

/// How far down a source is below the array that the caller holds.
#[derive(Clone, Debug)]
pub(super) struct Nesting {
    depth: u32,
    /// Sources of sources that may be opened.
    left: Arc<Budget>,
}

impl Sources {
    /// Nothing opened yet. `nesting`: where the array is a source itself.
    pub(super) fn new(nesting: Option<Nesting>) -> Self {
        Sources { opened: Mutex::default(), nesting }
    }

    /// The sources that are there and were opened.
    pub(super) fn arrays(&self) -> Vec<Array> {
        self.opened.lock().unwrap_or_else(|e| e.into_inner()).values().flatten().cloned().collect()
    }

    /// How far down the array is, where it is a source itself.
    pub(super) fn nesting(&self) -> Option<&Nesting> {
        self.nesting.as_ref()
    }

    /// The nesting of a source of this array.
    fn below(&self, limits: &Limits) -> Result<Nesting> {
        let Some(nesting) = &self.nesting else {
            let left = Arc::new(Budget::new("sources of the sources of a virtual dataset", NESTED));
            return Ok(Nesting { depth: 1, left });
        };
        limits.check_depth("virtual datasets", nesting.depth + 1)?;
        nesting.left.charge(1)?;
        Ok(Nesting { depth: nesting.depth + 1, left: nesting.left.clone() })
    }
}

/// What a plan in the making may take, and where it stands.
struct Planning<'a> {
    limits: &'a Limits,
    mappings: &'a Budget,
    memory: &'a Budget,
    /// The virtual datasets that the one at hand is a source of.
    above: Vec<(usize, NodeId)>,
}

/// One source and what it gives.
struct Piece<'a> {
    selection: Cow<'a, SpaceSelection>,
    mapping: &'a VirtualMapping,
    /// Which of the numbered sources it is.
    number: Option<u64>,
    /// Indices on the unlimited axes of both selections.
    unlimited: Option<u64>,
}

impl Array {
    /// The plan to read a region of a virtual dataset.
    pub(super) fn plan_virtual(&self, mappings: &[VirtualMapping], region: Region) -> Result<ReadPlan> {
        let limits = &self.options().limits;
        let planning = Planning {
            limits,
            mappings: &Budget::new("mappings of a virtual dataset and its sources", MAPPINGS),
            memory: &Budget::new("memory for the plan of a virtual dataset", limits.plan / 4),
            above: Vec::new(),
        };
        let shape = region.shape().to_vec();
        let parts = planning.mappings(self, mappings, &region)?;
        let meta = self.meta();
        ReadPlan::of_parts(shape, meta.dtype.clone(), meta.fill_element.clone(), parts, limits)
    }

    /// The extents of a virtual dataset as its sources make them; `None` if none of its mappings is unlimited.
    ///
    /// As libhdf5 has it by default: an unlimited axis ends where the last source that is there ends, and not before
    /// the mappings of limited extent.
    pub(super) fn virtual_dims(&self, mappings: &[VirtualMapping]) -> Result<Option<Vec<u64>>> {
        let rank = self.shape().len();
        let mut grown: Vec<Option<u64>> = vec![None; rank];
        let mut least = vec![0; rank];
        for mapping in mappings {
            let unlimited = unlimited_axis(&mapping.selection);
            for (axis, least) in least.iter_mut().enumerate().filter(|(axis, _)| Some(*axis) != unlimited) {
                *least = limited_end(&mapping.selection, axis).max(*least);
            }
            let Some(axis) = unlimited else { continue };
            let extent = self.unlimited_extent(mapping, axis).context(|| name(mapping))?;
            let grown = grown.get_mut(axis).ok_or_else(|| {
                Error::new(ErrorKind::Corrupt, format!("axis {axis} of a virtual dataset of rank {rank}"))
            })?;
            *grown = Some(grown.unwrap_or(0).max(extent));
        }
        if grown.iter().all(Option::is_none) {
            return Ok(None);
        }
        let axes = self.shape().iter().zip(grown).zip(least);
        Ok(Some(axes.map(|((&now, grown), least)| grown.map_or(now, |g| g.max(least))).collect()))
    }

    /// How far the sources of an unlimited mapping reach on its axis.
    fn unlimited_extent(&self, mapping: &VirtualMapping, axis: usize) -> Result<u64> {
        if let Some(source_axis) = unlimited_axis(&mapping.source_selection) {
            let extent = match self.source(&mapping.file, &mapping.dataset)? {
                Some(source) => source.shape().get(source_axis).copied().unwrap_or(0),
                None => 0,
            };
            let len = indices_below(&mapping.source_selection, source_axis, extent);
            return Ok(extent_for(&mapping.selection, axis, len));
        }
        let blocks = self.blocks(mapping, u64::MAX)?;
        match blocks.checked_sub(1).and_then(|last| block_of(&mapping.selection, axis, last)) {
            Some(last) => Ok(limited_end(&last, axis)),
            None => Ok(0),
        }
    }

    /// How many of the numbered sources of a mapping are there, up to `most`: those before the first that is not.
    fn blocks(&self, mapping: &VirtualMapping, most: u64) -> Result<u64> {
        if !has_number(&mapping.file)? && !has_number(&mapping.dataset)? {
            let text =
                "an unlimited selection whose sources have neither a number nor an unlimited selection";
            return Err(Error::new(ErrorKind::Corrupt, text));
        }
        // Each source is a file or an object, so that this ends, but not in any case soon.
        let most = most.min(MAPPINGS);
        let far = self.has_sources_far_away() && self.sources().nesting.is_none();
        let (mut number, mut together) = (0, 1);
        while number < most {
            // Those behind the first that is missing are asked for in vain.
            let numbers: Vec<u64> = (number..most.min(number.saturating_add(together))).collect();
            for source in exec::all(TOGETHER, &numbers, |&number| self.numbered(mapping, number)) {
                if source?.is_none() {
                    return Ok(number);
                }
                number += 1;
            }
            if far {
                together = (together * 2).min(TOGETHER as u64);
            }
        }
        Ok(number)
    }

    /// Whether each source takes requests, which need not wait for one another.
    fn has_sources_far_away(&self) -> bool {
        self.hierarchy().traffic().requests > 0 && self.hierarchy().retry().is_none()
    }

    fn numbered(&self, mapping: &VirtualMapping, number: u64) -> Result<Option<Array>> {
        let file = with_number(&mapping.file, Some(number))?;
        let dataset = with_number(&mapping.dataset, Some(number))?;
        self.source(&file, &dataset)
    }

    /// Opens a source; `None` if there is no such file, or no such dataset in it.
    fn source(&self, file: &Name, dataset: &Name) -> Result<Option<Array>> {
        let opened = &self.sources().opened;
        let key = (file.clone(), dataset.clone());
        if let Some(known) = opened.lock().unwrap_or_else(|e| e.into_inner()).get(&key) {
            return Ok(known.clone());
        }
        let source = self.open_source(file, dataset)?;
        let mut opened = opened.lock().unwrap_or_else(|e| e.into_inner());
        if opened.len() >= SOURCES_KEPT {
            opened.clear();
        }
        opened.insert(key, source.clone());
        Ok(source)
    }

    fn open_source(&self, file: &Name, dataset: &Name) -> Result<Option<Array>> {
        let hierarchy = match file.as_bytes() {
            b"." => self.hierarchy().clone(),
            _ => match self.hierarchy().neighbour(file)? {
                Some(hierarchy) => hierarchy,
                None => return Ok(None),
            },
        };
        let start =
            Node { id: hierarchy.root(), hierarchy, path: "/".into(), options: self.options().clone() };
        let node = match resolve(&start, dataset.as_bytes()) {
            Ok(node) => node,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let nesting = self.sources().below(&self.options().limits)?;
        Array::open(node.hierarchy, node.id, node.path, node.options, Some(nesting)).map(Some)
    }
}

/// Names a mapping in messages.
fn name(mapping: &VirtualMapping) -> String {
    format!("source {} in file {}", mapping.dataset, mapping.file)
}

/// The index behind the last one of a limited axis.
fn limited_end(selection: &SpaceSelection, axis: usize) -> u64 {
    match selection {
        SpaceSelection::None | SpaceSelection::All => 0,
        SpaceSelection::Regular(slab) => {
            let part = |v: &[u64]| v.get(axis).copied().unwrap_or(1);
            let (Some(Some(count)), Some(Some(block))) = (slab.count.get(axis), slab.block.get(axis)) else {
                return 0;
            };
            let Some(last) = count.checked_sub(1) else { return 0 };
            let start = slab.start.get(axis).copied().unwrap_or(0);
            start.saturating_add(last.saturating_mul(part(&slab.stride))).saturating_add(*block)
        }
        SpaceSelection::Points(points) => {
            points.iter().filter_map(|p| p.get(axis)).max().map_or(0, |p| p.saturating_add(1))
        }
        SpaceSelection::Blocks(blocks) => {
            blocks.iter().filter_map(|b| b.1.get(axis)).max().map_or(0, |p| p.saturating_add(1))
        }
    }
}

/// Whether a name holds `%b`. A `%` before anything but `b` and `%` is an error.
fn has_number(name: &Name) -> Result<bool> {
    let mut found = false;
    let mut bytes = name.as_bytes().iter();
    while let Some(byte) = bytes.next() {
        if *byte == b'%' {
            match bytes.next() {
                Some(b'b') => found = true,
                Some(b'%') => {}
                _ => return Err(Error::new(ErrorKind::Corrupt, format!("the name {name} holds a % alone"))),
            }
        }
    }
    Ok(found)
}

/// A name with `%b` replaced by a number and `%%` by `%`.
fn with_number(name: &Name, number: Option<u64>) -> Result<Name> {
    if !name.as_bytes().contains(&b'%') {
        return Ok(name.clone());
    }
    if has_number(name)? && number.is_none() {
        let text = format!("the name {name} holds a number, but the mapping is not unlimited");
        return Err(Error::new(ErrorKind::Corrupt, text));
    }
    let mut out = Vec::new();
    let mut bytes = name.as_bytes().iter();
    while let Some(&byte) = bytes.next() {
        match (byte, byte == b'%') {
            (_, false) => out.push(byte),
            _ => match (bytes.next(), number) {
                (Some(b'b'), Some(number)) => out.extend(number.to_string().into_bytes()),
                _ => out.push(b'%'),
            },
        }
    }
    Ok(Name::from(out))
}

impl Planning<'_> {
    /// The parts that the mappings of `array` give to a region of it, in the order of the mappings.
    fn mappings(&self, array: &Array, mappings: &[VirtualMapping], region: &Region) -> Result<Vec<Part>> {
        // One hierarchy is one file opened once; the same file opened again is bounded by the depth.
        let here = (Arc::as_ptr(array.hierarchy()).cast::<u8>() as usize, array.node().clone());
        if self.above.contains(&here) {
            return Err(Error::new(ErrorKind::Corrupt, "a virtual dataset that is its own source"));
        }
        let above = self.above.iter().cloned().chain([here]).collect();
        let below = Planning { above, ..*self };
        let mut pieces = Vec::new();
        for mapping in mappings {
            self.mappings.charge(1)?;
            below.touched(array, mapping, region, &mut pieces).context(|| name(mapping))?;
        }
        let made = |piece: &Piece<'_>| below.piece(array, piece, region).context(|| name(piece.mapping));
        let mut parts = Vec::new();
        // Far away, opening a source and looking up its chunks takes requests, which need not wait for one another. The
        // sources of sources do wait, so that there are not threads of threads.
        if array.has_sources_far_away() && self.above.is_empty() && pieces.len() > 1 {
            for batch in pieces.chunks(BATCH) {
                for piece in exec::all(TOGETHER, batch, made) {
                    parts.extend(piece?);
                }
            }
        } else {
            for piece in &pieces {
                parts.extend(made(piece)?);
            }
        }
        Ok(parts)
    }

    /// Adds what of a mapping the region touches, without opening sources if that can be.
    fn touched<'m>(
        &self,
        array: &Array,
        mapping: &'m VirtualMapping,
        region: &Region,
        pieces: &mut Vec<Piece<'m>>,
    ) -> Result<()> {
        let source_axis = unlimited_axis(&mapping.source_selection);
        let mut add = |selection: Cow<'m, SpaceSelection>, number, unlimited| {
            let piece = Piece { selection, mapping, number, unlimited };
            // Most mappings of a large dataset have nothing to do with a small region.
            if self.inside(&piece, region)?.is_some() {
                pieces.push(piece);
            }
            Ok(())
        };
        match unlimited_axis(&mapping.selection) {
            None => add(Cow::Borrowed(&mapping.selection), None, None),
            Some(axis) if source_axis.is_none() => {
                // A block for each numbered source. Only those that the region touches are opened.
                let (low, high) = touched(region, axis);
                let before = first_of(&mapping.selection, axis).map_or(0, |first| low.saturating_sub(first));
                let (stride, block) = stride_of(&mapping.selection, axis);
                for number in before.saturating_sub(block) / stride.max(1).. {
                    let Some(block) = block_of(&mapping.selection, axis, number) else { break };
                    let end = limited_end(&block, axis);
                    if end <= low {
                        continue;
                    }
                    if first_of(&block, axis).is_none_or(|first| first >= high) {
                        break;
                    }
                    self.mappings.charge(1)?;
                    add(Cow::Owned(block), Some(number), None)?;
                }
                Ok(())
            }
            Some(_) => {
                let Some(source) = array.source(&mapping.file, &mapping.dataset)? else { return Ok(()) };
                let extent = source_axis.and_then(|axis| source.shape().get(axis)).copied().unwrap_or(0);
                let len = indices_below(&mapping.source_selection, source_axis.unwrap_or(0), extent);
                add(Cow::Borrowed(&mapping.selection), None, Some(len))
            }
        }
    }

    /// The elements that a piece is for, and what of the region lies in their bounds.
    fn inside(&self, piece: &Piece<'_>, region: &Region) -> Result<Option<(Elements, Vec<Selector>)>> {
        let rank = region.dims().len();
        let wanted = Elements::new(&piece.selection, region.dims(), piece.unlimited, self.limits.plan)?;
        let bounds: Vec<Blocks> = wanted
            .bounds(rank)
            .iter()
            .map(|&(low, high)| Blocks::run(low, high.saturating_sub(low)))
            .collect();
        let itself = |axis: usize| bounds.get(axis).map(|b| (*b, Some((axis, *b))));
        Ok(pick_all(region, &itself, self.limits)?.map(|inside| (wanted, inside)))
    }

    /// The parts that one source gives to the region.
    fn piece(&self, array: &Array, piece: &Piece<'_>, region: &Region) -> Result<Vec<Part>> {
        let Some((wanted, inside)) = self.inside(piece, region)? else { return Ok(Vec::new()) };
        let Piece { mapping, number, unlimited, .. } = *piece;
        let source = match (number, unlimited) {
            (Some(number), _) => array.numbered(mapping, number)?,
            // What is unlimited in both has one source, whose name is taken as it is.
            (None, Some(_)) => array.source(&mapping.file, &mapping.dataset)?,
            (None, None) => {
                array.source(&with_number(&mapping.file, None)?, &with_number(&mapping.dataset, None)?)?
            }
        };
        let Some(source) = source else { return Ok(Vec::new()) };
        let given = Elements::new(&mapping.source_selection, source.shape(), unlimited, self.limits.plan)?;
        if wanted.count() != given.count() {
            let text = format!("{:?} elements mapped to {:?}", given.count(), wanted.count());
            return Err(Error::new(ErrorKind::Corrupt, text));
        }
        let part = match alike(&wanted, &given) {
            Some(axes) => along_axes(region, source.shape(), &axes, self.limits)?,
            None => by_number(region, &inside, source.shape(), &wanted, &given, self.limits)?,
        };
        match part {
            Some(part) => self.source(array, &source, part),
            None => Ok(Vec::new()),
        }
    }

    /// The parts that read a region of a source.
    fn source(&self, array: &Array, source: &Array, region: Region) -> Result<Vec<Part>> {
        let meta = source.meta();
        let foreign = !Arc::ptr_eq(array.hierarchy(), source.hierarchy());
        if foreign && points_elsewhere(&meta.dtype) {
            return Err(Error::unsupported(
                "variable-length elements and references from another file in a virtual dataset",
            ));
        }
        match source.storage() {
            Storage::Chunks(index) => {
                let origin = Origin {
                    name: source.path(),
                    identity: source.identity(),
                    meta,
                    index: &**index,
                    pipeline: source.pipeline()?,
                };
                Ok(vec![self.part(&origin, region)?])
            }
            Storage::Tiles(_) => {
                let mut parts = Vec::new();
                source.in_tiles(&region, &mut |origin, region| {
                    parts.push(self.part(origin, region)?);
                    Ok(())
                })?;
                Ok(parts)
            }
            Storage::Virtual(mappings) => {
                // What its own sources do not cover is its own fill value.
                let fill = ArrayMeta { grid: ChunkGrid::Whole, ..meta.clone() };
                let pipeline = Default::default();
                let origin = Origin {
                    name: source.path(),
                    identity: 0,
                    meta: &fill,
                    index: &Nothing,
                    pipeline: &pipeline,
                };
                let mut parts = vec![self.part(&origin, region.clone())?];
                parts.extend(self.mappings(source, mappings, &region)?);
                Ok(parts)
            }
        }
    }

    fn part(&self, origin: &Origin<'_>, region: Region) -> Result<Part> {
        let part = Part::new(origin, region, self.limits)?;
        // Its selectors, tasks and units, roughly. Sources of sources count for more: their number may double with each
        // level, which is a trap sooner than a use.
        let size = size_of::<Part>() + 512 + 48 * part.tasks.len();
        let weight = if self.above.len() > 1 { 8 } else { 1 };
        self.memory.charge((size * weight) as u64)?;
        Ok(part)
    }
}

/// An array of which nothing was ever written.
#[derive(Debug)]
struct Nothing;

impl ChunkIndex for Nothing {
    fn locate(&self, chunks: &[Coord]) -> Result<Vec<ChunkRef>> {
        Ok(vec![ChunkRef::Absent; chunks.len()])
    }

    fn scan(&self, _: &mut dyn FnMut(Coord, ChunkRef) -> Result<()>, _: &mut dyn FnMut(Fault)) -> Result<()> {
        Ok(())
    }
}

/// Whether the bytes of an element mean something in their own file only.
fn points_elsewhere(dtype: &DType) -> bool {
    match dtype {
        DType::VarLen { .. } | DType::Reference { .. } => true,
        DType::Compound { fields, .. } => fields.iter().any(|f| points_elsewhere(&f.dtype)),
        DType::Array { base, .. } => points_elsewhere(base),
        _ => !dtype.is_fixed(),
    }
}

/// The first index of a limited axis.
fn first_of(selection: &SpaceSelection, axis: usize) -> Option<u64> {
    match selection {
        SpaceSelection::Regular(slab) => slab.start.get(axis).copied(),
        _ => None,
    }
}

/// Distance and extent of the blocks of an axis.
fn stride_of(selection: &SpaceSelection, axis: usize) -> (u64, u64) {
    match selection {
        SpaceSelection::Regular(slab) => {
            let stride = slab.stride.get(axis).copied().unwrap_or(1);
            (stride, slab.block.get(axis).copied().flatten().unwrap_or(1))
        }
        _ => (1, 1),
    }
}

/// The smallest index that a region picks on an axis, and the one behind the largest.
fn touched(region: &Region, axis: usize) -> (u64, u64) {
    for selector in region.selectors() {
        match selector {
            Selector::Range { axis: own, start, step, count, .. } if *own == axis => {
                let last = count.saturating_sub(1).saturating_mul(*step).saturating_add(*start);
                return (*start, last.saturating_add(u64::from(*count > 0)));
            }
            Selector::Points { axes, points, .. } => {
                let Some(at) = axes.iter().position(|&a| a == axis) else { continue };
                let own = points.iter().skip(at).step_by(axes.len());
                let low = own.clone().min().copied().unwrap_or(0);
                return (low, own.max().map_or(0, |&p| p.saturating_add(1)));
            }
            _ => {}
        }
    }
    (0, 0)
}

/// The dataspace of a virtual dataset with the extents that its sources make.
pub(super) fn with_dims(space: &Dataspace, dims: Vec<u64>) -> Dataspace {
    match space {
        Dataspace::Simple { max, .. } => Dataspace::Simple { dims, max: max.clone() },
        other => other.clone(),
    }
}
