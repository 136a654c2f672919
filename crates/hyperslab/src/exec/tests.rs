use super::*;
use crate::codec::{BindContext, FilterSpec, Pipeline, Registry, Scratch};
use crate::dtype::{ByteOrder, DType, FloatType, IntegerType};
use crate::error::ErrorKind;
use crate::limits::Limits;
use crate::model::{ArrayMeta, ChunkGrid, ChunkIndex, ChunkRef, Dataspace, Fault, FillValue, Layout};
use crate::plan::Origin;
use crate::select::{Region, Selection};
use crate::shape::Coord;
use crate::source::{Counting, Crashing, MemorySource, Source, Throttled};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// An index in memory.
#[derive(Debug)]
struct Map(BTreeMap<Coord, ChunkRef>);

impl ChunkIndex for Map {
    fn locate(&self, chunks: &[Coord]) -> Result<Vec<ChunkRef>> {
        Ok(chunks.iter().map(|c| self.0.get(c).cloned().unwrap_or(ChunkRef::Absent)).collect())
    }

    fn scan(
        &self,
        visit: &mut dyn FnMut(Coord, ChunkRef) -> Result<()>,
        _: &mut dyn FnMut(Fault),
    ) -> Result<()> {
        self.0.iter().try_for_each(|(c, r)| visit(c.clone(), r.clone()))
    }
}

/// How an array of the test is stored.
#[derive(Clone, Debug)]
struct Store {
    dims: Vec<u64>,
    /// `None`: in one run.
    chunk: Option<Vec<u64>>,
    dtype: DType,
    filtered: bool,
    fill: bool,
    /// For each chunk in turn: 0 absent, 1 in memory, 2 without filters, else stored as the others.
    kinds: Vec<u8>,
    remote: bool,
}

/// An array in memory: its elements as stored, and where they are.
struct Fixture {
    meta: ArrayMeta,
    index: Map,
    pipeline: Arc<Pipeline>,
    /// The elements in C order, as stored.
    elements: Vec<Vec<u8>>,
    source: Arc<Counting>,
}

fn positions(shape: &[u64]) -> Vec<Vec<u64>> {
    shape.iter().fold(vec![vec![]], |all, &n| {
        all.iter().flat_map(|p| (0..n).map(move |i| [p.clone(), vec![i]].concat())).collect()
    })
}

fn linear(at: &[u64], dims: &[u64]) -> usize {
    at.iter().zip(dims).fold(0, |n, (&i, &d)| n * d as usize + i as usize)
}

