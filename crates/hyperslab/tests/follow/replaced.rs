//! Files and stores in whose place another one comes.

use super::{Folder, address, chunk, copy, document, integers, netcdf3_of, options, rows, write};
use hyperslab::follow::{Event, Follow, From, Stop, follow};
use std::path::Path;
use std::time::Duration;

fn numbers(range: std::ops::Range<i128>) -> Vec<i128> {
    range.collect()
}

/// The next event, which must be that another file is there; how many rows of the old one did not come.
fn replaced(follow: &mut Follow) -> u64 {
    match follow.next().unwrap().unwrap() {
        Event::Replaced { left } => left,
        other => panic!("{other:?}"),
    }
}

/// The values of the next rows, which begin with `first`.
fn next(follow: &mut Follow, first: u64) -> Vec<i128> {
    let (at, values) = rows(follow);
    assert_eq!(at, first);
    integers(&values[0])
}

/// Adds `by` to the first numbers of `/one` in a fixture: raw data has no checksum.
fn changed(mut file: Vec<u8>, by: i32) -> Vec<u8> {
    let old: Vec<u8> = (0..4).flat_map(|i| (1000 * i + 1i32).to_le_bytes()).collect();
    let at = file.windows(16).position(|w| w == old).unwrap();
    let new: Vec<u8> = (0..4).flat_map(|i| (1000 * i + 1 + by).to_le_bytes()).collect();
    file[at..at + 16].copy_from_slice(&new);
    file
}

#[test]
fn rows_that_waited_and_came_otherwise_hold_nothing_up() {
    let folder = Folder::new();
    let (path, other) = (folder.path("a.h5"), folder.path("b.h5"));
    // The first row is fill. It is seen before it is known that nobody writes any more, and need not wait then.
    write(&path, &changed(copy("closed"), -1));
    let mut follow = follow(address(&path, "/one"), &[], options()).unwrap();
    assert_eq!(next(&mut follow, 0)[..2], [0, 1000]);
    write(&other, &changed(copy("closed"), 7));
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(replaced(&mut follow), 0);
    assert_eq!(next(&mut follow, 0)[..2], [8, 1008]);
    assert!(follow.next().is_none());
    assert!(follow.stats().looks < 300, "{:?}", follow.stats());
}

#[test]
fn a_file_that_is_written_anew_in_place_begins_with_its_first_row() {
    let folder = Folder::new();
    let path = folder.path("a.nc");
    std::fs::write(&path, netcdf3_of(2, 4, 1)).unwrap();
    let mut follow = follow(address(&path, "/v"), &[], options()).unwrap();
    assert_eq!(next(&mut follow, 0), numbers(1..9));
    // Other values; more rows at once, so that it was never seen to be shorter.
    std::fs::write(&path, netcdf3_of(2, 6, 101)).unwrap();
    assert_eq!(replaced(&mut follow), 0);
    assert_eq!(next(&mut follow, 0), numbers(101..113));
    // As many rows.
    std::fs::write(&path, netcdf3_of(2, 6, 201)).unwrap();
    assert_eq!(replaced(&mut follow), 0);
    assert_eq!(next(&mut follow, 0), numbers(201..213));
    // Fewer.
    std::fs::write(&path, netcdf3_of(2, 3, 301)).unwrap();
    assert_eq!(replaced(&mut follow), 0);
    assert_eq!(next(&mut follow, 0), numbers(301..307));
    // The same values in rows of another length.
    std::fs::write(&path, netcdf3_of(3, 3, 301)).unwrap();
    assert_eq!(replaced(&mut follow), 0);
    assert_eq!(next(&mut follow, 0), numbers(301..310));
    // What only gets longer or shorter is the same file.
    std::fs::write(&path, netcdf3_of(3, 4, 301)).unwrap();
    assert_eq!(next(&mut follow, 3), numbers(310..313));
    std::fs::write(&path, netcdf3_of(3, 2, 301)).unwrap();
    assert!(matches!(follow.next().unwrap().unwrap(), Event::Shrunk { from: 4, to: 2, .. }));
    assert!(follow.next().is_none());
    assert_eq!(follow.stats().stop, Some(Stop::Idle));
}

#[test]
fn another_file_is_noticed_before_any_row_was_given() {
    let folder = Folder::new();
    let path = folder.path("a.nc");
    for (from, first) in [(From::End, 0), (From::Row(3), 3), (From::Row(9), 9)] {
        std::fs::write(&path, netcdf3_of(2, 4, 1)).unwrap();
        let wanted = options().with_from(from);
        let mut follow = match from {
            From::Row(3) => follow(address(&path, "/v"), &[], wanted.with_rows(2)).unwrap(),
            _ => follow(address(&path, "/v"), &[], wanted).unwrap(),
        };
        if first == 3 {
            assert_eq!(next(&mut follow, 3), [7, 8]);
        }
        std::fs::write(&path, netcdf3_of(2, 10, 101)).unwrap();
        assert_eq!(replaced(&mut follow), 0);
        let (at, count) = rows_after(&mut follow);
        assert!(at == first && count > 0, "{from:?}: {at} {count}");
    }
}

