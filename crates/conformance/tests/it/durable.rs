//! Nothing that was written is lost: crashes, kills, full disks, and other programs at the same file.

use conformance::crash::{
    SCENARIOS, array, commit_file, commit_of, contents, dimension, faults, kills, options, put, recoveries,
    scratch, simulate,
};
use conformance::{history, reference, tool};
use hyperslab::format::netcdf3::header::Type;
use hyperslab::format::netcdf3::{self, Version};
use hyperslab::model::write::HierarchyWriter;
use hyperslab::source::write::simulate::{Crash, Fault, Recording};
use hyperslab::{ErrorKind, Limits};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// The program that writes for ever, built beside this one.
fn writer() -> PathBuf {
    let program = tool::path().with_file_name("crash");
    assert!(program.exists(), "{} is not there: build it first, or use scripts/test", program.display());
    program
}

#[test]
fn every_state_after_a_crash_opens_as_the_old_or_the_new_one() {
    for scenario in SCENARIOS {
        // Those with many calls not after each of them.
        let every = match scenario.name {
            "copies over a folder" => 19,
            "zarr2" | "zarr3" | "nczarr" | "netcdf3, more pages than memory" => 7,
            _ => 1,
        };
        let outcome = simulate(scenario, Crash { random: 1, seed: 11, every }).expect("the scenario runs");
        println!("{}: {} states, {} old, {} new", scenario.name, outcome.states, outcome.old, outcome.new);
        assert!(
            outcome.lost.is_empty(),
            "{}: {:#?}",
            scenario.name,
            &outcome.lost[..outcome.lost.len().min(10)]
        );
        assert!(outcome.states > 10 && outcome.new > 0, "{}: {outcome:?}", scenario.name);
    }
}

#[test]
fn what_brings_a_file_back_may_break_off_too() {
    let mut states = 0;
    for scenario in SCENARIOS {
        let outcome =
            recoveries(scenario, 97, Crash { random: 1, seed: 5, every: 1 }).expect("the scenario runs");
        assert!(outcome.lost.is_empty(), "{}: {:#?}", scenario.name, outcome.lost);
        states += outcome.states;
    }
    assert!(states > 100, "{states} states");
}

