//! Feeds damaged files to the library, in worker processes with a limit on memory and a watchdog.
//!
//!     mutate [--count N] [--seed S] [--first I] [--keep DIR] [--tool] [--format F] FOLDER...
//!                                made of the files in the folders; F is hdf5 (if nothing is said), netcdf3 or zarr
//!     mutate --replay PATH...    files as they are
//!
//! With `--tool` the program looks at each input too: `describe`, `check`, `ls`, `info` and `dump`.
//! Input number I of seed S is the same for ever. Exit 1 if anything panicked, aborted, ran over 10 s or wanted more than
//! 1 GiB of address space; such inputs are kept in DIR (default `target/mutate`).

use conformance::mutation::{Format, Seeds};
use conformance::probe::probe;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

const TIME: Duration = Duration::from_secs(10);
/// Address space of a worker in KiB, as `ulimit` takes it.
const MEMORY: u64 = 1 << 20;
/// Inputs that one worker takes at a time.
const BATCH: u64 = 500;

#[derive(Clone, Debug, Default)]
struct Options {
    count: u64,
    seed: u64,
    first: u64,
    keep: PathBuf,
    replay: bool,
    tool: bool,
    format: Format,
    worker: bool,
    paths: Vec<PathBuf>,
}

fn options() -> Option<Options> {
    let mut o = Options { count: 2000, seed: 1, keep: "target/mutate".into(), ..Options::default() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--count" => o.count = words.next()?.parse().ok()?,
            "--seed" => o.seed = words.next()?.parse().ok()?,
            "--first" => o.first = words.next()?.parse().ok()?,
            "--keep" => o.keep = words.next()?.into(),
            "--replay" => o.replay = true,
            "--tool" => o.tool = true,
            "--format" => o.format = Format::named(&words.next()?)?,
            "--worker" => o.worker = true,
            _ if word.starts_with("--") => return None,
            _ => o.paths.push(word.into()),
        }
    }
    (!o.paths.is_empty()).then_some(o)
}

/// Where inputs come from: made by number, or files.
enum Inputs {
    Made(Seeds, u64),
    Files(Vec<PathBuf>),
}

impl Inputs {
    fn new(o: &Options) -> std::io::Result<Inputs> {
        if !o.replay {
            return Ok(Inputs::Made(Seeds::below(&o.paths, o.format)?, o.seed));
        }
        let mut files = Vec::new();
        for path in &o.paths {
            if path.is_dir() {
                let entries = std::fs::read_dir(path)?.flatten().map(|e| e.path());
                files.extend(entries.filter(|p| p.extension().is_none_or(|e| e != "md")));
            } else {
                files.push(path.clone());
            }
        }
        files.sort();
        Ok(Inputs::Files(files))
    }

    fn get(&mut self, number: u64) -> std::io::Result<(Vec<u8>, String)> {
        match self {
            Inputs::Made(seeds, seed) => seeds.input(*seed, number),
            Inputs::Files(files) => {
                let path = &files[number as usize];
                Ok((std::fs::read(path)?, path.display().to_string()))
            }
        }
    }
}

fn main() -> ExitCode {
    let Some(mut options) = options() else {
        eprintln!(
            "usage: mutate [--count N] [--seed S] [--first I] [--keep DIR] [--tool] [--format hdf5|netcdf3|zarr] PATH... or --replay PATH..."
        );
        return ExitCode::from(2);
    };
    let inputs = Inputs::new(&options).expect("the folders can be listed");
    match &inputs {
        Inputs::Files(files) => {
            (options.first, options.count) = (options.first, files.len() as u64 - options.first)
        }
        Inputs::Made(seeds, _) if seeds.count() == 0 => {
            eprintln!("mutate: no files of the format in {:?}", options.paths);
            return ExitCode::from(2);
        }
        _ => {}
    }
    if options.worker { work(&options, inputs) } else { govern(&options, inputs) }
}

// --- the worker: says `start N`, then `done N OPENED READ REFUSED MS` or `panic N TEXT`, for each input.

fn work(o: &Options, mut inputs: Inputs) -> ExitCode {
    static MESSAGE: Mutex<String> = Mutex::new(String::new());
    std::panic::set_hook(Box::new(|info| {
        if let Ok(mut message) = MESSAGE.lock() {
            *message = info.to_string().replace('\n', " ");
        }
    }));
    // In memory where there is such a folder; a name of its own for each worker.
    let folder =
        if Path::new("/dev/shm").is_dir() { PathBuf::from("/dev/shm") } else { std::env::temp_dir() };
    let path = folder.join(format!("hyperslab-mutate-{}.h5", std::process::id()));
    for number in o.first..o.first + o.count {
        let (bytes, _) = inputs.get(number).expect("the seed is readable");
        std::fs::write(&path, bytes).expect("the input is written");
        println!("start {number}");
        let start = Instant::now();
        let outcome = std::panic::catch_unwind(|| probe(&path));
        let ms = start.elapsed().as_millis();
        if o.tool
            && let Some(fault) = try_tool(&path)
        {
            println!("panic {number} {fault}");
            continue;
        }
        match outcome {
            Ok(o) => println!("done {number} {} {} {} {ms}", u8::from(o.opened), o.read, o.refused),
            Err(_) => println!("panic {number} {}", MESSAGE.lock().map(|m| m.clone()).unwrap_or_default()),
        }
    }
    let _ = std::fs::remove_file(&path);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak =
        status.lines().find_map(|l| l.strip_prefix("VmHWM:")).and_then(|l| l.split_whitespace().next());
    println!("peak {}", peak.unwrap_or("0"));
    ExitCode::SUCCESS
}

