//! Values for an array that nobody has written to.

use super::{Transaction, staged};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::exec::encode::{ChunkData, EncodeStats, Later, NewChunk, encode};
use crate::limits::Limits;
use crate::model::write::{ObjectPath, WriteLayout};
use crate::select::{Region, Selection};
use crate::shape::{Coord, byte_count, runs, to_usize};
use crate::staged::{StagedArray, Values};

/// Writes values to a selection of the array at `path`, of which nothing was written yet.
pub(super) fn write(
    transaction: &mut Transaction,
    path: &ObjectPath,
    selection: &Selection,
    values: &Values<'_>,
) -> Result<EncodeStats> {
    let layout = transaction.writer.layout(path)?;
    let region = selection.resolve(&layout.shape, &Limits::default())?;
    if values.shape() == layout.shape
        && region == Region::all(&layout.shape)
        && let Some(bytes) = values.stored_as(&layout.dtype)?
    {
        // Nothing has to be put together: chunks are cut out of the values themselves.
        let (size, dims) = (layout.dtype.size(), layout.shape.as_slice());
        let (layout, bytes) = (&layout, bytes.as_ref());
        let mut chunks = staged::touched(layout, &[(Coord::from_elem(0, dims.len()), dims.into())])
            .into_iter()
            .map(|coord| {
                let (start, count) = (layout.start_of(&coord), layout.valid_of(&coord));
                let later = Later::new(move |out| cut(bytes, size, dims, &start, &count, out));
                Ok(NewChunk { coord, data: ChunkData::Later(later) })
            });
        return encode(&mut *transaction.writer, path, &mut chunks, &transaction.encode);
    }
    let staged = stage(&layout)?;
    let mut staged = match transaction.encode.threads {
        Some(threads) => staged.with_threads(threads),
        None => staged,
    };
    staged.set(selection.clone(), values.clone())?;
    staged::write(transaction, path, &staged, true)
}

/// The array as it is.
fn stage(layout: &WriteLayout) -> Result<StagedArray> {
    let dtype: &DType = &layout.dtype;
    let fill = match layout.fill.is_empty() {
        true => None,
        false if dtype.is_fixed() => Some(Values::stored(&[], dtype, &layout.fill)?),
        false => {
            let text = "parts of an array whose elements are of variable length and have a fill value";
            return Err(Error::unsupported(text).hint("write all of it, or stage it"));
        }
    };
    StagedArray::full(&layout.shape, &layout.chunk, dtype, fill)
}

/// Appends the elements of a box of an array of these extents.
fn cut(
    bytes: &[u8],
    size: usize,
    dims: &[u64],
    start: &[u64],
    count: &[u64],
    out: &mut Vec<u8>,
) -> Result<()> {
    out.reserve_exact(to_usize(byte_count(count, size)?)?);
    for (from, _, run) in runs(dims, start, count, count)? {
        let from = from.saturating_mul(size);
        let part = bytes.get(from..from.saturating_add(run.saturating_mul(size)));
        out.extend_from_slice(part.ok_or_else(|| Error::invalid("fewer elements than their extents say"))?);
    }
    Ok(())
}
