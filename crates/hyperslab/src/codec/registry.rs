//! From what a file says about a stage to the stage itself.

use super::pipeline::{Pipeline, Stage};
use super::quantize;
use super::spelling::SPELLINGS;
use super::{BindContext, Codec, FilterSpec};
use crate::error::{Error, ErrorKind, Result};
use crate::json::Json;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Makes a codec from the client data of an HDF5 filter.
pub type Bind = fn(parameters: &[u32], context: &BindContext) -> Result<Arc<dyn Codec>>;

/// Makes a codec from the configuration of a Zarr codec.
pub type BindJson = fn(configuration: &Json, context: &BindContext) -> Result<Arc<dyn Codec>>;

/// The codecs that arrays may use: a value, so that two files in one program may allow different ones.
///
/// The default knows every codec of this crate.
#[derive(Clone)]
pub struct Registry {
    hdf5: Arc<BTreeMap<u16, Bind>>,
    zarr: Arc<BTreeMap<&'static str, BindJson>>,
}

impl Default for Registry {
    fn default() -> Self {
        // Made once: every array of a new file asks for it.
        static ALL: OnceLock<Registry> = OnceLock::new();
        let all = || {
            let known = SPELLINGS.iter();
            let mut hdf5: BTreeMap<u16, Bind> =
                known.clone().filter_map(|s| s.hdf5.map(|h| (h.number, h.bind))).collect();
            // What they round before encoding needs nothing when it is decoded.
            hdf5.extend(quantize::HDF5_IDS.map(|id| (id, quantize::bind as Bind)));
            let zarr: BTreeMap<&'static str, BindJson> =
                known.filter_map(|s| s.json.map(|bind| (s.id, bind))).collect();
            Registry { hdf5: hdf5.into(), zarr: zarr.into() }
        };
        ALL.get_or_init(all).clone()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("hdf5", &self.hdf5.keys()).field("zarr", &self.zarr.keys()).finish()
    }
}

impl Registry {
    /// A registry that knows no codec.
    pub fn empty() -> Self {
        Registry { hdf5: Arc::default(), zarr: Arc::default() }
    }

    /// Adds or replaces the codec of an HDF5 filter number.
    #[must_use]
    pub fn with_hdf5(mut self, id: u16, bind: Bind) -> Self {
        Arc::make_mut(&mut self.hdf5).insert(id, bind);
        self
    }

    /// Adds or replaces the codec of a Zarr name or id.
    #[must_use]
    pub fn with_zarr(mut self, name: &'static str, bind: BindJson) -> Self {
        Arc::make_mut(&mut self.zarr).insert(name, bind);
        self
    }

    /// Prepares one stage. A filter that is not known is [`ErrorKind::Unsupported`] and named by its number and its
    /// registered or stored name.
    pub fn bind(&self, spec: &FilterSpec, context: &BindContext) -> Result<Arc<dyn Codec>> {
        match spec {
            FilterSpec::Hdf5 { id, parameters, .. } => match self.hdf5.get(id) {
                Some(bind) => bind(parameters, context).map_err(|e| e.context(label(spec))),
                None => Err(Error::new(ErrorKind::Unsupported, format!("not supported: {}", label(spec)))),
            },
            FilterSpec::Zarr { name, configuration } => match self.zarr.get(bare(name)) {
                Some(bind) => bind(configuration, context).map_err(|e| e.context(label(spec))),
                None => Err(Error::new(ErrorKind::Unsupported, format!("not supported: {}", label(spec)))),
            },
        }
    }

    /// Prepares all stages of an array. A stage that cannot be prepared is an error only of the chunks that need it.
    pub fn pipeline(&self, specs: &[FilterSpec], context: &BindContext) -> Result<Pipeline> {
        let mut dtype = context.dtype.clone();
        let mut chunk = context.chunk.to_vec();
        let mut stages = Vec::with_capacity(specs.len());
        for spec in specs {
            let optional = match spec {
                FilterSpec::Hdf5 { flags, .. } => flags & 1 != 0,
                FilterSpec::Zarr { .. } => false,
            };
            // What one codec makes of the elements is what the next one sees.
            let context = BindContext { dtype: &dtype, chunk: &chunk, chunk_bytes: context.chunk_bytes };
            let codec = self.bind(spec, &context);
            let after = codec.as_ref().ok().map(|c| (c.encoded_dtype(), c.encoded_shape()));
            stages.push(Stage::new(label(spec), optional, codec));
            if let Some((new_dtype, new_shape)) = after {
                dtype = new_dtype.unwrap_or(dtype);
                chunk = new_shape.unwrap_or(chunk);
            }
        }
        Pipeline::new(stages, context.chunk_bytes)
    }
}

/// `filter 32017 (SZ)`.
fn label(spec: &FilterSpec) -> String {
    match spec {
        FilterSpec::Hdf5 { id, name, .. } => match filter_name(*id) {
            Some(known) => format!("filter {id} ({known})"),
            None if !name.is_empty() => format!("filter {id} ({name})"),
            None => format!("filter {id}"),
        },
        FilterSpec::Zarr { name, .. } => format!("codec {name}"),
    }
}

/// The name without the prefixes that mean the same codec: `numcodecs.zlib`, and the URLs of drafts of Zarr 3.
pub(super) fn bare(name: &str) -> &str {
    let name = name.strip_prefix("numcodecs.").unwrap_or(name);
    match name.strip_prefix("https://purl.org/zarr/spec/codec/") {
        Some(rest) => rest.split('/').next().unwrap_or(rest),
        None => name,
    }
}

/// The name under which the HDF Group registered a filter number.
pub fn filter_name(id: u16) -> Option<&'static str> {
    Some(match id {
        1 => "deflate",
        2 => "shuffle",
        3 => "fletcher32",
        4 => "szip",
        5 => "nbit",
        6 => "scaleoffset",
        305 => "LZO",
        307 => "bzip2",
        32000 => "LZF",
        32001 => "Blosc",
        32002 => "MAFISC",
        32003 => "Snappy",
        32004 => "LZ4",
        32005 => "APAX",
        32006 => "CBF",
        32007 => "JPEG-XR",
        32008 => "bitshuffle",
        32009 => "SPDP",
        32010 => "LPC-Rice",
        32011 => "CCSDS-123",
        32012 => "JPEG-LS",
        32013 => "ZFP",
        32014 => "fpzip",
        32015 => "Zstandard",
        32016 => "B3D",
        32017 => "SZ",
        32018 => "FCIDECOMP",
        32019 => "JPEG",
        32020 => "VBZ",
        32021 => "FAPEC",
        32022 => "BitGroom",
        32023 => "Granular BitRound",
        32024 => "SZ3",
        32025 => "Delta-Rice",
        32026 => "Blosc2",
        32027 => "FLAC",
        32028 => "SPERR",
        32029 => "TERSE/PROLIX",
        32030 => "FFMPEG",
        _ => return None,
    })
}
