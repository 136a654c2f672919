//! Staged arrays against plans written out by hand, and random operations against a dense array.

mod model;

use super::*;
use crate::dtype::{ByteOrder, IntegerType};
use crate::s;

fn i64_type() -> DType {
    DType::Integer(IntegerType::new(8, ByteOrder::Little, true))
}

/// An array on one base slab of memory whose chunks lie in C order, as those of a dataset do.
fn on_base(shape: &[u64], chunk: &[u64], data: &[i64]) -> StagedArray {
    let grid = grid_of(shape, chunk).unwrap();
    let count = element_count(&grid).unwrap();
    let mut dense = StagedArray::full(shape, chunk, &i64_type(), None).unwrap();
    dense.set(.., Values::new(shape, data).unwrap()).unwrap();
    let height = chunk[0];
    let map = ChunkMap::new(grid, vec![1; count as usize], (0..count).map(|n| n * height).collect()).unwrap();
    // Written in C order of chunks, all of them whole, onto one staged slab.
    assert_eq!(dense.ledger().slabs().len(), 2);
    let rows: Vec<u64> = [count * height].into_iter().chain(chunk[1..].iter().copied()).collect();
    let buffer = dense.buffers[1].as_ref().unwrap().cells().unwrap();
    let Cells::Fixed { bytes, .. } = &*buffer else { panic!("fixed") };
    let raw = crate::RawData { shape: rows, dtype: i64_type(), bytes: bytes.clone() };
    StagedArray::new(shape, chunk, &i64_type(), vec![BaseSlab::memory(raw).unwrap()], map, None).unwrap()
}

fn counting(shape: &[u64]) -> Vec<i64> {
    (1..=shape.iter().product::<u64>() as i64).collect()
}

#[test]
fn the_plan_of_the_example_is_word_for_word() {
    let staged = on_base(&[8, 8], &[2, 2], &counting(&[8, 8]));
    let plan = staged.set_plan((2..5, 3..6)).unwrap();
    assert_eq!(
        plan.to_string(),
        "\
SetItemPlan
  slabs.append(empty((6, 2)))  # slabs[2]
  slabs.append(empty((2, 2)))  # slabs[3]
  # 3 transfers from slabs[1] to slabs[2]
  slabs[2][0:2, 0:2] = slabs[1][10:12, 0:2]
  slabs[2][2:4, 0:2] = slabs[1][18:20, 0:2]
  slabs[2][4:6, 0:2] = slabs[1][20:22, 0:2]
  # 1 transfers from value to slabs[3]
  slabs[3][0:2, 0:2] = value[0:2, 1:3]
  # 3 transfers from value to slabs[2]
  slabs[2][0:2, 1:2] = value[0:2, 0:1]
  slabs[2][2:3, 1:2] = value[2:3, 0:1]
  slabs[2][4:5, 0:2] = value[2:3, 1:3]
slab_indices:
[[1 1 1 1]
 [1 2 3 1]
 [1 2 2 1]
 [1 1 1 1]]
slab_offsets:
[[ 0  2  4  6]
 [ 8  0  0 14]
 [16  2  4 22]
 [24 26 28 30]]
"
    );
    // Planning changed nothing; carrying it out leaves what was printed.
    let mut staged = staged;
    assert!(!staged.has_changes());
    let after = plan.map();
    drop(plan);
    staged.set((2..5, 3..6), 42i64).unwrap();
    assert_eq!(staged.ledger().map(), &after);
    let mut expected = counting(&[8, 8]);
    for (y, x) in (2..5).flat_map(|y| (3..6).map(move |x| (y, x))) {
        expected[y * 8 + x] = 42;
    }
    assert_eq!(staged.read::<i64>(..).unwrap().data, expected);
}

