//! Messages from bytes made by hand, for what the reference library no longer writes and for what is wrong.

use super::attribute::{AttributeInfo, AttributeMessage};
use super::extension::{BtreeK, FileSpace, SharedTableMessage};
use super::external::ExternalFiles;
use super::fill::{AllocationTime, Fill, FillTime};
use super::layout::{IndexKind, Layout, LayoutClass};
use super::link::LinkInfo;
use super::shared::Shared;
use super::{dataspace, datatype, filter, link, selection};
use crate::codec::FilterSpec;
use crate::dtype::DType;
use crate::error::{ErrorKind, Result};
use crate::format::hdf5::parse::{Cursor, Sizes, UNDEFINED};
use crate::limits::Limits;
use crate::model::{Dataspace, FillValue, LinkTarget, NodeId, SpaceSelection};
use crate::shape::Name;
use bytes::Bytes;

const SIZES: Sizes = Sizes { offset: 8, length: 8 };

/// Bytes in the making: numbers are little endian.
#[derive(Default)]
struct Made(Vec<u8>);

impl Made {
    fn u8(mut self, n: u8) -> Self {
        self.0.push(n);
        self
    }
    fn u16(mut self, n: u16) -> Self {
        self.0.extend(n.to_le_bytes());
        self
    }
    fn u32(mut self, n: u32) -> Self {
        self.0.extend(n.to_le_bytes());
        self
    }
    fn u64(mut self, n: u64) -> Self {
        self.0.extend(n.to_le_bytes());
        self
    }
    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }
    fn bytes(&self) -> Bytes {
        Bytes::from(self.0.clone())
    }
}

fn made() -> Made {
    Made::default()
}

fn cursor(made: &Made) -> Cursor<'_> {
    Cursor::new(&made.0, "test", 0)
}

fn kind<T>(result: Result<T>) -> ErrorKind {
    result.err().expect("an error").kind()
}

fn dtype(made: &Made) -> Result<DType> {
    datatype::parse(&mut cursor(made), &Limits::default())
}

/// A 32-bit little-endian integer.
fn i32le(version: u8) -> Made {
    made().u8(version << 4).raw(&[0x08, 0, 0]).u32(4).u16(0).u16(32)
}

#[test]
fn dataspaces() {
    let parse = |m: &Made| dataspace::parse(cursor(m), SIZES);
    let v1 = made().raw(&[1, 2, 1, 0, 0, 0, 0, 0]).u64(3).u64(4).u64(u64::MAX).u64(8);
    assert_eq!(parse(&v1).unwrap(), Dataspace::Simple { dims: vec![3, 4], max: vec![None, Some(8)] });
    assert_eq!(parse(&made().raw(&[1, 0, 0, 0, 0, 0, 0, 0])).unwrap(), Dataspace::Scalar);
    assert_eq!(parse(&made().raw(&[2, 0, 0, 0])).unwrap(), Dataspace::Scalar);
    assert_eq!(parse(&made().raw(&[2, 0, 0, 2])).unwrap(), Dataspace::Null);
    let v2 = made().raw(&[2, 1, 0, 1]).u64(5);
    assert_eq!(parse(&v2).unwrap(), Dataspace::Simple { dims: vec![5], max: vec![Some(5)] });
    assert_eq!(kind(parse(&made().raw(&[2, 33, 0, 1]))), ErrorKind::Corrupt);
    assert_eq!(kind(parse(&made().raw(&[3, 0, 0, 0]))), ErrorKind::Unsupported);
    assert_eq!(kind(parse(&made().raw(&[2, 1, 0, 1]).u64(u64::MAX))), ErrorKind::Corrupt);
    // More than 2^64 elements.
    let huge = made().raw(&[2, 3, 0, 1]).u64(1 << 40).u64(1 << 40).u64(1 << 40);
    assert_eq!(kind(parse(&huge)), ErrorKind::LimitExceeded);
}

