//! How codecs are spelled: as an HDF5 filter, as a codec of numcodecs and Zarr 2, and as one of Zarr 3. Each codec's own
//! file has its spellings and the way from one to the other; here they are brought together.

use super::{Bind, BindContext, BindJson, FilterSpec, registry};
use super::{
    base64, bitshuffle, blosc, byte_order, bzip2, checksum, configuration, deflate, elementwise, fletcher32,
    gzip, lz4, lzf, lzma, nbit, packbits, pcodec, quantize, scaleoffset, shuffle, szip, transpose, vlen, zfp,
    zstandard,
};
use crate::error::{Error, Result};
use crate::json::{Json, wrong_member};
use crate::shape::Name;

/// One codec, with an example of each spelling.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Spelling {
    /// The id of numcodecs, which is the bare name of Zarr 3 too.
    pub id: &'static str,
    /// Example of Zarr 2, as JSON; empty where only Zarr 3 has it.
    pub numcodecs: &'static str,
    /// Example of Zarr 3, as JSON; empty where only Zarr 2 has it.
    pub v3: &'static str,
    /// The same codec as an HDF5 filter.
    pub hdf5: Option<Hdf5>,
    /// Makes the codec; `None` for those that the format itself takes apart.
    pub(super) json: Option<BindJson>,
    /// Whether it is written here too.
    pub encodes: bool,
}

/// A codec as an HDF5 filter.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Hdf5 {
    /// Registered number.
    pub number: u16,
    pub(super) bind: Bind,
    /// The configuration that stands for these parameters.
    pub(super) to_json: fn(parameters: &[u32]) -> Vec<(&'static str, Json)>,
    /// The parameters that stand for this configuration.
    pub(super) to_parameters: fn(configuration: &Json, context: &BindContext) -> Result<Vec<u32>>,
}

/// Of Zarr alone: stages that its reader takes apart itself.
const fn of_zarr(id: &'static str, numcodecs: &'static str, v3: &'static str) -> Spelling {
    Spelling { id, numcodecs, v3, hdf5: None, json: None, encodes: false }
}

/// Every codec that there is here, by id.
pub const SPELLINGS: &[Spelling] = &[
    checksum::ADLER32,
    elementwise::ASTYPE,
    base64::SPELLING,
    quantize::SPELLING,
    bitshuffle::SPELLING,
    blosc::SPELLING,
    byte_order::SPELLING,
    bzip2::SPELLING,
    checksum::CRC32,
    checksum::CRC32C,
    elementwise::DELTA,
    byte_order::ENDIAN,
    elementwise::SCALE,
    fletcher32::SPELLING,
    gzip::SPELLING,
    blosc::HDF5_BLOSC2,
    lz4::HDF5_LZ4,
    zfp::SPELLING,
    checksum::LOOKUP3,
    vlen::JSON,
    lz4::SPELLING,
    lzf::SPELLING,
    lzma::SPELLING,
    nbit::SPELLING,
    packbits::SPELLING,
    pcodec::SPELLING,
    elementwise::QUANTIZE,
    scaleoffset::SPELLING,
    of_zarr(
        "sharding_indexed",
        "",
        r#"{"name":"sharding_indexed","configuration":{"chunk_shape":[16],"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}],"index_location":"end"}}"#,
    ),
    shuffle::SPELLING,
    szip::SPELLING,
    transpose::SPELLING,
    vlen::BYTES,
    vlen::UTF8,
    deflate::SPELLING,
    zstandard::SPELLING,
];

/// The configuration of a filter that Zarr has no words for: its parameters as they are.
pub(super) fn parameters_to_json(parameters: &[u32]) -> Vec<(&'static str, Json)> {
    vec![("parameters", Json::List(parameters.iter().map(|&p| Json::Integer(i128::from(p))).collect()))]
}

/// The parameters in such a configuration.
pub(super) fn json_to_parameters(configuration: &Json, _: &BindContext) -> Result<Vec<u32>> {
    let list = configuration.get("parameters").and_then(Json::as_list);
    let list = list.ok_or_else(|| wrong_member("parameters", "a list of numbers is missing"))?;
    let numbers: Option<Vec<u32>> =
        list.iter().map(|p| p.as_u64().and_then(|p| u32::try_from(p).ok())).collect();
    numbers.ok_or_else(|| wrong_member("parameters", "a parameter is no number of 32 bits"))
}

/// One parameter that is a level, as `level`.
pub(super) fn level_to_json(parameters: &[u32]) -> Vec<(&'static str, Json)> {
    // Negative levels stand in unsigned fields.
    parameters.first().map(|&level| ("level", Json::Integer(i128::from(level as i32)))).into_iter().collect()
}

