//! Numcodecs' filters that store each number as another one: `astype`, `quantize`, `fixedscaleoffset`, `delta`.

use super::configuration::{self, Scalar, ScalarKind};
use super::spelling::Spelling;
use super::{BindContext, Codec, Scratch, check_max, corrupt, set_len};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::json::Json;
use std::sync::Arc;

/// In Zarr.
pub(super) const ASTYPE: Spelling = Spelling {
    id: "astype",
    numcodecs: r#"{"id":"astype","encode_dtype":"<i2","decode_dtype":"<i4"}"#,
    v3: r#"{"name":"numcodecs.astype","configuration":{"encode_dtype":"<i2","decode_dtype":"<i4"}}"#,
    hdf5: None,
    json: Some(bind_astype),
    encodes: true,
};

/// `astype`: `encode_dtype`, and `decode_dtype`, the type of the array.
pub(super) fn bind_astype(configuration: &Json, context: &BindContext) -> Result<Arc<dyn Codec>> {
    let encoded = configuration::dtype(configuration, "encode_dtype", context.dtype)?;
    let decoded = configuration::dtype(configuration, "decode_dtype", context.dtype)?;
    bind("astype", &decoded, encoded, Map::Cast)
}

/// In Zarr.
pub(super) const QUANTIZE: Spelling = Spelling {
    id: "quantize",
    numcodecs: r#"{"id":"quantize","digits":2,"dtype":"<f8","astype":"<f4"}"#,
    v3: r#"{"name":"numcodecs.quantize","configuration":{"digits":2,"dtype":"<f8","astype":"<f4"}}"#,
    hdf5: None,
    json: Some(bind_quantize),
    encodes: true,
};

/// `quantize`: `digits`, `dtype`, and `astype`, by default the same. Decoding does not undo the rounding.
pub(super) fn bind_quantize(configuration: &Json, context: &BindContext) -> Result<Arc<dyn Codec>> {
    let decoded = configuration::dtype(configuration, "dtype", context.dtype)?;
    let encoded = configuration::dtype(configuration, "astype", &decoded)?;
    let digits = configuration::integer(configuration, "digits", 0, 0, 300)?;
    // The power of two just fine enough for the digits.
    let bits = 10f64.powi(digits as i32).log2().ceil();
    bind("quantize", &decoded, encoded, Map::Quantize { scale: bits.exp2() })
}

/// In Zarr.
pub(super) const SCALE: Spelling = Spelling {
    id: "fixedscaleoffset",
    numcodecs: r#"{"id":"fixedscaleoffset","scale":10,"offset":0,"dtype":"<f8","astype":"<i2"}"#,
    v3: r#"{"name":"numcodecs.fixedscaleoffset","configuration":{"scale":10,"offset":0,"dtype":"<f8","astype":"<i2"}}"#,
    hdf5: None,
    json: Some(bind_scale),
    encodes: true,
};

/// `fixedscaleoffset`: stored is (x − `offset`) × `scale`, rounded, as `astype`; `dtype` is the type of the array.
pub(super) fn bind_scale(configuration: &Json, context: &BindContext) -> Result<Arc<dyn Codec>> {
    let decoded = configuration::dtype(configuration, "dtype", context.dtype)?;
    let encoded = configuration::dtype(configuration, "astype", &decoded)?;
    let scale = configuration::float(configuration, "scale")?;
    let offset = configuration::float(configuration, "offset")?;
    bind("fixedscaleoffset", &decoded, encoded, Map::Scale { scale, offset })
}

/// In Zarr.
pub(super) const DELTA: Spelling = Spelling {
    id: "delta",
    numcodecs: r#"{"id":"delta","dtype":"<i4","astype":"<i2"}"#,
    v3: r#"{"name":"numcodecs.delta","configuration":{"dtype":"<i4","astype":"<i2"}}"#,
    hdf5: None,
    json: Some(bind_delta),
    encodes: true,
};

/// `delta`: the first number, then differences, as `astype`; `dtype` is the type of the array.
pub(super) fn bind_delta(configuration: &Json, context: &BindContext) -> Result<Arc<dyn Codec>> {
    let decoded = configuration::dtype(configuration, "dtype", context.dtype)?;
    let encoded = configuration::dtype(configuration, "astype", &decoded)?;
    bind("delta", &decoded, encoded, Map::Delta)
}

fn bind(name: &'static str, decoded: &DType, encoded: DType, map: Map) -> Result<Arc<dyn Codec>> {
    let (from, to) = (Scalar::wanted(name, &encoded)?, Scalar::wanted(name, decoded)?);
    Ok(Arc::new(Elementwise { name, from, to, encoded, map }))
}

#[derive(Debug)]
struct Elementwise {
    name: &'static str,
    /// A number as stored.
    from: Scalar,
    /// A number of the array.
    to: Scalar,
    encoded: DType,
    map: Map,
}

