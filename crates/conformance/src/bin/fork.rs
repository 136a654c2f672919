//! Reads in parallel, forks, and reads again in the child and in the parent: `HYPERSLAB_NUM_THREADS=4 fork FOLDER [URL]`.
//! Makes the file that it reads in FOLDER, or takes that at URL, which is the same.
//!
//! The threads of the parent are not in its child. Whoever counts on them there waits for ever, which is why the test runs
//! this in a process of its own.

use hyperslab::{Array, ReadOptions, Selection};
use std::path::PathBuf;
use std::process::ExitCode;

/// Elements of the file: enough for some threads.
const COUNT: u32 = 1 << 20;

/// A classic netCDF file with the variable `v` of the numbers from 0.
fn numbers() -> Vec<u8> {
    let mut file = b"CDF\x01".to_vec();
    // No records; a dimension `x`; no attributes; a variable of type int along dimension 0.
    let name = |n: u8| [1, u32::from_be_bytes([n, 0, 0, 0])];
    let header =
        [&[0, 0x0a, 1], &name(b'x')[..], &[COUNT, 0, 0, 0x0b, 1], &name(b'v'), &[1, 0, 0, 0, 4, 4 * COUNT]];
    header.concat().iter().for_each(|word| file.extend(word.to_be_bytes()));
    file.extend((file.len() as u32 + 4).to_be_bytes());
    (0..COUNT).for_each(|n| file.extend(n.to_be_bytes()));
    file
}

/// Whether all elements are right, and the threads that read them.
fn read(array: &Array) -> Result<(bool, u64), hyperslab::Error> {
    let (read, stats) = array.read_with::<u32>(Selection::all(), &ReadOptions::default())?;
    Ok((read.data.iter().copied().eq(0..COUNT), stats.threads))
}

fn run() -> Result<bool, Box<dyn std::error::Error>> {
    let file = PathBuf::from(std::env::args_os().nth(1).ok_or("no folder")?).join("numbers.nc");
    std::fs::write(&file, numbers())?;
    let url = std::env::args().nth(2);
    // What comes over a network, and decodes to itself, may need no more than one.
    let threads = if url.is_some() { 1 } else { 2 };
    let open = || match &url {
        Some(url) => hyperslab::open(url.as_str()),
        None => hyperslab::open(&file),
    };
    let array = open()?.array("/v")?;
    match read(&array)? {
        (true, n) if n >= threads => {}
        other => return Err(format!("before the fork: {other:?}").into()),
    }
    // SAFETY: the only other threads are the helpers of the pool and those of the network, which wait for work and hold no
    // lock that the child wants. That reading works in the child nevertheless is what is tested.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: no memory is touched; a child that waits for ever ends by a signal.
        unsafe { libc::alarm(15) };
    }
    let right = |array: &Array| matches!(read(array), Ok((true, n)) if n >= threads);
    // What was opened before, and anew.
    let right = right(&array) && right(&open()?.array("/v")?);
    match child {
        -1 => Err("cannot fork".into()),
        0 => std::process::exit(if right { 0 } else { 1 }),
        child => {
            let mut status = 0;
            // SAFETY: the child is ours, and `status` outlives the call.
            let waited = unsafe { libc::waitpid(child, &mut status, 0) };
            Ok(right && waited == child && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0)
        }
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("fork: {e}");
            ExitCode::FAILURE
        }
    }
}
