//! From what a file says about a stage to the stage itself.

use super::pipeline::{Pipeline, Stage};
use super::{BindContext, Codec, FilterSpec};
use super::{
    bitshuffle, blosc, bzip2, deflate, fletcher32, lz4, lzf, nbit, quantize, scaleoffset, shuffle, szip, zfp,
    zstandard,
};
use crate::error::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Makes a codec from the client data of an HDF5 filter.
pub type Bind = fn(parameters: &[u32], context: &BindContext) -> Result<Arc<dyn Codec>>;

/// The codecs that arrays may use: a value, so that two files in one program may allow different ones.
///
/// The default knows every codec of this crate.
#[derive(Clone)]
pub struct Registry {
    hdf5: BTreeMap<u16, Bind>,
}

impl Default for Registry {
    fn default() -> Self {
        let hdf5: [(u16, Bind); 16] = [
            (deflate::HDF5_ID, deflate::bind),
            (shuffle::HDF5_ID, shuffle::bind),
            (fletcher32::HDF5_ID, fletcher32::bind),
            (szip::HDF5_ID, szip::bind),
            (nbit::HDF5_ID, nbit::bind),
            (scaleoffset::HDF5_ID, scaleoffset::bind),
            (bzip2::HDF5_ID, bzip2::bind),
            (lzf::HDF5_ID, lzf::bind),
            (lz4::HDF5_ID, lz4::bind),
            (blosc::HDF5_ID, blosc::bind),
            (blosc::HDF5_ID_2, blosc::bind_2),
            (bitshuffle::HDF5_ID, bitshuffle::bind),
            (zfp::HDF5_ID, zfp::bind),
            (zstandard::HDF5_ID, zstandard::bind),
            (quantize::HDF5_IDS[0], quantize::bind),
            (quantize::HDF5_IDS[1], quantize::bind),
        ];
        Registry { hdf5: hdf5.into() }
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("hdf5", &self.hdf5.keys()).finish()
    }
}

impl Registry {
    /// A registry that knows no codec.
    pub fn empty() -> Self {
        Registry { hdf5: BTreeMap::new() }
    }

    /// Adds or replaces the codec of an HDF5 filter number.
    #[must_use]
    pub fn with_hdf5(mut self, id: u16, bind: Bind) -> Self {
        self.hdf5.insert(id, bind);
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
        }
    }

    /// Prepares all stages of an array. A stage that cannot be prepared is an error only of the chunks that need it.
    pub fn pipeline(&self, specs: &[FilterSpec], context: &BindContext) -> Result<Pipeline> {
        let stages = specs
            .iter()
            .map(|spec| {
                let optional = match spec {
                    FilterSpec::Hdf5 { flags, .. } => flags & 1 != 0,
                };
                Stage::new(label(spec), optional, self.bind(spec, context))
            })
            .collect();
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
