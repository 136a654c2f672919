//! Ctrl-C, and being asked to end, while the program writes: nothing partial is left, and what was there is as it was.

use conformance::crash::{commit_file, contents, scratch};
use conformance::tool;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Moments at which each command is stopped.
const STEPS: u32 = 4;

/// Names of everything in a folder, and the bytes of files.
fn state(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut out = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(&at).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(folder).expect("it is inside").to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
                out.insert(name, Vec::new());
            } else {
                let bytes = std::fs::read(&path).expect("a file");
                out.insert(name, bytes);
            }
        }
    }
    out
}

fn start(arguments: &[&str], input: Option<Vec<u8>>) -> Child {
    let mut child = Command::new(tool::path())
        .args(arguments)
        .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    if let Some(bytes) = input {
        let mut stdin = child.stdin.take().expect("its input");
        std::thread::spawn(move || stdin.write_all(&bytes));
    }
    child
}

/// Whether this process, and what it starts, does not hear of Ctrl-C, as what a shell runs in the background.
fn is_deaf_to_int() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).is_some_and(|bits| bits & 2 != 0)
}

fn signal(child: &Child, name: &str) {
    let name = if is_deaf_to_int() { "TERM" } else { name };
    let done = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status();
    assert!(done.expect("kill starts").success(), "the signal is sent");
}

/// Runs a command again and again on what `make` makes, with a signal at some moment, and looks that the folder is then as it was
/// before, or, if the command was faster, as it is after it. `target` is what it writes.
fn interrupted(what: &str, arguments: &[&str], target: &Path, input: Option<&[u8]>, make: &dyn Fn()) {
    let folder = target.parent().expect("a folder");
    let input = || input.map(<[u8]>::to_vec);
    make();
    let old = contents(target);
    let began = Instant::now();
    let done = start(arguments, input()).wait().expect("it ends");
    assert!(done.success(), "{what}: {done}");
    let mut whole = began.elapsed();
    let (new, names) = (contents(target), state(folder).into_keys().collect::<Vec<_>>());
    let mut stopped = 0;
    // More of them where all came too late: what was measured on a busy machine may be longer than what follows.
    for step in 0..4 * STEPS {
        if step >= STEPS && stopped > 0 {
            break;
        }
        make();
        let before = state(folder);
        let began = Instant::now();
        let mut child = start(arguments, input());
        // Time for a handler, and then some moment of the work.
        std::thread::sleep(Duration::from_millis(15) + whole * (step % STEPS) / (STEPS + 1));
        signal(&child, if step % 2 == 0 { "INT" } else { "TERM" });
        let asked = Instant::now();
        let status = child.wait().expect("it ends");
        assert!(asked.elapsed() < Duration::from_secs(20), "{what}: {:?} after the signal", asked.elapsed());
        match status.code() {
            Some(130) => {
                stopped += 1;
                assert!(state(folder) == before, "{what}, step {step}: something was left or changed");
                assert_eq!(contents(target), old, "{what}, step {step}");
            }
            Some(0) => {
                whole = whole.min(began.elapsed());
                assert_eq!(contents(target), new, "{what}, step {step}");
                assert_eq!(state(folder).into_keys().collect::<Vec<_>>(), names, "{what}, step {step}");
            }
            // It came before the program had begun anything.
            None => assert!(state(folder) == before, "{what}, step {step}: {status}"),
            other => panic!("{what}, step {step}: {other:?}, {status}"),
        }
    }
    println!("{what}: {stopped} of {STEPS} were stopped, of {whole:?}");
    assert!(stopped > 0, "{what}: {stopped} were stopped");
}

#[test]
fn what_is_written_when_a_signal_comes_is_taken_back() {
    let (folder, sources) = (scratch("interrupt"), scratch("interrupt-sources"));
    let source = sources.join("source.nc");
    commit_file(&source, 1_000_000).expect("a file");
    let source = source.to_str().expect("text");
    let at = |name: &str| folder.join(name);
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    let clear = || {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
    };
    for name in ["new.h5", "new.zarr", "new.nc3", "new.zarr.zip"] {
        let target = at(name);
        let to = text(&target);
        let mut arguments = vec!["copy", source, &to];
        if name.ends_with("zip") {
            arguments.extend(["--to", "zarr3"]);
        }
        if !name.ends_with("nc3") {
            arguments.extend(["--codec", "shuffle+deflate=6", "--chunks", "x=100000"]);
        }
        interrupted(name, &arguments, &target, None, &clear);
    }
    // In place of what is there.
    for name in ["old.h5", "old.zarr"] {
        let target = at(name);
        let to = text(&target);
        let make = || {
            clear();
            commit_file(&target, 10).expect("a file");
        };
        let over = ["copy", source, &to, "--overwrite", "--codec", "deflate=6", "--chunks", "x=100000"];
        interrupted(&format!("over {name}"), &over, &target, None, &make);
    }
    // Changes in place.
    let rows: Vec<u8> = (0..800_000u32).flat_map(u32::to_le_bytes).collect();
    for name in ["edit.h5", "edit.zarr", "edit.nc3"] {
        let target = at(name);
        let to = text(&target);
        let make = || {
            clear();
            commit_file(&target, 100).expect("a file");
        };
        interrupted(
            &format!("append {name}"),
            &["append", &format!("{to}::/r")],
            &target,
            Some(&rows),
            &make,
        );
    }
    let target = at("set.h5");
    let to = text(&target);
    let whole = || {
        clear();
        commit_file(&target, 1_000_000).expect("a file");
    };
    interrupted("set", &["set", &format!("{to}::/a[:] = 5")], &target, None, &whole);
    // A text, and elements as text.
    let cdl = sources.join("big.cdl");
    let numbers: Vec<String> = (0..200_000).map(|n: u32| n.to_string()).collect();
    let lines = format!(
        "netcdf big {{ dimensions: x = 200000; variables: int a(x); data: a = {}; }}",
        numbers.join(", ")
    );
    std::fs::write(&cdl, lines).expect("a text");
    let target = at("created.h5");
    interrupted("create", &["create", &text(&cdl), "-o", &text(&target)], &target, None, &clear);
    let out = at("out.csv");
    let from = format!("{source}::/a");
    interrupted("get", &["get", &from, "-o", &text(&out)], &out, None, &clear);
    for folder in [folder, sources] {
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// Who waits for rows that do not come ends at once.
#[test]
fn a_program_that_waits_for_its_input_ends() {
    let folder = scratch("waiting");
    let file = folder.join("a.h5");
    commit_file(&file, 3).expect("a file");
    let before = state(&folder);
    let mut child = Command::new(tool::path())
        .args(["append", &format!("{}::/r", file.display())])
        .stdin(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // Waiting for the program would close its input, which ends it too.
    let input = child.stdin.take().expect("its input");
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, "INT");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    drop(input);
    assert!(state(&folder) == before);
    let _ = std::fs::remove_dir_all(folder);
}
