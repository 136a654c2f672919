//! `create`: what `dump` prints makes the same file again, and `ncgen` makes the same file of it.

use crate::{report, shared};
use conformance::{reference, tool};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Files whose CDL does not say what is in them: the end of a path, and why.
const LOSES: [(&str, &str); 6] = [
    ("/cdl_files/names.nc", "names of members that ncdump does not escape"),
    ("/cdl_files/types.nc", "a member of an unsigned enumeration that ncdump prints as a negative number"),
    ("/test_gold.nc", "strings that are none, which become empty ones"),
    ("/bad_large_rec_2_vars.nc2", "a variable too large for its format"),
    ("/bad_large_rec_var.nc2", "a variable too large for its format"),
    ("/bad_compound.h5", "a compound without members"),
];

/// What a dump shows in front of its data.
fn dump(file: &Path, options: &[&str]) -> Output {
    Command::new(tool::path()).arg("dump").args(options).arg(file).output().expect("it starts")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A dump without the name of the file.
fn body(output: &Output) -> Vec<u8> {
    let start = output.stdout.iter().position(|&b| b == b'\n').unwrap_or(0);
    output.stdout[start..].to_vec()
}

fn create(cdl: &Path, out: &Path, kind: &str) -> Output {
    Command::new(tool::path())
        .args(["create", "--overwrite", "--kind", kind, "-o"])
        .arg(out)
        .arg(cdl)
        .output()
        .expect("it starts")
}

fn kind_of(file: &Path) -> Option<&'static str> {
    Some(match text(&dump(file, &["-k"])).trim() {
        "classic" => "netcdf3",
        "64-bit offset" => "cdf2",
        "cdf5" => "cdf5",
        "netCDF-4" => "netcdf4",
        // Says itself that it is to be classic, and prints texts otherwise.
        _ => return None,
    })
}

/// What is wrong with a file made of the dump of `file`; `None` for files that are passed over.
fn trip(file: &Path, scratch: &Path) -> Option<Result<(), String>> {
    let printed = dump(file, &[]);
    // What can't be shown whole can't be made again.
    if !printed.status.success() || !printed.stderr.is_empty() {
        return None;
    }
    let kind = kind_of(file)?;
    let (cdl, out) = (scratch.join("in.cdl"), scratch.join("out"));
    std::fs::write(&cdl, &printed.stdout).expect("it is written");
    let made = create(&cdl, &out, kind);
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr);
        // Names that are not UTF-8 and texts with NULs are no CDL.
        let excused = ["a name that is not UTF-8", "a string with a NUL"].iter().any(|e| said.contains(e));
        return (!excused).then(|| Err(said.into_owned()));
    }
    let again = dump(&out, &[]);
    Some(if body(&again) == body(&printed) { Ok(()) } else { Err("another dump".into()) })
}

fn round_trips(files: &[PathBuf], least: usize) {
    let (next, total, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                let scratch = tempfile::tempdir().expect("a folder");
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Some(done) = trip(file, scratch.path()) else { continue };
                    total.fetch_add(1, Ordering::Relaxed);
                    let known = LOSES.iter().any(|(end, _)| file.to_string_lossy().ends_with(end));
                    if let (Err(why), false) = (done, known) {
                        let text = format!("{}: {why}", file.display());
                        wrong.lock().expect("no thread panics").push(text);
                    }
                }
            });
        }
    });
    let total = total.into_inner();
    assert!(total >= least, "{total} round trips, {least} expected at least");
    report("round trips", total, &wrong.into_inner().expect("no thread panics"));
}

/// Regular files below some folders, not larger than `most` bytes.
fn files(folders: Vec<PathBuf>, most: u64) -> Vec<PathBuf> {
    let (mut found, mut todo) = (Vec::new(), folders);
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                todo.push(path);
            } else if entry.metadata().is_ok_and(|m| m.len() <= most) {
                let start = std::fs::read(&path).unwrap_or_default();
                if start.starts_with(b"CDF") || start.starts_with(b"\x89HDF") {
                    found.push(path);
                }
            }
        }
    }
    found.sort();
    found
}

#[test]
fn what_is_dumped_is_made_again() {
    let folders = vec![
        reference::generated("netcdf_view.py", &[]),
        reference::generated("cdl_files.py", &[]),
        tool::root().join("crates/hyperslab/tests/data"),
    ];
    round_trips(&files(folders, 1 << 20), 20);
}

#[test]
fn the_corpus_is_made_again() {
    let Some(corpus) = shared("corpus/files") else { return };
    round_trips(&files(vec![corpus], 200_000), 100);
}

