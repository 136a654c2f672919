//! Rows that hold fill: written, not yet, or never.

use super::{Folder, address, chunk, copy, document, integers, netcdf3_of, options, rows, write};
use hyperslab::follow::{Event, Follow, FollowStats, Stop, follow};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// All rows that come before it stops.
fn all(follow: &mut Follow) -> Vec<i128> {
    let mut out = Vec::new();
    for event in follow.by_ref() {
        match event.unwrap() {
            Event::Rows(rows) => out.extend(integers(&rows.parts[0].elements.values().unwrap())),
            other => panic!("{other:?}"),
        }
    }
    out
}

fn counts(stats: FollowStats) -> (u64, u64, Option<Stop>) {
    (stats.rows, stats.waiting, stats.stop)
}

/// What netCDF-3 stores in `int` variables that were not written.
const FILL: u32 = -2_147_483_647i32 as u32;

/// A netCDF-3 file with `records` records of two numbers, of which only the first `written` numbers are written.
fn partly(records: u32, written: u32) -> Vec<u8> {
    let mut file = netcdf3_of(2, records, 1);
    let unwritten = 4 * (2 * records - written) as usize;
    let at = file.len() - unwritten;
    file.truncate(at);
    (0..unwritten / 4).for_each(|_| file.extend(FILL.to_be_bytes()));
    file
}

#[test]
fn quiet_does_not_make_fill_of_what_was_never_written() {
    let folder = Folder::new();
    let path = folder.path("a.nc");
    write(&path, &partly(6, 4));
    let wanted = options().with_idle(Duration::from_millis(1400));
    let mut waits = follow(address(&path, "/v"), &[], wanted).unwrap();
    assert_eq!(all(&mut waits), [1, 2, 3, 4]);
    assert_eq!(counts(waits.stats()), (2, 4, Some(Stop::Idle)));
    // Unless that is asked for, and then not sooner.
    let wanted = options().with_settle(Duration::from_millis(200));
    let begun = Instant::now();
    let mut settles = follow(address(&path, "/v"), &[], wanted).unwrap();
    assert_eq!(integers(&rows(&mut settles).1[0]), [1, 2, 3, 4]);
    let fill = i128::from(FILL as i32);
    assert_eq!(integers(&rows(&mut settles).1[0]), [fill; 8]);
    assert!(begun.elapsed() >= Duration::from_millis(200));
    assert!(settles.next().is_none());
    assert_eq!(counts(settles.stats()), (6, 0, Some(Stop::Idle)));
}

#[test]
fn rows_that_are_announced_twice_come_when_they_are_written() {
    let folder = Folder::new();
    let path = folder.path("a.nc");
    write(&path, &partly(4, 3));
    let wanted = options().with_idle(Duration::from_millis(900));
    let mut waits = follow(address(&path, "/v"), &[], wanted).unwrap();
    assert_eq!(integers(&rows(&mut waits).1[0]), [1, 2]);
    let late = path.clone();
    let writer = std::thread::spawn(move || {
        // Announced again, one number more, all numbers.
        for (records, written) in [(6, 3), (8, 3), (8, 4), (8, 16)] {
            std::thread::sleep(Duration::from_millis(100));
            write(&late, &partly(records, written));
        }
    });
    assert_eq!(all(&mut waits), (3..17).collect::<Vec<_>>());
    writer.join().unwrap();
    assert_eq!(waits.stats().waiting, 0);
}

/// A Zarr array of `rows` rows of four numbers, in chunks of two rows and two columns.
fn tiles(path: &Path, rows: u64) {
    std::fs::create_dir_all(path).unwrap();
    let shape = |extents: &str| format!("\"shape\":[{extents}]");
    let text = document(rows).replace(&shape(&rows.to_string()), &shape(&format!("{rows},4")));
    let text = text.replace("\"chunks\":[4]", "\"chunks\":[2,2]");
    std::fs::write(path.join(".zarray"), text).unwrap();
}

#[test]
fn a_row_is_written_when_all_of_it_is() {
    let folder = Folder::new();
    let path = folder.path("a");
    let put = |name: &str, values| std::fs::write(path.join(name), chunk(values)).unwrap();
    tiles(&path, 2);
    put("0.0", [1, 2, 0, 0]);
    put("0.1", [3, 0, 0, 0]);
    let follow = || follow(address(&path, "/"), &[], options()).unwrap();
    // A number of each chunk is there, and not the row.
    assert_eq!(all(&mut follow()), []);
    put("0.1", [3, 4, 0, 0]);
    assert_eq!(all(&mut follow()), [1, 2, 3, 4]);
    // A later row in one of its chunks says nothing of the other.
    put("0.0", [1, 2, 5, 0]);
    put("0.1", [3, 0, 0, 0]);
    assert_eq!(all(&mut follow()), []);
    put("0.1", [3, 0, 0, 6]);
    assert_eq!(all(&mut follow()), [1, 2, 3, 0]);
    // In a later chunk it does too.
    tiles(&path, 4);
    put("1.0", [7, 0, 0, 0]);
    put("1.1", [0, 7, 0, 0]);
    assert_eq!(all(&mut follow()), [1, 2, 3, 0, 5, 0, 0, 6]);
    // It is looked for beyond the rows that are read at a time.
    let mut one = hyperslab::follow(address(&path, "/"), &[], options().with_batch(1)).unwrap();
    assert_eq!(all(&mut one), [1, 2, 3, 0, 5, 0, 0, 6]);
}

