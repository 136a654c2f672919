//! Zarr 3's `bytes` (once `endian`): numbers in one byte order. A stage of its own only where the other order than that
//! of the type before it is stored; otherwise the bytes are as they are.

use super::spelling::Spelling;
use super::{BindContext, Codec, Scratch, check_max, set_len, wrong_length};
use crate::dtype::{ByteOrder, DType, Packing};
use crate::error::{Error, Result};
use crate::json::{Json, wrong_member};
use std::sync::Arc;

/// In Zarr.
pub(super) const SPELLING: Spelling = Spelling {
    id: "bytes",
    numcodecs: "",
    v3: r#"{"name":"bytes","configuration":{"endian":"little"}}"#,
    hdf5: None,
    json: Some(bind_json),
    encodes: true,
};

/// In Zarr.
pub(super) const ENDIAN: Spelling = Spelling {
    id: "endian",
    numcodecs: "",
    v3: r#"{"name":"endian","configuration":{"endian":"little"}}"#,
    hdf5: None,
    json: Some(bind_json),
    encodes: true,
};

/// `endian`: `little` or `big`; may be missing where elements have no byte order.
pub(super) fn bind_json(configuration: &Json, context: &BindContext) -> Result<Arc<dyn Codec>> {
    let order = match super::configuration::text(configuration, "endian")? {
        None if context.dtype.has_order() => return Err(missing(context.dtype)),
        None | Some("little") => ByteOrder::Little,
        Some("big") => ByteOrder::Big,
        Some(other) => {
            return Err(wrong_member("endian", format_args!("{other:?} is neither little nor big")));
        }
    };
    let encoded = context.dtype.with_order(order);
    let swap = encoded != *context.dtype;
    // Reversing each number is the same both ways; the packing of the big-endian type does it.
    let packing =
        Packing::new(&context.dtype.with_order(if swap { ByteOrder::Big } else { ByteOrder::Little }))?;
    Ok(Arc::new(Bytes { swap: swap.then_some(packing), encoded }))
}

/// The error for numbers of more than a byte whose order nobody said (Zarr 3, codec `bytes`, "endian").
pub(crate) fn missing(dtype: &DType) -> Error {
    wrong_member("endian", format_args!("missing, which elements of type {dtype} need"))
}

#[derive(Debug)]
struct Bytes {
    swap: Option<Packing>,
    encoded: DType,
}

const NAME: &str = "bytes";

impl Bytes {
    fn run(&self, input: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        match &self.swap {
            Some(packing) => packing.pack(input, input.len() / packing.stored_size().max(1), out),
            None => {
                out.extend_from_slice(input);
                Ok(())
            }
        }
    }
}

impl Codec for Bytes {
    fn name(&self) -> &'static str {
        NAME
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, _: &mut Scratch) -> Result<()> {
        check_max(NAME, input.len() as u64, max)?;
        self.run(input, out)
    }

    fn decode_into(&self, input: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
        let mut buffer = scratch.take();
        set_len(&mut buffer, 0);
        let done = self.run(input, &mut buffer);
        if done.is_ok() && buffer.len() == out.len() {
            out.copy_from_slice(&buffer);
        }
        let got = buffer.len();
        scratch.give(buffer);
        done?;
        if got == out.len() { Ok(()) } else { Err(wrong_length(NAME, got, out.len())) }
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, _: &mut Scratch) -> Result<()> {
        self.run(input, out)
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        encoded
    }

    fn encoded_len(&self, decoded: u64) -> Option<u64> {
        Some(decoded)
    }

    fn view<'a>(&self, input: &'a [u8]) -> Option<Result<&'a [u8]>> {
        self.swap.is_none().then_some(Ok(input))
    }

    fn encoded_dtype(&self) -> Option<DType> {
        Some(self.encoded.clone())
    }
}
