use super::*;
use crate::error::ErrorKind;
use crate::source::Source;
use std::fs;

fn options() -> WriteOptions {
    WriteOptions::new().with_locking(Locking::Always)
}

fn names(folder: &Path) -> Vec<String> {
    let mut out: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    out.sort();
    out
}

#[test]
fn a_new_file_appears_with_its_commit_and_not_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let file = WriteFile::create(&path, &options()).unwrap();
    file.write_at(10, b"abc").unwrap();
    assert_eq!(file.read_at(0, 13).unwrap(), &b"\0\0\0\0\0\0\0\0\0\0abc"[..]);
    assert!(!path.exists());
    file.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"\0\0\0\0\0\0\0\0\0\0abc");
    assert_eq!(names(folder.path()), ["a"]);
    // What follows is an edit, which is not seen either.
    file.write_at(0, b"xyz").unwrap();
    file.write_at(13, b"more").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"\0\0\0\0\0\0\0\0\0\0abc");
    file.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"xyz\0\0\0\0\0\0\0abcmore");
    assert_eq!(names(folder.path()), ["a"]);
    let other = WriteFile::edit(&path, &options()).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Permission, "{other}");
    drop(file);
    drop(WriteFile::edit(&path, &options()).unwrap());
}

#[test]
fn what_is_not_committed_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let file = WriteFile::create(&path, &options()).unwrap();
    file.write_at(0, &[1; 300_000]).unwrap();
    drop(file);
    assert!(names(folder.path()).is_empty());
    fs::write(&path, [7; 10_000]).unwrap();
    let file = WriteFile::edit(&path, &options()).unwrap();
    file.write_at(5_000, &[1; 300_000]).unwrap();
    file.write_at(0, &[2; 4]).unwrap();
    drop(file);
    assert_eq!(fs::read(&path).unwrap(), [7; 10_000]);
    assert_eq!(names(folder.path()), ["a"]);
}

#[test]
fn a_file_is_overwritten_only_where_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, b"old").unwrap();
    assert_eq!(WriteFile::create(&path, &options()).unwrap_err().kind(), ErrorKind::AlreadyExists);
    let over = options().with_overwrite(true);
    let holder = fs::File::open(&path).unwrap();
    holder.try_lock().unwrap();
    assert_eq!(WriteFile::create(&path, &over).unwrap_err().kind(), ErrorKind::Permission);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    drop(holder);
    let file = WriteFile::create(&path, &over).unwrap();
    file.write_at(0, b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    file.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(names(folder.path()), ["a"]);
    // Two that make the same file: the second is told.
    let path = folder.path().join("b");
    let (one, two) =
        (WriteFile::create(&path, &options()).unwrap(), WriteFile::create(&path, &options()).unwrap());
    one.write_at(0, b"one").unwrap();
    one.commit().unwrap();
    assert_eq!(two.commit().unwrap_err().kind(), ErrorKind::AlreadyExists);
    drop(two);
    assert_eq!(fs::read(&path).unwrap(), b"one");
    assert_eq!(names(folder.path()), ["a", "b"]);
}

/// Random operations, compared with a vector of bytes; with little memory, so that pages come to the disk before the
/// commit, and with ends of state within the file.
#[test]
fn random_edits_are_those_of_a_vector_of_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let mut seed = 1u64;
    let mut random = move |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    for round in 0..300 {
        let memory = [0, 8192, 64 << 10, 64 << 20][round % 4];
        let options = options().with_memory(memory).with_sync(SyncPolicy::None);
        let mut model: Vec<u8> = (0..random(40_000)).map(|n| n as u8 | 1).collect();
        fs::write(&path, &model).unwrap();
        let file = WriteFile::edit(&path, &options).unwrap();
        if random(3) == 0 {
            model.truncate(random(model.len() as u64 + 1) as usize);
            file.set_end_of_state(model.len() as u64).unwrap();
        }
        for step in 0..random(40) {
            match random(10) {
                0 => {
                    let length = random(60_000) as usize;
                    model.resize(length, 0);
                    file.set_len(length as u64).unwrap();
                }
                1 => file.commit().unwrap(),
                2..=4 if !model.is_empty() => {
                    let at = random(model.len() as u64) as usize;
                    let n = random((model.len() - at) as u64 + 1) as usize;
                    assert_eq!(
                        file.read_at(at as u64, n as u64).unwrap(),
                        model[at..at + n],
                        "{round} {step}"
                    );
                }
                _ => {
                    let (at, most) = (random(50_000) as usize, [10, 5_000, 150_000][random(3) as usize]);
                    let bytes: Vec<u8> = (0..random(most) + 1).map(|n| (n * 7 + step) as u8).collect();
                    if model.len() < at + bytes.len() {
                        model.resize(at + bytes.len(), 0);
                    }
                    model[at..at + bytes.len()].copy_from_slice(&bytes);
                    file.write_at(at as u64, &bytes).unwrap();
                }
            }
            assert_eq!(file.len().unwrap(), model.len() as u64);
        }
        let before = (random(2) == 0).then(|| file.read_at(0, model.len() as u64).unwrap());
        if let Some(before) = before {
            assert!(before == model, "{round}");
        }
        file.commit().unwrap();
        assert!(fs::read(&path).unwrap() == model, "{round}");
        drop(file);
        assert!(fs::read(&path).unwrap() == model, "{round}");
        assert_eq!(names(folder.path()), ["a"]);
    }
}