fn rows_after(follow: &mut Follow) -> (u64, usize) {
    let (first, values) = rows(follow);
    (first, values[0].len())
}

#[test]
fn a_live_file_that_is_written_anew_in_place_begins_with_its_first_row() {
    let folder = Folder::new();
    let path = folder.path("a.h5");
    write(&path, &copy("early"));
    let mut follow = follow(address(&path, "/one"), &[], options()).unwrap();
    assert_eq!(next(&mut follow, 0).len(), 10);
    write(&path, &changed(copy("later"), 500_000));
    assert_eq!(replaced(&mut follow), 0);
    let values = next(&mut follow, 0);
    assert_eq!((values.len(), values[0], values[36]), (37, 500_001, 36_001));
    // Empty for a while, as a file is that was opened to be written.
    std::fs::write(&path, b"").unwrap();
    let late = path.clone();
    let writer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(80));
        std::fs::write(late, copy("early")).unwrap();
    });
    assert_eq!(replaced(&mut follow), 0);
    assert_eq!(next(&mut follow, 0)[0], 1);
    writer.join().unwrap();
    assert!(follow.next().is_none());
}

#[test]
fn rows_of_a_file_that_was_renamed_come_first() {
    // Live: what was flushed since the last look.
    let folder = Folder::new();
    let (path, other) = (folder.path("a.h5"), folder.path("b.h5"));
    write(&path, &copy("early"));
    let mut live = follow(address(&path, "/one"), &[], options()).unwrap();
    assert_eq!(next(&mut live, 0).len(), 10);
    write(&path, &copy("later"));
    write(&other, &changed(copy("early"), 7));
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(next(&mut live, 10).len(), 27);
    assert_eq!(replaced(&mut live), 0);
    // The new one is shorter: its first rows count.
    assert_eq!(next(&mut live, 0)[..4], [8, 1008, 2008, 3008]);
    // Not live, and gone for a while.
    let (path, other) = (folder.path("a.nc"), folder.path("b.nc"));
    std::fs::write(&path, netcdf3_of(2, 2, 1)).unwrap();
    let mut plain = follow(address(&path, "/v"), &[], options()).unwrap();
    assert_eq!(next(&mut plain, 0), numbers(1..5));
    write(&path, &netcdf3_of(2, 5, 1));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(next(&mut plain, 2), numbers(5..11));
    std::fs::write(&other, netcdf3_of(2, 1, 51)).unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(replaced(&mut plain), 0);
    assert_eq!(next(&mut plain, 0), numbers(51..53));
}

#[test]
fn rows_that_were_announced_and_lost_are_counted() {
    let folder = Folder::new();
    let (path, other) = (folder.path("a.h5"), folder.path("b.h5"));
    write(&path, &copy("later"));
    // Four rows that nobody wrote, two that are there, two that are not.
    let mut lost = follow(address(&path, "/sparse"), &[], options().with_from(From::Row(4))).unwrap();
    assert_eq!(next(&mut lost, 4).len(), 2);
    write(&other, &copy("later"));
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(replaced(&mut lost), 2);
    // The row that was asked for is also the first one of the new file.
    assert_eq!(next(&mut lost, 4).len(), 2);
    assert!(lost.next().is_none());
    assert_eq!((lost.stats().waiting, lost.stats().rows), (2, 4));
}

fn store(path: &Path, rows: u64, first: i32) {
    std::fs::create_dir(path).unwrap();
    std::fs::write(path.join(".zarray"), document(rows)).unwrap();
    for number in 0..rows.div_ceil(4) {
        let at = first + 4 * number as i32;
        std::fs::write(path.join(number.to_string()), chunk([at, at + 1, at + 2, at + 3])).unwrap();
    }
}

#[test]
fn a_store_in_whose_place_another_one_comes_begins_with_its_first_row() {
    let folder = Folder::new();
    let path = folder.path("a");
    store(&path, 4, 1);
    let wanted = options().with_idle(Duration::from_secs(3));
    let mut follow = follow(address(&path, "/"), &[], wanted).unwrap();
    assert_eq!(next(&mut follow, 0), numbers(1..5));
    // Longer, as long, and shorter.
    for (rows, first) in [(8, 11), (8, 21), (4, 31)] {
        let new = folder.path("new");
        store(&new, rows, first);
        std::fs::rename(&path, folder.path(&format!("old{first}"))).unwrap();
        std::fs::rename(&new, &path).unwrap();
        assert_eq!(replaced(&mut follow), 0);
        assert_eq!(next(&mut follow, 0), numbers(i128::from(first)..i128::from(first) + i128::from(rows)));
    }
}