/// `level` as one parameter; none if it is missing.
pub(super) fn json_to_level(configuration: &Json, _: &BindContext) -> Result<Vec<u32>> {
    let level = configuration.get("level").filter(|level| !level.is_null());
    level.map_or(Ok(Vec::new()), |_| {
        let (low, high) = (i32::MIN.into(), i32::MAX.into());
        Ok(vec![configuration::integer(configuration, "level", 0, low, high)? as i32 as u32])
    })
}

fn hdf5_of(number: u16) -> Option<(&'static Spelling, Hdf5)> {
    SPELLINGS.iter().find_map(|s| s.hdf5.filter(|h| h.number == number).map(|h| (s, h)))
}

impl FilterSpec {
    /// The same stage as a Zarr codec, named by its id. Fails with [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported)
    /// for filters that are not known here.
    pub fn to_zarr(&self) -> Result<FilterSpec> {
        let FilterSpec::Hdf5 { id, parameters, .. } = self else { return Ok(self.clone()) };
        let (spelling, hdf5) =
            hdf5_of(*id).ok_or_else(|| Error::unsupported(format_args!("filter {id} as a codec of Zarr")))?;
        let members = (hdf5.to_json)(parameters);
        let configuration =
            Json::Map(members.into_iter().map(|(name, value)| (name.into(), value)).collect());
        Ok(FilterSpec::Zarr { name: spelling.id.to_owned(), configuration })
    }

    /// The same stage as an HDF5 filter, which must not be skipped. Fails with
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for codecs that HDF5 has no filter for.
    pub fn to_hdf5(&self, context: &BindContext) -> Result<FilterSpec> {
        let FilterSpec::Zarr { name, configuration } = self else { return Ok(self.clone()) };
        let bare = registry::bare(name);
        let hdf5 = SPELLINGS.iter().find(|s| s.id == bare).and_then(|s| s.hdf5);
        let hdf5 =
            hdf5.ok_or_else(|| Error::unsupported(format_args!("codec {name} as a filter of HDF5")))?;
        let parameters = (hdf5.to_parameters)(configuration, context)?;
        Ok(FilterSpec::Hdf5 { id: hdf5.number, flags: 0, name: Name::default(), parameters })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Registry, Scratch};
    use crate::dtype::{ByteOrder, DType};

    fn context<T>(run: impl FnOnce(&BindContext) -> T) -> T {
        let dtype = DType::from_zarr("int32", ByteOrder::Little).unwrap();
        run(&BindContext { dtype: &dtype, chunk: &[50, 100], chunk_bytes: 20_000 })
    }

    #[test]
    fn every_example_makes_its_codec_in_both_spellings() {
        assert!(SPELLINGS.is_sorted_by_key(|s| s.id));
        for spelling in SPELLINGS.iter().filter(|s| s.json.is_some()) {
            let mut seen = 0;
            for (text, name) in [(spelling.numcodecs, "id"), (spelling.v3, "name")] {
                if text.is_empty() {
                    continue;
                }
                let example = Json::parse(text.as_bytes()).unwrap();
                let name = example.get(name).and_then(Json::as_str).unwrap().to_owned();
                let configuration = example.get("configuration").unwrap_or(&example).clone();
                let spec = FilterSpec::Zarr { name: name.clone(), configuration };
                context(|c| Registry::default().bind(&spec, c)).unwrap_or_else(|e| panic!("{text}: {e}"));
                assert_eq!(registry::bare(&name), spelling.id);
                seen += 1;
            }
            assert!(seen > 0, "{}", spelling.id);
        }
    }

