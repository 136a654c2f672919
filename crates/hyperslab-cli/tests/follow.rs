//! `follow` as a program: what it prints, what it says, and how it ends.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hyperslab"));
    command.env_remove("NO_COLOR").arg("follow").args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    program(arguments).output().unwrap()
}

/// What was printed and said, and the exit code.
fn texts(output: Output) -> (String, String, i32) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

/// Writes a Zarr array of `width` numbers a row, in chunks of two rows, so that number `n` is `first + n`. Of the last chunk
/// numbers behind `written` are not written.
fn array(folder: &Path, rows: u64, width: u64, first: i32, written: usize) {
    std::fs::create_dir_all(folder).unwrap();
    let count = i32::try_from(rows.div_ceil(2) * 2 * width).unwrap();
    let mut numbers: Vec<i32> = (first..first + count).collect();
    numbers.iter_mut().skip(written).for_each(|n| *n = 0);
    for (i, chunk) in numbers.chunks((2 * width) as usize).enumerate() {
        let bytes: Vec<u8> = chunk.iter().flat_map(|n| n.to_le_bytes()).collect();
        let name = if width > 1 { format!("{i}.0") } else { i.to_string() };
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    let (shape, chunks) = if width > 1 {
        (format!("{rows},{width}"), format!("2,{width}"))
    } else {
        (rows.to_string(), "2".into())
    };
    let document = format!(
        r#"{{"zarr_format":2,"shape":[{shape}],"chunks":[{chunks}],"dtype":"<i4","fill_value":0,"compressor":null,"filters":null,"order":"C"}}"#
    );
    // As a writer does it: all at once.
    std::fs::write(folder.join("new"), document).unwrap();
    std::fs::rename(folder.join("new"), folder.join(".zarray")).unwrap();
}

/// A store with two arrays: `a` of eight rows of one number, `b` of six rows of two.
fn two(folder: &Path) -> String {
    std::fs::write(folder.join(".zgroup"), "{\"zarr_format\":2}").unwrap();
    array(&folder.join("a"), 8, 1, 1, 8);
    array(&folder.join("b"), 6, 2, 10, 12);
    folder.display().to_string()
}

#[test]
fn several_datasets_are_printed_side_by_side_in_each_format() {
    let folder = tempfile::tempdir().unwrap();
    let store = two(folder.path());
    let follow = |format: &str| {
        let (out, said, code) =
            texts(run(&[&store, "-d", "a", "-d", "/b", "--from", "2", "--rows", "3", "--format", format]));
        assert!(
            code == 0 && said.starts_with("3 rows, 1 more not asked for, 0 retries, delay p50"),
            "{said}"
        );
        assert!(said.trim_end().ends_with("all wanted rows came"), "{said}");
        out
    };
    assert_eq!(follow("text"), "3  [14, 15]\n4  [16, 17]\n5  [18, 19]\n");
    assert_eq!(follow("json"), "[3,[14,15]]\n[4,[16,17]]\n[5,[18,19]]\n");
    assert_eq!(follow("csv"), "3,14,15\n4,16,17\n5,18,19\n");
    let numbers = [3i32, 14, 15, 4, 16, 17, 5, 18, 19];
    let raw = run(&[&store, "-d", "a", "-d", "b", "--from", "2", "--rows", "3", "--format", "raw"]).stdout;
    assert_eq!(raw, numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>());
    // The path of the address comes first; a line of one array of one axis is an array too.
    let (out, ..) = texts(run(&[&format!("{store}::/b"), "-d", "a", "--rows", "1", "--format", "json"]));
    assert_eq!(out, "[[10,11],1]\n");
    let (out, ..) = texts(run(&[&format!("{store}::/a"), "--rows", "2", "--format", "json"]));
    assert_eq!(out, "[1]\n[2]\n");
    let (out, ..) = texts(run(&[&format!("{store}::/b"), "--rows", "1", "--format", "json"]));
    assert_eq!(out, "[10,11]\n");
    // From what is there on, nothing comes; rows that both have come, and no more.
    let (out, said, code) =
        texts(run(&[&store, "-d", "a", "-d", "b", "--from", "end", "--idle-timeout", "0.1"]));
    assert!(out.is_empty() && code == 0 && said.starts_with("0 rows, 0 retries"), "{said}");
    for wrong in ["-1", "x"] {
        assert_eq!(run(&[&store, "--from", wrong]).status.code(), Some(2));
    }
}

#[test]
fn rows_that_were_never_written_make_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    array(&path, 6, 2, 1, 7);
    let store = path.display().to_string();
    let (out, said, code) = texts(run(&[&store, "--format", "csv", "--idle-timeout", "0.3"]));
    assert_eq!((out.as_str(), code), ("1,2\n3,4\n5,6\n", 1), "{said}");
    assert!(said.starts_with("3 rows, 3 announced and not written as far as can be told,"), "{said}");
    let (out, said, code) =
        texts(run(&[&store, "--format", "csv", "--idle-timeout", "0.5", "--settle", "0.2"]));
    assert_eq!((out.as_str(), code), ("1,2\n3,4\n5,6\n7,0\n0,0\n0,0\n", 0), "{said}");
    let (help, ..) = texts(run(&["--help"]));
    assert!(help.contains("--settle <S>") && help.contains("exit code 1"), "{help}");
}

