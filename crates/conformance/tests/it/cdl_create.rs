//! `create`: what `dump` prints makes the same file again, and `ncgen` makes the same file of it.

use crate::judges::Judged;
use crate::{report, shared};
use conformance::{reference, tool};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Files whose CDL does not say what is in them: the end of a path, and why.
const LOSES: [(&str, &str); 5] = [
    ("/cdl_files/names.nc", "names of members that ncdump does not escape"),
    ("/cdl_files/types.nc", "a member of an unsigned enumeration that ncdump prints as a negative number"),
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
        "netCDF-4 classic model" => "netcdf4-classic",
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
const TEXTS: [(&str, &str, &str); 10] = [
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
    (
        "netcdf4",
        "-4",
        "types: compound p { int a ; char n(4) ; double b(2) ; } ; byte enum e {A = 1, B = 2} ; int(*) r ; opaque(3) o ; p(*) ps ;
         compound out { p i(2) ; r k ; string s ; } ; dimensions: x = 3 ;
         variables: p v(x) ; e w(x) ; w:_FillValue = B ; r q(x) ; o z(x) ; string s(x) ; out y ; ps m(x) ; p v:att = {1, {\"z\"}, {1, 2}} ;
         data: v = {1, {\"ab\"}, {1, 2}} ; w = A, _, B ; q = {1}, {}, {2, 3} ; z = 0x010203, 0x00, 0xAABB ; s = \"a\", \"\", \"b\" ;
         y = {{{1, {\"x\"}, {1, 2}}, {2, {\"y\"}, {3, 4}}}, {7, 8}, \"t\"} ; m = {{1, {\"a\"}, {1, 2}}}, {}, {} ;",
    ),
    (
        "netcdf4",
        "-4",
        "dimensions: t = UNLIMITED ; u = unlimited ; x = 2 ; variables: int a(t, u) ; float c(t, u, x) ; c:_ChunkSizes = 1, 2, 2 ;
         int b(x) ; b:_Storage = \"contiguous\" ; short d(x) ; d:_Endianness = \"big\" ; d:_NoFill = \"true\" ;
         data: a = {1, 2, 3}, {4} ; c = {1, 2, 3, 4}, {5, 6} ; b = 017, 31 ; d = 1, 2 ;
         group: g { types: opaque(4) o ; dimensions: y = 3 ; variables: /g/o a(x) ; int b(/x, y) ; :ga = 5 ; data: a = 0x01020304, 0xAABB ;
         group: h { variables: o z ; int q(y) ; data: z = 0xff ; q = 7, 8, 9 ; } }",
    ),
    (
        "netcdf4-classic",
        "-7",
        "dimensions: t = UNLIMITED ; x = 2 ; variables: double v(t, x) ; v:units = \"m\" ; char c(x) ; :h = 1s ;
         data: v = 1, 2, 3 ; c = \"ab\" ;",
    ),
    (
        "netcdf4",
        "-4",
        "dimensions: x = 4 ; variables: string s(x) ; string s:a = \"x\", NIL, \"\" ; data: s = \"a\", \"\", NIL, \"b\" ;",
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
        // ncdump cannot tell how CDF-5 is stored.
        let special = if *kind == "cdf5" { "-h" } else { "-s" };
        for options in [&["-n", "n"][..], &["-n", "n", "-k"], &["-n", "n", special]] {
            let shown = |file: &Path| {
                let output = Command::new("ncdump").args(options).arg(file).output().expect("it starts");
                assert!(output.status.success(), "ncdump of {}", file.display());
                // Extents of chunks are ours, and who made it is not said.
                let chosen = ["_ChunkSizes", "_NCProperties", "_SuperblockVersion"];
                let kept = |line: &&str| {
                    !kind.starts_with("netcdf4") || !chosen.iter().any(|name| line.contains(name))
                };
                text(&output).lines().filter(kept).map(|line| format!("{line}\n")).collect::<String>()
            };
            if shown(&a) != shown(&b) {
                wrong.push(format!("{what}:\n{}\nncgen:\n{}", shown(&a), shown(&b)));
            }
        }
    }
    report("texts", TEXTS.len(), &wrong);
}

/// Files of which ncgen makes something else: the end of a path, and why.
const NCGEN_ERRS: [(&str, &str); 7] = [
    ("/cdl_files/numbers.nc", "zero loses its sign"),
    ("/tfloat8.h5", "zero loses its sign"),
    ("/al_relax_HIST.nc", "zero loses its sign"),
    ("netcdf_handler/data/test.nc", "the largest number, printed rounded up, becomes infinite"),
    ("/every_number_NETCDF3_64BIT_DATA.nc", "int64 becomes int in CDF-5"),
    ("/cdf5_new_types.nc", "int64 becomes int in CDF-5"),
    ("/pnetcdf_cdf5_unsigned_int64.nc", "int64 becomes int in CDF-5"),
];

/// Lets ncgen and `create` make files of what ncdump prints of these, and judges compare the two.
fn made_twice(files: &[PathBuf], least: usize) {
    if Command::new("ncgen").output().is_err() {
        eprintln!("ncgen is not on this machine, nothing to compare");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (next, judged, wrong) = (AtomicUsize::new(0), Mutex::new(Judged::default()), Mutex::new(Vec::new()));
    let pair = |number: usize, file: &Path| {
        // It dies of some files, as ncgen does of some texts, and some would never end.
        let printed =
            Command::new("timeout").args(["5", "ncdump", "-n", "n"]).arg(file).output().expect("it starts");
        let kind = kind_of(file).filter(|_| printed.status.success())?;
        let at = |name: &str| folder.path().join(format!("{number}.{name}"));
        let (cdl, theirs, ours) = (at("cdl"), at("theirs.nc"), at("ours.nc"));
        std::fs::write(&cdl, &printed.stdout).expect("it is written");
        let flag = match kind {
            "netcdf3" => "-3",
            "cdf2" => "-6",
            "cdf5" => "-5",
            "netcdf4-classic" => "-7",
            _ => "-4",
        };
        let made = Command::new("timeout")
            .args(["20", "ncgen", flag, "-o"])
            .arg(&theirs)
            .arg(&cdl)
            .output()
            .expect("it starts");
        if !made.status.success() {
            return None;
        }
        let made = create(&cdl, &ours, kind);
        Some(match made.status.success() {
            true => Ok((ours, theirs)),
            false => Err(String::from_utf8_lossy(&made.stderr).into_owned()),
        })
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = files.get(number) else { return };
                    let name = file.display().to_string();
                    if NCGEN_ERRS.iter().any(|(end, _)| name.ends_with(end)) {
                        continue;
                    }
                    match pair(number, file) {
                        None => {}
                        Some(Ok((ours, theirs))) => {
                            judged.lock().expect("no thread panics").add_netcdf(name, &ours, &theirs);
                        }
                        Some(Err(why)) => {
                            wrong.lock().expect("no thread panics").push(format!("{name}: {why}"));
                        }
                    }
                }
            });
        }
    });
    let (judged, mut wrong) =
        (judged.into_inner().expect("no thread panics"), wrong.into_inner().expect("no thread panics"));
    assert!(judged.len() >= least, "{} files, {least} expected at least", judged.len());
    wrong.extend(judged.verdict(folder.path(), 1, &["ncdump", "netCDF4"]));
    report("files made twice", judged.len(), &wrong);
}

#[test]
fn ncgen_and_create_make_the_same_of_dumps() {
    let folders = vec![
        reference::generated("netcdf_view.py", &[]),
        reference::generated("cdl_files.py", &[]),
        tool::root().join("crates/hyperslab/tests/data"),
    ];
    made_twice(&files(folders, 1 << 20), 15);
}

#[test]
fn ncgen_and_create_make_the_same_of_the_corpus() {
    let Some(corpus) = shared("corpus/files") else { return };
    made_twice(&files(vec![corpus], 100_000), 50);
}

/// Times are written as texts and read again.
#[test]
fn what_is_dumped_with_times_is_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let (first, cdl, second) = (at("first.nc"), at("times.cdl"), at("second.nc"));
    let source = "netcdf n { dimensions: t = UNLIMITED ; n = 2 ; variables: double t(t) ; t:units = \"days since 1999-12-31\" ;
        t:calendar = \"noleap\" ; t:bounds = \"b\" ; double b(t, n) ; int s(t) ; s:units = \"seconds since 1970-01-01 00:00:00\" ;
        float m(t) ; m:units = \"months since 1900-1-1\" ; m:_FillValue = -9.f ; char c(n) ; c:units = \"days since 2000-01-01\" ;
        data: t = 0, 59.5, -1e5, 0.000001 ; b = 0, 1, 2, 3, 4.25 ; s = 0, 1700000001, -5 ; m = 13, _, 2.5 ; c = \"ab\" ; }";
    std::fs::write(&cdl, source).expect("it is written");
    for kind in ["netcdf3", "netcdf4", "zarr3"] {
        let made = create(&cdl, &first, kind);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        for flag in ["-t", "-i"] {
            let printed = dump(&first, &[flag]);
            assert!(line_of(&printed, " t = ").contains("2000-02-28"), "{}", text(&printed));
            let again = at("again.cdl");
            std::fs::write(&again, &printed.stdout).expect("it is written");
            let made = create(&again, &second, kind);
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            assert_eq!(body(&dump(&second, &[flag])), body(&printed));
            assert_eq!(body(&dump(&second, &[])), body(&dump(&first, &[])), "{kind} {flag}");
        }
        let _ = std::fs::remove_dir_all(&first);
        let _ = std::fs::remove_dir_all(&second);
    }
    std::fs::write(
        &cdl,
        "netcdf n { variables: int v ; v:units = \"days since 2000-01-01\" ; data: v = \"2000-01-01 12\" ; }",
    )
    .expect("it is written");
    let refused = create(&cdl, &first, "netcdf4");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("0.5 is no integer"), "{refused:?}");
}

fn line_of(output: &Output, start: &str) -> String {
    text(output).lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned()
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
