//! Byte shuffle: HDF5 filter 2.

use super::spelling::{Hdf5, Spelling};
use super::{BindContext, Codec, Scratch, check_max, configuration, set_len, wrong_length};
use crate::error::{Error, Result};
use crate::json::Json;
use hyperslab_kernels::shuffle;
use std::sync::Arc;

/// HDF5's number of this filter.
pub(super) const HDF5_ID: u16 = 2;

/// In all three.
pub(super) const SPELLING: Spelling = Spelling {
    id: "shuffle",
    numcodecs: r#"{"id":"shuffle","elementsize":4}"#,
    v3: r#"{"name":"numcodecs.shuffle","configuration":{"elementsize":4}}"#,
    hdf5: Some(Hdf5 { number: HDF5_ID, bind, to_json, to_parameters }),
    json: Some(bind_json),
    encodes: true,
};

fn to_json(parameters: &[u32]) -> Vec<(&'static str, Json)> {
    parameters.first().map(|&size| ("elementsize", Json::Integer(i128::from(size)))).into_iter().collect()
}

fn to_parameters(configuration: &Json, context: &BindContext) -> Result<Vec<u32>> {
    Ok(vec![u32::try_from(element_size(configuration, context)?).unwrap_or(u32::MAX)])
}

/// Bytes of an element: what the configuration says, unless that is nothing, 0, or a text, as netCDF once wrote it.
fn element_size(configuration: &Json, context: &BindContext) -> Result<usize> {
    let size = match configuration.get("elementsize") {
        Some(Json::Text(_)) => 0,
        _ => configuration::integer(configuration, "elementsize", 0, 0, 1 << 30)?,
    };
    Ok(if size == 0 { context.dtype.size().max(1) } else { size as usize })
}

/// HDF5: one parameter, the element size in bytes; files of old libraries leave it out.
pub(super) fn bind(parameters: &[u32], context: &BindContext) -> Result<Arc<dyn Codec>> {
    let size = match parameters.first() {
        Some(&size) => size as usize,
        None => context.dtype.size(),
    };
    if size == 0 {
        return Err(Error::corrupt("filter message", 0, "shuffle of elements of zero bytes"));
    }
    Ok(Arc::new(Shuffle { size }))
}

/// Zarr's `shuffle`: `elementsize`; 0 and none mean the size of the array's elements, as netCDF writes it.
pub(super) fn bind_json(configuration: &Json, context: &BindContext) -> Result<Arc<dyn Codec>> {
    let size = element_size(configuration, context)?;
    Ok(Arc::new(Shuffle { size }))
}

#[derive(Debug)]
struct Shuffle {
    /// Bytes of an element.
    size: usize,
}

const NAME: &str = "shuffle";

impl Codec for Shuffle {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, _: &mut Scratch) -> Result<()> {
        check_max(NAME, input.len() as u64, max)?;
        set_len(out, input.len());
        shuffle::unshuffle(self.size, input, out);
        Ok(())
    }

    fn decode_into(&self, input: &[u8], out: &mut [u8], _: &mut Scratch) -> Result<()> {
        if input.len() != out.len() {
            return Err(wrong_length(NAME, input.len(), out.len()));
        }
        shuffle::unshuffle(self.size, input, out);
        Ok(())
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, _: &mut Scratch) -> Result<()> {
        set_len(out, input.len());
        shuffle::shuffle(self.size, input, out);
        Ok(())
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        encoded
    }

    fn encoded_len(&self, decoded: u64) -> Option<u64> {
        Some(decoded)
    }
}