#[test]
fn random_edits_are_as_in_a_model_and_as_others_read_them() {
    let folder = scratch("histories");
    for kind in history::KINDS {
        println!("{}: {}", kind.name, history::run(kind, 120, 3, &folder, 30).expect(kind.name));
    }
    let script = tool::root().join("crates/conformance/python/histories.py");
    let output = Command::new(reference::python()).arg(script).arg(&folder).output().expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn a_disk_that_fails_leaves_the_old_or_the_new_contents() {
    for scenario in SCENARIOS {
        let (count, wrong) = faults(scenario, 83).expect("the scenario runs");
        assert!(wrong.is_empty() && count > 2, "{count}: {wrong:#?}");
    }
}

#[test]
fn a_writer_that_is_killed_loses_nothing_that_it_was_told_is_done() {
    let (_, wrong) = kills(&writer(), 20, 5);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Runs a shell script that starts the writer as `$WRITER`, and gives the last number that it said.
fn limited(script: &str, file: &Path) -> i32 {
    let output = Command::new("sh")
        .args(["-c", script])
        .env("WRITER", writer())
        .env("FILE", file)
        .output()
        .expect("a shell starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = said.lines().filter_map(|line| line.parse().ok()).next_back();
    told.unwrap_or_else(|| panic!("nothing was written: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn a_file_that_may_not_grow_is_as_it_was() {
    let folder = scratch("limited");
    // A signal ends the program; where it is ignored, the write fails.
    for (name, script) in [
        ("killed.nc", "ulimit -f 70; exec $WRITER --write $FILE --edit"),
        ("failed.nc", "trap '' XFSZ; ulimit -f 70; exec $WRITER --write $FILE --edit"),
    ] {
        let file = folder.join(name);
        let told = limited(script, &file);
        let found = commit_of(&file).expect("the file is whole");
        assert!(found == told && told > 100, "{name}: {told} was said, {found} is there");
        assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 1, "{name}");
        std::fs::remove_file(file).expect("the file is removed");
    }
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn a_full_disk_leaves_the_file_as_it_was() {
    let folder = scratch("full");
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "none"]).arg(&folder).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        eprintln!("no small file system can be mounted here: the test of a full disk is left out");
        return;
    }
    for how in ["--edit", "--anew"] {
        let file = folder.join("a.nc");
        let told = limited(&format!("exec $WRITER --write $FILE {how}"), &file);
        let found = commit_of(&file);
        let left = std::fs::read_dir(&folder).expect("a folder").count();
        let removed = std::fs::remove_file(&file);
        if (found.clone(), left) != (Ok(told), 1) || removed.is_err() {
            let _ = Command::new("umount").arg(&folder).output();
            panic!("{how}: {told} was said, {found:?} is there, and {left} files");
        }
    }
    let done = Command::new("umount").arg(&folder).output().expect("umount starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let _ = std::fs::remove_dir_all(folder);
}

/// Every command that writes, on a disk without room: it says so and what to do, and all is as it was; with room it works.
#[test]
fn commands_on_a_full_disk_change_nothing() {
    let folder = scratch("verbs");
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(&folder).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        eprintln!("no small file system can be mounted here: the test of a full disk is left out");
        return;
    }
    let wrong = full_disk(&folder);
    let done = Command::new("umount").arg(&folder).output().expect("umount starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let _ = std::fs::remove_dir_all(folder);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn full_disk(folder: &Path) -> Vec<String> {
    let elsewhere = scratch("verbs-sources");
    let (source, cdl, rows) = (elsewhere.join("s.nc"), elsewhere.join("s.cdl"), elsewhere.join("rows"));
    commit_file(&source, 20_000).expect("a file");
    std::fs::write(&cdl, "netcdf s { dimensions: x = 9000; variables: int a(x); :t = \"t\"; }")
        .expect("a text");
    std::fs::write(&rows, vec![1; 40_000]).expect("rows");
    let mut wrong = Vec::new();
    for name in ["a.h5", "a.nc3", "a.zarr", "v.h5"] {
        let file = folder.join(name);
        let at = file.to_str().expect("text");
        commit_file(&file, 3000).expect("a file");
        let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let mut commands: Vec<Vec<String>> = Vec::new();
        if name == "v.h5" {
            let plain = elsewhere.join("s.h5");
            commit_file(&plain, 20_000).expect("a file");
            let from = ["commit", at, "one", "--from", plain.to_str().expect("text")];
            tool::ask(&from).expect("a version");
            commands.push(words(&["commit", at, "two", "--set", "a[:] = 4"]));
        } else {
            commands.push(words(&["set", &format!("{at}::/a[:] = 5")]));
            commands.push(words(&["attr", &format!("{at}::/a"), "text", &"long ".repeat(2000)]));
            commands.push(words(&["append", &format!("{at}::/r")]));
            commands.push(words(&["resize", &format!("{at}::/r"), "9000"]));
            commands.push(words(&["mv", &format!("{at}::/a"), "/b"]));
            commands.push(words(&["rm", &format!("{at}::/b")]));
            commands.push(words(&["copy", source.to_str().expect("text"), at, "--overwrite"]));
            commands.push(words(&["create", cdl.to_str().expect("text"), "-o", at, "--overwrite"]));
            let out = folder.join(format!("{name}.npy"));
            let from = format!("{}::/a", source.display());
            commands.push(words(&["get", &from, "-o", out.to_str().expect("text")]));
        }
        for command in commands {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            let run = || {
                let mut child = Command::new(tool::path());
                child.args(&words).stdin(std::fs::File::open(&rows).expect("rows"));
                child.output().expect("the program starts")
            };
            let (before, names) = (contents(&file), std::fs::read_dir(folder).expect("a folder").count());
            let ballast = folder.join("ballast");
            let mut full = std::fs::File::create(&ballast).expect("a file");
            while full.write_all(&[0; 4096]).is_ok() {}
            let output = run();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            drop(full);
            std::fs::remove_file(&ballast).expect("it is removed");
            if output.status.code() != Some(2) || !said.contains("No space left") {
                wrong.push(format!("{words:?}: {}: {said}", output.status));
            }
            if contents(&file) != before || std::fs::read_dir(folder).expect("a folder").count() != names {
                wrong.push(format!("{words:?}: something has changed, or is left"));
            }
            let output = run();
            if !output.status.success() {
                wrong.push(format!("{words:?}, with room: {}", String::from_utf8_lossy(&output.stderr)));
            }
        }
        let _ = std::fs::remove_file(&file);
        let _ = std::fs::remove_dir_all(&file);
    }
    let _ = std::fs::remove_dir_all(elsewhere);
    wrong
}

/// A Python program that has a file open until it is told to end.
struct Holder(Child);

impl Holder {
    fn new(open: &str, file: &Path) -> Holder {
        let script = format!("import sys\n{open}\nprint('ready', flush=True)\nsys.stdin.readline()\n");
        let mut child = Command::new(reference::python())
            .args(["-c", &script])
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("its output")).read_line(&mut line).expect("a line");
        assert_eq!(line.trim(), "ready", "{open}");
        Holder(child)
    }

    fn finish(mut self) {
        self.0.stdin.take().expect("its input").write_all(b"\n").expect("it listens");
        let _ = self.0.stdout.take().expect("its output").read_to_string(&mut String::new());
        assert!(self.0.wait().expect("it ends").success());
    }
}

/// A file that another program has open is refused before anything of it changes.
#[test]
fn a_file_that_is_open_elsewhere_keeps_its_bytes() {
    let folder = scratch("locked");
    for (name, make, open) in [
        (
            "h5py.h5",
            "import h5py; h5py.File(sys.argv[1], 'w').create_dataset('a', data=[1, 2, 3])",
            "import h5py; f = h5py.File(sys.argv[1], 'r+')",
        ),
        (
            "h5py-read.h5",
            "import h5py; h5py.File(sys.argv[1], 'w').create_dataset('a', data=[1, 2, 3])",
            "import h5py; f = h5py.File(sys.argv[1], 'r')",
        ),
        (
            "netcdf.nc",
            "import netCDF4; netCDF4.Dataset(sys.argv[1], 'w').createDimension('x', 3)",
            "import netCDF4; f = netCDF4.Dataset(sys.argv[1], 'a')",
        ),
    ] {
        let file = folder.join(name);
        Holder::new(make, &file).finish();
        let before = std::fs::read(&file).expect("the file is there");
        let holder = Holder::new(open, &file);
        let held = std::fs::read(&file).expect("the file is there");
        let over = options().with_overwrite(true);
        let create = netcdf3::write::create(&file, Version::Classic, &over).expect_err("it is locked");
        let edit = hyperslab::source::WriteFile::edit(&file, &over).expect_err("it is locked");
        for error in [&create, &edit] {
            assert_eq!(error.kind(), ErrorKind::Permission, "{name}: {error}");
            assert!(error.to_string().contains("locked by python"), "{name}: {error}");
        }
        assert_eq!(std::fs::read(&file).expect("the file is there"), held, "{name}");
        holder.finish();
        assert_eq!(std::fs::read(&file).expect("the file is there").len(), before.len(), "{name}");
        let writer = netcdf3::write::create(&file, Version::Classic, &over).expect("nobody has it");
        Box::new(writer).commit().expect("it is written");
    }
    // And the other way round: while we edit, h5py is refused.
    let file = folder.join("ours.h5");
    Holder::new("import h5py; h5py.File(sys.argv[1], 'w')['a'] = [1, 2]", &file).finish();
    let before = std::fs::read(&file).expect("the file is there");
    let edit = hyperslab::source::WriteFile::edit(&file, &options()).expect("nobody has it");
    let script =
        "import h5py, sys\ntry:\n    h5py.File(sys.argv[1], 'r+')\nexcept OSError as e:\n    print(e)";
    let output =
        Command::new(reference::python()).args(["-c", script]).arg(&file).output().expect("Python starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("lock"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    drop(edit);
    assert_eq!(std::fs::read(&file).expect("the file is there"), before);
    let _ = std::fs::remove_dir_all(folder);
}

/// The same for every command that writes, also where the lock is asked for by the environment: while h5py writes a file anew (the
/// second writer used to leave 0 bytes of it), while netCDF4 appends to it, and while we do.
#[test]
fn commands_refuse_a_file_that_is_open_elsewhere() {
    let folder = scratch("held");
    let (file, source) = (folder.join("a.h5"), folder.join("s.nc"));
    let at = file.to_str().expect("text");
    commit_file(&source, 100).expect("a file");
    let cdl = folder.join("s.cdl");
    std::fs::write(&cdl, "netcdf s { dimensions: x = 5; variables: int a(x); }").expect("a text");
    let array = format!("{at}::/a");
    let set = format!("{array}[0] = 1");
    let commands: &[&[&str]] = &[
        &["set", &set],
        &["attr", &array, "units", "K"],
        &["resize", &array, "2"],
        &["mv", &array, "/b"],
        &["rm", &array],
        &["append", &array],
        &["commit", at, "one", "--from", source.to_str().expect("text")],
        &["copy", source.to_str().expect("text"), at, "--overwrite"],
        &["create", cdl.to_str().expect("text"), "-o", at, "--overwrite"],
    ];
    let run = |words: &[&str], locking: &str| {
        let began = std::time::Instant::now();
        let mut command = Command::new(tool::path());
        command.args(words).stdin(Stdio::null()).env("HDF5_USE_FILE_LOCKING", locking);
        let output = command.output().expect("the program starts");
        assert!(began.elapsed().as_secs() < 9, "{words:?} took {:?}", began.elapsed());
        output
    };
    let mut holders = Vec::new();
    for open in [
        "import h5py; f = h5py.File(sys.argv[1], 'w'); f.create_dataset('a', (3,), 'i4', maxshape=(None,)); f.flush()",
        "import netCDF4; f = netCDF4.Dataset(sys.argv[1], 'w'); f.createDimension('x', 3); f.createVariable('a', 'i4', ('x',))
f.close(); f = netCDF4.Dataset(sys.argv[1], 'a')",
        "",
    ] {
        let own = match open {
            "" => Some(hyperslab::source::WriteFile::edit(&file, &options()).expect("nobody has it")),
            open => {
                holders.push(Holder::new(open, &file));
                None
            }
        };
        let before = std::fs::read(&file).expect("the file is there");
        assert!(!before.is_empty());
        for words in commands {
            for locking in ["TRUE", "BEST_EFFORT"] {
                let output = run(words, locking);
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
                assert!(said.contains("E_PERMISSION") && said.contains("is open and locked"), "{words:?}: {said}");
                assert_eq!(std::fs::read(&file).expect("the file is there"), before, "{words:?}");
            }
        }
        if own.is_some() {
            // Who says that there are no locks is believed.
            assert!(run(commands[1], "FALSE").status.success());
        }
        drop(own);
        holders.into_iter().for_each(Holder::finish);
        holders = Vec::new();
    }
    let names = std::fs::read_dir(&folder).expect("a folder").count();
    assert_eq!(names, 3, "something is left");
    let _ = std::fs::remove_dir_all(folder);
}

/// Of two edits of one Zarr hierarchy the second waits for the first.
#[test]
fn a_second_edit_of_a_store_waits() {
    let folder = scratch("waits");
    let file = folder.join("a.zarr");
    commit_file(&file, 100).expect("a file");
    let address = file.to_str().expect("text");
    let mut first =
        hyperslab::edit(address, &hyperslab::OpenOptions::default(), &options()).expect("nobody has it");
    first.set_attribute("/a", "n", 1).expect("an attribute");
    let second = Command::new(tool::path()).args(["attr", &format!("{address}::/a"), "m", "2"]).spawn();
    let mut second = second.expect("the program starts");
    std::thread::sleep(std::time::Duration::from_millis(700));
    assert!(second.try_wait().expect("it runs").is_none(), "the second did not wait");
    first.commit().expect("it is written");
    assert!(second.wait().expect("it ends").success());
    let array = hyperslab::open(address).and_then(|f| f.array("a")).expect("an array");
    assert!(array.attribute("n").is_ok() && array.attribute("m").is_ok());
    let _ = std::fs::remove_dir_all(folder);
}

/// An edit that stops in its commit, since the disk breaks for good; the file as it was before.
fn interrupted(file: &Path) -> Vec<u8> {
    let writer = netcdf3::write::create(file, Version::Classic, &options()).expect("a file");
    let mut writer: Box<dyn HierarchyWriter> = Box::new(writer);
    dimension(&mut *writer, "x", 5000, false).expect("a dimension");
    array(&mut *writer, "a", Type::Int, &[("x", 5000)]).expect("an array");
    writer.commit().expect("it is written");
    let before = std::fs::read(file).expect("the file is there");
    for at in 0..100 {
        std::fs::write(file, &before).expect("it is written");
        let disk = Recording::new(file.parent().expect("a folder")).expect("a folder");
        let disk = disk.with_fault(Fault { at, error: 5, stays: true });
        let options = options().with_disk(Arc::new(disk));
        let (_, mut writer) = netcdf3::write::edit(file, &options, &Limits::default()).expect("it opens");
        put(&mut writer, "a", &[7; 20_000]).expect("pages in memory");
        Box::new(writer).commit().expect_err("the disk is broken");
        if std::fs::read(file).expect("the file is there") != before {
            return before;
        }
        let _ = std::fs::remove_file(file.with_extension("nc.hyperslab-journal"));
    }
    panic!("the file was never changed");
}

/// `check` names an edit that was interrupted and leaves it; whatever opens the file brings it back.
#[test]
fn check_names_an_interrupted_edit() {
    let folder = scratch("check");
    let file = folder.join("a.nc");
    let before = interrupted(&file);
    let (name, torn) = (file.to_str().expect("text"), std::fs::read(&file).expect("the file is there"));
    let output = tool::run(&["check", name]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        said.contains("an edit was interrupted: ") && said.contains("a.nc.hyperslab-journal holds"),
        "{said}"
    );
    assert_eq!(std::fs::read(&file).expect("the file is there"), torn);
    tool::ask(&["ls", name]).expect("it is brought back");
    assert_eq!(std::fs::read(&file).expect("the file is there"), before);
    assert_eq!(tool::run(&["check", name]).status.code(), Some(0));
    let _ = std::fs::remove_dir_all(folder);
}

/// What `stat` says of the bytes of files of h5py and of our own adds up, and sees what was deleted.
#[test]
fn stat_tells_live_from_dead() {
    let folder = scratch("stat");
    let (file, small) = (folder.join("a.h5"), folder.join("b.nc"));
    let script = "import h5py, numpy as np
f = h5py.File(sys.argv[1], 'w')
f.create_dataset('kept', data=np.arange(6000, dtype='f8').reshape(60, 100), chunks=(20, 100))
f.create_dataset('gone', data=np.arange(50000, dtype='f8'), chunks=(1000,))
f.create_dataset('text', data=['some', 'words'], dtype=h5py.string_dtype())
f.flush()
del f['gone']
f.close()";
    Holder::new(script, &file).finish();
    let stat = |file: &Path| -> serde_json::Value {
        let text = tool::ask(&["stat", "--json", file.to_str().expect("text")]).expect("it is looked at");
        serde_json::from_slice(&text).expect("JSON")
    };
    let found = stat(&file);
    let number = |name: &str| found[name].as_u64().expect("a number");
    assert_eq!(number("bytes"), std::fs::metadata(&file).expect("the file is there").len());
    // 3 chunks of 16,000 bytes, and two references to texts.
    assert_eq!((number("live"), number("chunks")), (48_000 + 32, 4), "{found}");
    assert!((400_000..410_000).contains(&number("dead")), "{found}");
    assert!((1_000..20_000).contains(&number("metadata")), "{found}");
    assert_eq!(
        found["sizes"][1],
        serde_json::json!({"up_to": 16384, "chunks": 3, "bytes": 48000}),
        "{found}"
    );
    let mut w = netcdf3::write::create(&small, Version::Classic, &options()).expect("a file");
    dimension(&mut w, "x", 5000, false).expect("a dimension");
    array(&mut w, "a", Type::Int, &[("x", 5000)]).expect("an array");
    Box::new(w).commit().expect("it is written");
    let found = stat(&small);
    assert_eq!((found["live"].as_u64(), found["dead"].as_u64()), (Some(20_000), Some(0)), "{found}");
    let _ = std::fs::remove_dir_all(folder);
}
