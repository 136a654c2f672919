//! The commands that write.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hyperslab")).args(arguments).output().expect("the program starts")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn code(arguments: &[&str]) -> Option<i32> {
    run(arguments).status.code()
}

/// A classic file of netCDF with the variable `a` of 0 to 5 along `x`.
fn classic(path: &Path) {
    let mut bytes = b"CDF\x01".to_vec();
    let mut word = |n: u32| bytes.extend_from_slice(&n.to_be_bytes());
    // No records; one dimension `x` of 6; no attributes; one variable.
    for n in
        [0, 10, 1, 1, u32::from_be_bytes(*b"x\0\0\0"), 6, 0, 0, 11, 1, 1, u32::from_be_bytes(*b"a\0\0\0")]
    {
        word(n);
    }
    // Of one dimension, the first; no attributes; int; its bytes, and where they begin.
    for n in [1, 0, 0, 0, 4, 24, 80] {
        word(n);
    }
    bytes.extend((0..6u32).flat_map(u32::to_be_bytes));
    std::fs::write(path, bytes).expect("a file");
}

#[test]
fn files_are_copied_compared_and_edited() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    classic(Path::new(&at("a.nc")));
    let (source, zarr) = (at("a.nc"), at("a.zarr"));
    let output = run(&["copy", &source, &zarr, "--chunks", "x=4", "--codec", "zlib=1"]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(code(&["diff", &source, &zarr]), Some(0));
    // Not overwritten, unless that is said.
    assert_eq!(code(&["copy", &source, &zarr]), Some(2));
    assert_eq!(code(&["copy", &source, &zarr, "--overwrite", "--to", "zarr2"]), Some(0));
    assert_eq!(code(&["copy", &source, &at("b.zarr"), "--dry-run"]), Some(0));
    // What is asked for and is not there is named, and nothing is written.
    for wrong in [
        ["--chunks", "nosuch=4"],
        ["--chunks", "9=4"],
        ["--only", "nosuch"],
        ["--codec", "zlob"],
        ["--to", "zarr9"],
    ] {
        let target = at("b.zarr");
        let output = run(&[&["copy", &source, &target][..], &wrong[..]].concat());
        let value = wrong[1].split('=').next().unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(value), "{wrong:?}: {output:?}");
        assert!(!Path::new(&at("b.zarr")).exists(), "{wrong:?}");
    }
    assert_eq!(code(&["copy", &source, &at("b.nc"), "--to", "netcdf3", "--codec", "zlib"]), Some(2));
    assert_eq!(code(&["copy", &source, &at("b.h5"), "--to", "hdf5", "--shards", "auto"]), Some(2));
    // A folder of something else stays.
    std::fs::create_dir(at("mine")).unwrap();
    std::fs::write(at("mine/letter"), "dear").unwrap();
    assert_eq!(code(&["copy", &source, &at("mine"), "--to", "zarr3", "--overwrite"]), Some(2));
    assert_eq!(std::fs::read(at("mine/letter")).unwrap(), b"dear");
    assert_eq!(code(&["copy", "--repack", &zarr, &at("c.zarr")]), Some(0));
    assert_eq!(code(&["diff", &zarr, &at("c.zarr")]), Some(0));
    assert!(!Path::new(&at("b.zarr")).exists());

    let array = format!("{zarr}::/a");
    let get = |what: &str| text(&run(&["get", &format!("{array}{what}"), "--format", "json"]));
    assert_eq!(code(&["set", &format!("{array}[1:3]=[7, -8]")]), Some(0));
    assert_eq!(code(&["set", &format!("{array}[2] = -8")]), Some(0), "blanks around the sign");
    assert_eq!(get("").trim(), "[0,7,-8,3,4,5]");
    assert_eq!(code(&["diff", &source, &zarr]), Some(1));
    assert_eq!(code(&["attr", &array, "units", "m"]), Some(0));
    assert!(text(&run(&["info", &array])).contains("units"));
    assert_eq!(code(&["attr", &array, "units", "--delete"]), Some(0));
    assert!(!text(&run(&["info", &array])).contains("units"));
    assert_eq!(code(&["resize", &array, "3"]), Some(0));
    let mut append = Command::new(env!("CARGO_BIN_EXE_hyperslab"));
    let mut child =
        append.args(["append", &array]).stdin(Stdio::piped()).spawn().expect("the program starts");
    let rows = [9i32, 10].map(i32::to_ne_bytes).concat();
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), &rows).expect("rows");
    assert!(child.wait().expect("an end").success());
    assert_eq!(get("").trim(), "[0,7,-8,9,10]");
    assert_eq!(code(&["mv", &array, "/b"]), Some(0));
    assert_eq!(code(&["rm", &format!("{zarr}::/b")]), Some(0));
    assert_eq!(code(&["rm", &format!("{zarr}::/b")]), Some(2));
    // What is wrong is said, and nothing is changed.
    assert_eq!(code(&["set", "nothing"]), Some(2));
}

fn run_with(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hyperslab"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), input).expect("it reads");
    child.wait_with_output().expect("it ends")
}