    #[test]
    fn filters_become_codecs_and_the_same_filters_again() {
        let filters: &[(u16, &[u32], &str)] = &[
            (1, &[4], r#"{"level":4}"#),
            (2, &[8], r#"{"elementsize":8}"#),
            (3, &[], "{}"),
            (
                4,
                &[169, 8, 32, 100],
                r#"{"mask":169,"pixels-per-block":8,"bits-per-pixel":32,"pixels-per-scanline":100}"#,
            ),
            (5, &[8, 0, 400, 1, 4, 0, 3, 0], r#"{"parameters":[8,0,400,1,4,0,3,0]}"#),
            (6, &[2, 0, 400, 0, 4, 1, 0, 0], r#"{"parameters":[2,0,400,0,4,1,0,0]}"#),
            (307, &[9], r#"{"level":9}"#),
            (32000, &[4, 0, 400], r#"{"parameters":[4,0,400]}"#),
            (
                32001,
                &[2, 2, 4, 20_000, 5, 2, 1],
                r#"{"cname":"lz4","clevel":5,"shuffle":2,"blocksize":0,"typesize":4}"#,
            ),
            (32004, &[1 << 30], r#"{"parameters":[1073741824]}"#),
            (32008, &[0, 4, 4, 0, 3, 7], r#"{"elementsize":4,"blocksize":0,"cname":"zstd","clevel":7}"#),
            (32015, &[-5i32 as u32], r#"{"level":-5}"#),
            (32026, &[1, 0, 4, 400, 5, 1, 1], r#"{"parameters":[1,0,4,400,5,1,1]}"#),
        ];
        for (id, parameters, text) in filters {
            let filter = FilterSpec::Hdf5 {
                id: *id,
                flags: 0,
                name: Name::default(),
                parameters: parameters.to_vec(),
            };
            let codec = filter.to_zarr().unwrap();
            let FilterSpec::Zarr { configuration, .. } = &codec else { panic!("{id}") };
            assert_eq!(configuration, &Json::parse(text.as_bytes()).unwrap(), "{id}");
            assert_eq!(context(|c| codec.to_hdf5(c)).unwrap(), filter, "{id}");
            // And both make a codec.
            for spec in [&filter, &codec] {
                context(|c| Registry::default().bind(spec, c)).unwrap_or_else(|e| panic!("{id}: {e}"));
            }
        }
    }

    /// What damage makes of a stream is an error or other bytes, never more of them than are wanted.
    #[test]
    fn damaged_streams_of_other_crates_are_errors() {
        let dtype = DType::from_numpy("<f4").unwrap();
        let values: Vec<u8> = (0..3000u32).flat_map(|i| ((i % 700) as f32 / 8.0).to_le_bytes()).collect();
        let context = BindContext { dtype: &dtype, chunk: &[3000], chunk_bytes: 12_000 };
        let mut seed = 7u64;
        let mut random = move || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize
        };
        for id in ["pcodec", "lzma"] {
            let spec = FilterSpec::Zarr { name: id.into(), configuration: Json::Map(vec![]) };
            let pipeline = Registry::default().pipeline(&[spec], &context).unwrap();
            let (mut encoded, mut scratch) = (Vec::new(), Scratch::default());
            pipeline.encode(&values, &mut encoded, &mut scratch).unwrap();
            assert!(encoded.len() < 6000, "{id}: {}", encoded.len());
            let mut out = Vec::new();
            pipeline.decode(&encoded, 0, &mut out, &mut scratch).unwrap();
            assert_eq!(out, values, "{id}");
            for _ in 0..400 {
                let mut damaged = encoded.clone();
                for _ in 0..1 + random() % 3 {
                    // The first bytes decide most.
                    let at = if random() % 2 == 0 { random() % 64 } else { random() } % damaged.len();
                    damaged[at] = random() as u8;
                }
                if random() % 4 == 0 {
                    damaged.truncate(random() % damaged.len());
                }
                if pipeline.decode(&damaged, 0, &mut out, &mut scratch).is_ok() {
                    assert_eq!(out.len(), values.len());
                }
            }
        }
    }

    #[test]
    fn what_a_codec_leaves_out_the_array_says() {
        let codec = |name: &str, text: &str| {
            let configuration = Json::parse(text.as_bytes()).unwrap();
            let spec = FilterSpec::Zarr { name: name.to_owned(), configuration };
            match context(|c| spec.to_hdf5(c)) {
                Ok(FilterSpec::Hdf5 { id, parameters, .. }) => (id, parameters),
                other => panic!("{name}: {other:?}"),
            }
        };
        // netCDF writes 0 for the size of elements, and did write it as a text.
        assert_eq!(codec("shuffle", r#"{"elementsize":0}"#), (2, vec![4]));
        assert_eq!(codec("shuffle", r#"{"elementsize":"0"}"#), (2, vec![4]));
        assert_eq!(codec("numcodecs.shuffle", "{}"), (2, vec![4]));
        assert_eq!(codec("szip", r#"{"mask":32,"pixels-per-block":8}"#), (4, vec![169, 8, 32, 100]));
        assert_eq!(
            codec("blosc", r#"{"cname":"zstd","clevel":3,"shuffle":"bitshuffle"}"#),
            (32001, vec![2, 2, 4, 20_000, 3, 2, 5])
        );
        let gzip = FilterSpec::Zarr { name: "gzip".into(), configuration: Json::Map(vec![]) };
        assert_eq!(context(|c| gzip.to_hdf5(c)).unwrap_err().kind(), crate::ErrorKind::Unsupported);
    }
}
