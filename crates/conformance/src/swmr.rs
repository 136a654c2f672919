//! Files that h5py writes while they are read here: what `swmr.py` writes, and whether all that is read of it is right.

use crate::reference::python;
use hyperslab::{Array, File, Selection};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The datasets of `swmr.py write`.
pub const GROWING: [&str; 3] = ["/one", "/rows", "/both"];

/// What stands at a place of them.
pub fn value(i: u64, j: u64) -> i64 {
    (7 * i + j + 1) as i64
}

/// A run of `swmr.py`. Killed when it is dropped.
#[derive(Debug)]
pub struct Script {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Script {
    /// Starts `swmr.py` with these arguments.
    pub fn start(arguments: &[&str]) -> Script {
        let script: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/swmr.py");
        let mut child = Command::new(python())
            .arg(script)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let out = BufReader::new(child.stdout.take().expect("its output"));
        Script { child, out }
    }

    /// Starts a writer, and waits until readers can open its file.
    pub fn writer(arguments: &[&str]) -> Script {
        let mut script = Script::start(arguments);
        assert_eq!(script.line(), "ready", "swmr.py {arguments:?}");
        script
    }

    /// The next line that it prints; empty at its end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("text");
        line.trim().to_owned()
    }

    /// Sends it an empty line, and waits for what it prints then.
    pub fn ask(&mut self) -> String {
        self.child.stdin.as_mut().expect("its input").write_all(b"\n").expect("it reads");
        self.line()
    }

    /// Ends it as a crash would.
    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Waits for its end, which must be a good one.
    pub fn finish(mut self) -> String {
        let mut last = String::new();
        loop {
            match self.line() {
                line if line.is_empty() => break,
                line => last = line,
            }
        }
        assert!(self.child.wait().expect("it ends").success());
        last
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What was seen of a file that was being written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Reads.
    pub reads: u64,
    /// Values that were not the ones that the writer wrote, and extents that shrank.
    pub wrong: u64,
    /// Operations that were run again.
    pub retries: u64,
    /// Rows at the end.
    pub rows: u64,
}

/// Reads a file of `swmr.py write` again and again until its writer has closed it, or `idle` after the last growth.
pub fn watch(file: &Path, idle: Duration) -> Seen {
    let file = hyperslab::open_swmr(file).expect("it opens while it is written");
    let mut arrays: Vec<Array> = GROWING.iter().map(|name| file.array(name).expect(name)).collect();
    let mut last = [0u64; 3];
    let mut seen = Seen::default();
    let mut changed = Instant::now();
    loop {
        // Looked at before, so that what is read after it has closed is all there is.
        let active = file.swmr_writer_active().expect("the superblock reads");
        for (array, last) in arrays.iter_mut().zip(&mut last) {
            array.refresh().expect("it refreshes");
            let rows = array.shape()[0];
            seen.wrong += u64::from(rows < *last);
            if rows != *last {
                changed = Instant::now();
            }
            // What is new, what was new before, and a part of the rest.
            let first = last.saturating_sub(20).min(rows);
            seen.wrong += wrong(array, first, rows);
            let early = (seen.reads * 7919) % (rows + 1);
            seen.wrong += wrong(array, early, (early + 50).min(rows));
            seen.reads += 2;
            *last = rows;
        }
        if !active || changed.elapsed() > idle {
            seen.rows = last[0];
            seen.retries = file.swmr_retries();
            return seen;
        }
    }
}

/// How many values of these rows are not the ones that were written.
pub fn wrong(array: &Array, first: u64, end: u64) -> u64 {
    let read = array.read::<i64>(first as i64..end as i64).expect("rows in the extents read");
    let columns = read.shape.get(1).copied().unwrap_or(1);
    let places = (first..end).flat_map(|i| (0..columns).map(move |j| value(i, j)));
    let counted = read.data.len() as u64 != (end - first) * columns;
    u64::from(counted) + places.zip(&read.data).filter(|(wanted, found)| wanted != *found).count() as u64
}

/// How many values of a whole file are wrong, and how many rows the dataset that is written first has.
pub fn wrong_in(file: &File) -> (u64, u64) {
    let mut rows = 0;
    let mut count = 0;
    for name in GROWING {
        let array = file.array(name).expect(name);
        let own = array.shape()[0];
        count += wrong(&array, 0, own);
        rows = rows.max(own);
    }
    (count, rows)
}

/// All elements of the datasets of a file, as stored.
pub fn contents(file: &File) -> Vec<Vec<u8>> {
    let read = |name: &&str| file.array(name).and_then(|a| a.read_raw(Selection::all())).expect(name).bytes;
    GROWING.iter().map(read).collect()
}

/// How late rows of `swmr.py times` came out of the program.
#[derive(Clone, Debug)]
pub struct Late {
    /// Rows, each of which came once and in order.
    pub rows: u64,
    /// The median time from the moment before a row was written until its line came.
    pub p50: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// What the program said at its end.
    pub said: String,
}

/// Follows a file of `swmr.py times` with the program, looking every `interval` milliseconds.
///
/// Panics if a row comes twice, out of order, or with other numbers than were written.
pub fn delays(file: &str, interval: u64, format: &str) -> Late {
    let mut follow = Command::new(crate::tool::path())
        .args(["follow", &format!("{file}::/t"), "--format", format])
        .args(["--interval", &interval.to_string(), "--idle-timeout", "20"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut times = Vec::new();
    for line in BufReader::new(follow.stdout.take().expect("its output")).lines() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock");
        let line = line.expect("text");
        let numbers: Vec<f64> =
            line.trim_matches(['[', ']']).split(',').map(|n| n.trim().parse().expect("a number")).collect();
        let [row, written] = numbers[..] else { panic!("{line}") };
        assert_eq!(row as usize, times.len() + 1, "a row twice, or none: {line}");
        times.push(now.as_secs_f64() - written);
    }
    let output = follow.wait_with_output().expect("it ends");
    assert!(output.status.success());
    times.sort_by(f64::total_cmp);
    let at = |percent: usize| {
        let place = (times.len() * percent).div_ceil(100).saturating_sub(1);
        Duration::from_secs_f64(times.get(place).copied().unwrap_or(0.0).max(0.0))
    };
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Late { rows: times.len() as u64, p50: at(50), p99: at(99), said }
}