fn build(store: &Store) -> Fixture {
    let size = store.dtype.size();
    let value = |i: usize| -> Vec<u8> {
        (0..size).map(|b| if b == 0 || b == size - 1 { 1 + (i * 31 + b) as u8 % 127 } else { 0 }).collect()
    };
    let mut elements: Vec<Vec<u8>> =
        positions(&store.dims).iter().enumerate().map(|(i, _)| value(i)).collect();
    let fill = if store.fill { value(1_000_003) } else { vec![] };
    let fill_element = if store.fill { fill.clone() } else { vec![0; size] };
    let filters: Vec<FilterSpec> = if store.filtered {
        [(2, vec![size as u32]), (1, vec![6])]
            .map(|(id, parameters)| FilterSpec::Hdf5 { id, flags: 0, name: "".into(), parameters })
            .into()
    } else {
        vec![]
    };
    let chunk: Vec<u64> = store.chunk.clone().unwrap_or(store.dims.iter().map(|&d| d.max(1)).collect());
    let chunk_bytes = chunk.iter().product::<u64>() * size as u64;
    let context = BindContext { dtype: &store.dtype, chunk: &chunk, chunk_bytes };
    let pipeline = Arc::new(Registry::default().pipeline(&filters, &context).unwrap());
    let grid: Vec<u64> = store.dims.iter().zip(&chunk).map(|(&d, &c)| d.div_ceil(c)).collect();
    // Some bytes first, so that offsets matter.
    let mut file = vec![0x5a; 13];
    let mut places: Vec<(Coord, u8, u64, u64, u32)> = Vec::new();
    for (n, at) in positions(&grid).into_iter().enumerate() {
        let kind = store.kinds[n % store.kinds.len()];
        let mut raw = Vec::new();
        for inside in positions(&chunk) {
            let index: Vec<u64> =
                at.iter().zip(&chunk).zip(&inside).map(|((&a, &c), &i)| a * c + i).collect();
            if index.iter().zip(&store.dims).all(|(i, d)| i < d) {
                let i = linear(&index, &store.dims);
                if kind == 0 {
                    elements[i] = fill_element.clone();
                }
                raw.extend_from_slice(&elements[i]);
            } else {
                raw.extend(vec![0xcc; size]);
            }
        }
        let mask = if store.filtered && kind == 2 { 3 } else { 0 };
        let mut encoded = raw.clone();
        if store.filtered && mask == 0 {
            pipeline.encode(&raw, &mut encoded, &mut Scratch::default()).unwrap();
        }
        places.push((at.into(), kind, file.len() as u64, encoded.len() as u64, mask));
        file.extend_from_slice(&encoded);
    }
    let bytes = Bytes::from(file);
    let memory: Arc<dyn Source> = Arc::new(MemorySource::new(bytes.clone(), "memory"));
    let below =
        if store.remote { Arc::new(Throttled::new(memory, Duration::ZERO, u64::MAX)) } else { memory };
    let source = Arc::new(Counting::new(below));
    let refs = places.into_iter().filter(|p| p.1 != 0).map(|(at, kind, offset, length, mask)| {
        let chunk = if kind == 1 {
            ChunkRef::Memory { bytes: bytes.slice(offset as usize..(offset + length) as usize), mask }
        } else {
            ChunkRef::Range { source: source.clone(), offset, length, mask }
        };
        (at, chunk)
    });
    let index = Map(refs.collect());
    let meta = ArrayMeta {
        dtype: store.dtype.clone(),
        committed: None,
        space: Dataspace::Simple {
            dims: store.dims.clone(),
            max: store.dims.iter().map(|&d| Some(d)).collect(),
        },
        grid: store.chunk.clone().map_or(ChunkGrid::Whole, ChunkGrid::Regular),
        layout: Layout::Contiguous,
        fill: FillValue::Default,
        fill_element: fill.into(),
        filters,
        notes: vec![],
    };
    Fixture { meta, index, pipeline, elements, source }
}

impl Fixture {
    fn plan(&self, region: Region) -> Result<ReadPlan> {
        let origin = Origin {
            name: "/a",
            identity: 0,
            meta: &self.meta,
            index: &self.index,
            pipeline: &self.pipeline,
        };
        ReadPlan::new(&origin, region, &Limits::default())
    }

    fn resolve(&self, selection: &Selection) -> Region {
        selection.resolve(self.meta.space.dims(), &Limits::default()).unwrap()
    }

    fn read(
        &self,
        selection: &Selection,
        form: Form,
        threads: usize,
        zeroed: bool,
    ) -> Result<(Vec<u8>, ReadStats)> {
        let plan = self.plan(self.resolve(selection))?;
        let mut bytes = vec![if zeroed { 0 } else { 0xab }; plan.count()? * element_size(&plan, form)];
        let options = RunOptions { threads: Some(threads), cancel: None, ..RunOptions::default() };
        let stats = run(&plan, form, Output { bytes: &mut bytes, zeroed }, &options)?;
        Ok((bytes, stats))
    }

    /// What the selection picks, by the definition of a region.
    fn expected(&self, selection: &Selection) -> Vec<Vec<u8>> {
        let region = self.resolve(selection);
        let dims = region.dims();
        let mut out = vec![vec![]; region.extents().iter().product::<u64>() as usize];
        for items in positions(&region.selectors().iter().map(|s| s.len()).collect::<Vec<_>>()) {
            let mut index = vec![0; dims.len()];
            let mut at = 0usize;
            for ((selector, &item), &extent) in region.selectors().iter().zip(&items).zip(region.extents()) {
                let position = match selector {
                    Selector::Range { axis, start, step, out_start, out_step, .. } => {
                        index[*axis] = start + item * step;
                        (*out_start as i64 + item as i64 * out_step) as u64
                    }
                    Selector::Points { axes, points, out } => {
                        let pick = &points[item as usize * axes.len()..][..axes.len()];
                        axes.iter().zip(pick).for_each(|(&a, &i)| index[a] = i);
                        out[item as usize]
                    }
                };
                at = at * extent as usize + position as usize;
            }
            out[at] = self.elements[linear(&index, dims)].clone();
        }
        out
    }
}

