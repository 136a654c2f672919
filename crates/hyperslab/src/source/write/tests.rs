use super::*;
use crate::error::{ErrorKind, Result};
use crate::limits::Limits;
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
        let file = Arc::new(WriteFile::edit(&path, &options).unwrap());
        if random(3) == 0 {
            model.truncate(random(model.len() as u64 + 1) as usize);
            file.set_end_of_state(model.len() as u64).unwrap();
        }
        let (before, mut was) = (file.before(), model.clone());
        for step in 0..random(40) {
            match random(10) {
                0 => {
                    let length = random(60_000) as usize;
                    model.resize(length, 0);
                    file.set_len(length as u64).unwrap();
                }
                1 => {
                    file.commit().unwrap();
                    was = model.clone();
                }
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
            assert_eq!((file.len().unwrap(), before.len().unwrap()), (model.len() as u64, was.len() as u64));
            let at = random(was.len() as u64 + 1);
            let range = crate::source::ByteRange::new(at, random(was.len() as u64 - at + 1));
            let seen = before.read(&[range]).unwrap().remove(0);
            assert!(seen == was[at as usize..(at + range.length) as usize], "{round} {step}");
        }
        if random(2) == 0 {
            assert!(file.read_at(0, model.len() as u64).unwrap() == model, "{round}");
        }
        file.commit().unwrap();
        assert!(fs::read(&path).unwrap() == model, "{round}");
        drop(file);
        // It may be another one by now, and is not locked any more.
        assert_eq!(before.len().unwrap_err().kind(), ErrorKind::Changed);
        drop(WriteFile::edit(&path, &options).unwrap());
        assert!(fs::read(&path).unwrap() == model, "{round}");
        assert_eq!(names(folder.path()), ["a"]);
    }
}

/// A format as small as one can be: length, a number of the version, and bytes that follow from it.
fn put(file: &WriteFile, version: u64, length: u64) -> Result<()> {
    file.write_at(0, &length.to_le_bytes())?;
    file.write_at(8, &version.to_le_bytes())?;
    let bytes: Vec<u8> = (16..length).map(|i| (i / 512 * 31 + version * 7) as u8).collect();
    file.write_at(16, &bytes)?;
    file.set_len(length)
}

/// What an opener finds.
fn look(path: &Path) -> String {
    if !path.exists() {
        return "nothing".into();
    }
    let source = match open_recovered(path, &Limits::default(), Recovery::RollBack) {
        Ok(source) => source,
        Err(e) => return e.to_string(),
    };
    let length = source.len().unwrap();
    let bytes = source.read(&[crate::source::ByteRange::new(0, length)]).unwrap().remove(0);
    let (Some(stated), Some(version)) = (bytes.get(..8), bytes.get(8..16)) else { return "cut".into() };
    let stated = u64::from_le_bytes(stated.try_into().unwrap());
    let version = u64::from_le_bytes(version.try_into().unwrap());
    let good = (16..stated).all(|i| bytes.get(i as usize) == Some(&((i / 512 * 31 + version * 7) as u8)));
    if good { format!("{version} of {stated}") } else { format!("torn {version} of {stated}") }
}

/// Commits of all kinds: new, grown, changed within, shrunk, with more pages than memory.
fn commits(path: &Path, options: &WriteOptions, mut done: impl FnMut()) -> Result<()> {
    let file = WriteFile::create(path, options)?;
    put(&file, 1, 9_000)?;
    file.commit()?;
    done();
    put(&file, 2, 30_000)?;
    file.commit()?;
    done();
    drop(file);
    let file = WriteFile::edit(path, options)?;
    file.set_end_of_state(30_000)?;
    put(&file, 3, 12_345)?;
    file.commit()?;
    done();
    put(&file, 4, 150_000)?;
    file.commit()?;
    done();
    drop(file);
    let file = WriteFile::create(path, &options.clone().with_overwrite(true))?;
    put(&file, 5, 100)?;
    file.commit()?;
    done();
    Ok(())
}

fn states() -> Vec<String> {
    ["nothing", "1 of 9000", "2 of 30000", "3 of 12345", "4 of 150000", "5 of 100"].map(String::from).to_vec()
}

