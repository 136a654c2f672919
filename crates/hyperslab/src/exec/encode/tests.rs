use super::*;
use crate::codec::{BindContext, FilterSpec, Registry};
use crate::dtype::{ByteOrder, DType, IntegerType};
use crate::json::Json;
use crate::model::write::{Change, Committed, Support};
use std::sync::Arc;

/// Keeps what it is given.
#[derive(Debug)]
struct Keeper {
    layout: WriteLayout,
    chunks: Vec<EncodedChunk>,
    calls: usize,
    fail_at: usize,
}

impl HierarchyWriter for Keeper {
    fn format(&self) -> &'static str {
        "test"
    }
    fn support(&self, _: &Change) -> Result<Support> {
        Ok(Support::Kept)
    }
    fn apply(&mut self, _: Change) -> Result<()> {
        Ok(())
    }
    fn layout(&self, _: &ObjectPath) -> Result<WriteLayout> {
        Ok(self.layout.clone())
    }
    fn flatten(&mut self, _: &ObjectPath, content: &Content) -> Result<Bytes> {
        let Content::Objects { elements, .. } = content else { panic!() };
        Ok(elements.concat().into())
    }
    fn write_chunks(&mut self, _: &ObjectPath, chunks: Vec<EncodedChunk>) -> Result<()> {
        self.calls += 1;
        if self.calls == self.fail_at {
            return Err(Error::new(ErrorKind::Io, "the disk is full"));
        }
        self.chunks.extend(chunks);
        Ok(())
    }
    fn commit(self: Box<Self>) -> Result<Committed> {
        Ok(Committed::default())
    }
}

fn keeper(shape: &[u64], chunk: &[u64], codecs: &[&str]) -> Keeper {
    let dtype = DType::Integer(IntegerType::new(4, ByteOrder::Little, true));
    let chunk_bytes = 4 * element_count(chunk).unwrap();
    let context = BindContext { dtype: &dtype, chunk, chunk_bytes };
    let specs: Vec<FilterSpec> = codecs
        .iter()
        .map(|name| FilterSpec::Zarr { name: (*name).into(), configuration: Json::Map(vec![]) })
        .collect();
    let pipeline = Arc::new(Registry::default().pipeline(&specs, &context).unwrap());
    let layout = WriteLayout {
        dtype,
        shape: shape.to_vec(),
        chunk: chunk.to_vec(),
        block: chunk.iter().map(|_| 1).collect(),
        cut_edges: false,
        fill: Bytes::copy_from_slice(&(-1i32).to_le_bytes()),
        may_skip_fill: true,
        pipeline,
    };
    Keeper { layout, chunks: Vec::new(), calls: 0, fail_at: usize::MAX }
}

/// All chunks of an array whose element *i* is *i*, but in chunk `fill` -1.
fn counted(layout: &WriteLayout, fill: u64) -> Vec<Result<NewChunk<'static>>> {
    let grid = layout.grid();
    let coords = (0..grid[0]).flat_map(|a| (0..grid[1]).map(move |b| (a, b)));
    let chunk = |(n, (a, b)): (usize, (u64, u64))| {
        let coord = Coord::from_slice(&[a, b]);
        let (start, valid) = (layout.start_of(&coord), layout.valid_of(&coord));
        let rows = (start[0]..start[0] + valid[0])
            .flat_map(|y| (start[1]..start[1] + valid[1]).map(move |x| (y, x)));
        let value = |(y, x)| if n as u64 == fill { -1 } else { (y * layout.shape[1] + x) as i32 };
        let bytes: Vec<u8> = rows.map(value).flat_map(i32::to_le_bytes).collect();
        let bytes = Bytes::from(bytes);
        // Every other one is gathered by whoever encodes it.
        let data = match n % 2 {
            0 => ChunkData::Elements(Content::Fixed(bytes)),
            _ => ChunkData::Later(Later::new(move |out| {
                out.extend_from_slice(&bytes);
                Ok(())
            })),
        };
        Ok(NewChunk { coord, data })
    };
    coords.enumerate().map(chunk).collect()
}

fn encoded(threads: usize, batch: u64) -> (Keeper, EncodeStats) {
    let mut keeper = keeper(&[30, 50], &[4, 8], &["zlib"]);
    let chunks = counted(&keeper.layout, 3);
    let options = EncodeOptions { threads: Some(threads), cancel: None, batch: Some(batch) };
    let stats = encode(&mut keeper, &ObjectPath::root(), &mut chunks.into_iter(), &options).unwrap();
    (keeper, stats)
}