#[derive(Clone, Copy, Debug)]
enum Map {
    Cast,
    Quantize { scale: f64 },
    Scale { scale: f64, offset: f64 },
    Delta,
}

/// Rounds as the array's arithmetic does.
fn rounded(scalar: &Scalar, value: f64) -> f64 {
    match (scalar.kind, scalar.size) {
        (ScalarKind::Float, 4) => f64::from(value as f32),
        (ScalarKind::Float, 2) => half::f16::from_f64(value).to_f64(),
        _ => value,
    }
}

impl Elementwise {
    fn pairs<'a>(
        &self,
        from: &Scalar,
        input: &'a [u8],
        to: &Scalar,
        out: &'a mut [u8],
    ) -> impl Iterator<Item = (&'a [u8], &'a mut [u8])> {
        input.chunks_exact(from.size).zip(out.chunks_exact_mut(to.size))
    }

    /// How many numbers of `from` bytes there are.
    fn count(&self, bytes: usize, from: &Scalar) -> Result<usize> {
        if !bytes.is_multiple_of(from.size) {
            let what = format_args!("{bytes} bytes are no whole number of elements of {}", from.size);
            return Err(corrupt(self.name, what));
        }
        Ok(bytes / from.size)
    }
}

impl Codec for Elementwise {
    fn name(&self) -> &'static str {
        self.name
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>, max: usize, _: &mut Scratch) -> Result<()> {
        let bytes = self.count(input.len(), &self.from)? as u64 * self.to.size as u64;
        set_len(out, check_max(self.name, bytes, max)?);
        let pairs = self.pairs(&self.from, input, &self.to, out);
        match self.map {
            Map::Cast | Map::Quantize { .. } => {
                pairs.for_each(|(raw, x)| self.to.convert(&self.from, raw, x))
            }
            Map::Scale { scale, offset } => {
                for (raw, x) in pairs {
                    let scaled = rounded(&self.from, self.from.value(raw) / scale);
                    self.to.put(rounded(&self.from, scaled + offset), x);
                }
            }
            Map::Delta if self.to.kind == ScalarKind::Float => {
                let mut sum = None;
                for (raw, x) in pairs {
                    let value = self.from.value(raw);
                    let value = sum.map_or(value, |sum: f64| rounded(&self.to, sum + value));
                    sum = Some(value);
                    self.to.put(value, x);
                }
            }
            Map::Delta => {
                let mut sum = 0u64;
                for (raw, x) in pairs {
                    let step = match self.from.kind {
                        ScalarKind::Float => self.from.value(raw) as i64 as u64,
                        _ => self.from.bits(raw),
                    };
                    sum = sum.wrapping_add(step);
                    self.to.put_bits(sum, x);
                }
            }
        }
        Ok(())
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>, _: &mut Scratch) -> Result<()> {
        let bytes = self.count(input.len(), &self.to)?.checked_mul(self.from.size);
        let bytes = bytes.ok_or_else(|| Error::new(ErrorKind::LimitExceeded, "a chunk beyond all memory"))?;
        set_len(out, bytes);
        let pairs = self.pairs(&self.to, input, &self.from, out);
        match self.map {
            Map::Cast => pairs.for_each(|(x, raw)| self.from.convert(&self.to, x, raw)),
            Map::Quantize { scale } => {
                for (x, raw) in pairs {
                    self.from.put((self.to.value(x) * scale).round_ties_even() / scale, raw);
                }
            }
            Map::Scale { scale, offset } => {
                for (x, raw) in pairs {
                    let shifted = rounded(&self.to, self.to.value(x) - offset);
                    self.from.put(rounded(&self.to, shifted * scale).round_ties_even(), raw);
                }
            }
            Map::Delta if self.to.kind == ScalarKind::Float => {
                let mut last = None;
                for (x, raw) in pairs {
                    let value = self.to.value(x);
                    self.from.put(last.map_or(value, |last: f64| rounded(&self.to, value - last)), raw);
                    last = Some(value);
                }
            }
            Map::Delta => {
                let mut last = 0u64;
                for (x, raw) in pairs {
                    let value = self.to.bits(x);
                    self.from.put_bits(value.wrapping_sub(last), raw);
                    last = value;
                }
            }
        }
        Ok(())
    }

    fn decoded_bound(&self, encoded: u64) -> u64 {
        (encoded / self.from.size as u64).saturating_mul(self.to.size as u64)
    }

    fn encoded_len(&self, decoded: u64) -> Option<u64> {
        (decoded / self.to.size as u64).checked_mul(self.from.size as u64)
    }

    fn encoded_dtype(&self) -> Option<DType> {
        Some(self.encoded.clone())
    }
}