/// What went wrong in the program, which inherits the limits of the worker.
fn try_tool(path: &Path) -> Option<String> {
    for words in [&["describe", "--json"][..], &["check"], &["ls", "-l"], &["info"], &["dump"]] {
        let output =
            Command::new(conformance::tool::path()).args(words).arg(path).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        if !matches!(output.status.code(), Some(0..=2)) || said.contains("panicked at") {
            return Some(format!("hyperslab {words:?}: {}: {}", output.status, said.replace('\n', " ")));
        }
    }
    None
}

// --- the parent

#[derive(Debug, Default)]
struct Tally {
    done: u64,
    opened: u64,
    read: u64,
    refused: u64,
    slowest: u64,
    peak: u64,
    failures: Vec<(u64, String)>,
}

fn govern(o: &Options, mut inputs: Inputs) -> ExitCode {
    let start = Instant::now();
    let tally = Mutex::new(Tally::default());
    let next = AtomicU64::new(o.first);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let first = next.fetch_add(BATCH, Ordering::Relaxed);
                    let end = (first + BATCH).min(o.first + o.count);
                    if first >= end {
                        break;
                    }
                    batch(o, first, end, &tally);
                }
            });
        }
    });
    let tally = tally.into_inner().expect("no thread panics");
    for (number, what) in &tally.failures {
        let (bytes, story) = inputs.get(*number).expect("the seed is readable");
        std::fs::create_dir_all(&o.keep).expect("the folder for failures");
        let kept = o.keep.join(format!("seed{}-{number}.h5", o.seed));
        std::fs::write(&kept, bytes).expect("the input is kept");
        println!("FAILED {number}: {what}\n  {story}\n  kept as {}", kept.display());
    }
    println!(
        "mutate: {} inputs in {:.0} s: {} opened, {} things read, {} refused; slowest {} ms, peak {} MiB; {} failures",
        tally.done,
        start.elapsed().as_secs_f64(),
        tally.opened,
        tally.read,
        tally.refused,
        tally.slowest,
        tally.peak >> 10,
        tally.failures.len(),
    );
    if tally.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs inputs `first..end`; after a death, another worker goes on behind the input that killed the last.
fn batch(o: &Options, mut first: u64, end: u64, tally: &Mutex<Tally>) {
    while first < end {
        let mut child = spawn(o, first, end);
        let (send, lines) = mpsc::channel();
        let stdout = child.stdout.take().expect("stdout is piped");
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let mut current = first;
        let reason = loop {
            match lines.recv_timeout(TIME) {
                Ok(line) => {
                    let words: Vec<&str> = line.splitn(3, ' ').collect();
                    let number = words.get(1).and_then(|n| n.parse().ok()).unwrap_or(0);
                    let mut tally = tally.lock().expect("no thread panics");
                    match words[0] {
                        "start" => current = number,
                        "peak" => tally.peak = tally.peak.max(number),
                        "panic" => {
                            tally.done += 1;
                            tally.failures.push((number, format!("panic: {}", words.get(2).unwrap_or(&""))));
                            current = number + 1;
                        }
                        _ => {
                            let n: Vec<u64> = words
                                .get(2)
                                .unwrap_or(&"")
                                .split(' ')
                                .filter_map(|n| n.parse().ok())
                                .collect();
                            if let [opened, read, refused, ms] = n[..] {
                                tally.opened += opened;
                                tally.read += read;
                                tally.refused += refused;
                                tally.slowest = tally.slowest.max(ms);
                            }
                            tally.done += 1;
                            current = number + 1;
                        }
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let _ = child.kill();
                    break Some(format!("more than {} s", TIME.as_secs()));
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break None,
            }
        };
        let output = child.wait_with_output().expect("the worker can be waited for");
        if current >= end {
            return;
        }
        let words = String::from_utf8_lossy(&output.stderr);
        let reason = reason.unwrap_or_else(|| format!("{}: {}", output.status, words.trim()));
        let mut tally = tally.lock().expect("no thread panics");
        tally.done += 1;
        tally.failures.push((current, reason));
        drop(tally);
        let _ = std::io::stdout().flush();
        first = current + 1;
    }
}

fn spawn(o: &Options, first: u64, end: u64) -> Child {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit -v {MEMORY}; exec \"$@\""), "mutate"])
        .arg(std::env::current_exe().expect("this program has a path"))
        .args(["--worker", "--seed", &o.seed.to_string(), "--first", &first.to_string()])
        .args(["--count", &(end - first).to_string(), "--format", o.format.name()]);
    for (set, word) in [(o.replay, "--replay"), (o.tool, "--tool")] {
        if set {
            command.arg(word);
        }
    }
    // Two arenas: each reserves 64 MiB of address space that nobody uses.
    command
        .args(&o.paths)
        .env("MALLOC_ARENA_MAX", "2")
        .env("HYPERSLAB_NUM_THREADS", "2")
        .env("RUST_BACKTRACE", "0");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sh starts")
}