#[test]
fn chunks_come_in_order_whole_and_the_same_with_any_number_of_threads() {
    let (one, stats) = encoded(1, 1);
    assert_eq!(one.chunks.len(), 8 * 7);
    assert_eq!((stats.chunks_encoded, stats.chunks_skipped), (56, 1));
    assert_eq!(stats.bytes_in, 30 * 50 * 4);
    let pipeline = &one.layout.pipeline;
    let (mut out, mut scratch) = (Vec::new(), Scratch::default());
    for (n, chunk) in one.chunks.iter().enumerate() {
        assert_eq!(chunk.coord.as_slice(), [n as u64 / 7, n as u64 % 7]);
        if n == 3 {
            assert_eq!(chunk.bytes, None);
            continue;
        }
        pipeline.decode(chunk.bytes.as_ref().unwrap(), chunk.mask, &mut out, &mut scratch).unwrap();
        for (i, element) in out.as_chunks::<4>().0.iter().enumerate() {
            let (y, x) = (4 * chunk.coord[0] + i as u64 / 8, 8 * chunk.coord[1] + i as u64 % 8);
            let wanted = if y < 30 && x < 50 { (y * 50 + x) as i32 } else { -1 };
            assert_eq!(i32::from_le_bytes(*element), wanted, "chunk {n}, element {i}");
        }
    }
    for (threads, batch) in [(1, 1 << 30), (3, 500), (8, 3000)] {
        let (other, same) = encoded(threads, batch);
        assert_eq!((other.chunks, same), (one.chunks.clone(), stats), "{threads} threads, {batch}");
    }
}

#[test]
fn errors_of_chunks_and_of_the_writer_stop_it() {
    let mut keeper = keeper(&[30, 50], &[4, 8], &["zlib"]);
    keeper.fail_at = 2;
    let options = EncodeOptions { threads: Some(2), cancel: None, batch: Some(256) };
    let run = |keeper: &mut Keeper, chunks: Vec<Result<NewChunk>>| {
        encode(keeper, &ObjectPath::root(), &mut chunks.into_iter(), &options).unwrap_err()
    };
    let chunks = counted(&keeper.layout, 3);
    assert_eq!(run(&mut keeper, chunks).kind(), ErrorKind::Io);
    assert_eq!(keeper.calls, 2);
    let elements = ChunkData::Elements(Content::Fixed(vec![0; 4 * 31].into()));
    let short = vec![Ok(NewChunk { coord: Coord::from_slice(&[0, 0]), data: elements.clone() })];
    assert_eq!(run(&mut keeper, short).kind(), ErrorKind::InvalidArgument);
    let short = ChunkData::Later(Later::new(|out| {
        out.extend_from_slice(&[0; 4]);
        Ok(())
    }));
    let short = vec![Ok(NewChunk { coord: Coord::from_slice(&[0, 0]), data: short })];
    assert_eq!(run(&mut keeper, short).kind(), ErrorKind::InvalidArgument);
    let failing = ChunkData::Later(Later::new(|_| Err(Error::new(ErrorKind::Corrupt, "no elements"))));
    let failing = vec![Ok(NewChunk { coord: Coord::from_slice(&[0, 0]), data: failing })];
    assert_eq!(run(&mut keeper, failing).kind(), ErrorKind::Corrupt);
    let outside = vec![Ok(NewChunk { coord: Coord::from_slice(&[8, 0]), data: elements })];
    assert_eq!(run(&mut keeper, outside).kind(), ErrorKind::OutOfBounds);
    let cancel = Cancel::new();
    cancel.cancel();
    let options = EncodeOptions { cancel: Some(cancel), ..options.clone() };
    let chunks = counted(&keeper.layout, 3);
    let stopped = encode(&mut keeper, &ObjectPath::root(), &mut chunks.into_iter(), &options);
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled);
}

#[test]
fn encoded_chunks_and_objects_pass() {
    let mut keeper = keeper(&[3], &[2], &[]);
    keeper.layout.dtype = DType::VarString {
        size: 16,
        padding: crate::dtype::StringPadding::NullTerminated,
        charset: crate::dtype::CharSet::Utf8,
    };
    keeper.layout.fill = Bytes::from_static(&[0; 8]);
    let chunks = vec![
        Ok(NewChunk {
            coord: Coord::from_slice(&[0]),
            data: ChunkData::Encoded { bytes: Bytes::from_static(b"as it is"), mask: 5 },
        }),
        Ok(NewChunk { coord: Coord::from_slice(&[1]), data: ChunkData::Elements(Content::text(b"ab")) }),
    ];
    let options = EncodeOptions::default();
    let stats = encode(&mut keeper, &ObjectPath::root(), &mut chunks.into_iter(), &options).unwrap();
    assert_eq!((stats.chunks_copied, stats.chunks_encoded), (1, 1));
    assert_eq!((keeper.chunks[0].bytes.as_deref(), keeper.chunks[0].mask), (Some(&b"as it is"[..]), 5));
    // One text, and the fill value beyond the edge.
    assert_eq!(keeper.chunks[1].bytes.as_deref(), Some(&b"\x02\0\0\0\0\0\0\0ab\0\0\0\0\0\0\0\0"[..]));
}
