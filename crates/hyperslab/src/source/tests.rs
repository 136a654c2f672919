use super::*;
use crate::error::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn bytes() -> Vec<u8> {
    (0..200_000u32).map(|i| (i * 7 % 251) as u8).collect()
}

fn memory() -> Arc<dyn Source> {
    Arc::new(MemorySource::new(bytes(), "bytes"))
}

#[test]
fn every_source_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bytes");
    std::fs::write(&path, bytes()).unwrap();
    let sources: Vec<Arc<dyn Source>> = vec![
        memory(),
        Arc::new(FileSource::open(&path).unwrap()),
        Arc::new(Counting::new(memory())),
        Arc::new(Throttled::new(memory(), Duration::ZERO, u64::MAX)),
        Arc::new(Failing::new(memory(), u64::MAX)),
        Arc::new(Crashing::after_calls(memory(), u64::MAX)),
    ];
    for source in sources {
        contract::check(&*source, &bytes()).unwrap();
    }
    let wrong = MemorySource::new(vec![0; 200_000], "others");
    assert!(contract::check(&wrong, &bytes()).is_err());
}

#[test]
fn counting_counts() {
    let source = Counting::new(memory());
    source.read(&[ByteRange::new(0, 10), ByteRange::new(5, 20)]).unwrap();
    source.read_into(3, &mut [0; 4]).unwrap();
    assert_eq!((source.calls(), source.ranges(), source.bytes()), (2, 3, 34));
}

#[test]
fn failing_fails_once_and_crashing_for_good() {
    let one = |s: &dyn Source| s.read_into(0, &mut [0; 10]).map_err(|e| e.kind());
    let source = Failing::new(memory(), 1);
    assert_eq!([one(&source), one(&source), one(&source)], [Ok(()), Err(ErrorKind::Io), Ok(())]);
    let source = Crashing::after_calls(memory(), 1);
    assert_eq!([one(&source), one(&source), one(&source)], [Ok(()), Err(ErrorKind::Io), Err(ErrorKind::Io)]);
    let source = Crashing::after_bytes(memory(), 15);
    assert_eq!([one(&source), one(&source)], [Ok(()), Err(ErrorKind::Io)]);
    assert_eq!(source.read_into(0, &mut [0; 1]).map_err(|e| e.kind()), Err(ErrorKind::Io));
}

#[test]
fn throttled_takes_its_time() {
    let source = Throttled::new(memory(), Duration::from_millis(20), 1_000_000);
    let start = Instant::now();
    source.read(&[ByteRange::new(0, 10_000), ByteRange::new(50_000, 10_000)]).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(40));
    assert_eq!(source.hints().latency, Latency::Remote);
}
