use super::*;
use crate::dtype::{FloatType, IntegerType, Normalization};

fn int(size: usize, order: ByteOrder, signed: bool) -> DType {
    DType::Integer(IntegerType::new(size, order, signed))
}

fn ieee(size: usize, order: ByteOrder) -> DType {
    DType::Float(FloatType::ieee(size, order).unwrap())
}

fn convert(dtype: &DType, wanted: Native, exact: bool, source: &[u8]) -> Result<Vec<u8>> {
    let conversion = Conversion::new(dtype, wanted, exact)?;
    let n = source.len() / dtype.size();
    let mut target = vec![0xaa; n * wanted.size()];
    conversion.run(source, dtype.size(), &mut target)?;
    // The same, one by one from elements that stand apart.
    let apart: Vec<u8> = source.chunks(dtype.size()).flat_map(|e| [e, &[7, 7, 7]].concat()).collect();
    let mut again = vec![0xaa; target.len()];
    conversion.run(&apart, dtype.size() + 3, &mut again)?;
    assert_eq!(target, again);
    Ok(target)
}

fn f64s(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks(8).map(|b| f64::from_ne_bytes(b.try_into().unwrap())).collect()
}

fn i32s(bytes: &[u8]) -> Vec<i32> {
    bytes.chunks(4).map(|b| i32::from_ne_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn integers_are_clamped_and_fractions_cut() {
    let source: Vec<u8> =
        [f64::NAN, f64::INFINITY, -f64::INFINITY, 1e30, -1e30, 3.9, -3.9, -0.5, 2147483648.0]
            .iter()
            .flat_map(|v: &f64| v.to_le_bytes())
            .collect();
    let got = convert(&ieee(8, ByteOrder::Little), Native::I32, false, &source).unwrap();
    assert_eq!(i32s(&got), [0, i32::MAX, i32::MIN, i32::MAX, i32::MIN, 3, -3, 0, i32::MAX]);
    let source: Vec<u8> = [-1i32, 256, 255].iter().flat_map(|v| v.to_be_bytes()).collect();
    assert_eq!(convert(&int(4, ByteOrder::Big, true), Native::U8, false, &source).unwrap(), [0, 255, 255]);
    assert_eq!(convert(&int(4, ByteOrder::Big, true), Native::Bool, false, &source).unwrap(), [1, 1, 1]);
}

#[test]
fn floats_beyond_the_largest_are_infinite_as_in_hdf5() {
    let most = f64::from(f32::MAX);
    let values = [most * (1.0 + 2f64.powi(-25)), most, -most * 1.001, 1.0 + 2f64.powi(-24), f64::NAN];
    let source: Vec<u8> = values.iter().flat_map(|v| v.to_be_bytes()).collect();
    let got = convert(&ieee(8, ByteOrder::Big), Native::F32, false, &source).unwrap();
    let got: Vec<f32> = got.chunks(4).map(|b| f32::from_ne_bytes(b.try_into().unwrap())).collect();
    assert_eq!(got[..4], [f32::INFINITY, f32::MAX, -f32::INFINITY, 1.0]);
    assert!(got[4].is_nan());
    let source: Vec<u8> = [2049u32, 2051, 65504, 65519, 65520].iter().flat_map(|v| v.to_le_bytes()).collect();
    let got = convert(&int(4, ByteOrder::Little, false), Native::F16, false, &source).unwrap();
    let got: Vec<f32> =
        got.chunks(2).map(|b| half::f16::from_ne_bytes(b.try_into().unwrap()).to_f32()).collect();
    assert_eq!(got, [2048.0, 2052.0, 65504.0, f32::INFINITY, f32::INFINITY]);
}

/// A layout that is IEEE but for its name, so that the general way is taken.
fn disguised(size: usize, order: ByteOrder) -> Layout {
    Layout::Float(FloatType::ieee(size, order).unwrap())
}

#[test]
fn the_general_way_agrees_with_the_machine() {
    let values = [0.0, -0.0, 1.0, -1.5, 1e-310, -5e-324, 1e300, 0.1, 65504.0, 3e-8, f64::INFINITY, f64::NAN];
    for v in values {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let raw = if order == ByteOrder::Big { v.to_be_bytes() } else { v.to_le_bytes() };
            let number = disguised(8, order).number(&raw);
            let mut to = [0; 8];
            number.store(Native::F64, number::Rounding::Even, &mut to);
            let got = f64::from_ne_bytes(to);
            assert!(got.to_bits() == v.to_bits() || got.is_nan() && v.is_nan(), "{v} {got}");
            let mut to = [0; 4];
            number.store(Native::F32, number::Rounding::Even, &mut to);
            let got = f32::from_ne_bytes(to);
            assert!(got.to_bits() == (v as f32).to_bits() || got.is_nan() && v.is_nan(), "{v} {got}");
            let mut to = [0; 4];
            number.store(Native::I32, number::Rounding::Even, &mut to);
            assert_eq!(i32::from_ne_bytes(to), v as i32);
            let mut to = [0; 2];
            number.store(Native::F16, number::Rounding::Even, &mut to);
            let got = half::f16::from_ne_bytes(to);
            assert!(got == half::f16::from_f64(v) || got.is_nan() && v.is_nan(), "{v} {got}");
        }
    }
}

#[test]
fn odd_integers() {
    // 20 bits from bit 4 of 32.
    let partial = DType::Integer(IntegerType {
        precision: 20,
        offset: 4,
        ..IntegerType::new(4, ByteOrder::Little, true)
    });
    let source: Vec<u8> = [-5i32, 5, -524288, 524287]
        .iter()
        .flat_map(|v| ((v << 4) as u32 & 0xfffff0 | 0xf).to_le_bytes())
        .collect();
    assert_eq!(i32s(&convert(&partial, Native::I32, false, &source).unwrap()), [-5, 5, -524288, 524287]);
    assert_eq!(
        f64s(&convert(&partial, Native::F64, false, &source).unwrap()),
        [-5.0, 5.0, -524288.0, 524287.0]
    );
    assert_eq!(convert(&partial, Native::U8, false, &source).unwrap(), [0, 5, 0, 255]);
    for size in [3, 5, 16] {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let mut raw = (-70000i128).to_le_bytes()[..size].to_vec();
            if order == ByteOrder::Big {
                raw.reverse();
            }
            assert_eq!(i32s(&convert(&int(size, order, true), Native::I32, false, &raw).unwrap()), [-70000]);
        }
    }
    let wide = u128::MAX.to_le_bytes();
    assert_eq!(
        i32s(&convert(&int(16, ByteOrder::Little, false), Native::I32, false, &wide).unwrap()),
        [i32::MAX]
    );
    assert_eq!(
        f64s(&convert(&int(16, ByteOrder::Little, false), Native::F64, false, &wide).unwrap()),
        [2f64.powi(128)]
    );
    let error = convert(&int(17, ByteOrder::Little, false), Native::I32, false, &[0; 17]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn odd_floats() {
    let bfloat = DType::Float(FloatType { size: 2, ..FloatType::ieee(4, ByteOrder::Little).unwrap() });
    let DType::Float(mut t) = bfloat else { unreachable!() };
    (t.precision, t.sign_position, t.exponent_position, t.mantissa_size) = (16, 15, 7, 7);
    let source = [0x80, 0x3f, 0x49, 0xc0, 0x80, 0x7f];
    assert_eq!(
        f64s(&convert(&DType::Float(t), Native::F64, false, &source).unwrap()),
        [1.0, -3.140625, f64::INFINITY]
    );
    let x87 = DType::Float(FloatType {
        size: 16,
        order: ByteOrder::Little,
        precision: 80,
        offset: 0,
        sign_position: 79,
        exponent_position: 64,
        exponent_size: 15,
        mantissa_position: 0,
        mantissa_size: 64,
        bias: 16383,
        normalization: Normalization::None,
    });
    let mut one = vec![0; 16];
    one[7] = 0x80;
    one[8..10].copy_from_slice(&16383u16.to_le_bytes());
    assert_eq!(f64s(&convert(&x87, Native::F64, false, &one).unwrap()), [1.0]);
    let mut big = one.clone();
    big[..8].copy_from_slice(&(u64::MAX - 1).to_le_bytes());
    big[8..10].copy_from_slice(&(16383u16 + 63).to_le_bytes());
    let got = convert(&x87, Native::U64, false, &big).unwrap();
    assert_eq!(got, (u64::MAX - 1).to_ne_bytes());
    // IEEE binary128, halfway between two f64: HDF5's software rounds away from zero.
    let quad = FloatType {
        size: 16,
        order: ByteOrder::Big,
        precision: 128,
        offset: 0,
        sign_position: 127,
        exponent_position: 112,
        exponent_size: 15,
        mantissa_position: 0,
        mantissa_size: 112,
        bias: 16383,
        normalization: Normalization::Implied,
    };
    let half = (16383u128 << 112 | 1 << 59).to_be_bytes();
    assert_eq!(f64s(&convert(&DType::Float(quad), Native::F64, false, &half).unwrap()), [1.0 + f64::EPSILON]);
    // VAX F: the sign, 8 bits of exponent, 23 of fraction, words swapped.
    let vax =
        FloatType { order: ByteOrder::Vax, bias: 129, ..FloatType::ieee(4, ByteOrder::Little).unwrap() };
    let source = [0x80, 0x40, 0x00, 0x00, 0x20, 0xc1, 0x00, 0x00];
    assert_eq!(f64s(&convert(&DType::Float(vax), Native::F64, false, &source).unwrap()), [1.0, -2.5]);
}

#[test]
fn complex_numbers_by_parts() {
    let complex = |order| DType::Complex { base: Box::new(ieee(4, order)) };
    let le: Vec<u8> = [1.0f32, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let be: Vec<u8> = [1.0f32, -2.0].iter().flat_map(|v| v.to_be_bytes()).collect();
    let native: Vec<u8> = [1.0f32, -2.0].iter().flat_map(|v| v.to_ne_bytes()).collect();
    let wide: Vec<u8> = [1.0f64, -2.0].iter().flat_map(|v| v.to_ne_bytes()).collect();
    for (order, raw) in [(ByteOrder::Little, &le), (ByteOrder::Big, &be)] {
        assert_eq!(&convert(&complex(order), Native::Complex32, false, raw).unwrap(), &native);
        assert_eq!(&convert(&complex(order), Native::Complex64, false, raw).unwrap(), &wide);
        assert!(convert(&complex(order), Native::F64, false, raw).is_err());
    }
    assert!(convert(&ieee(4, ByteOrder::Little), Native::Complex32, false, &le).is_err());
}

#[test]
fn exact_means_exact() {
    let i64le = int(8, ByteOrder::Little, true);
    let raw = |v: i64| v.to_le_bytes();
    assert!(convert(&i64le, Native::F64, true, &raw(1 << 53)).is_ok());
    let error = convert(&i64le, Native::F64, true, &raw((1 << 53) + 1)).unwrap_err();
    assert!(error.to_string().contains("9007199254740993"), "{error}");
    assert!(convert(&i64le, Native::F64, false, &raw((1 << 53) + 1)).is_ok());
    assert!(convert(&i64le, Native::U8, true, &raw(255)).is_ok());
    assert!(convert(&i64le, Native::U8, true, &raw(256)).is_err());
    assert!(convert(&i64le, Native::Bool, true, &raw(1)).is_ok());
    assert!(convert(&i64le, Native::Bool, true, &raw(2)).is_err());
    let f64be = ieee(8, ByteOrder::Big);
    for (v, fits) in [(0.5f64, true), (0.1, false), (f64::NAN, true), (1e300, false), (-0.0, true)] {
        assert_eq!(convert(&f64be, Native::F32, true, &v.to_be_bytes()).is_ok(), fits, "{v}");
    }
    assert!(convert(&f64be, Native::I32, true, &2.0f64.to_be_bytes()).is_ok());
    assert!(convert(&f64be, Native::I32, true, &2.5f64.to_be_bytes()).is_err());
}

#[test]
fn what_is_not_a_number_is_refused() {
    let opaque = DType::Opaque { size: 4, tag: "x".into() };
    let error = Conversion::new(&opaque, Native::I32, false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}
