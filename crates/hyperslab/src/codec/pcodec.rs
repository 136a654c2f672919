//! Zarr's `pcodec`: a standalone file of Pcodec, which holds numbers of one type.

use super::configuration::{Scalar, ScalarKind};
use super::spelling::Spelling;
use super::{BindContext, Codec, Scratch, check_max, configuration, corrupt};
use crate::dtype::ByteOrder;
use crate::error::{Error, ErrorKind, Result};
use crate::json::Json;
use half::f16;
use pco::data_types::Number;
use pco::standalone::{DecompressorItem, FileDecompressor, simple_compress};
use pco::{ChunkConfig, PagingSpec};
use std::sync::Arc;

/// `level`; `mode_spec`, `delta_spec`, `paging_spec`, `delta_encoding_order` and `equal_pages_up_to` are of the encoder.
pub(super) const SPELLING: Spelling = Spelling {
    id: "pcodec",
    numcodecs: r#"{"id":"pcodec","level":8,"mode_spec":"auto","delta_spec":"auto","paging_spec":"equal_pages_up_to","delta_encoding_order":null,"equal_pages_up_to":262144}"#,
    v3: r#"{"name":"numcodecs.pcodec","configuration":{"level":8,"mode_spec":"auto","delta_spec":"auto","paging_spec":"equal_pages_up_to","delta_encoding_order":null,"equal_pages_up_to":262144}}"#,
    hdf5: None,
    json: Some(bind_json),
    encodes: true,
};

const NAME: &str = "pcodec";

/// Numbers decoded at a time: a multiple of Pcodec's own batches.
const BATCH: usize = 4096;

fn bind_json(configuration: &Json, context: &BindContext) -> Result<Arc<dyn Codec>> {
    let level = configuration::integer(configuration, "level", 8, 0, 12)? as usize;
    let page = configuration::integer(configuration, "equal_pages_up_to", 1 << 18, 1, 1 << 24)? as usize;
    Ok(Arc::new(Pcodec { scalar: Scalar::wanted(NAME, context.dtype)?, level, page }))
}

#[derive(Debug)]
struct Pcodec {
    scalar: Scalar,
    level: usize,
    page: usize,
}

/// A number of Pcodec and its bytes.
trait Value: Number + Default {
    const SIZE: usize = size_of::<Self>();
    fn put(self, big: bool, out: &mut Vec<u8>);
    fn take(bytes: &[u8], big: bool) -> Self;
}

macro_rules! values {
    ($($type:ty),*) => {$(
        impl Value for $type {
            fn put(self, big: bool, out: &mut Vec<u8>) {
                out.extend_from_slice(&if big { self.to_be_bytes() } else { self.to_le_bytes() });
            }

            fn take(bytes: &[u8], big: bool) -> Self {
                let bytes = bytes.first_chunk().copied().unwrap_or_default();
                if big { Self::from_be_bytes(bytes) } else { Self::from_le_bytes(bytes) }
            }
        }
    )*};
}

values!(u8, u16, u32, u64, i8, i16, i32, i64, f16, f32, f64);

fn decode<T: Value>(input: &[u8], big: bool, out: &mut Vec<u8>, max: usize) -> Result<()> {
    let failed = |e| corrupt(NAME, e);
    let (file, mut rest) = FileDecompressor::new(input).map_err(failed)?;
    let file = file.with_max_prealloc(max.min(1 << 20));
    let mut batch = vec![T::default(); BATCH];
    loop {
        let mut chunk = match file.chunk_decompressor::<T, _>(rest).map_err(failed)? {
            DecompressorItem::EndOfData(_) => return Ok(()),
            DecompressorItem::Chunk(chunk) => chunk,
        };
        let bytes = (chunk.n() as u64).saturating_mul(T::SIZE as u64).saturating_add(out.len() as u64);
        check_max(NAME, bytes, max)?;
        loop {
            let progress = chunk.read(&mut batch).map_err(failed)?;
            for value in batch.iter().take(progress.n_processed) {
                value.put(big, out);
            }
            if progress.finished {
                break;
            }
            if progress.n_processed == 0 {
                return Err(corrupt(NAME, "a chunk that does not end"));
            }
        }
        rest = chunk.into_src();
    }
}

fn encode<T: Value>(input: &[u8], big: bool, level: usize, page: usize) -> Result<Vec<u8>> {
    let values: Vec<T> = input.chunks_exact(T::SIZE).map(|bytes| T::take(bytes, big)).collect();
    let config = ChunkConfig::default()
        .with_compression_level(level)
        .with_paging_spec(PagingSpec::EqualPagesUpTo(page));
    simple_compress(&values, &config)
        .map_err(|e| Error::new(ErrorKind::InvalidArgument, format!("{NAME}: {e}")))
}

macro_rules! by_type {
    ($scalar:expr, $run:ident($($argument:expr),*)) => {
        match ($scalar.kind, $scalar.size) {
            (ScalarKind::Unsigned, 1) => $run::<u8>($($argument),*),
            (ScalarKind::Unsigned, 2) => $run::<u16>($($argument),*),
            (ScalarKind::Unsigned, 4) => $run::<u32>($($argument),*),
            (ScalarKind::Unsigned, _) => $run::<u64>($($argument),*),
            (ScalarKind::Signed, 1) => $run::<i8>($($argument),*),
            (ScalarKind::Signed, 2) => $run::<i16>($($argument),*),
            (ScalarKind::Signed, 4) => $run::<i32>($($argument),*),
            (ScalarKind::Signed, _) => $run::<i64>($($argument),*),
            (ScalarKind::Float, 2) => $run::<f16>($($argument),*),
            (ScalarKind::Float, 4) => $run::<f32>($($argument),*),
            (ScalarKind::Float, _) => $run::<f64>($($argument),*),
        }
    };
}

impl Codec for Pcodec {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, _: &mut Scratch) -> Result<()> {
        out.clear();
        let big = self.scalar.order == ByteOrder::Big;
        by_type!(self.scalar, decode(input, big, out, max))
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, _: &mut Scratch) -> Result<()> {
        let big = self.scalar.order == ByteOrder::Big;
        *out = by_type!(self.scalar, encode(input, big, self.level, self.page))?;
        Ok(())
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        // Equal numbers take no bits at all: 2^24 of them at most in a chunk, whose header takes more than four bytes.
        encoded.saturating_mul((8 << 24) / 4)
    }
}