#[test]
fn a_crash_leaves_the_old_or_the_new_state() {
    for memory in [0, 16 << 10, 64 << 20] {
        let (folder, crashed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let disk = simulate::Recording::new(folder.path()).unwrap();
        let options = options().with_memory(memory).with_disk(Arc::new(disk.clone()));
        commits(&folder.path().join("a"), &options, || disk.done()).unwrap();
        let crash = simulate::Crash { random: 20, seed: memory, every: 1 };
        let at = crashed.path().join("state");
        let outcome = crash.run(&disk, &at, &states(), &mut |at| look(&at.join("a"))).unwrap();
        assert!(outcome.lost.is_empty(), "{memory}: {outcome:#?}");
        assert!(outcome.states > 150 && outcome.old > 100 && outcome.new > 3, "{outcome:?}");
    }
}

/// The simulation finds what goes wrong without syncs.
#[test]
fn without_syncs_the_power_may_not_fail() {
    let (folder, crashed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let disk = simulate::Recording::new(folder.path()).unwrap();
    let options = options().with_sync(SyncPolicy::None).with_disk(Arc::new(disk.clone()));
    commits(&folder.path().join("a"), &options, || disk.done()).unwrap();
    let at = crashed.path().join("state");
    let crash = simulate::Crash { random: 5, seed: 1, every: 1 };
    let outcome = crash.run(&disk, &at, &states(), &mut |at| look(&at.join("a"))).unwrap();
    assert!(outcome.lost.len() > 10, "{outcome:?}");
}

/// A file with a journal, as a crash in the middle of a commit leaves them: pages 0 and 2 are as they were, 1 is new.
fn interrupted(folder: &Path) -> PathBuf {
    let (path, aside) = (folder.join("a"), folder.join("aside"));
    let file = WriteFile::create(&path, &options()).unwrap();
    put(&file, 1, 20_000).unwrap();
    file.commit().unwrap();
    drop(file);
    fs::copy(&path, &aside).unwrap();
    // The disk fails when the pages are changed, and for good.
    for at in 0..100 {
        fs::copy(&aside, &path).unwrap();
        let disk = simulate::Recording::new(folder).unwrap();
        let disk = disk.with_fault(simulate::Fault { at, error: 5, stays: true });
        let file = WriteFile::edit(&path, &options().with_disk(Arc::new(disk))).unwrap();
        let wrote = (|| {
            file.write_at(4096, &[9; 4096])?;
            file.write_at(8, &2u64.to_le_bytes())?;
            file.write_at(9000, &[9; 10])?;
            file.write_at(20_000, &[9; 1000])
        })();
        wrote.unwrap();
        let error = file.commit().unwrap_err();
        drop(file);
        if fs::read(&path).unwrap()[..20_000] != fs::read(&aside).unwrap()[..] {
            assert!(error.to_string().contains("brought back by its next opener"), "{error}");
            fs::remove_file(&aside).unwrap();
            return path;
        }
        let _ = fs::remove_file(journal::path_of(&path));
    }
    panic!("the file was never changed");
}

#[test]
fn the_next_opener_brings_the_file_back() {
    let limits = Limits::default();
    let folder = tempfile::tempdir().unwrap();
    let path = interrupted(folder.path());
    let torn = fs::read(&path).unwrap();
    let journal = fs::read(journal::path_of(&path)).unwrap();
    let state = journal_state(&path, &limits).unwrap().unwrap();
    assert!(state.fault.is_none() && state.bytes > 4096, "{state:?}");
    // Somebody who must not write sees the old bytes.
    let source = open_recovered(&path, &limits, Recovery::LookThrough).unwrap();
    let bytes = source.read(&[crate::source::ByteRange::new(0, 20_000)]).unwrap().remove(0);
    assert_eq!(source.len().unwrap(), 20_000);
    for (at, length) in [(0, 1), (4095, 2), (5000, 9000), (16, 19_984)] {
        let range = crate::source::ByteRange::new(at, length);
        let part = source.read(&[range]).unwrap().remove(0);
        assert_eq!(part, bytes[at as usize..(at + length) as usize]);
    }
    assert!(source.read_into(19_999, &mut [0; 2]).is_err());
    assert_eq!(fs::read(&path).unwrap(), torn);
    drop(source);
    // While its writer is there nobody touches it.
    let holder = fs::File::open(&path).unwrap();
    holder.try_lock().unwrap();
    assert_eq!(recover(&path, &options()).unwrap_err().kind(), ErrorKind::Permission);
    drop(holder);
    assert_eq!(look(&path), "1 of 20000");
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(names(folder.path()), ["a"]);
    assert!(!recover(&path, &options()).unwrap());
    // A crash while it is brought back, at any moment.
    fs::write(&path, &torn).unwrap();
    fs::write(journal::path_of(&path), &journal).unwrap();
    let crashed = tempfile::tempdir().unwrap();
    let disk = simulate::Recording::new(folder.path()).unwrap();
    assert!(recover(&path, &options().with_disk(Arc::new(disk.clone()))).unwrap());
    disk.done();
    let (crash, same) =
        (simulate::Crash { random: 50, seed: 3, every: 1 }, ["1 of 20000".into(), "1 of 20000".into()]);
    let at = crashed.path().join("state");
    let outcome = crash.run(&disk, &at, &same, &mut |at| look(&at.join("a"))).unwrap();
    assert!(outcome.lost.is_empty() && outcome.states >= 10, "{outcome:#?}");
}

/// A journal from anywhere else never changes a file.
#[test]
fn a_journal_is_used_for_its_own_file_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = interrupted(folder.path());
    let (torn, journal) = (fs::read(&path).unwrap(), fs::read(journal::path_of(&path)).unwrap());
    let attempt = |file: &[u8], journal: &[u8]| {
        fs::write(&path, file).unwrap();
        fs::write(journal::path_of(&path), journal).unwrap();
        let done = recover(&path, &options());
        (done, fs::read(&path).unwrap())
    };
    let old = attempt(&torn, &journal).1;
    assert_eq!(old.len(), 20_000);
    // Changed since by another program, within a page that the journal names.
    for at in [0, 9, 600, 4096, 8191, 9005] {
        let mut other = torn.clone();
        other[at] ^= 0x55;
        let (done, now) = attempt(&other, &journal);
        let error = done.unwrap_err();
        assert!(error.kind() == ErrorKind::Changed && now == other, "{at}: {error}");
        assert!(journal_state(&path, &Limits::default()).unwrap().unwrap().fault.is_some());
        let seen = open_recovered(&path, &Limits::default(), Recovery::LookThrough).unwrap_err();
        assert_eq!(seen.kind(), ErrorKind::Changed, "{seen}");
    }
    // Other files: shorter, longer, of other content.
    let longer = [&torn[..], &[1; 5000]].concat();
    for other in [&torn[..19_999], &longer, &[7; 20_000], b""] {
        let (done, now) = attempt(other, &journal);
        assert!(done.unwrap_err().kind() == ErrorKind::Changed && now == other);
    }
    // Every cut and every changed byte of the journal: the file is brought back, or not touched.
    for end in 0..journal.len() {
        if end % 97 == 0 || journal.len() - end < 3 {
            let (done, now) = attempt(&torn, &journal[..end]);
            assert!(!done.unwrap() && now == torn, "{end}");
        }
    }
    for at in (0..64 + 24 + 48 * 3).chain((300..journal.len()).step_by(89)) {
        let mut hurt = journal.clone();
        hurt[at] ^= 0x10;
        let (_, now) = attempt(&torn, &hurt);
        assert!(now == torn || now == old, "{at}");
    }
    #[cfg(unix)]
    {
        let aside = folder.path().join("aside");
        fs::write(&aside, &journal).unwrap();
        fs::write(&path, &torn).unwrap();
        let _ = fs::remove_file(journal::path_of(&path));
        std::os::unix::fs::symlink(&aside, journal::path_of(&path)).unwrap();
        assert_eq!(recover(&path, &options()).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(fs::read(&path).unwrap(), torn);
    }
}

/// A disk that is full or broken at any call, once or for good.
#[test]
fn a_failing_disk_leaves_the_old_or_the_new_state() {
    let states = states();
    for memory in [0, 64 << 20] {
        let mut at = 0;
        loop {
            let mut failed = false;
            for (error, stays) in [(28, false), (5, false), (28, true), (5, true)] {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("a");
                let disk = simulate::Recording::new(folder.path()).unwrap();
                let disk = disk.with_fault(simulate::Fault { at, error, stays });
                let options = options().with_memory(memory).with_disk(Arc::new(disk.clone()));
                let mut done = 0;
                let whole = commits(&path, &options, || done += 1).is_ok();
                failed |= disk.calls() > at;
                let found = look(&path);
                let now = found == states[done] || (!whole && found == states[(done + 1).min(5)]);
                assert!(now, "call {at}, error {error}, {stays}: {done} commits, {found}");
                if !stays && names(folder.path()).len() > 1 {
                    // Only a name that could not be removed may be left.
                    assert!(
                        names(folder.path()).iter().any(|n| n.starts_with(".a.hyperslab-unfinished-")),
                        "{at}"
                    );
                }
            }
            if !failed {
                break;
            }
            at += 1;
        }
        assert!(at > 30, "{at} calls");
    }
}

/// What a killed program began is named, and goes with the next file of its name; what is being made stays.
#[test]
fn leftovers_go_with_the_next_file_of_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let long = folder.path().join("ä".repeat(120));
    for path in [&path, &long] {
        let alive = WriteFile::create(path, &options()).unwrap();
        let name = names(folder.path()).into_iter().find(|n| n.contains("-unfinished-")).unwrap();
        let dead = folder.path().join(name.rsplit_once('-').unwrap().0.to_owned() + "-77");
        std::fs::write(&dead, b"half").unwrap();
        let dead_folder = dead.with_file_name(name.rsplit_once('-').unwrap().0.to_owned() + "-78");
        std::fs::create_dir_all(dead_folder.join("c")).unwrap();
        assert_eq!(leftovers(path), [dead, dead_folder]);
        let next = WriteFile::create(path, &options()).unwrap();
        assert!(leftovers(path).is_empty());
        next.commit().unwrap();
        drop((alive, next));
        assert!(names(folder.path()).iter().all(|n| !n.contains("-unfinished-")));
    }
    // Without locks of the file, nobody takes one for a leftover, and the lock goes in the end.
    let unlocked = options().with_locking(Locking::Never);
    let alive = WriteFile::create(folder.path().join("b"), &unlocked).unwrap();
    assert!(leftovers(&folder.path().join("b")).is_empty());
    alive.commit().unwrap();
    assert!(fs::File::open(folder.path().join("b")).unwrap().try_lock().is_ok());
}