fn int(size: usize, order: ByteOrder) -> DType {
    DType::Integer(IntegerType::new(size, order, true))
}

fn any_store() -> impl Strategy<Value = Store> {
    let dtype = prop_oneof![
        Just(int(1, ByteOrder::Little)),
        Just(int(4, ByteOrder::Little)),
        Just(int(4, ByteOrder::Big)),
        Just(DType::Float(FloatType::ieee(8, ByteOrder::Big).unwrap())),
        Just(int(3, ByteOrder::Big)),
    ];
    proptest::collection::vec(0u64..9, 0..4).prop_flat_map(move |dims| {
        let rank = dims.len();
        let chunk = proptest::option::of(proptest::collection::vec(1u64..6, rank));
        let kinds = proptest::collection::vec(0u8..7, 1..6);
        (Just(dims), chunk, dtype.clone(), any::<bool>(), any::<bool>(), kinds, any::<bool>()).prop_map(
            |(dims, chunk, dtype, filtered, fill, kinds, remote)| {
                // Contiguous data have no filters.
                let filtered = filtered && chunk.is_some();
                Store { dims, chunk, dtype, filtered, fill, kinds, remote }
            },
        )
    })
}

/// A selection as text for each axis, made to fit its extent.
fn selection(dims: &[u64], seeds: &[u64], outer: bool) -> Selection {
    let mut items = Vec::new();
    for (&n, &seed) in dims.iter().zip(seeds) {
        let (a, b) = (seed % (n + 1), seed / 16 % (n + 1));
        items.push(match seed / 256 % 8 {
            0 if n > 0 => format!("{}", a % n),
            1 => format!("{a}:{b}"),
            2 => format!("::{}", 1 + seed % 4),
            3 => format!("{a}::-{}", 1 + seed % 3),
            4 if n > 0 => format!("[{}, {}, {}]", a % n, -1 - (b % n) as i64, a % n),
            5 => format!(
                "[{}]",
                (0..n)
                    .map(|i| if seed >> i & 1 == 1 { "True" } else { "False" })
                    .collect::<Vec<_>>()
                    .join(",")
            ),
            _ => ":".to_owned(),
        });
    }
    let parsed = Selection::parse(&items.join(",")).unwrap();
    if outer { parsed.with_mode(crate::select::Mode::Outer) } else { parsed }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn every_store_reads_alike(store in any_store(), seeds in proptest::collection::vec(any::<u64>(), 3), outer in any::<bool>()) {
        let fixture = build(&store);
        let selection = selection(&store.dims, &seeds, outer);
        if selection.resolve(&store.dims, &Limits::default()).is_err() {
            return Ok(());
        }
        let picks = fixture.expected(&selection);
        let expected = picks.concat();
        let mut counts = Vec::new();
        for (threads, zeroed) in [(1, true), (2, false), (8, true)] {
            let (bytes, stats) = fixture.read(&selection, Form::Stored, threads, zeroed).unwrap();
            prop_assert_eq!(&bytes, &expected, "{} of {:?}", selection, store);
            counts.push(ReadStats { threads: 0, ..stats });
        }
        prop_assert_eq!(counts[0], counts[1]);
        prop_assert_eq!(counts[0], counts[2]);
        let plan = fixture.plan(fixture.resolve(&selection)).unwrap();
        let summary = plan.summary().unwrap();
        prop_assert_eq!(summary.requests, counts[0].requests, "{}", plan);
        prop_assert_eq!(summary.bytes_read, counts[0].bytes_read, "{}", plan);
        prop_assert_eq!(summary.decoded, counts[0].chunks_decoded);
        // The same converted.
        let native = crate::dtype::Native::F64;
        let conversion = Conversion::new(&store.dtype, native, false).unwrap();
        let mut converted = vec![0; picks.len() * 8];
        conversion.run(&expected, store.dtype.size(), &mut converted).unwrap();
        let form = Form::Native { native, exact: false };
        for (threads, zeroed) in [(1, false), (2, true)] {
            let (bytes, _) = fixture.read(&selection, form, threads, zeroed).unwrap();
            prop_assert_eq!(&bytes, &converted, "{} of {:?}", selection, store);
        }
    }
}

