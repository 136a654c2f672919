use super::super::tests::text;
use super::super::{NetcdfView, Outlook, Type};
use super::attribute;
use crate::dtype::{DType, NetcdfType};
use crate::error::Result;
use crate::format;
use crate::json::Json;
use crate::limits::Limits;
use crate::model::{Attribute, Dataspace};
use crate::source::store::{Get, Listing, MemoryStore, Precondition, Store, Version};
use crate::source::{ReadHints, Source};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A store of documents, all of which are given without their braces.
fn open(documents: &[(&str, &str)]) -> NetcdfView {
    let store = MemoryStore::new();
    for (key, document) in documents {
        store.put(key, Bytes::from(format!("{{{document}}}")), &Precondition::None).unwrap();
    }
    let limits = Limits::default();
    let outlook = Outlook { extents: &|_, _| Ok(None), pure: false, name_types: false };
    NetcdfView::open(format::open_store(Arc::new(store), limits.clone()).unwrap(), &limits, &outlook).unwrap()
}

const GROUP: &str = r#""zarr_format": 2"#;

fn array(shape: &str, dtype: &str) -> String {
    format!(
        r#""zarr_format": 2, "shape": {shape}, "chunks": {shape}, "dtype": "{dtype}", "fill_value": null,
        "order": "C", "compressor": null, "filters": null"#
    )
}

