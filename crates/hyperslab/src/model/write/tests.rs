use super::*;
use crate::codec::Pipeline;
use crate::dtype::{ByteOrder, DType, IntegerType};
use crate::shape::Name;
use std::sync::Arc;

#[test]
fn paths_are_names_from_the_root_on() {
    let path = ObjectPath::parse("/a//b/hex:ff/").unwrap();
    assert_eq!(path.to_string(), "/a/b/hex:ff");
    assert_eq!(path.names().len(), 3);
    assert_eq!(path.names()[2], Name::from(&[0xff][..]));
    let (group, name) = path.split().unwrap();
    assert_eq!((group.to_string().as_str(), name.to_string().as_str()), ("/a/b", "hex:ff"));
    assert_eq!(group.join("c").below(&ObjectPath::parse("a").unwrap()).unwrap().len(), 2);
    assert_eq!(group.below(&path), None);
    assert!(ObjectPath::parse("/").unwrap().is_root());
    assert_eq!(ObjectPath::root().to_string(), "/");
    assert!(ObjectPath::parse("a/../b").is_err());
}

#[test]
fn chunks_at_the_edge_are_whole_or_cut() {
    let dtype = DType::Integer(IntegerType::new(4, ByteOrder::Little, true));
    let mut layout = WriteLayout {
        dtype,
        shape: vec![5, 7],
        chunk: vec![2, 4],
        block: vec![1, 1],
        cut_edges: false,
        fill: Default::default(),
        may_skip_fill: true,
        pipeline: Arc::new(Pipeline::default()),
    };
    assert_eq!((layout.grid(), layout.count().unwrap()), (vec![3, 2], 6));
    assert_eq!(layout.start_of(&[2, 1]).as_slice(), [4, 4]);
    assert_eq!(layout.valid_of(&[2, 1]).as_slice(), [1, 3]);
    assert_eq!(layout.extent_of(&[2, 1]).as_slice(), [2, 4]);
    layout.cut_edges = true;
    assert_eq!(layout.extent_of(&[2, 1]).as_slice(), [1, 3]);
}

#[test]
fn content_is_as_many_elements_as_it_says() {
    let dtype = DType::Integer(IntegerType::new(4, ByteOrder::Little, true));
    let content = Content::Fixed(vec![0; 12].into());
    assert_eq!(content.count(4), 3);
    content.check(&dtype, 3).unwrap();
    assert!(content.check(&dtype, 2).is_err());
    let texts = Content::texts([&b"ab"[..], b""]);
    assert!(texts.check(&dtype, 2).is_err());
    let Content::Objects { elements, .. } = texts else { panic!() };
    assert_eq!(elements[0].as_ref(), b"\x02\0\0\0\0\0\0\0ab");
    assert_eq!(elements[1].len(), 8);
}