/// A running program; it ends with this value.
struct Running {
    child: Child,
    out: Option<BufReader<ChildStdout>>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = program(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = child.stdout.take().map(BufReader::new);
        Running { child, out }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.as_mut().unwrap().read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// What it said, and how it ended, which it must do soon.
    fn end(&mut self) -> (String, Option<i32>) {
        let begun = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(begun.elapsed() < Duration::from_secs(30), "it does not end"),
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (said, status.code())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_shrinks_or_is_replaced_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let store = path.display().to_string();
    array(&path, 4, 1, 1, 4);
    let mut follow = Running::start(&[&store, "--interval", "20", "--rows", "8"]);
    assert_eq!([1, 2, 3, 4].map(|_| follow.line()), ["1", "2", "3", "4"]);
    array(&path, 2, 1, 1, 4);
    // Until it is seen that it is shorter.
    std::thread::sleep(Duration::from_millis(300));
    array(&path, 4, 1, 1, 4);
    assert_eq!([3, 4].map(|_| follow.line()), ["3", "4"]);
    let new = folder.path().join("b");
    array(&new, 2, 1, 51, 2);
    std::fs::rename(&path, folder.path().join("c")).unwrap();
    std::fs::rename(&new, &path).unwrap();
    assert_eq!([51, 52].map(|_| follow.line()), ["51", "52"]);
    let (said, code) = follow.end();
    assert_eq!(code, Some(0), "{said}");
    let notes: Vec<&str> = said.lines().collect();
    assert_eq!(notes[0], "note: / has 2 rows, it had 4; going on from its new end", "{said}");
    let replaced = format!(
        "note: another file took the place of {store}, or it is written anew; going on from its row 0"
    );
    assert_eq!(notes[1], replaced, "{said}");
    assert!(notes.len() == 3 && notes[2].starts_with("8 rows,"), "{said}");
}

#[test]
fn a_reader_that_has_enough_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    array(&path, 2, 1, 1, 2);
    let mut follow = Running::start(&[&path.display().to_string(), "--interval", "20"]);
    assert_eq!(follow.line(), "1");
    drop(follow.out.take());
    array(&path, 4, 1, 1, 4);
    let (said, code) = follow.end();
    assert_eq!((said.as_str(), code), ("", Some(0)));
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_it_with_its_last_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    array(&path, 2, 1, 1, 2);
    let mut follow = Running::start(&[&path.display().to_string(), "--interval", "60000"]);
    assert_eq!([follow.line(), follow.line()], ["1", "2"]);
    let begun = Instant::now();
    let number = follow.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &number]).status().unwrap().success());
    let (said, code) = follow.end();
    // It waits for its next look no longer.
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(said.starts_with("2 rows, 0 retries") && said.trim_end().ends_with(": interrupted"), "{said}");
    assert_eq!(code, Some(0));
}
