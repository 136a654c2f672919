//! Many threads, one open file.

use crate::sha256;
use conformance::reference;
use hyperslab::Selection;
use std::process::Command;

#[test]
fn eight_threads_read_one_file_alike() {
    let folder = reference::generated("selections.py", &["1", "4000"]);
    let path = folder.join("arrays.h5");
    let file = hyperslab::open(path.to_str().expect("a path that is text")).expect("it opens");
    let names: Vec<String> =
        file.root().links().expect("it lists").links.iter().map(|l| l.name.to_string()).collect();
    let all = |turn: usize| {
        let mut sums = vec![String::new(); names.len()];
        for i in (0..names.len()).map(|i| (i + turn * 17) % names.len()) {
            let array = file.array(&names[i]).expect("the dataset is there");
            sums[i] = sha256(&array.read_raw(Selection::all()).expect("it reads").bytes);
        }
        sums
    };
    let alone = all(0);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|turn| scope.spawn(move || all(turn))).collect();
        for thread in threads {
            assert_eq!(thread.join().expect("no thread panics"), alone);
        }
    });
}

#[test]
fn a_forked_child_reads_too() {
    // It ends by itself, also where the child waits for threads that it does not have.
    let folder = tempfile::tempdir().expect("a folder");
    let status = Command::new(env!("CARGO_BIN_EXE_fork"))
        .arg(folder.path())
        .env("HYPERSLAB_NUM_THREADS", "4")
        .status()
        .expect("it starts");
    assert!(status.success(), "{status}");
}
