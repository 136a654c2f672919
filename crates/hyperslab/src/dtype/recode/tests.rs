use super::*;
use crate::dtype::{ByteOrder, CharSet, Field};

fn recode(from: &str, to: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let (from, to) = (DType::from_numpy(from).unwrap(), DType::from_numpy(to).unwrap());
    Some(Recode::new(&from, &to).ok()?.run(bytes).unwrap())
}

#[test]
fn numbers_keep_their_values_or_are_refused() {
    assert_eq!(recode("<i2", ">i4", &[0xfe, 0xff]), Some(vec![0xff, 0xff, 0xff, 0xfe]));
    assert_eq!(recode("<u2", "<i4", &[0xff, 0xff]), Some(vec![0xff, 0xff, 0, 0]));
    assert_eq!(recode("<f4", ">f8", &1.5f32.to_le_bytes()), Some(1.5f64.to_be_bytes().to_vec()));
    assert_eq!(recode("<i8", "<i4", &[0; 8]), None);
    assert_eq!(recode("<i4", "<u4", &[0; 4]), None);
    assert_eq!(recode("<f8", "<f4", &[0; 8]), None);
    assert_eq!(recode("<i4", "<f8", &[0; 4]), None);
    assert_eq!(recode(">M8[s]", "<M8[s]", &[0, 0, 0, 0, 0, 0, 0, 7]), Some(vec![7, 0, 0, 0, 0, 0, 0, 0]));
    assert_eq!(recode(">M8[s]", "<M8[ms]", &[0; 8]), None);
    assert_eq!(
        recode(">c8", "<c8", &[0x3f, 0x80, 0, 0, 0x40, 0, 0, 0]),
        Some(vec![0, 0, 0x80, 0x3f, 0, 0, 0, 0x40])
    );
    assert_eq!(recode("<U1", ">U1", &[0x41, 0, 0, 0]), Some(vec![0, 0, 0, 0x41]));
}

#[test]
fn text_is_padded_anew() {
    let text = |size, padding| DType::String { size, padding, charset: CharSet::Utf8 };
    let nulls = text(5, StringPadding::NullPadded);
    let run = |from: DType, bytes: &[u8]| Recode::new(&from, &nulls).unwrap().run(bytes).unwrap();
    assert_eq!(run(text(4, StringPadding::SpacePadded), b"ab  "), b"ab\0\0\0");
    assert_eq!(run(text(5, StringPadding::NullTerminated), b"ab\0xy"), b"ab\0\0\0");
    assert!(Recode::new(&text(6, StringPadding::NullPadded), &nulls).is_err());
    assert!(Recode::new(&nulls, &nulls).unwrap().is_identity());
}

#[test]
fn members_move() {
    let field = |name: &str, offset, code: &str| Field {
        name: name.into(),
        offset,
        dtype: DType::from_numpy(code).unwrap(),
    };
    let padded = DType::Compound { size: 16, fields: vec![field("a", 0, "|u1"), field("b", 8, ">i2")] };
    let packed = DType::Compound { size: 3, fields: vec![field("a", 0, "|u1"), field("b", 1, "<i2")] };
    let mut elements = vec![9; 32];
    elements[0] = 1;
    elements[8..10].copy_from_slice(&258i16.to_be_bytes());
    elements[16] = 2;
    elements[24..26].copy_from_slice(&(-1i16).to_be_bytes());
    let recode = Recode::new(&padded, &packed).unwrap();
    assert!(!recode.is_identity());
    assert_eq!(recode.run(&elements).unwrap(), [1, 2, 1, 2, 0xff, 0xff]);
    let other = DType::Compound { size: 3, fields: vec![field("a", 0, "|u1"), field("c", 1, "<i2")] };
    assert!(Recode::new(&packed, &other).is_err());
    let list = |base: &DType| DType::Array { base: Box::new(base.clone()), dims: vec![2] };
    let recode = Recode::new(&list(&padded), &list(&packed)).unwrap();
    assert_eq!(recode.run(&elements).unwrap(), [1, 2, 1, 2, 0xff, 0xff]);
}

#[test]
fn vax_floats_are_not_taken_for_others() {
    let vax = FloatType { order: ByteOrder::Vax, ..FloatType::ieee(4, ByteOrder::Little).unwrap() };
    let wide = DType::Float(FloatType::ieee(8, ByteOrder::Little).unwrap());
    // The same bits in another order, so that it holds the same values.
    assert!(Recode::new(&DType::Float(vax.clone()), &wide).is_ok());
    let real = FloatType { bias: 129, ..vax };
    assert!(Recode::new(&DType::Float(real), &wide).is_ok());
}
