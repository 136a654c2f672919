//! What every [`Source`] must do, as a test that any implementation can run.

use super::{ByteRange, Source};
use crate::error::ErrorKind;

/// Checks `source`, which holds exactly `bytes`, at least 10 of them; says which promise it breaks.
pub fn check(source: &dyn Source, bytes: &[u8]) -> Result<(), String> {
    let length = bytes.len() as u64;
    let fail = |what: String| Err(format!("{}: {what}", source.name()));
    if bytes.len() < 10 {
        return fail("the contract needs 10 bytes".into());
    }
    match source.len() {
        Ok(n) if n == length => {}
        other => return fail(format!("length {other:?}, not {length}")),
    }
    if !matches!(source.is_empty(), Ok(false)) {
        return fail("it says that it is empty".into());
    }
    let good = [(0, length), (0, 1), (length - 1, 1), (3, 5), (0, 0), (length, 0), (5, 4), (3, 5)];
    let ranges: Vec<ByteRange> = good.iter().map(|&(o, l)| ByteRange::new(o, l)).collect();
    let wanted = |r: &ByteRange| &bytes[r.offset as usize..(r.offset + r.length) as usize];
    // A batch, answers in the order of the questions; ranges may repeat and overlap.
    match source.read(&ranges) {
        Ok(answers) => {
            if answers.len() != ranges.len() || answers.iter().zip(&ranges).any(|(a, r)| &a[..] != wanted(r))
            {
                return fail("a batch has other answers than its questions".into());
            }
        }
        Err(e) => return fail(format!("a batch: {e}")),
    }
    if !matches!(source.read(&[]), Ok(answers) if answers.is_empty()) {
        return fail("an empty batch has answers".into());
    }
    for range in &ranges {
        let mut buffer = vec![0xee; range.length as usize];
        match source.read_into(range.offset, &mut buffer) {
            Ok(()) if buffer == wanted(range) => {}
            Ok(()) => return fail(format!("{range} into a buffer has other bytes")),
            Err(e) => return fail(format!("{range} into a buffer: {e}")),
        }
    }
    // Beyond the end is an error, never fewer bytes, and nothing is allocated for what is not there.
    let past =
        [(length, 1), (length - 1, 2), (0, length + 1), (u64::MAX, 1), (u64::MAX, u64::MAX), (0, u64::MAX)];
    for (offset, wanted) in past {
        let range = ByteRange::new(offset, wanted);
        match source.read(&[ByteRange::new(0, 1), range]) {
            Err(e) if e.kind() == ErrorKind::Truncated => {}
            other => return fail(format!("{range} beyond the end gives {:?}", other.map(|v| v.len()))),
        }
        if wanted <= length + 1 {
            let mut buffer = vec![0; wanted as usize];
            match source.read_into(offset, &mut buffer) {
                Err(e) if e.kind() == ErrorKind::Truncated => {}
                other => return fail(format!("{range} beyond the end into a buffer gives {other:?}")),
            }
        }
    }
    // The same answers from several threads at once.
    let all_right = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    (0..50).all(|_| {
                        source
                            .read(&ranges)
                            .is_ok_and(|a| a.iter().zip(&ranges).all(|(a, r)| &a[..] == wanted(r)))
                    })
                })
            })
            .collect();
        threads.into_iter().all(|t| t.join().unwrap_or(false))
    });
    if !all_right {
        return fail("threads get other answers".into());
    }
    match (source.id(), source.id()) {
        (Ok(a), Ok(b)) if a == b => {}
        other => return fail(format!("its identity changes: {other:?}")),
    }
    if source.hints().max_merged == 0 || source.hints().concurrency == 0 {
        return fail("hints that allow nothing".into());
    }
    Ok(())
}
