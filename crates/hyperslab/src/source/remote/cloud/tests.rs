//! Tests of object stores against a server of ours that speaks their protocols.

#[path = "../../../../tests/support/bucket.rs"]
mod bucket;

use super::*;
use crate::source::remote::Keys;
use crate::source::store::contract_tests;
use bucket::{Bucket, Dialect};
use std::time::Duration;

const DIALECTS: [Dialect; 3] = [Dialect::S3, Dialect::Google, Dialect::Azure];

fn options() -> RemoteOptions {
    RemoteOptions {
        first: 1000,
        retries: 2,
        delay: Duration::from_millis(1),
        timeout: Duration::from_millis(500),
        ..RemoteOptions::default()
    }
}

fn store(bucket: &Bucket, dialect: Dialect, prefix: &str) -> CloudStore {
    let cloud = CloudOptions::default().with_endpoint(Some(bucket.endpoint()));
    let (limits, options) = (Limits::default(), options());
    match dialect {
        Dialect::S3 => {
            let cloud = cloud.with_keys(Some(Keys::new("key", "secret")));
            CloudStore::s3("bucket", prefix, &cloud, &limits, &options)
        }
        Dialect::Google => CloudStore::gs("bucket", prefix, &cloud, &limits, &options),
        // An account with its key, which is in Base64.
        Dialect::Azure => {
            let cloud = cloud.with_keys(Some(Keys::new("account", "c2VjcmV0")));
            CloudStore::az("bucket", prefix, &cloud, &limits, &options)
        }
    }
    .unwrap()
}

#[test]
fn buckets_of_every_provider_are_stores() {
    for dialect in DIALECTS {
        let bucket = Bucket::start(dialect);
        contract_tests::check_all(&store(&bucket, dialect, ""));
        store(&bucket, dialect, "").put("some/prefixed", "beside".into(), &Precondition::None).unwrap();
        contract_tests::check_all(&store(&bucket, dialect, "some/prefix"));
        // Google's requests are anonymous here, as nothing says who asks; the others are signed.
        let log = bucket.log();
        let mut reads = log.iter().filter(|r| r.method == "GET");
        let signed = |r: &bucket::Request| r.headers.contains_key("authorization");
        assert!(reads.all(|r| signed(r) == (dialect != Dialect::Google)), "{dialect:?}");
    }
}

#[test]
fn what_passes_is_tried_again_and_the_rest_is_named() {
    type Work = fn(&CloudStore) -> Result<String>;
    let works: [(&str, Work); 7] = [
        ("get", |s| Ok(format!("{:?}", s.get("a/k")?))),
        ("range", |s| Ok(format!("{:?}", s.get_range("a/k", ByteRange::new(1, 2))?))),
        ("length", |s| Ok(format!("{:?}", s.len("a/k")?))),
        ("list", |s| Ok(format!("{:?}", s.list("")?))),
        ("search", |s| Ok(format!("{:?}", s.search("")?))),
        ("put", |s| s.put("a/k", "value".into(), &Precondition::None).map(|_| String::new())),
        ("open", |s| Ok(format!("{:?}", s.open("a/k")?.map(|o| o.len())))),
    ];
    for dialect in DIALECTS {
        let bucket = Bucket::start(dialect);
        let store = store(&bucket, dialect, "");
        store.put("a/k", "value".into(), &Precondition::None).unwrap();
        for (name, work) in works {
            let right = work(&store).unwrap();
            for status in [500, 503, 429] {
                let before = store.traffic().retries;
                bucket.fail(status, 1);
                assert_eq!(work(&store).unwrap(), right, "{name} {dialect:?} {status}");
                assert_eq!(store.traffic().retries, before + 1, "{name} {dialect:?} {status}");
            }
            for (status, kind) in [
                (403, ErrorKind::Permission),
                (500, ErrorKind::Io),
                (503, ErrorKind::Io),
                (400, ErrorKind::Io),
            ] {
                bucket.fail(status, 100);
                let error = work(&store).unwrap_err();
                let text = error.to_string();
                assert_eq!(error.kind(), kind, "{name} {dialect:?} {status}: {text}");
                assert!(text.contains("://bucket/"), "{name} {dialect:?} {status}: {text}");
                // A HEAD has no body to tell more.
                assert!(text.contains(&status.to_string()), "{name} {dialect:?} {status}: {text}");
                bucket.fail(0, 0);
            }
        }
    }
}

#[test]
fn answers_that_break_off_are_asked_for_again() {
    for dialect in DIALECTS {
        let bucket = Bucket::start(dialect);
        let store = store(&bucket, dialect, "");
        store.put("a/k", vec![7; 5000].into(), &Precondition::None).unwrap();
        let source = store.open("a/k").unwrap().unwrap();
        for fault in [bucket::CLOSE, bucket::STALL, bucket::CUT] {
            bucket.fail(fault, 1);
            assert_eq!(store.get("a/k").unwrap().unwrap().len(), 5000, "{dialect:?} {fault}");
            bucket.fail(fault, 1);
            assert_eq!(
                source.read(&[ByteRange::new(2000, 3000)]).unwrap()[0].len(),
                3000,
                "{dialect:?} {fault}"
            );
            bucket.fail(fault, 1);
            assert_eq!(store.list("").unwrap(), ["a/k"], "{dialect:?} {fault}");
            bucket.fail(fault, 100);
            let error = store.get("a/k").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io, "{dialect:?} {fault}: {error}");
            bucket.fail(0, 0);
        }
    }
}

#[test]
fn opening_takes_one_request() {
    for dialect in DIALECTS {
        let bucket = Bucket::start(dialect);
        let store = store(&bucket, dialect, "");
        for length in [1, 900, 1000, 1001, 5000] {
            store.put("k", vec![7; length].into(), &Precondition::None).unwrap();
            let before = bucket.log().len();
            let source = store.open("k").unwrap().unwrap();
            assert_eq!(source.len().unwrap(), length as u64);
            assert_eq!(
                source.read(&[ByteRange::new(0, length.min(1000) as u64)]).unwrap()[0].len(),
                length.min(1000)
            );
            assert_eq!(bucket.log().len(), before + 1, "{dialect:?} {length}");
        }
        store.put("k", Bytes::new(), &Precondition::None).unwrap();
        assert_eq!(store.open("k").unwrap().unwrap().len().unwrap(), 0);
    }
}

#[test]
fn an_object_that_changed_is_an_error() {
    for dialect in DIALECTS {
        let bucket = Bucket::start(dialect);
        let store = store(&bucket, dialect, "");
        store.put("k", vec![7; 5000].into(), &Precondition::None).unwrap();
        let source = store.open("k").unwrap().unwrap();
        assert_eq!(source.read(&[ByteRange::new(4000, 3)]).unwrap()[0], [7, 7, 7][..]);
        store.put("k", vec![8; 5000].into(), &Precondition::None).unwrap();
        let changed = source.read(&[ByteRange::new(4000, 3)]).unwrap_err();
        assert_eq!(changed.kind(), ErrorKind::Changed, "{dialect:?}: {changed}");
        store.delete("k").unwrap();
        let removed = source.read(&[ByteRange::new(4000, 3)]).unwrap_err();
        assert_eq!(removed.kind(), ErrorKind::Changed, "{dialect:?}: {removed}");
    }
}
