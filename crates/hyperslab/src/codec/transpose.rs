//! Zarr's `transpose`: the elements of a chunk with its axes in another order. Zarr 2's `order: F` is one.

use super::spelling::Spelling;
use super::{BindContext, Codec, Scratch, check_max, set_len, wrong_length};
use crate::error::{Error, Result};
use crate::json::{Json, wrong_member};
use crate::shape::{element_count, to_usize};
use std::sync::Arc;

/// In Zarr.
pub(super) const SPELLING: Spelling = Spelling {
    id: "transpose",
    numcodecs: "",
    v3: r#"{"name":"transpose","configuration":{"order":[1,0]}}"#,
    hdf5: None,
    json: Some(bind_json),
    encodes: true,
};

/// `order`: for each axis of the encoded chunk, which axis of the decoded one it is; `C` and `F` in old documents.
pub(super) fn bind_json(configuration: &Json, context: &BindContext) -> Result<Arc<dyn Codec>> {
    let rank = context.chunk.len();
    let order: Vec<usize> = match configuration.get("order") {
        Some(Json::Text(text)) if text == "C" => (0..rank).collect(),
        Some(Json::Text(text)) if text == "F" => (0..rank).rev().collect(),
        Some(Json::List(axes)) => {
            let axes: Option<Vec<usize>> =
                axes.iter().map(|a| a.as_u64().and_then(|a| usize::try_from(a).ok())).collect();
            axes.unwrap_or_default()
        }
        _ => return Err(wrong_member("order", "neither a list of axes nor C or F")),
    };
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..rank) {
        return Err(wrong_member("order", format_args!("{order:?} does not order {rank} axes")));
    }
    let count = to_usize(element_count(context.chunk)?)?;
    let shape: Vec<usize> = context.chunk.iter().map(|&d| to_usize(d)).collect::<Result<_>>()?;
    let size = context.dtype.size();
    if count.checked_mul(size).is_none() {
        return Err(Error::limit("bytes of one chunk", u128::MAX, usize::MAX as u128));
    }
    Ok(Arc::new(Transpose { order, shape, size, bytes: count * size }))
}

#[derive(Debug)]
struct Transpose {
    /// For each encoded axis, the decoded one.
    order: Vec<usize>,
    /// Extents of a decoded chunk.
    shape: Vec<usize>,
    /// Bytes of an element.
    size: usize,
    /// Bytes of a chunk.
    bytes: usize,
}

const NAME: &str = "transpose";

impl Transpose {
    /// Walks the elements in encoded order, with the place of each in the decoded chunk, in runs along the last axis:
    /// (first encoded element, first decoded one, steps between decoded ones, count).
    fn runs(&self, mut visit: impl FnMut(usize, usize, usize, usize)) {
        let mut strides = vec![1usize; self.shape.len()];
        for axis in (1..self.shape.len()).rev() {
            strides[axis - 1] = strides[axis] * self.shape[axis];
        }
        let axes: Vec<(usize, usize)> = self.order.iter().map(|&a| (self.shape[a], strides[a])).collect();
        let Some((&(count, step), outer)) = axes.split_last() else {
            return visit(0, 0, 1, 1);
        };
        let rows: usize = outer.iter().map(|(extent, _)| extent).product();
        let mut index = vec![0usize; outer.len()];
        let mut place = 0;
        for row in 0..rows {
            visit(row * count, place, step, count);
            for (i, &(extent, stride)) in index.iter_mut().zip(outer).rev() {
                *i += 1;
                place += stride;
                if *i < extent {
                    break;
                }
                place -= stride * extent;
                *i = 0;
            }
        }
    }

    fn check(&self, len: usize) -> Result<()> {
        if len == self.bytes { Ok(()) } else { Err(wrong_length(NAME, len, self.bytes)) }
    }
}

/// Moves elements of `N` bytes; `scatter`: from neighbours to steps.
fn move_run<const N: usize>(near: &[u8], far: &mut [u8], step: usize) {
    let near = near.as_chunks::<N>().0;
    let far = far.as_chunks_mut::<N>().0;
    for (from, to) in near.iter().zip(far.iter_mut().step_by(step)) {
        *to = *from;
    }
}

impl Codec for Transpose {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, scratch: &mut Scratch) -> Result<()> {
        self.check(input.len())?;
        set_len(out, check_max(NAME, input.len() as u64, max)?);
        self.decode_into(input, out, scratch)
    }

    fn decode_into(&self, input: &[u8], out: &mut [u8], _: &mut Scratch) -> Result<()> {
        self.check(input.len())?;
        self.check(out.len())?;
        let size = self.size;
        self.runs(|near, far, step, count| {
            let Some(from) = input.get(near * size..(near + count) * size) else { return };
            let Some(to) = out.get_mut(far * size..) else { return };
            match size {
                1 => move_run::<1>(from, to, step),
                2 => move_run::<2>(from, to, step),
                4 => move_run::<4>(from, to, step),
                8 => move_run::<8>(from, to, step),
                _ => {
                    let to = to.chunks_exact_mut(size.max(1)).step_by(step);
                    from.chunks_exact(size.max(1)).zip(to).for_each(|(from, to)| to.copy_from_slice(from));
                }
            }
        });
        Ok(())
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, _: &mut Scratch) -> Result<()> {
        self.check(input.len())?;
        out.clear();
        out.reserve(input.len());
        let size = self.size;
        self.runs(|_, far, step, count| {
            let from = input.get(far * size..).unwrap_or(&[]);
            from.chunks_exact(size.max(1)).step_by(step).take(count).for_each(|e| out.extend_from_slice(e));
        });
        Ok(())
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        encoded
    }

    fn encoded_len(&self, decoded: u64) -> Option<u64> {
        Some(decoded)
    }

    fn encoded_shape(&self) -> Option<Vec<u64>> {
        Some(self.order.iter().map(|&a| self.shape[a] as u64).collect())
    }
}
