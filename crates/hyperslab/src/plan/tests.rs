use super::*;
use crate::codec::{BindContext, FilterSpec, Registry};
use crate::dtype::{ByteOrder, IntegerType};
use crate::model::{ArrayMeta, ChunkGrid, ChunkIndex, ChunkRef, Dataspace, Fault, FillValue, Layout};
use crate::select::Selection;
use crate::shape::Coord;
use crate::source::{FileSource, MemorySource, Throttled};
use std::time::Duration;

/// Chunks one after the other in a source, 100 bytes each, every fifth one absent.
#[derive(Debug)]
struct Rows {
    source: Arc<dyn Source>,
    grid: Vec<u64>,
    length: u64,
}

impl ChunkIndex for Rows {
    fn locate(&self, chunks: &[Coord]) -> Result<Vec<ChunkRef>> {
        let one = |c: &Coord| {
            let n = c.iter().zip(&self.grid).fold(0, |n, (&i, &g)| n * g + i);
            if n % 5 == 4 {
                return ChunkRef::Absent;
            }
            ChunkRef::Range {
                source: self.source.clone(),
                offset: 1000 + n * self.length,
                length: self.length,
                mask: 0,
            }
        };
        Ok(chunks.iter().map(one).collect())
    }

    fn scan(&self, _: &mut dyn FnMut(Coord, ChunkRef) -> Result<()>, _: &mut dyn FnMut(Fault)) -> Result<()> {
        Ok(())
    }
}

fn plan(dims: &[u64], chunk: &[u64], filtered: bool, source: Arc<dyn Source>, selection: &str) -> String {
    let dtype = DType::Integer(IntegerType::new(4, ByteOrder::Big, true));
    let grid = if chunk.is_empty() { ChunkGrid::Whole } else { ChunkGrid::Regular(chunk.to_vec()) };
    let filters: Vec<FilterSpec> = filtered
        .then(|| FilterSpec::Hdf5 { id: 1, flags: 0, name: "".into(), parameters: vec![6] })
        .into_iter()
        .collect();
    let meta = ArrayMeta {
        dtype: dtype.clone(),
        committed: None,
        space: Dataspace::Simple { dims: dims.to_vec(), max: vec![] },
        grid,
        layout: Layout::Contiguous,
        fill: FillValue::Default,
        fill_element: Bytes::new(),
        filters,
        notes: vec![],
    };
    let shape = if chunk.is_empty() { dims } else { chunk };
    let bytes = shape.iter().product::<u64>() * 4;
    let context = BindContext { dtype: &dtype, chunk: shape, chunk_bytes: bytes };
    let pipeline = Arc::new(Registry::default().pipeline(&meta.filters, &context).unwrap());
    let counts = dims.iter().zip(shape).map(|(&d, &c)| d.div_ceil(c)).collect();
    let length = if filtered { 100 } else { bytes };
    let index = Rows { source, grid: counts, length };
    let origin = Origin { name: "/temp", identity: 0, meta: &meta, index: &index, pipeline: &pipeline };
    let limits = Limits::default();
    let region = Selection::parse(selection).unwrap().resolve(dims, &limits).unwrap();
    format!("\n{}", ReadPlan::new(&origin, region, &limits).unwrap())
}

fn memory() -> Arc<dyn Source> {
    Arc::new(MemorySource::new(vec![0; 1], "memory"))
}

#[test]
fn chunks_are_ordered_and_fills_stand_first() {
    insta::assert_snapshot!(plan(&[40, 40], &[16, 16], true, memory(), "[3:30, ::-1]"), @r#"
    read [27, 40] of i32be (4320 bytes)
      /temp: 1080 of 1600 elements
        fill 1 of 6 chunks of [16, 16]
        read 0x3e8+400 of memory
          decode chunk [0, 0] by filter 1 (deflate), take 208 elements
          decode chunk [0, 1] by filter 1 (deflate), take 208 elements
          decode chunk [0, 2] by filter 1 (deflate), take 104 elements
          decode chunk [1, 0] by filter 1 (deflate), take 224 elements
        read 0x5dc+100 of memory
          decode chunk [1, 2] by filter 1 (deflate), take 112 elements
    total: arrays 1, chunks 6, fills 1, decoded 5, copied 0, requests 2, bytes_read 500, bytes_decoded 5120, bytes_out 4320, worker_bytes 2148
    "#);
}

#[test]
fn contiguous_data_are_narrowed_to_runs() {
    insta::assert_snapshot!(plan(&[1000, 1000], &[], false, memory(), "[10:13, 5:7]"), @r#"
    read [3, 2] of i32be (24 bytes)
      /temp: 6 of 1000000 elements
        read 3 ranges of memory, 24 bytes, 0xa03c+8 to 0xbf7c+8
          take 6 elements of [262, 1000] at [0, 0]
    total: arrays 1, chunks 1, fills 0, decoded 0, copied 1, requests 3, bytes_read 24, bytes_decoded 0, bytes_out 24, worker_bytes 0
    "#);
}

#[test]
fn a_local_file_is_read_through_small_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    std::fs::write(&path, b"").unwrap();
    let source: Arc<dyn Source> = Arc::new(FileSource::open(&path).unwrap());
    let text = plan(&[1000, 1000], &[], false, source, "[10:100:7, ::3]");
    let text = text.replace(&*path.display().to_string(), "a.h5");
    insta::assert_snapshot!(text, @r#"
    read [13, 334] of i32be (17368 bytes)
      /temp: 4342 of 1000000 elements
        read 13 ranges of a.h5, 52000 bytes, 0xa028+4000 to 0x5c0a8+4000
          take 4342 elements of [262, 1000] at [0, 0]
    total: arrays 1, chunks 1, fills 0, decoded 0, copied 1, requests 13, bytes_read 52000, bytes_decoded 0, bytes_out 17368, worker_bytes 0
    "#);
}

#[test]
fn a_remote_source_gets_few_requests() {
    let source = Arc::new(Throttled::new(memory(), Duration::ZERO, u64::MAX));
    insta::assert_snapshot!(plan(&[40, 40], &[16, 16], true, source, "[..., 0]"), @r#"
    read [40] of i32be (160 bytes)
      /temp: 40 of 1600 elements
        read 0x3e8+700 of memory
          decode chunk [0, 0] by filter 1 (deflate), take 16 elements
          decode chunk [1, 0] by filter 1 (deflate), take 16 elements
          decode chunk [2, 0] by filter 1 (deflate), take 8 elements
    total: arrays 1, chunks 3, fills 0, decoded 3, copied 0, requests 1, bytes_read 700, bytes_decoded 3072, bytes_out 160, worker_bytes 2148
    "#);
}

#[test]
fn lists_and_points_are_grouped_by_chunk() {
    insta::assert_snapshot!(plan(&[40, 40], &[16, 16], true, memory(), "[[39, 0, 1, 38], [0, 39, 0, 1]]"), @r#"
    read [4] of i32be (16 bytes)
      /temp: 4 of 1600 elements
        read 0x3e8+100 of memory
          decode chunk [0, 0] by filter 1 (deflate), take 1 elements
        read 0x4b0+100 of memory
          decode chunk [0, 2] by filter 1 (deflate), take 1 elements
        read 0x640+100 of memory
          decode chunk [2, 0] by filter 1 (deflate), take 2 elements
    total: arrays 1, chunks 3, fills 0, decoded 3, copied 0, requests 3, bytes_read 300, bytes_decoded 3072, bytes_out 16, worker_bytes 2148
    "#);
}