#[test]
fn wholly_and_partially_selected_chunks() {
    // arr[5:20, 30:] of (30, 50) in chunks of (10, 10): partially (0, 3) and (0, 4), wholly (1, 3) and (1, 4).
    let staged = on_base(&[30, 50], &[10, 10], &counting(&[30, 50]));
    let plan = staged.set_plan((5..20, 30..)).unwrap();
    let copied: Vec<u64> = plan.copies.iter().map(|c| c.from_at[0]).collect();
    assert_eq!(copied, [30, 40]);
    assert_eq!(plan.appended, [(2, vec![20, 10]), (3, vec![20, 10])]);
    let whole: Vec<usize> = plan.edits.iter().filter(|e| e.slab == 3).map(|e| e.at).collect();
    assert_eq!(whole, [8, 9]);
}

#[test]
fn trimmed_slabs_are_cut_or_padded() {
    let data = Values::new(&[5, 7], &counting(&[5, 7])).map(|v| Block::from_values(&v).unwrap()).unwrap();
    let staged = StagedArray::from_staged(data, &[2, 3], None).unwrap();
    let shapes = |s: &StagedArray| s.ledger().slabs().to_vec();
    assert_eq!(shapes(&staged)[1..], [Some(vec![5, 3]), Some(vec![5, 3]), Some(vec![5, 1])]);
    // Axis 0: the bottom chunks go to a new slab, the old ones are cut.
    let mut taller = staged.copy();
    taller.resize(&[6, 7]).unwrap();
    assert_eq!(
        shapes(&taller)[1..],
        [Some(vec![4, 3]), Some(vec![4, 3]), Some(vec![4, 1]), Some(vec![6, 3])]
    );
    assert_eq!(taller.ledger().map().slab_indices(), [1, 2, 3, 1, 2, 3, 4, 4, 4]);
    assert_eq!(taller.ledger().map().slab_offsets(), [0, 0, 0, 2, 2, 2, 0, 2, 4]);
    let mut expected = counting(&[5, 7]);
    expected.resize(42, 0);
    assert_eq!(taller.read::<i64>(..).unwrap().data, expected);
    // Axis 1: only the narrow slab is replaced.
    let mut wider = staged.copy();
    let plan = wider.resize_plan(&[5, 8]).unwrap();
    assert!(plan.to_string().contains("  slabs[3] = pad(slabs[3], (6, 3))\n"), "{plan}");
    wider.resize(&[5, 8]).unwrap();
    assert_eq!(shapes(&wider)[1..], [Some(vec![5, 3]), Some(vec![5, 3]), Some(vec![6, 3])]);
    let rows: Vec<i64> = counting(&[5, 7]).chunks(7).flat_map(|r| r.iter().copied().chain([0])).collect();
    assert_eq!(wider.read::<i64>(..).unwrap().data, rows);
    // A slab of one cut chunk is gone once that has moved.
    let one = Block::from_values(&Values::from(&[1i64, 2, 3])).unwrap();
    let mut one = StagedArray::from_staged(one, &[4], None).unwrap();
    one.resize(&[6]).unwrap();
    assert_eq!(shapes(&one)[1..], [None, Some(vec![4])]);
    assert_eq!(one.read::<i64>(..).unwrap().data, [1, 2, 3, 0, 0, 0]);
    // Nothing of it touched what it was made of.
    assert_eq!(staged.read::<i64>(..).unwrap().data, counting(&[5, 7]));
}