fn plain(dims: &[u64], chunk: &[u64], filtered: bool) -> Store {
    Store {
        dims: dims.to_vec(),
        chunk: (!chunk.is_empty()).then(|| chunk.to_vec()),
        dtype: int(4, ByteOrder::Little),
        filtered,
        fill: false,
        kinds: vec![3],
        remote: false,
    }
}

#[test]
fn each_chunk_is_fetched_once_and_narrowed() {
    let fixture = build(&plain(&[64, 64], &[16, 16], true));
    let selection = Selection::parse("[[0, 63, 1, 0, 62], ::-1]").unwrap();
    let (_, stats) = fixture.read(&selection, Form::Stored, 2, true).unwrap();
    assert_eq!(stats.chunks_decoded, 8);
    // Unfiltered, only what is wanted is read; memory has no gap that is worth reading through.
    let fixture = build(&plain(&[64, 64], &[16, 16], false));
    let (_, stats) = fixture.read(&Selection::parse("[5, 3:20]").unwrap(), Form::Stored, 1, true).unwrap();
    assert_eq!((stats.requests, stats.bytes_read), (2, 17 * 4));
    let fixture = build(&plain(&[64, 64], &[], false));
    let (_, stats) = fixture.read(&Selection::parse("[5:7, 3:20]").unwrap(), Form::Stored, 1, true).unwrap();
    assert_eq!((stats.requests, stats.bytes_read), (2, 2 * 17 * 4));
    assert_eq!(fixture.source.bytes(), 2 * 17 * 4);
}

#[test]
fn the_first_failure_in_the_plan_is_the_error() {
    let fixture = build(&plain(&[64, 64], &[4, 4], true));
    let mut index = BTreeMap::new();
    for (at, chunk) in fixture.index.0.clone() {
        let bad = at[0] >= 3;
        index.insert(
            at,
            match chunk {
                ChunkRef::Range { source, offset, mask, .. } if bad => {
                    ChunkRef::Range { source, offset, length: 5, mask }
                }
                other => other,
            },
        );
    }
    let fixture = Fixture { index: Map(index), ..fixture };
    let mut texts = std::collections::BTreeSet::new();
    for threads in [1, 2, 8, 8, 8, 8] {
        let error = fixture.read(&Selection::all(), Form::Stored, threads, true).unwrap_err();
        texts.insert(error.to_string());
    }
    assert_eq!(texts.len(), 1, "{texts:?}");
    let text = texts.pop_first().unwrap();
    assert!(text.contains("array /a: chunk [3, 0] in memory: "), "{text}");
    assert!(text.contains("chunk at 0x"), "{text}");
}