#[test]
fn a_row_with_fill_is_looked_at_twice() {
    let folder = Folder::new();
    let path = folder.path("a");
    let put = |name: &str, values| std::fs::write(path.join(name), chunk(values)).unwrap();
    tiles(&path, 2);
    // The second row was seen, and the first one not: what is written over in place is not seen at one moment.
    put("0.0", [1, 0, 5, 6]);
    put("0.1", [3, 4, 7, 8]);
    let begun = Instant::now();
    let mut follow = follow(address(&path, "/"), &[], options()).unwrap();
    put("0.0", [1, 2, 5, 6]);
    assert_eq!(integers(&rows(&mut follow).1[0]), [1, 2, 3, 4, 5, 6, 7, 8]);
    // A row that waits holds back those behind it, and its wait is counted.
    tiles(&path, 4);
    put("1.0", [0, 1, 1, 1]);
    put("1.1", [2, 2, 2, 2]);
    let (first, values) = rows(&mut follow);
    assert_eq!((first, integers(&values[0])), (2, vec![0, 1, 2, 2, 1, 1, 2, 2]));
    assert!(begun.elapsed() >= Duration::from_millis(50));
    assert!(follow.stats().delay_p99 >= Duration::from_millis(50), "{:?}", follow.stats());
}

#[test]
fn the_rows_of_a_closed_file_are_final() {
    let folder = Folder::new();
    let path = folder.path("a.h5");
    let whole = copy("closed");
    write(&path, &whole);
    let mut closed = follow(address(&path, "/sparse"), &[], options()).unwrap();
    assert_eq!(rows(&mut closed).1[0].len(), 8);
    // Not so if it is not as long as it says that it is.
    let path = folder.path("b.h5");
    write(&path, &[&whole[..], &[0; 8]].concat());
    let mut longer = follow(address(&path, "/sparse"), &[], options()).unwrap();
    assert_eq!(all(&mut longer), []);
    assert_eq!(longer.stats().waiting, 8);
}

#[test]
fn what_nobody_changes_any_more_is_final_where_files_never_say_so() {
    let folder = Folder::new();
    let path = folder.path("a.h5");
    // Superblock 0; the last rows hold fill.
    let old = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/objects_old.h5");
    write(&path, &std::fs::read(old).unwrap());
    let rows_of = |path: &Path| {
        let mut follow = follow(address(path, "/data/chunked"), &[], options()).unwrap();
        let found = follow.by_ref().filter(|event| matches!(event, Ok(Event::Rows(_)))).count();
        (found, follow.stats().rows, follow.stats().waiting)
    };
    let (_, given, waiting) = rows_of(&path);
    assert!(given < 7 && given + waiting == 7);
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(std::time::SystemTime::now() - Duration::from_secs(300)).unwrap();
    // A process that has it open to write may go on with it.
    if cfg!(target_os = "linux") {
        assert_eq!(rows_of(&path).1, given);
    }
    drop(file);
    assert_eq!(rows_of(&path).1, 7);
    // One that is not as long as it says was not closed.
    let longer = std::fs::File::options().append(true).open(&path).unwrap();
    (&longer).write_all(&[0; 8]).unwrap();
    longer.set_modified(std::time::SystemTime::now() - Duration::from_secs(300)).unwrap();
    drop(longer);
    assert_eq!(rows_of(&path).1, given);
    // Records of netCDF-3 that hold fill are none of these.
    let path = folder.path("a.nc");
    write(&path, &partly(6, 4));
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(std::time::SystemTime::now() - Duration::from_secs(300)).unwrap();
    drop(file);
    assert_eq!(all(&mut follow(address(&path, "/v"), &[], options()).unwrap()), [1, 2, 3, 4]);
}

#[test]
fn a_file_that_has_changed_is_looked_at_when_it_may_keep_still() {
    let folder = Folder::new();
    let path = folder.path("a.nc");
    write(&path, &partly(2, 4));
    // The second look comes after a second, and one that only waits for longer would come after two more.
    let wanted =
        options().with_interval(Duration::from_secs(8)).with_idle(Duration::from_secs(6)).with_rows(3);
    let mut follow = follow(address(&path, "/v"), &[], wanted).unwrap();
    assert_eq!(rows(&mut follow).0, 0);
    let begun = Instant::now();
    write(&path, &partly(3, 6));
    assert_eq!(rows(&mut follow).0, 2);
    assert!(begun.elapsed() < Duration::from_millis(2500), "{:?}", begun.elapsed());
}

#[test]
fn data_in_one_piece_in_a_live_file_are_rows_too() {
    let folder = Folder::new();
    let path = folder.path("a.h5");
    write(&path, &copy("later"));
    for name in ["/whole", "/fixed", "/single"] {
        let mut piece = follow(address(&path, name), &[], options()).unwrap();
        let wanted: Vec<i128> = (0..4).flat_map(|i| (0..6).map(move |j| super::value(i, j))).collect();
        assert_eq!(all(&mut piece), wanted, "{name}");
        assert_eq!(counts(piece.stats()), (4, 0, Some(Stop::Idle)));
    }
}