#[test]
fn an_error_leaves_the_array_as_it_was() {
    let mut staged = on_base(&[12], &[4], &counting(&[12]));
    let before = staged.ledger().clone();
    for bad in [staged.set(0..2, &[1i64, 2, 3]), staged.set(0..2, "text"), staged.set(0..20, &[1i64; 13])] {
        assert!(bad.is_err());
    }
    assert!(staged.set(12, 1i64).is_err());
    assert!(staged.resize(&[3, 4]).is_err());
    assert_eq!(staged.ledger(), &before);
    staged.set(9, 77i64).unwrap();
    assert_eq!(staged.read::<i64>(0..4).unwrap().data, [1, 2, 3, 4]);
    // A store that fails.
    let before = staged.ledger().clone();
    let refused = staged.commit_with(|_| Err(Error::invalid("no room")));
    assert_eq!(refused.unwrap_err().message(), "no room");
    assert_eq!(staged.ledger(), &before);
    // Hashes from then do not outlive a change.
    let refilled = staged.refill(9i64).unwrap();
    assert_eq!(refilled.hash_tables().filter(Option::is_some).count(), 0);
    staged.set(8, 5i64).unwrap();
    let plan = staged.commit().unwrap();
    let bytes: Vec<u8> = [5i64, 77, 11, 12].iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_eq!(plan.hashes, [hash::hash(cells::View::Bytes(8, &bytes), 0, &[1], &[4]).unwrap()]);
    // Nor a change of what the edge leaves of a chunk.
    let mut cut = StagedArray::full(&[4], &[4], &i64_type(), None).unwrap();
    cut.set(.., &[1i64, 2, 3, 4]).unwrap();
    cut.hash().unwrap();
    cut.resize(&[3]).unwrap();
    let mut same = StagedArray::full(&[3], &[4], &i64_type(), None).unwrap();
    same.set(.., &[1i64, 2, 3]).unwrap();
    assert_eq!(cut.commit().unwrap().hashes, same.commit().unwrap().hashes);
    staged.set_writeable(false);
    assert_eq!(staged.set(0, 1i64).unwrap_err().kind(), ErrorKind::Permission);
    assert!(staged.copy().set(0, 1i64).is_ok());
}

/// Digests as `hashlib` gives them for the same chunks.
#[test]
fn hashes_of_chunks() {
    fn hex(digest: Digest) -> String {
        digest.iter().flat_map(|n| n.to_ne_bytes()).map(|b| format!("{b:02x}")).collect()
    }
    fn of(bytes: &[u8], size: usize, extent: &[u64]) -> String {
        let own = strides(extent).unwrap();
        hex(hash::hash(cells::View::Bytes(size, bytes), 0, &own, extent).unwrap())
    }
    let ints: Vec<u8> = [1i64, 2, 3, 4].iter().flat_map(|v| v.to_le_bytes()).collect();
    let cases = [
        (of(&ints, 8, &[4]), "f2db51a42764c8f8a594626dfc50eea1cdf8368fc4ee4275d3dcf20251aec30d"),
        (
            of(&[0, 0, 0, 1, 0, 0, 0, 2], 4, &[2]),
            "38c0e58d1ba27ce1fe57ba953d11608103327a8f8ff87b1b5bec6ef2b0d74fdf",
        ),
        (
            of(&0f64.to_le_bytes(), 8, &[1, 1]),
            "3d8fca2a8aad64dd396ab97524addaa4ce3ae5c6f1c16a3d2f7625a1887799b0",
        ),
        (of(&[1, 2, 3], 1, &[3]), "3697b2cd1787cb620e5e969beb4c81bea9aeb154af4ffb44e9d01ab460a39fb2"),
        (of(&[1, 2, 3], 1, &[1, 3]), "69dc4945494eecfe4cf7b562e4edfc45d60cbf0fc2f89037a71261a7493051e1"),
        (of(b"a\0\0bcd", 3, &[2]), "cf1078ba9e2699e292dc33f6ec0bfa607efba5cf4f6e73c2d5f9e601bcd2e5b7"),
    ];
    for (ours, theirs) in cases {
        assert_eq!(ours, theirs);
    }
    let texts = [
        (["a", "bc"], "3b06012950c121df207411fffef3b4f40a4b349e34ad2f84c08a067d3ff192bd"),
        (["ab", "c"], "05295a4cdcca26d11f884db6c795eb070f71f8bb14f73227852d87a25913e24d"),
        (["", "é"], "9db697b1b947bb80340768f998462c569824f0de566508a666b5dbe6a974cd47"),
    ];
    for (texts, theirs) in texts {
        let objects: Vec<_> = texts.iter().map(|t| object::text(t)).collect();
        assert_eq!(hex(hash::hash(cells::View::Objects(&objects), 0, &[1], &[2]).unwrap()), theirs);
    }
}

