//! What is written here, read by the reference libraries: every type, codec and way of storing of Zarr.

use crate::report;
use conformance::reference;
use hyperslab::copy::parse_codecs;
use hyperslab::dtype::{CharSet, DType, StringPadding};
use hyperslab::model::write::{ArraySpec, Change, LayoutSpec, ObjectPath, ShardSpec};
use hyperslab::model::{Dataspace, Dimension};
use hyperslab::staged::{Block, StagedArray, Values};
use hyperslab::write::CreateOptions;
use hyperslab::{Format, RawData, Transaction, create};
use std::path::Path;
use std::process::Command;

fn numpy(code: &str) -> DType {
    DType::from_numpy(code).expect("a type")
}

fn text() -> DType {
    DType::VarString { size: 16, padding: StringPadding::NullTerminated, charset: CharSet::Utf8 }
}

/// Element *i* is 7 i mod 101, or the text `w` and that number.
fn elements(dtype: &DType, shape: &[u64]) -> StagedArray {
    let numbers: Vec<i64> = (0..shape.iter().product::<u64>() as i64).map(|i| i * 7 % 101).collect();
    let chunk: Vec<u64> = shape.iter().map(|n| n.div_ceil(2).max(1)).collect();
    let mut staged = StagedArray::full(shape, &chunk, dtype, None).expect("an array");
    if matches!(dtype, DType::VarString { .. } | DType::String { .. } | DType::Utf32 { .. }) {
        let words: Vec<String> = numbers.iter().map(|n| format!("w{n}")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        staged.set(.., Values::texts(shape, &words).expect("texts")).expect("set");
    } else if dtype.is_bool() {
        let bytes = numbers.iter().map(|n| u8::from(*n != 0)).collect();
        let block = Block::from_raw(RawData { shape: shape.to_vec(), dtype: dtype.clone(), bytes });
        staged = StagedArray::from_base(block.expect("truth"), &chunk, None).expect("an array");
    } else {
        staged.set(.., Values::new(shape, &numbers).expect("numbers")).expect("set");
    }
    staged
}

fn add(transaction: &mut Transaction, name: &str, spec: ArraySpec) {
    let (dtype, shape) = (spec.dtype.clone(), spec.space.dims().to_vec());
    transaction.create_array(name, spec).unwrap_or_else(|e| panic!("{name}: {e}"));
    transaction.set_attribute(name, "number", 5i16).expect("an attribute");
    elements(&dtype, &shape).commit_to(transaction, name).unwrap_or_else(|e| panic!("{name}: {e}"));
}

fn plain(folder: &Path, format: Format, separator: Option<char>, v2_keys: bool, consolidated: bool) {
    let mut options = CreateOptions::default();
    options.separator = separator;
    options.v2_keys = v2_keys;
    options.consolidated = consolidated;
    let name = format!(
        "plain-{format}-{}-{v2_keys}-{consolidated}",
        if separator == Some('/') { "slash" } else { "other" }
    );
    let mut transaction = create(folder.join(name).as_path(), format, &options).expect("a new store");
    let spec = |code: &str| ArraySpec::simple(numpy(code), &[7, 10]).with_chunk(&[2, 3]);
    let codes = [
        "|b1", "|i1", "<i2", ">i4", "<i8", "|u1", ">u2", "<u4", "<u8", "<f2", ">f4", "<f8", "<c8", ">c16",
        "|S4", "<U3", ">U5",
    ];
    for code in codes {
        if code.contains('c') {
            // Complex numbers are not set from numbers.
            continue;
        }
        add(&mut transaction, &format!("t{}", code.trim_start_matches(['|', '<', '>'])), spec(code));
    }
    add(&mut transaction, "strings", ArraySpec::simple(text(), &[7, 10]).with_chunk(&[2, 3]));
    let mut packed = ArraySpec::simple(text(), &[7, 10]).with_chunk(&[2, 3]);
    packed.filters = parse_codecs("zstd=1").expect("a codec");
    add(&mut transaction, "strings-zstd", packed);
    let codecs = [
        "zlib=4",
        "gzip=4",
        "zstd=3",
        "bz2=1",
        "lzma",
        "lz4",
        "blosc-lz4=5",
        "blosc-zstd=1",
        "shuffle+zlib=4",
        "shuffle+zstd",
        "delta+zlib",
        "crc32",
        "crc32c",
        "adler32",
        "fletcher32",
        "zlib+fletcher32",
        "pcodec",
    ];
    for codec in codecs {
        let mut spec = spec("<i4");
        spec.filters = parse_codecs(codec).expect("a codec");
        add(&mut transaction, &format!("c-{}", codec.replace(['+', '='], "-")), spec);
    }
    let mut turned = spec("<i4");
    turned.filters =
        parse_codecs("[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},{\"id\":\"zlib\"}]")
            .expect("codecs");
    add(&mut transaction, "turned", turned);
    let mut whole = ArraySpec::simple(numpy("<f8"), &[7, 10]);
    whole.layout = LayoutSpec::Auto;
    add(&mut transaction, "auto", whole);
    add(&mut transaction, "scalar", ArraySpec::simple(numpy("<i4"), &[]));
    if format == Format::Zarr3 {
        for (name, codec, index_at_start) in
            [("shards", "none", false), ("shards-start", "zstd=1+crc32c", true)]
        {
            let mut spec = spec("<i4");
            let shard = ShardSpec { extents: vec![4, 6], index_at_start };
            spec.layout = LayoutSpec::Chunked { chunk: vec![2, 3], shard: Some(shard) };
            spec.filters = parse_codecs(codec).expect("codecs");
            add(&mut transaction, name, spec);
        }
    }
    transaction.commit().expect("a commit");
}

fn named(folder: &Path, format: Format) {
    let netcdf = format == Format::NcZarr;
    let name = format!("{}-{format}", if netcdf { "netcdf" } else { "named" });
    let mut transaction =
        create(folder.join(name).as_path(), format, &CreateOptions::default()).expect("a new store");
    for (name, length, unlimited) in [("y", 7, true), ("x", 10, false)] {
        let dimension = Dimension { name: name.into(), length, unlimited };
        let change = Change::CreateDimension { group: ObjectPath::root(), dimension };
        transaction.apply(change).expect("a dimension");
    }
    let at = |name: &str| Some(ObjectPath::root().join(name));
    let field = |code: &str| {
        let mut spec = ArraySpec::simple(numpy(code), &[7, 10]).with_chunk(&[2, 3]);
        spec.dimensions = vec![at("y"), at("x")];
        spec.filters = parse_codecs("shuffle+zlib=4").expect("codecs");
        spec
    };
    add(&mut transaction, "field", field("<f4"));
    transaction.set_attribute("field", "units", "m").expect("an attribute");
    transaction.set_attribute("/", "title", "é").expect("an attribute");
    add(&mut transaction, "bytes", field("|i1"));
    add(&mut transaction, "doubles", field(">f8"));
    add(&mut transaction, "scalar", ArraySpec::new(numpy("<i4"), Dataspace::Scalar));
    if netcdf {
        let spec = ArraySpec::simple(numpy("|S1"), &[5]).with_chunk(&[5]);
        transaction.create_array("chars", spec).expect("characters");
        let bytes = b"abcde".to_vec();
        let block =
            Block::from_raw(RawData { shape: vec![5], dtype: numpy("|S1"), bytes }).expect("characters");
        let staged = StagedArray::from_base(block, &[5], None).expect("characters");
        staged.commit_to(&mut transaction, "chars").expect("characters");
    }
    transaction.commit().expect("a commit");
}

#[test]
fn stores_are_read_by_zarr_python_xarray_and_netcdf() {
    let folder = tempfile::tempdir().expect("a folder");
    for consolidated in [false, true] {
        plain(folder.path(), Format::Zarr2, None, false, consolidated);
        plain(folder.path(), Format::Zarr3, None, false, consolidated);
    }
    plain(folder.path(), Format::Zarr2, Some('/'), false, true);
    plain(folder.path(), Format::Zarr3, None, true, true);
    for format in [Format::Zarr2, Format::Zarr3, Format::NcZarr] {
        named(folder.path(), format);
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/read_written.py");
    let output =
        Command::new(reference::python()).arg(script).arg(folder.path()).output().expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8_lossy(&output.stdout);
    let mut lines = printed.lines();
    let total = lines.next().and_then(|n| n.parse().ok()).expect("a number");
    let wrong: Vec<String> = lines.filter(|line| !line.is_empty()).map(str::to_owned).collect();
    report("stores that were written", total, &wrong);
}