#[test]
fn compound_of_version_1_with_an_array() {
    let member = |name: &[u8; 8], offset: u32, rank: u8, dims: [u32; 4]| {
        let m = made().raw(name).u32(offset).u8(rank).raw(&[0; 3]).u32(0).u32(0);
        dims.iter().fold(m, |m, &d| m.u32(d)).raw(&i32le(1).0)
    };
    let t = made()
        .u8(0x16)
        .raw(&[2, 0, 0])
        .u32(28)
        .raw(&member(b"a\0\0\0\0\0\0\0", 0, 0, [0; 4]).0)
        .raw(&member(b"b\0\0\0\0\0\0\0", 4, 2, [2, 3, 0, 0]).0);
    assert_eq!(dtype(&t).unwrap().to_string(), r#"compound{"a":i32le,"b":array[2,3]<i32le>}"#);
    let beyond = made().u8(0x16).raw(&[1, 0, 0]).u32(6).raw(&member(b"a\0\0\0\0\0\0\0", 4, 0, [0; 4]).0);
    assert_eq!(kind(dtype(&beyond)), ErrorKind::Corrupt);
}

#[test]
fn compound_names_are_padded_before_version_3() {
    // Eight characters and their NUL take sixteen bytes.
    let v2 = made().u8(0x26).raw(&[1, 0, 0]).u32(4).raw(b"12345678\0\0\0\0\0\0\0\0").u32(0).raw(&i32le(2).0);
    assert_eq!(dtype(&v2).unwrap().to_string(), r#"compound{"12345678":i32le}"#);
    // Offsets take as many bytes as the size of the element needs.
    let v3 = made().u8(0x36).raw(&[1, 0, 0]).u32(300).raw(b"12345678\0").u16(296).raw(&i32le(3).0);
    let DType::Compound { fields, .. } = dtype(&v3).unwrap() else { panic!() };
    assert_eq!(fields[0].offset, 296);
}

#[test]
fn arrays_say_their_size() {
    let array = |version: u8, size: u32| {
        let m = made().u8(version << 4 | 10).raw(&[0; 3]).u32(size).u8(2);
        let m = if version < 3 { m.raw(&[0; 3]) } else { m };
        let m = m.u32(2).u32(5);
        let m = if version < 3 { m.u32(0).u32(1) } else { m };
        m.raw(&i32le(version).0)
    };
    for version in 1..=5 {
        assert_eq!(dtype(&array(version, 40)).unwrap().to_string(), "array[2,5]<i32le>");
        assert_eq!(kind(dtype(&array(version, 44))), ErrorKind::Corrupt);
    }
    let huge = made().u8(0x3a).raw(&[0; 3]).u32(0).u8(2).u32(u32::MAX).u32(u32::MAX).raw(&i32le(3).0);
    assert_eq!(kind(dtype(&huge)), ErrorKind::Corrupt);
}

#[test]
fn types_nested_too_deep_are_refused() {
    let mut m = made();
    for _ in 0..10_000 {
        m = m.u8(0x39).raw(&[0; 3]).u32(16);
    }
    assert_eq!(kind(dtype(&m.raw(&i32le(3).0))), ErrorKind::LimitExceeded);
}

#[test]
fn types_that_make_no_sense_are_refused() {
    for (what, m) in [
        ("version 0", made().u8(0x00).raw(&[0; 3]).u32(4).u16(0).u16(32)),
        ("version 6", made().u8(0x60).raw(&[0; 3]).u32(4).u16(0).u16(32)),
        ("33 bits of 32", made().u8(0x10).raw(&[0; 3]).u32(4).u16(0).u16(33)),
        ("no bits", made().u8(0x10).raw(&[0; 3]).u32(4).u16(0).u16(0)),
        ("no bytes", made().u8(0x10).raw(&[0; 3]).u32(0).u16(0).u16(0)),
        (
            "exponent outside",
            made().u8(0x11).raw(&[0x20, 31, 0]).u32(4).u16(0).u16(32).raw(&[30, 8, 0, 23]).u32(127),
        ),
        ("reference of type 9", made().u8(0x17).raw(&[9, 0, 0]).u32(8)),
        ("enumeration of an opaque", made().u8(0x38).raw(&[0; 3]).u32(4).u8(0x35).raw(&[0; 3]).u32(4)),
        ("string padding 7", made().u8(0x13).raw(&[7, 0, 0]).u32(4)),
        ("complex of the wrong size", made().u8(0x5b).raw(&[0; 3]).u32(12).raw(&i32le(5).0)),
    ] {
        assert_eq!(kind(dtype(&m)), ErrorKind::Corrupt, "{what}");
    }
    assert_eq!(kind(dtype(&made().u8(0x1c).raw(&[0; 3]).u32(4))), ErrorKind::Unsupported);
}

#[test]
fn fill_values_of_every_version() {
    let parse = |m: &Made| Fill::parse(&m.bytes(), cursor(m));
    let value = |m: &Made| parse(m).unwrap().value;
    let seven = FillValue::Value(Bytes::from_static(&[7, 0]));
    let v1 = made().raw(&[1, 2, 0, 1]).u32(2).raw(&[7, 0]);
    let fill = parse(&v1).unwrap();
    assert_eq!((fill.allocation, fill.time), (AllocationTime::Late, FillTime::Allocation));
    assert_eq!(fill.value, seven);
    assert_eq!(value(&made().raw(&[1, 2, 0, 0]).u32(0)), FillValue::Undefined);
    assert_eq!(value(&made().raw(&[2, 2, 2, 0])), FillValue::Undefined);
    assert_eq!(value(&made().raw(&[2, 2, 2, 1]).u32(0)), FillValue::Default);
    assert_eq!(value(&made().raw(&[2, 2, 2, 1]).u32(2).raw(&[7, 0])), seven);
    assert_eq!(value(&made().raw(&[3, 0x0a])), FillValue::Default);
    assert_eq!(value(&made().raw(&[3, 0x1a])), FillValue::Undefined);
    let v3 = made().raw(&[3, 0x27]).u32(2).raw(&[7, 0]);
    assert_eq!((value(&v3), parse(&v3).unwrap().time), (seven.clone(), FillTime::Never));
    assert_eq!(kind(parse(&made().raw(&[3, 0x3a]))), ErrorKind::Corrupt);
    assert_eq!(kind(parse(&made().raw(&[2, 2, 3, 0]))), ErrorKind::Corrupt);
    assert_eq!(kind(parse(&made().raw(&[3, 0x2a]).u32(1 << 30))), ErrorKind::Corrupt);
    let old = |m: &Made| Fill::parse_old(&m.bytes(), cursor(m)).unwrap().value;
    assert_eq!(old(&made().u32(2).raw(&[7, 0])), seven);
    assert_eq!(old(&made().u32(0)), FillValue::Undefined);
}

#[test]
fn filters_of_both_versions() {
    let v1 = made()
        .raw(&[1, 2, 0, 0, 0, 0, 0, 0])
        .u16(1)
        .u16(8)
        .u16(1)
        .u16(1)
        .raw(b"deflate\0")
        .u32(6)
        .u32(0)
        .u16(2)
        .u16(0)
        .u16(0)
        .u16(1)
        .u32(4);
    let v2 = made().raw(&[2, 2]).u16(1).u16(1).u16(1).u32(6).u16(32015).u16(4).u16(0).u16(0).raw(b"zstd");
    let spec = |id, flags, name: &str, parameters: &[u32]| FilterSpec::Hdf5 {
        id,
        flags,
        name: Name::from(name),
        parameters: parameters.to_vec(),
    };
    assert_eq!(filter::parse(cursor(&v1)).unwrap(), [spec(1, 1, "deflate", &[6]), spec(2, 0, "", &[4])]);
    assert_eq!(filter::parse(cursor(&v2)).unwrap(), [spec(1, 1, "", &[6]), spec(32015, 0, "zstd", &[])]);
    assert_eq!(kind(filter::parse(cursor(&made().raw(&[2, 33])))), ErrorKind::Corrupt);
    assert_eq!(
        kind(filter::parse(cursor(&made().raw(&[2, 1]).u16(1).u16(0).u16(60_000)))),
        ErrorKind::Corrupt
    );
}

#[test]
fn layouts_of_every_version() {
    let parse = |m: &Made| Layout::parse(&m.bytes(), cursor(m), SIZES).map(|l| l.class);
    let contiguous = made().raw(&[1, 2, 1, 0, 0, 0, 0, 0]).u64(0x800).u32(5).u32(4);
    assert_eq!(parse(&contiguous).unwrap(), LayoutClass::Contiguous { address: 0x800, size: None });
    let compact = made().raw(&[2, 2, 0, 0, 0, 0, 0, 0]).u32(2).u32(1).u32(2).raw(&[8, 9]);
    assert_eq!(parse(&compact).unwrap(), LayoutClass::Compact(Bytes::from_static(&[8, 9])));
    let v3 = made().raw(&[3, 2, 3]).u64(0x900).u32(6).u32(7).u32(4);
    let LayoutClass::Chunked(chunked) = parse(&v3).unwrap() else { panic!() };
    assert_eq!((&chunked.chunk[..], chunked.element_size), (&[6, 7][..], 4));
    assert_eq!((chunked.index, chunked.address), (IndexKind::BtreeV1, 0x900));
    let v4 = |index: &[u8], flags: u8| made().raw(&[4, 2, flags, 2, 1, 6, 4]).raw(index).u64(0xa00);
    let index = |m: &Made| match parse(m).unwrap() {
        LayoutClass::Chunked(c) => (c.index, c.edge_unfiltered, c.address),
        other => panic!("{other:?}"),
    };
    let filtered = made().u8(1).u64(99).u32(1);
    assert_eq!(index(&v4(&[1], 0)), (IndexKind::Single { filtered: None }, false, 0xa00));
    assert_eq!(index(&v4(&filtered.0, 2)).0, IndexKind::Single { filtered: Some((99, 1)) });
    assert_eq!(index(&v4(&[2], 1)), (IndexKind::Implicit, true, 0xa00));
    assert_eq!(index(&v4(&[3, 10], 0)).0, IndexKind::FixedArray { page_bits: 10 });
    let array = IndexKind::ExtensibleArray {
        max_bits: 32,
        index_elements: 4,
        min_pointers: 5,
        min_elements: 16,
        page_bits: 10,
    };
    assert_eq!(index(&v4(&[4, 32, 4, 5, 16, 10], 0)).0, array);
    let tree = IndexKind::BtreeV2 { node_size: 2048, split: 100, merge: 40 };
    assert_eq!(index(&v4(&[5, 0, 8, 0, 0, 100, 40], 0)).0, tree);
    let v4_virtual = made().raw(&[4, 3]).u64(0xb00).u32(1);
    assert_eq!(parse(&v4_virtual).unwrap(), LayoutClass::Virtual { address: 0xb00, index: 1 });
    assert_eq!(kind(parse(&made().raw(&[3, 3]).u64(0xb00).u32(1))), ErrorKind::Corrupt);
    assert_eq!(kind(parse(&v4(&[6], 0))), ErrorKind::Corrupt);
    assert_eq!(kind(parse(&made().raw(&[3, 2, 3]).u64(0).u32(6).u32(0).u32(4))), ErrorKind::Corrupt);
    assert_eq!(kind(parse(&made().raw(&[6, 2]))), ErrorKind::Unsupported);
}

#[test]
fn links_of_every_class() {
    let parse = |m: &Made| link::parse(&m.bytes(), cursor(m), SIZES);
    let hard = made().raw(&[1, 0x14]).u64(7).u8(1).u8(1).raw(b"x").u64(0x60);
    let link = parse(&hard).unwrap();
    assert_eq!((link.name, link.creation_order), (Name::from("x"), Some(7)));
    assert_eq!(link.target, LinkTarget::Hard(NodeId::Address(0x60)));
    let soft = made().raw(&[1, 0x09, 1]).u16(2).raw(b"ab").u16(3).raw(b"/c/");
    assert_eq!(parse(&soft).unwrap().target, LinkTarget::Soft(Name::from("/c/")));
    let external = made().raw(&[1, 0x08, 64, 1, b'e']).u16(8).raw(b"\0f.h5\0/\0");
    let target = LinkTarget::External { file: Name::from("f.h5"), path: Name::from("/") };
    assert_eq!(parse(&external).unwrap().target, target);
    let own = made().raw(&[1, 0x08, 187, 1, b'u']).u16(2).raw(b"??");
    assert_eq!(
        parse(&own).unwrap().target,
        LinkTarget::UserDefined { class: 187, data: Bytes::from_static(b"??") }
    );
    assert_eq!(kind(parse(&made().raw(&[1, 0x08, 9, 1, b'u']))), ErrorKind::Corrupt);
    assert_eq!(kind(parse(&made().raw(&[1, 0, 0]))), ErrorKind::Corrupt);
    assert_eq!(kind(parse(&made().raw(&[1, 3]).u64(u64::MAX))), ErrorKind::LimitExceeded);
    let info = made().raw(&[0, 3]).u64(9).u64(UNDEFINED).u64(1).u64(2);
    let info = LinkInfo::parse(cursor(&info), SIZES).unwrap();
    assert_eq!((info.tracks_order, info.heap, info.names, info.order), (true, UNDEFINED, 1, Some(2)));
}

#[test]
fn attributes_of_every_version() {
    let parse = |m: &Made| AttributeMessage::parse(&m.bytes(), cursor(m), &mut None).unwrap();
    let space = made().raw(&[1, 0, 0, 0, 0, 0, 0, 0]);
    let v1 = made().raw(&[1, 0]).u16(3).u16(12).u16(8).raw(b"ab\0\0\0\0\0\0");
    let v1 = v1.raw(&i32le(1).0).raw(&[0; 4]).raw(&space.0).u32(42);
    let v2 = made().raw(&[2, 1]).u16(3).u16(12).u16(8).raw(b"ab\0").raw(&i32le(1).0).raw(&space.0).u32(42);
    let v3 =
        made().raw(&[3, 2]).u16(3).u16(12).u16(8).u8(1).raw(b"ab\0").raw(&i32le(1).0).raw(&space.0).u32(42);
    for (m, shared) in [(v1, (false, false)), (v2, (true, false)), (v3, (false, true))] {
        let a = parse(&m);
        assert_eq!(a.name, Name::from("ab"));
        assert_eq!((a.datatype.shared, a.dataspace.shared), shared);
        assert_eq!((&a.datatype.bytes[..], &a.dataspace.bytes[..]), (&i32le(1).0[..], &space.0[..]));
        assert_eq!(a.data[..], 42u32.to_le_bytes());
    }
    let mut name = None;
    let cut = made().raw(&[3, 0]).u16(3).u16(12).u16(8).u8(1).raw(b"ab\0");
    assert!(AttributeMessage::parse(&cut.bytes(), cursor(&cut), &mut name).is_err());
    assert_eq!(name, Some(Name::from("ab")));
    let info = made().raw(&[0, 1]).u16(3).u64(1).u64(2);
    let info = AttributeInfo::parse(cursor(&info), SIZES).unwrap();
    assert_eq!((info.tracks_order, info.heap, info.names, info.order), (true, 1, 2, None));
}

#[test]
fn shared_messages_of_every_version() {
    let parse = |m: &Made| Shared::parse(&mut cursor(m), SIZES);
    let v1 = made().raw(&[1, 0]).raw(&[0; 6]).u64(99).u64(0x60);
    assert_eq!(parse(&v1).unwrap(), Shared::Object(0x60));
    assert_eq!(parse(&made().raw(&[2, 0]).u64(0x60)).unwrap(), Shared::Object(0x60));
    assert_eq!(parse(&made().raw(&[3, 2]).u64(0x60)).unwrap(), Shared::Object(0x60));
    assert_eq!(parse(&made().raw(&[3, 1]).raw(b"identify")).unwrap(), Shared::Heap(*b"identify"));
    assert_eq!(kind(parse(&made().raw(&[3, 3]).u64(0))), ErrorKind::Corrupt);
    assert_eq!(kind(parse(&made().raw(&[4, 1]).u64(0))), ErrorKind::Unsupported);
}

#[test]
fn selections_of_every_version() {
    let parse = |m: &Made| selection::parse(&mut cursor(m)).map(|s| s.elements);
    assert_eq!(parse(&made().u32(0).u32(1).u64(0)).unwrap(), SpaceSelection::None);
    assert_eq!(parse(&made().u32(3).u32(1).u64(0)).unwrap(), SpaceSelection::All);
    let points = SpaceSelection::Points(vec![[1, 2].as_slice().into(), [3, 4].as_slice().into()]);
    let v1 = made().u32(1).u32(1).u64(0).u32(2).u32(2).u32(1).u32(2).u32(3).u32(4);
    let v2 = made().u32(1).u32(2).u8(2).u32(2).u16(2).u16(1).u16(2).u16(3).u16(4);
    assert_eq!((parse(&v1).unwrap(), parse(&v2).unwrap()), (points.clone(), points));
    let blocks = SpaceSelection::Blocks(vec![([1].as_slice().into(), [5].as_slice().into())]);
    let v1 = made().u32(2).u32(1).u64(0).u32(1).u32(1).u32(1).u32(5);
    let v3 = made().u32(2).u32(3).u8(0).u8(2).u32(1).u16(1).u16(1).u16(5);
    assert_eq!((parse(&v1).unwrap(), parse(&v3).unwrap()), (blocks.clone(), blocks));
    let v2 = made().u32(2).u32(2).u8(1).u32(36).u32(1).u64(1).u64(3).u64(u64::MAX).u64(2);
    let v3 = made().u32(2).u32(3).u8(1).u8(4).u32(1).u32(1).u32(3).u32(u32::MAX).u32(2);
    for m in [v2, v3] {
        let SpaceSelection::Regular(slab) = parse(&m).unwrap() else { panic!() };
        assert_eq!((slab.start[0], slab.stride[0], slab.count[0], slab.block[0]), (1, 3, None, Some(2)));
    }
    let many = made().u32(1).u32(2).u8(8).u32(2).u64(u64::MAX);
    assert_eq!(kind(parse(&many)), ErrorKind::Corrupt);
    let backwards = made().u32(2).u32(1).u64(0).u32(1).u32(1).u32(5).u32(1);
    assert_eq!(kind(parse(&backwards)), ErrorKind::Corrupt);
    assert_eq!(kind(parse(&made().u32(2).u32(3).u8(1).u8(3).u32(1))), ErrorKind::Corrupt);
    assert_eq!(kind(parse(&made().u32(2).u32(9))), ErrorKind::Unsupported);
    assert_eq!(kind(parse(&made().u32(4).u32(1))), ErrorKind::Corrupt);
}

#[test]
fn external_files_and_the_superblock_extension() {
    let m = made().raw(&[1, 0, 0, 0]).u16(2).u16(1).u64(0x40).u64(8).u64(100).u64(u64::MAX);
    let files = ExternalFiles::parse(cursor(&m), SIZES).unwrap();
    assert_eq!((files.heap, files.slots.len()), (0x40, 1));
    assert_eq!((files.slots[0].name, files.slots[0].offset, files.slots[0].size), (8, 100, None));
    let table = SharedTableMessage::parse(cursor(&made().u8(0).u64(0x50).u8(2)), SIZES).unwrap();
    assert_eq!((table.address, table.indexes), (0x50, 2));
    let k = BtreeK::parse(cursor(&made().u8(0).u16(32).u16(16).u16(4))).unwrap();
    assert_eq!((k.chunk, k.group_internal, k.group_leaf), (32, 16, 4));
    let m = made().raw(&[1, 1, 1]).u64(1).u64(4096).u16(0).u64(0);
    let m = (0..12).fold(m, |m, i| m.u64(if i == 3 { 0x70 } else { UNDEFINED }));
    let space = FileSpace::parse(cursor(&m), SIZES).unwrap();
    assert_eq!((space.strategy, space.page_size, space.managers), ("paged", Some(4096), vec![0x70]));
    let m = made().raw(&[0, 1]).u64(1);
    let m = (0..6).fold(m, |m, i| m.u64(i));
    assert_eq!(FileSpace::parse(cursor(&m), SIZES).unwrap().managers.len(), 6);
}