#[test]
fn names_of_dimensions_are_those_of_the_group() {
    let (square, line) = (array("[4, 4]", "<f4"), array("[3]", "<i2"));
    let view = open(&[
        (".zgroup", GROUP),
        ("a/.zarray", &square),
        ("a/.zattrs", r#""_ARRAY_DIMENSIONS": ["y", "x"]"#),
        ("b/.zarray", &line),
        ("b/.zattrs", r#""_ARRAY_DIMENSIONS": ["x"]"#),
        ("c/.zarray", &square),
        ("d/.zarray", &line),
        ("d/.zattrs", r#""_ARRAY_DIMENSIONS": ["too", "many"]"#),
        ("g/.zgroup", GROUP),
        ("g/a/.zarray", &line),
        ("g/a/.zattrs", r#""_ARRAY_DIMENSIONS": ["x"], "CLASS": "of a user""#),
        ("s/.zarray", &array("[1]", "|b1")),
        ("s/.zattrs", r#""_ARRAY_DIMENSIONS": ["_scalar_"]"#),
    ]);
    assert!(!view.is_nczarr());
    let expected = "\
group /
  dim y 4
  dim x 4
  dim x_3 3
  dim _Anonymous_Dim_4 4
  dim _Anonymous_Dim_3 3
  float a(/y, /x)
  short b(/x_3)
  float c(/_Anonymous_Dim_4, /_Anonymous_Dim_4)
  short d(/_Anonymous_Dim_3)
  ubyte s()
group /g
  dim x 3
  short a(/gx)
    :CLASS char 9
";
    assert_eq!(text(&view), expected);
}

/// As netCDF-C 4.9.0 writes `mode=zarr`, without a word of NCZarr.
#[test]
fn bytes_of_text_are_text_in_pure_zarr_of_old_netcdf() {
    let text_of = |properties: &str| {
        let array = array("[3, 2]", "<U1").replace("null,\n        \"order\"", "\"\",\n        \"order\"");
        text(&open(&[
            (".zgroup", GROUP),
            (".zattrs", &format!(r#""title": "hello", "_NCProperties": "{properties}""#)),
            ("c/.zarray", &array),
            ("c/.zattrs", r#""units": "m", "_ARRAY_DIMENSIONS": ["x","n"]"#),
        ]))
    };
    for old in ["version=2,netcdf=4.9.0,nczarr=2.0.0", "version=2,netcdf=4.8.1-development,nczarr=1.0.0"] {
        assert!(text_of(old).contains("  char c(/x, /n)\n"), "{}", text_of(old));
    }
    for new in ["version=2,netcdf=4.9.1,nczarr=2.0.0", "version=2,netcdf=4.10.1", "version=2", "netcdf="] {
        assert!(text_of(new).contains("  string c(/x, /n)\n"), "{}", text_of(new));
    }
}

#[test]
fn the_fill_value_of_xarray_is_an_attribute() {
    let line = array("[3]", "<f4").replace("\"fill_value\": null", "\"fill_value\": \"NaN\"");
    let with = |root: &str| {
        let names = r#""_ARRAY_DIMENSIONS": ["x"], "a": 1"#;
        text(&open(&[(".zgroup", GROUP), (".zattrs", root), ("v/.zarray", &line), ("v/.zattrs", names)]))
    };
    assert!(with("").ends_with("  float v(/x)\n    :a int 1\n    :_FillValue float 1\n"), "{}", with(""));
    let netcdf = with(r#""_NCProperties": "version=2""#);
    assert!(netcdf.ends_with("  float v(/x)\n    :a int 1\n"), "{netcdf}");
}

#[test]
fn version_3_names_its_dimensions_itself() {
    let array = r#""zarr_format": 3, "node_type": "array", "shape": [2, 3], "data_type": "int8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}}, "codecs": ["bytes"],
        "chunk_key_encoding": "default", "dimension_names": ["y", null]"#;
    let view = open(&[("zarr.json", r#""zarr_format": 3, "node_type": "group""#), ("a/zarr.json", array)]);
    let expected = "group /\n  dim y 2\n  dim _Anonymous_Dim_3 3\n  byte a(/y, /_Anonymous_Dim_3)\n";
    assert_eq!(text(&view), expected);
}

#[test]
fn an_array_alone_is_a_variable() {
    let view =
        open(&[(".zarray", &array("[2]", "|S3")), (".zattrs", r#""_ARRAY_DIMENSIONS": ["x"], "a": 1"#)]);
    assert_eq!(text(&view), "group /\n  dim x 2\n  string array(/x)\n    :a int 1\n");
    assert_eq!(view.root().unwrap().variables[0].path, "/");
}

#[test]
fn what_is_wrong_in_one_variable_hides_no_other() {
    let line = array("[3]", "<i2");
    let group = r#""zarr_format": 2, "_nczarr_superblock": {"version": "2.0.0"},
        "_nczarr_group": {"dims": {"x": 3, "long": 7, "t": {"size": 5, "unlimited": 1}}, "vars": ["good", "gone"]}"#;
    let with = |references: &str| format!("{line}, \"_nczarr_array\": {{\"dimrefs\": {references}}}");
    let (good, long, lost, two) =
        (with(r#"["/x"]"#), with(r#"["/long"]"#), with(r#"["/g/x"]"#), with(r#"["/x", "/x"]"#));
    let view = open(&[
        (".zgroup", group),
        ("bad/.zarray", "\"zarr_format\": 2"),
        ("codec/.zarray", &good.replace("\"filters\": null", r#""filters": [{"id": "of nobody"}]"#)),
        ("good/.zarray", &good),
        ("long/.zarray", &long),
        ("lost/.zarray", &lost),
        ("two/.zarray", &two),
        ("shorter/.zarray", &with(r#"["/t"]"#)),
        ("odd/.zgroup", r#""zarr_format": 2, "_nczarr_group": {"dims": {"x": "wide"}}"#),
        ("odd/inside/.zarray", &good),
        ("half/.zarray", &array("[3]", "<f2")),
    ]);
    let found = text(&view);
    for line in [
        "  dim t 5 unlimited\n",
        "  short good(/x)\n",
        "  short codec(/x)\n",
        "  short shorter(/t)\n",
        "group /odd\n",
        "  short inside(/x)\n",
        "  no /gone: NCZarr lists it, and it is not there\n",
        "its dimension /long has length 7, the array 3",
        "its dimension /g/x is not declared",
        "2 dimensions of an array of 1 axes",
        "a dimension without length",
        "  float half(/_Anonymous_Dim_3)\n",
        "  no /bad: ",
    ] {
        assert!(found.contains(line), "{line}\n{found}");
    }
}

#[test]
fn what_nczarr_does_not_list_is_a_fault() {
    let line = format!("{}, \"_nczarr_array\": {{\"dimrefs\": [\"/x\"]}}", array("[3]", "<i2"));
    let faults = |lists: &str| {
        let group = format!(
            r#""zarr_format": 2, "_nczarr_superblock": {{"version": "2.0.0"}},
            "_nczarr_group": {{"dims": {{"x": 3}}{lists}}}"#
        );
        let view = open(&[
            (".zgroup", group.as_str()),
            ("a/.zarray", &line),
            ("b/.zarray", &line),
            ("g/.zgroup", GROUP),
            ("g/c/.zarray", &line),
        ]);
        let mut found = Vec::new();
        view.check(&Limits::default(), &mut |path, e| {
            assert!(e.to_string().contains("it is there, and NCZarr does not list it in group /"), "{e}");
            found.push(path.to_owned());
        });
        found
    };
    assert!(faults(r#", "vars": ["a", "b"], "groups": ["g"]"#).is_empty());
    assert_eq!(faults(r#", "vars": ["a"], "groups": ["g"]"#), ["/b"]);
    assert_eq!(faults(r#", "arrays": [], "groups": []"#), ["/a", "/b", "/g"]);
    // Where nothing is listed nothing is missing.
    assert!(faults("").is_empty());
}

#[test]
fn attributes_have_the_recorded_type_or_one_without_loss() {
    let told = |spelled: &str, recorded: Option<&str>, fill: Option<&str>| {
        let json = Json::parse(spelled.as_bytes()).unwrap();
        let view = open(&[(".zgroup", GROUP), (".zattrs", &format!("\"a\": {spelled}"))]);
        let all = view.hierarchy().attributes(&view.hierarchy().root()).unwrap();
        let inferred: Attribute = all.into_iter().next().unwrap().unwrap();
        let fill = fill.map(|code| DType::from_numpy(code).unwrap());
        let a = match attribute::typed(inferred, &json, recorded, fill.as_ref()) {
            Ok(a) => a,
            Err(e) => return format!("{}: {}", e.code(), e.message()),
        };
        let space = match &a.space {
            Dataspace::Null => "none".into(),
            space => format!("{:?}", space.dims()),
        };
        let text = if matches!(a.dtype, DType::String { .. }) {
            String::from_utf8_lossy(&a.data).replace('\0', "~")
        } else {
            a.data.iter().map(|b| format!("{b:02x}")).collect()
        };
        format!("{} {space} {text}", a.dtype)
    };
    for (spelled, recorded, fill, wanted) in [
        ("1", Some("<i2"), None, "i16le [1] 0100"),
        ("[1, 2]", Some(">i2"), None, "i16be [2] 00010002"),
        ("[1, 2]", Some("uint8"), None, "u8 [2] 0102"),
        ("\"NaN\"", Some("<f4"), None, "f32le [1] 0000c07f"),
        ("\"ab\"", Some(">S1"), None, "str2:utf8:nullpad [] ab"),
        ("123", Some(">S1"), None, "str3:utf8:nullpad [] 123"),
        ("{\"a\": [1, 2], \"b\": 1}", Some("<U1"), None, "str20:utf8:nullpad [] {\"a\": [1,2], \"b\": 1}"),
        ("\"\"", Some("char"), None, "str1:utf8:nullpad none "),
        ("\"ab\"", Some("|S128"), None, "str2:utf8:nullpad [1] ab"),
        ("[\"ab\", \"c\"]", Some("|S128"), None, "str2:utf8:nullpad [2] abc~"),
        ("[]", Some("<i4"), None, "i32le [0] "),
        ("[]", Some("<f4"), None, "f32le [0] "),
        ("\"ab\\u0000\"", Some(">S1"), None, "str3:utf8:nullpad [] ab~"),
        // Not of its type.
        ("300", Some("<i1"), None, "E_CORRUPT: its value 300 is none of its recorded type \"<i1\""),
        ("1.5", Some("<i4"), None, "E_CORRUPT: its value 1.5 is none of its recorded type \"<i4\""),
        ("1e39", Some("<f4"), None, "E_CORRUPT: its value 1e39 is none of its recorded type \"<f4\""),
        (
            "[1, 1e400]",
            Some("<f8"),
            None,
            "E_CORRUPT: its value [1,1e400] is none of its recorded type \"<f8\"",
        ),
        ("1", Some("<q4"), None, "E_UNSUPPORTED: not supported: its recorded type \"<q4\""),
        // Nothing is recorded.
        ("[1, -2]", None, None, "i32le [2] 01000000feffffff"),
        ("4000000000", None, None, "u32le [1] 00286bee"),
        ("[-1, 4000000000]", None, None, "i64le [2] ffffffffffffffff00286bee00000000"),
        ("18446744073709551615", None, None, "u64le [] ffffffffffffffff"),
        ("true", None, None, "u8 [1] 01"),
        ("null", None, None, "str4:utf8:nullpad [] null"),
        ("[]", None, None, "i32le [0] "),
        ("[\"a\", \"bc\"]", None, None, "str2:utf8:nullpad [2] a~bc"),
        // What stands for elements never written is of their type.
        ("-9", None, Some("<i2"), "i16le [1] f7ff"),
        ("1", None, Some(">f4"), "f32be [1] 3f800000"),
        ("\"AAAAAAAA+H8=\"", None, Some("<f8"), "f64le [1] 000000000000f87f"),
        ("\"AAAAAAAA8D8=\"", None, Some("<f4"), "f32le [1] 0000803f"),
        ("\"NaN\"", None, Some("<f4"), "f32le [1] 0000c07f"),
    ] {
        assert_eq!(told(spelled, recorded, fill), wanted, "{spelled} {recorded:?} {fill:?}");
    }
}

/// Counts what is asked of a store.
#[derive(Debug)]
struct Counting(MemoryStore, AtomicUsize);

impl Store for Counting {
    fn name(&self) -> String {
        self.0.name()
    }

    fn hints(&self) -> ReadHints {
        self.0.hints()
    }

    fn len(&self, key: &str) -> Result<Option<u64>> {
        self.0.len(key)
    }

    fn get_many(&self, gets: &[Get]) -> Vec<Result<Option<Bytes>>> {
        self.1.fetch_add(gets.len(), Ordering::Relaxed);
        self.0.get_many(gets)
    }

    fn version(&self, key: &str) -> Result<Option<Version>> {
        self.0.version(key)
    }

    fn put(&self, key: &str, bytes: Bytes, when: &Precondition) -> Result<Version> {
        self.0.put(key, bytes, when)
    }

    fn delete(&self, key: &str) -> Result<bool> {
        self.0.delete(key)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.0.list(prefix)
    }

    fn search(&self, prefix: &str) -> Result<Listing> {
        self.0.search(prefix)
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Source>>> {
        self.0.open(key)
    }
}

#[test]
fn many_attributes_need_no_more_reads_than_one() {
    let reads = |count: usize| {
        let list: Vec<String> = (0..count).map(|i| format!("\"a{i}\": {i}")).collect();
        let types: Vec<String> = (0..count).map(|i| format!("\"a{i}\": \"<i2\"")).collect();
        let attributes =
            format!("{{{}, \"_nczarr_attr\": {{\"types\": {{{}}}}}}}", list.join(", "), types.join(", "));
        let store = MemoryStore::new();
        let group = format!("{{{GROUP}, \"_nczarr_superblock\": {{}}}}");
        let document = format!("{{{}}}", array("[3]", "<i2"));
        for (key, text) in [
            (".zgroup", group.as_str()),
            (".zattrs", &attributes),
            ("v/.zarray", &document),
            ("v/.zattrs", &attributes),
        ] {
            store.put(key, Bytes::from(text.to_owned()), &Precondition::None).unwrap();
        }
        let store = Arc::new(Counting(store, 0.into()));
        let limits = Limits::default();
        let outlook = Outlook { extents: &|_, _| Ok(None), pure: false, name_types: false };
        let hierarchy = format::open_store(store.clone(), limits.clone()).unwrap();
        let view = NetcdfView::open(hierarchy, &limits, &outlook).unwrap();
        let root = view.root().unwrap();
        assert_eq!((root.attributes.len(), root.variables[0].attributes.len()), (count, count));
        assert!(root.attributes.iter().all(|a| a.kind == Type::Atomic(NetcdfType::Short)));
        store.1.load(Ordering::Relaxed)
    };
    assert_eq!(reads(1), reads(2000));
}
