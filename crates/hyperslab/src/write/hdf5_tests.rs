//! HDF5 files through the one way to write.

use super::*;
use crate::dtype::{ByteOrder, IntegerType};
use crate::model::write::FillSpec;

fn i32le() -> DType {
    DType::Integer(IntegerType::new(4, ByteOrder::Little, true))
}

fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("hyperslab-hdf5-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn files_are_made_and_changed() {
    let folder = folder("made");
    for (name, chunk, deflate) in
        [("whole", None, false), ("chunked", Some([2, 3]), false), ("deflated", Some([2, 3]), true)]
    {
        let path = folder.join(format!("{name}.h5"));
        let text = path.to_str().unwrap();
        let mut w = create(text, Format::Hdf5, &CreateOptions::new()).unwrap();
        w.create_group("g").unwrap();
        let mut spec = ArraySpec::simple(i32le(), &[5, 7]).with_fill(&(-1i32).to_le_bytes());
        if let Some(chunk) = chunk {
            spec = spec.with_chunk(&chunk);
        }
        if deflate {
            let parameters = vec![4];
            let filter =
                crate::codec::FilterSpec::Hdf5 { id: 1, flags: 1, name: Default::default(), parameters };
            spec.filters = vec![filter];
        }
        w.create_array("g/a", spec).unwrap();
        let mut staged = StagedArray::full(&[5, 7], &[2, 3], &i32le(), Some(Values::from(-1i64))).unwrap();
        staged.set("1:3, 2:6", Values::from(5i64)).unwrap();
        w.write("g/a", &staged).unwrap();
        w.set_attribute("g/a", "units", "K").unwrap();
        // Nothing is there before the commit.
        assert!(!path.exists());
        w.commit().unwrap();
        let expected = |row: usize, column: usize, changed: bool| {
            if changed && row == 4 {
                9
            } else if (1..3).contains(&row) && (2..6).contains(&column) {
                5
            } else {
                -1
            }
        };
        let check = |changed: bool| {
            let file = crate::open(text).unwrap();
            let data = file.array("g/a").unwrap().read::<i32>(crate::Selection::all()).unwrap();
            let wanted: Vec<i32> = (0..35).map(|i| expected(i / 7, i % 7, changed)).collect();
            assert_eq!(data.data, wanted, "{name}");
            assert_eq!(file.array("g/a").unwrap().attribute("units").unwrap().as_str(), Some("K"));
        };
        check(false);
        assert_eq!(
            create(text, Format::Hdf5, &CreateOptions::new()).unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
        let mut w = edit(text, &OpenOptions::default(), &WriteOptions::new()).unwrap();
        w.set("g/a", "4", Values::from(9i64)).unwrap();
        // A transaction that is dropped leaves no trace.
        drop(w);
        check(false);
        let mut w = edit(text, &OpenOptions::default(), &WriteOptions::new()).unwrap();
        w.set("g/a", "4", Values::from(9i64)).unwrap();
        w.commit().unwrap();
        check(true);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_part_of_a_large_run_leaves_the_rest() {
    let folder = folder("run");
    let path = folder.join("run.h5");
    let text = path.to_str().unwrap();
    // Pieces of a row each.
    let row = 1_100_000;
    let mut w = create(text, Format::Hdf5, &CreateOptions::new()).unwrap();
    w.create_array("a", ArraySpec::simple(i32le(), &[4, row]).with_fill(&(-1i32).to_le_bytes())).unwrap();
    w.commit().unwrap();
    let length = || std::fs::metadata(&path).unwrap().len();
    // Nothing but fill values takes no room.
    assert!(length() < 4096);
    for (step, wanted) in [(0, [7, -1, -1, -1]), (2, [7, -1, 7, -1])] {
        let mut w = edit(text, &OpenOptions::default(), &WriteOptions::new()).unwrap();
        w.set("a", format!("{step}").as_str(), Values::from(7i64)).unwrap();
        w.commit().unwrap();
        let mut w = edit(text, &OpenOptions::default(), &WriteOptions::new()).unwrap();
        let (from, to) =
            (ObjectPath::parse("a").unwrap(), ObjectPath::parse(&format!("copy{step}")).unwrap());
        w.apply(Change::CopyObject { from, to }).unwrap();
        w.commit().unwrap();
        let file = crate::open(text).unwrap();
        for name in ["a".to_owned(), format!("copy{step}")] {
            let array = file.array(&name).unwrap();
            for (i, wanted) in wanted.iter().enumerate() {
                let data = array.read::<i32>(format!("{i}").as_str()).unwrap().data;
                assert!(data.len() as u64 == row && data.iter().all(|v| v == wanted), "{name} {step} {i}");
            }
        }
    }
    assert!(length() < 3 * 4 * 4 * row + 50_000, "{}", length());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_nobody_wrote_is_the_fill_value() {
    let folder = folder("fill");
    let path = folder.join("fill.nc");
    let text = path.to_str().unwrap();
    let mut w = create(text, Format::NetCdf4, &CreateOptions::new()).unwrap();
    for (name, early) in [("late", false), ("early", true)] {
        let mut spec = ArraySpec::simple(i32le(), &[4, 6]).with_fill(&7i32.to_le_bytes());
        spec.allocation_time = early.then_some(crate::model::write::AllocationTime::Early);
        w.create_array(name, spec.clone()).unwrap();
        w.create_array(&format!("{name} in chunks"), spec.with_chunk(&[3, 4])).unwrap();
    }
    let mut spec = ArraySpec::simple(i32le(), &[3]);
    spec.fill = FillSpec::Undefined;
    w.create_array("undefined", spec).unwrap();
    w.commit().unwrap();
    let file = crate::open(text).unwrap();
    for name in ["late", "early", "late in chunks", "early in chunks"] {
        let data = file.array(name).unwrap().read::<i32>(crate::Selection::all()).unwrap();
        assert_eq!(data.data, [7; 24], "{name}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn many_small_arrays_cost_what_they_are() {
    let folder = folder("many");
    let path = folder.join("many.h5");
    let text = path.to_str().unwrap();
    let begun = std::time::Instant::now();
    let mut w = create(text, Format::Hdf5, &CreateOptions::new()).unwrap();
    let count = 2000u32;
    for i in 0..count {
        let at = ObjectPath::root().join(format!("d{i}").as_str());
        let spec = Box::new(ArraySpec::simple(i32le(), &[10]));
        w.apply(Change::CreateArray { path: at.clone(), spec }).unwrap();
        let bytes: Vec<u8> = (0..10).flat_map(|n| (n * i).to_le_bytes()).collect();
        let data = crate::exec::encode::ChunkData::Elements(Content::Fixed(bytes.into()));
        let chunk = NewChunk { coord: [0].as_slice().into(), data };
        w.write_chunks(&at, &mut std::iter::once(Ok(chunk))).unwrap();
    }
    w.commit().unwrap();
    eprintln!("{count} arrays in {:?}", begun.elapsed());
    // Elements, a header and a link of each, and little else.
    assert!(std::fs::metadata(&path).unwrap().len() < u64::from(count) * 350);
    let file = crate::open(text).unwrap();
    for i in [0, 1, count / 2, count - 1] {
        let data = file.array(&format!("d{i}")).unwrap().read::<i32>(crate::Selection::all()).unwrap();
        assert_eq!(data.data, (0..10).map(|n| n * i as i32).collect::<Vec<_>>());
    }
    std::fs::remove_dir_all(folder).unwrap();
}
