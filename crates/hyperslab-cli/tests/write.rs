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
    let rows = [9i32, 10].map(i32::to_be_bytes).concat();
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), &rows).expect("rows");
    assert!(child.wait().expect("an end").success());
    assert_eq!(get("").trim(), "[0,7,-8,9,10]");
    assert_eq!(code(&["mv", &array, "/b"]), Some(0));
    assert_eq!(code(&["rm", &format!("{zarr}::/b")]), Some(0));
    assert_eq!(code(&["rm", &format!("{zarr}::/b")]), Some(2));
    // What is wrong is said, and nothing is changed.
    assert_eq!(code(&["set", "nothing"]), Some(2));
}
