use super::*;
use crate::dtype::*;

fn int(size: usize, signed: bool) -> DType {
    DType::Integer(IntegerType::new(size, ByteOrder::Little, signed))
}

fn one(dtype: &DType, raw: &[u8]) -> Value {
    Decoder::new(dtype).unwrap().value(raw).unwrap()
}

#[test]
fn numbers_keep_all_their_digits() {
    assert_eq!(one(&int(8, false), &[0xff; 8]).to_string(), u64::MAX.to_string());
    assert_eq!(one(&int(16, true), &[0xff; 16]), Value::Integer(-1));
    assert_eq!(one(&int(16, false), &[0xff; 16]), Value::Unsigned(u128::MAX));
    let half = DType::Float(FloatType::ieee(2, ByteOrder::Little).unwrap());
    assert_eq!(one(&half, &half::f16::from_f32(0.1).to_le_bytes()).to_string(), "0.1");
    let single = DType::Float(FloatType::ieee(4, ByteOrder::Big).unwrap());
    assert_eq!(one(&single, &0.1f32.to_be_bytes()).to_string(), "0.1");
}

#[test]
fn strings_lose_their_padding() {
    let string = |padding| DType::String { size: 6, padding, charset: CharSet::Utf8 };
    assert_eq!(one(&string(StringPadding::NullTerminated), b"ab\0cd\0"), Value::Text("ab".into()));
    assert_eq!(one(&string(StringPadding::NullPadded), b"ab\0c\0\0"), Value::Text("ab\0c".into()));
    assert_eq!(one(&string(StringPadding::SpacePadded), b"ab    "), Value::Text("ab".into()));
    assert!(matches!(one(&string(StringPadding::SpacePadded), b"\xff     "), Value::Bytes(_)));
}

#[test]
fn enumerations_have_names() {
    let member = |name: &str, value: u8| EnumMember { name: name.into(), value: vec![value] };
    let base = Box::new(int(1, true));
    let colours = DType::Enum { base: base.clone(), members: vec![member("RED", 1), member("BLUE", 255)] };
    assert_eq!(one(&colours, &[255]), Value::Enum { name: Some("BLUE".into()), value: -1 });
    assert_eq!(one(&colours, &[7]).to_string(), "7");
    let truth = DType::Enum { base, members: vec![member("FALSE", 0), member("TRUE", 1)] };
    assert_eq!(one(&truth, &[1]), Value::Bool(true));
}

#[test]
fn arrays_nest_and_compounds_name() {
    let grid = DType::Array { base: Box::new(int(1, true)), dims: vec![2, 3] };
    assert_eq!(one(&grid, &[1, 2, 3, 4, 5, 6]).to_string(), "[[1, 2, 3], [4, 5, 6]]");
    let point = DType::Compound {
        size: 3,
        fields: vec![
            Field { name: "x".into(), offset: 2, dtype: int(1, true) },
            Field { name: "z".into(), offset: 0, dtype: DType::Complex { base: Box::new(int(1, true)) } },
        ],
    };
    let value = one(&point, &[1, 0xfe, 9]);
    assert_eq!(value.to_string(), "{x: 9, z: 1-2j}");
    assert_eq!(value.field("x"), Some(&Value::Integer(9)));
    // An endless array of nothing.
    let nothing = DType::Compound { size: 0, fields: vec![] };
    assert_eq!(one(&DType::Array { base: Box::new(nothing), dims: vec![1 << 50] }, &[]), Value::List(vec![]));
}

#[test]
fn nesting_follows_the_extents() {
    let flat = |n: i128| (0..n).map(Value::Integer).collect::<Vec<_>>();
    assert_eq!(Value::nest(&[], flat(1)), Value::Integer(0));
    assert_eq!(Value::nest(&[1], flat(1)).to_string(), "[0]");
    assert_eq!(Value::nest(&[2, 2, 1], flat(4)).to_string(), "[[[0], [1]], [[2], [3]]]");
    assert_eq!(Value::nest(&[2, 0], flat(0)).to_string(), "[]");
}