#[test]
fn a_source_that_stops_is_an_error_and_nothing_hangs() {
    for remote in [false, true] {
        let fixture = build(&Store { remote, ..plain(&[64, 64], &[8, 8], true) });
        let whole = fixture.source.clone();
        let crashing: Arc<dyn Source> = Arc::new(Crashing::after_calls(whole, 0));
        let map = fixture.index.0.clone().into_iter().map(|(at, chunk)| match chunk {
            ChunkRef::Range { offset, length, mask, .. } => {
                (at, ChunkRef::Range { source: crashing.clone(), offset, length, mask })
            }
            other => (at, other),
        });
        let fixture = Fixture { index: Map(map.collect()), ..fixture };
        let error = fixture.read(&Selection::all(), Form::Stored, 2, true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    }
}

#[test]
fn a_cancelled_read_stops() {
    for remote in [false, true] {
        let fixture = build(&Store { remote, ..plain(&[64, 64], &[4, 4], true) });
        let plan = fixture.plan(Region::all(&[64, 64])).unwrap();
        let cancel = Cancel::new();
        cancel.cancel();
        let options = RunOptions { threads: Some(2), cancel: Some(cancel), ..RunOptions::default() };
        let mut bytes = vec![0; 64 * 64 * 4];
        let error =
            run(&plan, Form::Stored, Output { bytes: &mut bytes, zeroed: true }, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }
}

#[test]
fn a_remote_source_gets_batches() {
    let fixture = build(&Store { remote: true, ..plain(&[256, 256], &[16, 16], true) });
    let (bytes, stats) = fixture.read(&Selection::all(), Form::Stored, 2, true).unwrap();
    assert_eq!(bytes, fixture.elements.concat());
    assert_eq!((fixture.source.calls(), stats.requests), (1, 1), "256 neighbours are one range");
    let fixture = build(&Store { remote: true, ..plain(&[256, 256], &[16, 16], false) });
    let (_, stats) = fixture.read(&Selection::parse("::100, 0").unwrap(), Form::Stored, 2, true).unwrap();
    assert_eq!((fixture.source.calls(), stats.requests), (1, 1), "gaps of a few KiB are read through");
}

#[test]
fn buffers_and_limits_are_checked() {
    let fixture = build(&plain(&[8, 8], &[4, 4], true));
    let plan = fixture.plan(Region::all(&[8, 8])).unwrap();
    let short = run(&plan, Form::Stored, Output { bytes: &mut [0; 8], zeroed: true }, &RunOptions::default());
    assert_eq!(short.unwrap_err().kind(), ErrorKind::InvalidArgument);
    let origin = Origin {
        name: "/a",
        identity: 0,
        meta: &fixture.meta,
        index: &fixture.index,
        pipeline: &fixture.pipeline,
    };
    let limited = |limits: Limits| ReadPlan::new(&origin, Region::all(&[8, 8]), &limits).unwrap_err();
    assert_eq!(limited(Limits::default().with_output(255)).kind(), ErrorKind::LimitExceeded);
    assert_eq!(limited(Limits::default().with_chunk(63)).kind(), ErrorKind::LimitExceeded);
    // 2^40 chunks of a sparse array are refused before anything is made for them.
    let sparse = build(&Store { dims: vec![0], ..plain(&[0], &[1], false) });
    let mut meta = sparse.meta.clone();
    meta.dtype = int(1, ByteOrder::Little);
    let origin =
        Origin { name: "/a", identity: 0, meta: &meta, index: &sparse.index, pipeline: &sparse.pipeline };
    let limits = Limits::default().with_output(u64::MAX);
    let error = ReadPlan::new(&origin, Region::all(&[1 << 40]), &limits).unwrap_err();
    assert!(error.to_string().contains("memory for the plan of 1099511627776 chunks"), "{error}");
}

#[test]
fn a_plan_made_of_plans_fills_one_result() {
    // Rows 0 to 3 from one array, every second of 4 to 8 from another, the rest is background.
    let fixture = build(&plain(&[4, 6], &[3, 4], true));
    let origin = Origin {
        name: "/a",
        identity: 0,
        meta: &fixture.meta,
        index: &fixture.index,
        pipeline: &fixture.pipeline,
    };
    let rows = |start, step, count, out_start, out_step| Selector::Range {
        axis: 0,
        start,
        step,
        count,
        out_start,
        out_step,
    };
    let part = |selector| {
        let selectors = vec![selector, Selector::range(1, 0, 1, 6)];
        let region = Region::new(vec![4, 6], selectors, vec![9, 6], vec![9, 6]).unwrap();
        crate::plan::Part::new(&origin, region, &Limits::default()).unwrap()
    };
    let parts = vec![part(rows(0, 1, 4, 0, 1)), part(rows(1, 2, 2, 8, -2))];
    let background = Bytes::from_static(&[9, 9, 9, 9]);
    let plan =
        ReadPlan::of_parts(vec![9, 6], int(4, ByteOrder::Little), background, parts, &Limits::default())
            .unwrap();
    let mut bytes = vec![0; 9 * 6 * 4];
    run(&plan, Form::Stored, Output { bytes: &mut bytes, zeroed: true }, &RunOptions::default()).unwrap();
    let row = |i: usize| fixture.elements[i * 6..(i + 1) * 6].concat();
    let expected =
        [row(0), row(1), row(2), row(3), vec![9; 24], vec![9; 24], row(3), vec![9; 24], row(1)].concat();
    assert_eq!(bytes, expected);
}