/// What the edits say and do, the same in every format.
#[test]
fn values_of_every_kind_are_set_and_appended() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let cdl = "netcdf a { dimensions: t = UNLIMITED ; x = 3 ; variables: short v(t, x) ; float f(x) ; byte b(x) ; char c(x) ;
        double scalar ; STRINGS data: v = 1, 2, 3, 4, 5, 6 ; f = 1, 2, 3 ; b = 1, 2, 3 ; c = \"xyz\" ; scalar = 5 ; MORE }";
    for kind in ["hdf5", "netcdf4", "netcdf3", "cdf5", "zarr2", "zarr3", "nczarr"] {
        let strings = !["netcdf3", "cdf5", "nczarr"].contains(&kind);
        let (declared, given) =
            if strings { ("string s(x) ;", "s = \"a\", \"b\", \"c\" ;") } else { ("", "") };
        std::fs::write(at("a.cdl"), cdl.replace("STRINGS", declared).replace("MORE", given)).expect("a file");
        let file = at(&format!("a.{kind}"));
        let made = run(&["create", &at("a.cdl"), "-o", &file, "--kind", kind]);
        assert!(made.status.success(), "{kind}: {}", text(&made));
        let set = |what: &str| {
            let output = run(&["set", &format!("{file}::/{what}")]);
            (output.status.code(), text(&output))
        };
        let get = |what: &str| {
            text(&run(&["get", &format!("{file}::/{what}"), "--format", "json"])).trim().to_owned()
        };
        for done in [
            "v[0, :2]=[7, 8]",
            "v[-1, -1]=-9",
            "f[1]=NaN",
            "f[[0, 2]]=[\"-Infinity\", 2.5]",
            "b[0]=true",
            "c=\"ab\"",
            "scalar=2.5",
        ] {
            assert_eq!(set(done), (Some(0), String::new()), "{kind}: {done}");
        }
        assert_eq!(get("v"), "[[7,8,3],[4,5,-9]]", "{kind}");
        assert_eq!(get("f"), "[\"-Infinity\",\"NaN\",2.5]", "{kind}");
        assert_eq!((get("b"), get("scalar").trim_matches(['[', ']'])), ("[1,2,3]".into(), "2.5"), "{kind}");
        assert_eq!(get("c"), "[\"a\",\"b\",\"\"]", "{kind}");
        for (wrong, said) in [
            ("b[0]=300", "300 does not fit i8"),
            ("b=[1, 2, -129]", "-129, element 2 of the values, does not fit"),
            ("v[0]=NaN", "NaN does not fit"),
            ("v[0, 0]=18446744073709551616", "64 bits"),
            ("b[0]=hello", "text cannot be written"),
            ("v[0]=[1, 2]", "shape [2]"),
            ("v[0]=[1, null, 2]", "neither all numbers nor all texts"),
            ("v[0]=[[1], [2, 3]]", "differ in length"),
            ("v[9]=1", "outside of axis 0"),
            ("c=\"abcd\"", "does not fit"),
            ("nope=1", "no nope"),
        ] {
            let (code, words) = set(wrong);
            assert!(code == Some(2) && words.contains(said), "{kind}: {wrong}: {words}");
        }
        assert_eq!(get("v"), "[[7,8,3],[4,5,-9]]", "{kind}: errors change nothing");
        if strings {
            assert_eq!(set("s[0]=5").0, Some(0));
            assert_eq!(set("s[1:]=[\"new text\", \"\"]").0, Some(0));
            assert_eq!(get("s"), "[\"5\",\"new text\",\"\"]", "{kind}");
        }
        // What `get` writes, `append` reads, whatever the byte order of the file.
        let rows = run(&["get", &format!("{file}::/v"), "--format", "raw"]).stdout;
        assert_eq!(rows[..2], 7i16.to_le_bytes());
        let append = |arguments: &[&str], input: &[u8]| {
            let output = run_with(&[&["append"], arguments].concat(), input);
            (output.status.code(), text(&output))
        };
        let v = format!("{file}::/v");
        assert_eq!(append(&[&v], &rows), (Some(0), String::new()), "{kind}");
        assert_eq!(
            append(&[&v, "--format", "json"], b"[[10, 11, 12]]\n"),
            (Some(0), String::new()),
            "{kind}"
        );
        assert_eq!(
            append(&[&v, "-f", "json"], b"[13, 14, 15]\n[16, 17, 18]\n"),
            (Some(0), String::new()),
            "{kind}"
        );
        assert_eq!(append(&[&v], b""), (Some(0), String::new()), "{kind}");
        let all = "[[7,8,3],[4,5,-9],[7,8,3],[4,5,-9],[10,11,12],[13,14,15],[16,17,18]]";
        assert_eq!(get("v"), all, "{kind}");
        for (arguments, input, said) in [
            (vec![v.as_str()], &rows[..7], "7 bytes are no rows of /v, which have 6 bytes each"),
            (vec![&v, "-f", "json"], b"[1, 2]", "each row needs as many elements"),
            (vec![&v, "-f", "json"], b"[1, 2, 40000]", "40000, element 2 of the values, does not fit"),
            (vec![&v, "-f", "json"], b"[1, 2, 3\n", "line 1"),
        ] {
            let (code, words) = append(&arguments, input);
            assert!(code == Some(2) && words.contains(said), "{kind}: {arguments:?}: {words}");
        }
        assert_eq!(get("v"), all, "{kind}");
        if kind == "zarr3" {
            let s = format!("{file}::/s");
            assert!(append(&[&s], b"abc").1.contains("--format json"));
            assert_eq!(append(&[&s, "-f", "json"], b"[\"last\"]").0, Some(0));
            assert_eq!(get("s[-1]"), "\"last\"");
        }
        let attr = |value: &str| run(&["attr", &v, "big", value]).status.code();
        assert_eq!(attr("18446744073709551616"), Some(2), "{kind}");
        if kind != "netcdf3" {
            assert_eq!(attr("18446744073709551615"), Some(0), "{kind}");
            assert!(
                text(&run(&["info", &v])).contains("18446744073709551615"),
                "{kind}: {}",
                text(&run(&["info", &v]))
            );
        }
    }
}