#[test]
fn a_commit_keeps_each_distinct_chunk_once() {
    let mut staged = StagedArray::full(&[20], &[4], &i64_type(), None).unwrap();
    staged.set(0..16, &[1i64, 2, 3, 4, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    let plan = staged.commit().unwrap();
    // The second chunk is the fill value, the third is the first.
    assert_eq!(staged.ledger().map().slab_indices(), [1, 0, 1, 1, 0]);
    assert_eq!(staged.ledger().map().slab_offsets(), [0, 0, 0, 4, 0]);
    assert_eq!(plan.survivors(), 2);
    assert_eq!(staged.ledger().base_count(), 1);
    assert!(!staged.has_changes());
    // What a base slab holds, shown or not, is found again: no new slab.
    staged.set(0..4, 9i64).unwrap();
    staged.commit().unwrap();
    staged.set(.., 0i64).unwrap();
    staged.commit().unwrap();
    assert_eq!(staged.ledger().map().slab_indices(), [0, 0, 0, 0, 0]);
    staged.set(4..8, &[1i64, 2, 3, 4]).unwrap();
    assert_eq!(staged.commit_plan().map_err(|e| e.kind()).unwrap_err(), ErrorKind::InvalidArgument);
    let plan = staged.commit().unwrap();
    assert_eq!((plan.new_slab(), staged.ledger().base_count()), (None, 2));
    assert_eq!(staged.ledger().map().slab_indices(), [0, 1, 0, 0, 0]);
    assert_eq!(staged.read::<i64>(..9).unwrap().data, [0, 0, 0, 0, 1, 2, 3, 4, 0]);
    // The base wins over the staged, the lower one over the higher.
    staged.set(8..16, &[1i64, 2, 3, 4, 7, 7, 7, 7]).unwrap();
    staged.set(16..20, 7i64).unwrap();
    let plan = staged.commit().unwrap();
    assert_eq!(plan.survivors(), 1);
    assert_eq!(staged.ledger().map().slab_indices(), [0, 1, 1, 3, 3]);
    // A chunk that the edge cuts has another shape, so it is another chunk.
    let mut edge = StagedArray::full(&[6], &[4], &i64_type(), None).unwrap();
    edge.set(.., 0i64).unwrap();
    assert_eq!(edge.commit().unwrap().survivors(), 1);
    assert_eq!(edge.ledger().map().slab_indices(), [0, 1]);
}

#[test]
fn a_map_names_places_that_are_there() {
    let base = || {
        let bytes = (0..8i64).flat_map(i64::to_le_bytes).collect();
        vec![BaseSlab::memory(crate::RawData { shape: vec![8], dtype: i64_type(), bytes }).unwrap()]
    };
    let made = |slabs: [u32; 2], offsets: [u64; 2]| {
        let map = ChunkMap::new(vec![2], slabs.to_vec(), offsets.to_vec()).unwrap();
        StagedArray::new(&[7], &[4], &i64_type(), base(), map, None)
    };
    assert_eq!(made([1, 1], [4, 0]).unwrap().read::<i64>(..).unwrap().data, [4, 5, 6, 7, 0, 1, 2]);
    for (slabs, offsets) in [([1, 2], [0, 0]), ([1, 1], [0, 8]), ([1, 1], [1, 4]), ([0, 1], [4, 0])] {
        assert_eq!(made(slabs, offsets).unwrap_err().kind(), ErrorKind::OutOfBounds);
    }
    assert!(ChunkMap::new(vec![3], vec![0; 2], vec![0; 3]).is_err());
}

#[test]
fn copies_share_until_one_writes() {
    let mut one = on_base(&[8, 8], &[4, 4], &counting(&[8, 8]));
    one.set((0, 0), -1i64).unwrap();
    let mut two = one.copy();
    let shared = |a: &StagedArray, b: &StagedArray| {
        let cells = |s: &StagedArray| s.buffers[2].as_ref().map(|b| Arc::as_ptr(&b.cells().unwrap()));
        cells(a) == cells(b)
    };
    assert!(shared(&one, &two) && Arc::ptr_eq(&one.ledger.map, &two.ledger.map));
    two.set((0, 1), -2i64).unwrap();
    assert!(!shared(&one, &two) && Arc::ptr_eq(&one.ledger.map, &two.ledger.map));
    two.set((7, 7), -3i64).unwrap();
    assert!(!Arc::ptr_eq(&one.ledger.map, &two.ledger.map));
    assert_eq!(one.read::<i64>((0, 0..2)).unwrap().data, [-1, 2]);
    assert_eq!(two.read::<i64>((0, 0..2)).unwrap().data, [-1, -2]);
    assert_eq!(one.read::<i64>((7, 7)).unwrap().data, [64]);
}

#[test]
fn a_copy_of_columns_copies_only_what_is_written() {
    let mut one = StagedArray::of(&[4, 5], counting(&[4, 5]), &[2, 2]).unwrap();
    let mut two = one.copy();
    let memory =
        |s: &StagedArray| s.buffers.iter().flatten().map(|b| b.cells().unwrap().bytes()).sum::<u64>();
    // The fill value and all elements, which both share.
    assert_eq!((memory(&one), memory(&two)), (8 + 160, 8 + 160));
    two.set((3, 2), -1i64).unwrap();
    // Beside these a column of chunks, 4 by 2.
    assert_eq!((memory(&one), memory(&two)), (8 + 160, 8 + 160 + 64));
    two.set((0, 3), -2i64).unwrap();
    assert_eq!(memory(&two), 8 + 160 + 64);
    one.set((0, 0), -3i64).unwrap();
    assert_eq!(memory(&one), 8 + 160 + 64);
    let (mut first, mut second) = (counting(&[4, 5]), counting(&[4, 5]));
    (first[0], second[3], second[17]) = (-3, -2, -1);
    assert_eq!(one.read::<i64>(..).unwrap().data, first);
    assert_eq!(two.read::<i64>(..).unwrap().data, second);
    // A growing edge is written too, and the column is no whole chunk.
    let mut three = two.copy();
    three.resize(&[5, 6]).unwrap();
    three.set((4, 5), 7i64).unwrap();
    assert_eq!(three.read::<i64>((3..5, 2..)).unwrap().data, [-1, 19, 20, 0, 0, 0, 0, 7]);
    assert_eq!(two.read::<i64>(..).unwrap().data, second);
    // Alone, it writes to its memory.
    drop((two, three));
    one.set((0, 2), -4i64).unwrap();
    assert_eq!((one.read::<i64>((0, ..)).unwrap().data, memory(&one)), (vec![-3, 2, -4, 4, 5], 8 + 160 + 64));
}

#[test]
fn numbers_out_of_range_are_refused() {
    let bytes = DType::Integer(IntegerType::new(1, ByteOrder::Little, true));
    let mut staged = StagedArray::full(&[3], &[2], &bytes, None).unwrap();
    for (value, part) in [
        (Values::from(128i64), "128 does not fit"),
        (Values::from(-129i32), "-129 does not fit"),
        (Values::from(u64::MAX), "18446744073709551615 does not fit"),
        (Values::from(&[1u8, 200, 255]), "200, element 1 of the values, does not fit"),
        (Values::from(f64::NAN), "NaN does not fit"),
        (Values::from(f32::NEG_INFINITY), "-inf does not fit"),
        (Values::from(128.0f32), "128 does not fit"),
        (Values::from(&[0.0f64, 0.0, -129.0]), "-129, element 2 of the values, does not fit"),
    ] {
        let error = staged.set(.., value).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    assert!(!staged.has_changes());
    staged.set(.., &[127i64, -128, 0]).unwrap();
    staged.set(2, -128.9f64).unwrap();
    assert_eq!(staged.read::<i64>(..).unwrap().data, [127, -128, -128]);
    let wide = DType::Integer(IntegerType::new(8, ByteOrder::Big, false));
    let mut staged = StagedArray::full(&[2], &[2], &wide, None).unwrap();
    assert!(staged.set(0, -1i8).is_err() && staged.set(0, 18446744073709551616.0f64).is_err());
    staged.set(0, 18446744073709549568.0f64).unwrap();
    staged.set(1, u64::MAX).unwrap();
    assert_eq!(staged.read::<u64>(..).unwrap().data, [18446744073709549568, u64::MAX]);
    assert!(StagedArray::full(&[1], &[1], &bytes, Some(300i64.into())).is_err());
}

#[test]
fn another_type_is_converted_when_it_is_needed() {
    let mut staged = on_base(&[6], &[4], &counting(&[6]));
    staged.set(0, 300i64).unwrap();
    let bytes = DType::Integer(IntegerType::new(1, ByteOrder::Little, false));
    let mut small = staged.astype(&bytes).unwrap();
    assert!(small.is_conversion_pending());
    assert_eq!(small.ledger().slabs()[1], None);
    assert_eq!(small.read::<i64>(..).unwrap().data, [255, 2, 3, 4, 5, 6]);
    assert!(!small.is_conversion_pending());
    assert!(small.set(1, -5i64).is_err());
    small.set(1, 0i64).unwrap();
    assert_eq!(small.get(..).unwrap().bytes().unwrap(), [255, 0, 3, 4, 5, 6]);
    small.resize(&[9]).unwrap();
    assert_eq!(small.read::<u8>(..).unwrap().data, [255, 0, 3, 4, 5, 6, 0, 0, 0]);
    // Base slabs in the place of the old ones.
    let raw = crate::RawData { shape: vec![8], dtype: bytes.clone(), bytes: vec![1, 2, 3, 4, 5, 6, 0, 0] };
    let swapped = staged.astype_over(&bytes, vec![BaseSlab::memory(raw.clone()).unwrap()]).unwrap();
    assert_eq!(swapped.ledger().map(), staged.ledger().map());
    assert_eq!(swapped.read::<i64>(..).unwrap().data, [255, 2, 3, 4, 5, 6]);
    assert!(staged.astype_over(&bytes, vec![]).is_err());
    let short = crate::RawData { shape: vec![4], dtype: bytes.clone(), bytes: vec![1; 4] };
    assert!(staged.astype_over(&bytes, vec![BaseSlab::memory(short).unwrap()]).is_err());
    assert!(staged.astype_over(&i64_type(), vec![]).is_ok());
    let other = BaseSlab::memory(raw).unwrap();
    let float = DType::Float(crate::dtype::FloatType::ieee(4, ByteOrder::Little).unwrap());
    assert!(staged.astype_over(&float, vec![other]).is_err());
}

#[test]
fn another_fill_value_replaces_the_old_one() {
    let float = DType::Float(crate::dtype::FloatType::ieee(8, ByteOrder::Little).unwrap());
    let nan = Some(Values::from(f64::NAN));
    let mut staged = StagedArray::full(&[7], &[3], &float, nan).unwrap();
    staged.set(0..2, &vec![1.0, -f64::NAN]).unwrap();
    let zeros = staged.refill(0.0).unwrap();
    assert_eq!(zeros.read::<f64>(..).unwrap().data, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let mut zeros = zeros;
    zeros.set(6, -0.0).unwrap();
    let fives = zeros.refill(5.0).unwrap();
    assert_eq!(fives.read::<f64>(..).unwrap().data, [1.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0]);
    assert_eq!(fives.fill().unwrap().to::<f64>().unwrap().data, [5.0]);
    assert!(staged.read::<f64>(3).unwrap().data[0].is_nan());
}

#[test]
fn text_of_any_length() {
    let text = Values::from("").dtype();
    let mut staged = StagedArray::full(&[5], &[2], &text, Some("none".into())).unwrap();
    staged.set(1..3, &["one", "zwei drei"][..]).unwrap();
    staged.set(4, "ü").unwrap();
    assert_eq!(staged.read_strings(..).unwrap(), ["none", "one", "zwei drei", "none", "ü"]);
    assert_eq!(staged.read_strings(s![vec![4, 0, -3]]).unwrap(), ["ü", "none", "zwei drei"]);
    let mut other = staged.copy();
    other.set(0..2, &staged.get(3..5).unwrap()).unwrap();
    assert_eq!(other.read_strings(0..2).unwrap(), ["none", "ü"]);
    assert_eq!(staged.commit().unwrap().survivors(), 3);
    staged.resize(&[7]).unwrap();
    assert_eq!(staged.read_strings(4..).unwrap(), ["ü", "none", "none"]);
    assert_eq!(staged.refill("-").unwrap().read_strings(..).unwrap()[5], "-");
    assert!(staged.set(0, 5i64).is_err());
    let short = DType::String {
        size: 3,
        padding: crate::dtype::StringPadding::NullPadded,
        charset: crate::dtype::CharSet::Utf8,
    };
    let mut fixed = StagedArray::full(&[3], &[2], &short, None).unwrap();
    fixed.set(0..2, &["abc", "d"][..]).unwrap();
    assert!(fixed.set(2, "abcd").is_err());
    assert_eq!(fixed.read_strings(..).unwrap(), ["abc", "d", ""]);
}

#[test]
fn values_are_broadcast_as_by_numpy() {
    let mut staged = StagedArray::full(&[3, 4], &[2, 3], &i64_type(), None).unwrap();
    staged.set(.., &[1i64, 2, 3, 4]).unwrap();
    staged.set((1.., ..), Values::new(&[1, 2, 1], &[7i64, 8]).unwrap()).unwrap();
    assert_eq!(staged.read::<i64>(..).unwrap().data, [1, 2, 3, 4, 7, 7, 7, 7, 8, 8, 8, 8]);
    // Lists picked from point by point, values along one axis of the points only.
    let points = |shape: Vec<u64>, v: Vec<i64>| crate::select::List::new(shape, v).unwrap();
    let at = s![points(vec![2, 1], vec![0, 2]), points(vec![1, 2], vec![0, 3])].unwrap();
    staged.set(&at, &[-1i64, -2]).unwrap();
    assert_eq!(staged.read::<i64>(&at).unwrap().data, [-1, -2, -1, -2]);
    assert_eq!(staged.read::<i64>(..).unwrap().data, [-1, 2, 3, -2, 7, 7, 7, 7, -1, 8, 8, -2]);
    // The last of several values for one element stays.
    staged.set(s![0, vec![1, 1, 2, 1]], &[5i64, 6, 9, 4]).unwrap();
    assert_eq!(staged.read::<i64>((0, ..)).unwrap().data, [-1, 4, 9, -2]);
    staged.set((.., crate::select::Step(.., -1)), &[1i64, 2, 3, 4]).unwrap();
    assert_eq!(staged.read::<i64>((2, ..)).unwrap().data, [4, 3, 2, 1]);
    assert!(staged.set((.., 0..2), &[1i64, 2, 3]).is_err());
    assert!(staged.set((0, 0), Values::new(&[2], &[1i64, 2]).unwrap()).is_err());
    // A scalar has one chunk.
    let mut scalar = StagedArray::full(&[], &[], &i64_type(), None).unwrap();
    scalar.set((), 5i64).unwrap();
    scalar.commit().unwrap();
    assert_eq!(scalar.read::<i64>(()).unwrap().data, [5]);
}