/// Texts that `ncgen` 4.9.0 takes without dying, and the kind.
const TEXTS: [(&str, &str, &str); 6] = [
    (
        "netcdf3",
        "-3",
        "dimensions: t = UNLIMITED ; x = 3 ; n = 4 ; variables: float v(t, x) ; v:_FillValue = -1.f ; v:r = 0.f, 10.5f ;
         int s ; char name(x, n) ; double w(x) ; short u(t) ; :title = \"A title\", \" in two\" ; :n = 1, 2, 3 ;
         :b = 1b, 300s ; :m = 1, 2.5 ; :c = 'a', 'b' ;
         data: v = 1, 2, 3, 4, _, 6 ; s = 42 ; name = \"ab\", \"cdefgh\" ; w = 1 ; u = 1, 2 ;",
    ),
    ("cdf2", "-6", "dimensions: x = 2 ; variables: byte v(x) ; char c(x) ; data: v = 1, 'a' ; c = \"a\", \"b\" ;"),
    ("cdf5", "-5", "dimensions: x = 2 ; variables: uint64 v(x) ; ubyte u(x) ; data: v = 1, 18446744073709551615 ; u = 255 ;"),
    (
        "netcdf4",
        "-4",
        "dimensions: x = 3 ; t = UNLIMITED ; variables: int v(x, t) ; char c(x, t) ; string s(x) ;
         data: v = {1, 2}, {3} ; c = {\"abcd\", \"x\"}, {\"e\"} ; s = \"a\", \"b\\nc\", \"\" ;",
    ),
    (
        "netcdf4",
        "-4",
        "types: compound p { int a ; char n(4) ; int b(2, 2) ; } ; opaque(3) o ; dimensions: x = 2 ;
         variables: p v(x) ; o w(x) ;
         data: v = {1, {\"ab\"}, {1, 2, 3, 4}}, {2, {\"c\"}, {1, 2}} ; w = 0x010203, 0x01 ;",
    ),
    (
        "netcdf4",
        "-4",
        "dimensions: x = 8 ; variables: int v(x) ; v:_ChunkSizes = 4 ; v:_DeflateLevel = 3 ; v:_Shuffle = \"true\" ;
         v:_Endianness = \"big\" ; v:_Fletcher32 = \"true\" ; v:_FillValue = -1 ; v:_Storage = \"chunked\" ;
         data: v = 1, _, 3 ; group: g { variables: double w(x) ; w:units = \"m\" ; data: w = 1.5 ; }",
    ),
];

#[test]
fn ncgen_makes_the_same_of_it() {
    if Command::new("ncgen").output().is_err() {
        eprintln!("ncgen is not on this machine, nothing to compare");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let mut wrong = Vec::new();
    for (i, (kind, theirs, what)) in TEXTS.iter().enumerate() {
        let cdl = at(&format!("{i}.cdl"));
        std::fs::write(&cdl, format!("netcdf n {{ {what} }}")).expect("it is written");
        let (a, b) = (at(&format!("{i}.ours.nc")), at(&format!("{i}.theirs.nc")));
        let made = create(&cdl, &a, kind);
        assert!(made.status.success(), "{what}: {}", String::from_utf8_lossy(&made.stderr));
        let made = Command::new("ncgen").arg(theirs).arg("-o").arg(&b).arg(&cdl).output().expect("it starts");
        assert!(made.status.success(), "{what}: {}", String::from_utf8_lossy(&made.stderr));
        for options in [&["-n", "n"][..], &["-n", "n", "-k"]] {
            let shown = |file: &Path| {
                let output = Command::new("ncdump").args(options).arg(file).output().expect("it starts");
                assert!(output.status.success(), "ncdump of {}", file.display());
                text(&output)
            };
            if shown(&a) != shown(&b) {
                wrong.push(format!("{what}:\n{}\nncgen:\n{}", shown(&a), shown(&b)));
            }
        }
    }
    report("texts", TEXTS.len(), &wrong);
}

#[test]
fn what_is_there_is_not_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cdl, out) = (folder.path().join("a.cdl"), folder.path().join("a.nc"));
    std::fs::write(&cdl, "netcdf a { :a = 1 ; }").expect("it is written");
    std::fs::write(&out, "precious").expect("it is written");
    let run = |more: &[&str]| {
        Command::new(tool::path())
            .arg("create")
            .args(more)
            .arg(&cdl)
            .arg("-o")
            .arg(&out)
            .output()
            .expect("it starts")
    };
    let refused = run(&[]);
    assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
    assert_eq!(std::fs::read(&out).expect("it is there"), b"precious");
    assert!(run(&["--overwrite"]).status.success());
    assert_eq!(text(&dump(&out, &["-k"])).trim(), "classic");
    // A text that is wrong leaves nothing behind.
    std::fs::write(&cdl, "netcdf a { variables: byte v ; data: v = 300 ; }").expect("it is written");
    std::fs::remove_file(&out).expect("it goes");
    let refused = run(&[]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("line 1, column 42"));
    assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 1);
}
