use super::npy::{descr, header};
use super::slabs::Slabs;
use hyperslab::Selection;
use hyperslab::dtype::{ByteOrder, DType, Field, IntegerType};

fn slabs(slice: &str, dims: &[u64], chunk: Option<&[u64]>) -> Vec<String> {
    Slabs::new(&Selection::parse(slice).unwrap(), dims, chunk, 8, u64::MAX).map(|s| s.to_string()).collect()
}

#[test]
fn small_results_and_lists_are_read_at_once() {
    assert_eq!(slabs("[...]", &[10, 10], None).len(), 1);
    assert_eq!(slabs("[[0, 2], :]", &[1 << 20, 1 << 20], None).len(), 1);
    assert_eq!(slabs("[0:0]", &[1 << 40, 1 << 20], None).len(), 1);
}

#[test]
fn slabs_are_whole_chunks() {
    // A row is 8 KiB, so 32 MiB are 4096 rows: 4000 in whole chunks of 1000.
    let cut = slabs("[...]", &[10_000, 1024], Some(&[1000, 10]));
    assert_eq!(cut, ["[0:4000, :]", "[4000:8000, :]", "[8000:10000, :]"]);
    // Going down, the last slab has an open end.
    let cut = slabs("[::-1]", &[10_000, 1024], Some(&[1000, 10]));
    assert_eq!(cut.first().unwrap(), "[9999:5999:-1, :]");
    assert_eq!(cut.last().unwrap(), "[1999::-1, :]");
    // Behind an index, the next axis is cut.
    assert_eq!(slabs("[3, ::2]", &[5, 20_000, 1024], None).len(), 3);
}

#[test]
fn headers_are_aligned_and_say_all() {
    let h = header("'<i4'", &[3]);
    assert_eq!(h.len() % 64, 0);
    assert!(h.starts_with(b"\x93NUMPY\x01\0") && h.ends_with(b"\n"));
    let text = String::from_utf8_lossy(&h[10..]).trim_end().to_string();
    assert_eq!(text, "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }");
    let int = |size| DType::Integer(IntegerType::new(size, ByteOrder::Big, true));
    let fields = vec![
        Field { name: "it's".into(), offset: 0, dtype: int(2) },
        Field { name: "b".into(), offset: 2, dtype: DType::Array { base: Box::new(int(1)), dims: vec![3] } },
    ];
    let text = descr(&DType::Compound { size: 5, fields }).unwrap();
    assert_eq!(text, r"[('it\'s', '<i2'), ('b', '|i1', (3,))]");
}
