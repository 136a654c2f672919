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
    let place = match dialect {
        Dialect::S3 => CloudPlace::s3("bucket", prefix),
        Dialect::Google => CloudPlace::gs("bucket", prefix),
        Dialect::Azure => CloudPlace::az("bucket", prefix),
    };
    let cloud = match dialect {
        Dialect::S3 => cloud.with_keys(Some(Keys::new("key", "secret"))),
        Dialect::Google => cloud,
        // An account with its key, which is in Base64.
        Dialect::Azure => cloud.with_keys(Some(Keys::new("account", "c2VjcmV0"))),
    };
    CloudStore::open(&place.unwrap(), &cloud, &Limits::default(), &options()).unwrap()
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
    let works: [(&str, Work); 9] = [
        ("get", |s| Ok(format!("{:?}", s.get("a/k")?))),
        ("range", |s| Ok(format!("{:?}", s.get_range("a/k", ByteRange::new(1, 2))?))),
        ("suffix", |s| Ok(format!("{:?}", one_answer(s, Get::suffix("a/k", 2))?))),
        ("version", |s| Ok(format!("{:?}", s.version("a/k")?.is_some()))),
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

fn one_answer(store: &CloudStore, get: Get) -> Result<Option<Bytes>> {
    store.get_many(&[get]).remove(0)
}

#[test]
fn deleting_is_tried_again() {
    for dialect in DIALECTS {
        let bucket = Bucket::start(dialect);
        let store = store(&bucket, dialect, "");
        // The look at it, and the request that removes it.
        for behind in [0, 1] {
            store.put("k", "value".into(), &Precondition::None).unwrap();
            bucket.fail_behind(behind, 503, 1);
            assert!(store.delete("k").unwrap(), "{dialect:?} {behind}");
            assert_eq!(store.get("k").unwrap(), None);
            store.put("k", "value".into(), &Precondition::None).unwrap();
            bucket.fail_behind(behind, 403, 100);
            assert_eq!(store.delete("k").unwrap_err().kind(), ErrorKind::Permission, "{dialect:?} {behind}");
            bucket.fail(0, 0);
            assert!(store.get("k").unwrap().is_some());
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

fn fails<T: std::fmt::Debug>(bucket: &Bucket, fault: u16, work: impl FnOnce() -> Result<T>) -> Error {
    bucket.fail(fault, 100_000);
    let error = work().unwrap_err();
    bucket.fail(0, 0);
    error
}

#[test]
fn what_no_store_says_is_named() {
    for dialect in DIALECTS {
        let bucket = Bucket::start(dialect);
        let store = store(&bucket, dialect, "");
        store.put("a/k", vec![7; 5000].into(), &Precondition::None).unwrap();
        let source = store.open("a/k").unwrap().unwrap();
        let range = ByteRange::new(2000, 100);
        let page = |e: Error| {
            assert_eq!(e.kind(), ErrorKind::Io, "{dialect:?}: {e}");
            assert!(
                e.to_string().contains("sent a web page, not the file, with HTTP 200"),
                "{dialect:?}: {e}"
            );
        };
        let before = bucket.log().len();
        page(fails(&bucket, bucket::PAGE_IN_PLACE, || store.get("a/k")));
        page(fails(&bucket, bucket::PAGE_IN_PLACE, || source.read(&[range])));
        page(fails(&bucket, bucket::PAGE_IN_PLACE, || store.open("a/k")));
        page(fails(&bucket, bucket::PAGE_IN_PLACE, || store.list("")));
        page(fails(&bucket, bucket::PAGE_IN_PLACE, || store.len("a/k")));
        // No further try makes it better.
        assert_eq!(bucket.log().len(), before + 5, "{dialect:?}");
        for whole in [
            fails(&bucket, bucket::WHOLE, || source.read(&[range])),
            fails(&bucket, bucket::WHOLE, || store.get_range("a/k", range)),
            fails(&bucket, bucket::WHOLE, || store.open("a/k")),
        ] {
            assert_eq!(whole.kind(), ErrorKind::Io, "{dialect:?}: {whole}");
            let said = whole.to_string();
            assert!(said.contains("not the part that was asked for") && said.contains("a/k"), "{said}");
        }
        assert_eq!(store.get("a/k").unwrap().unwrap().len(), 5000);
    }
}

#[test]
fn a_web_page_in_a_bucket_is_an_object() {
    let bucket = Bucket::start(Dialect::S3);
    let store = store(&bucket, Dialect::S3, "");
    let page = "<!DOCTYPE html><html></html>";
    store.put("index.html", page.into(), &Precondition::None).unwrap();
    assert_eq!(store.get("index.html").unwrap().unwrap(), page);
}

#[test]
fn listings_without_end_are_given_up() {
    for dialect in DIALECTS {
        let bucket = Bucket::start(dialect);
        let store = store(&bucket, dialect, "");
        store.put("a/k", "value".into(), &Precondition::None).unwrap();
        for (fault, wanted, most) in [
            (bucket::CIRCLE, "leads back to a page", 3),
            (bucket::THE_SAME, "the same names come again", 3),
            (bucket::NOTHING_MORE, "101 pages without a name", 101),
        ] {
            let works: [&dyn Fn() -> Result<()>; 2] =
                [&|| store.list("").map(drop), &|| store.lengths("", true).map(drop)];
            for work in works {
                let before = bucket.log().len();
                let e = fails(&bucket, fault, work);
                let text = e.to_string();
                assert_eq!(e.kind(), ErrorKind::Io, "{dialect:?}: {text}");
                assert!(text.contains("has no end") && text.contains(wanted), "{dialect:?}: {text}");
                assert!(text.contains("://bucket/"), "{text}");
                assert!(bucket.log().len() - before <= most, "{dialect:?} {fault}");
            }
        }
        let e = fails(&bucket, bucket::CIRCLE, || store.search(""));
        assert!(e.to_string().contains("has no end"), "{e}");
        // A page that itself has no end is not read for ever.
        let e = fails(&bucket, bucket::ENDLESS, || store.list(""));
        assert_eq!(e.kind(), ErrorKind::LimitExceeded, "{e}");
        assert!(bucket.endless() < 40 << 20, "{}", bucket.endless());
    }
}

#[test]
fn a_store_that_drips_is_given_up() {
    for dialect in DIALECTS {
        let bucket = Bucket::start(dialect);
        let store = store(&bucket, dialect, "");
        store.put("k", vec![7; 5].into(), &Precondition::None).unwrap();
        let begun = std::time::Instant::now();
        let e = fails(&bucket, bucket::DRIP, || store.get_range("k", ByteRange::new(1, 999_999)));
        assert_eq!(e.kind(), ErrorKind::Io, "{dialect:?}: {e}");
        assert!(e.to_string().contains("bytes came in 500ms from http://127.0.0.1"), "{dialect:?}: {e}");
        assert!(begun.elapsed() < Duration::from_secs(4), "{dialect:?}: {:?}", begun.elapsed());
    }
}

#[test]
fn answers_are_bounded_alone_and_together() {
    let bucket = Bucket::start(Dialect::S3);
    let all = store(&bucket, Dialect::S3, "");
    for key in ["a", "b", "c"] {
        all.put(key, vec![7; 5000].into(), &Precondition::None).unwrap();
    }
    let too_long = all.get_within("a", 4999).unwrap_err();
    assert_eq!(too_long.kind(), ErrorKind::LimitExceeded, "{too_long}");
    assert_eq!(all.get_within("a", 5000).unwrap().unwrap().len(), 5000);
    let limits = Limits { in_flight: 12_000, ..Limits::default() };
    let narrow = CloudStore { limits, ..all };
    let answers = narrow.get_many(&["a", "b", "c"].map(Get::whole));
    let failed: Vec<_> = answers.iter().filter_map(|a| a.as_ref().err()).collect();
    assert!(failed.len() == 1 && failed[0].kind() == ErrorKind::LimitExceeded, "{failed:?}");
    // Alone it has room.
    assert_eq!(narrow.get_within("a", 20_000).unwrap().unwrap().len(), 5000);
}

#[test]
fn many_requests_are_under_way_at_the_same_time() {
    for dialect in DIALECTS {
        let bucket = Bucket::start(dialect);
        let all = store(&bucket, dialect, "");
        let keys: Vec<String> = (0..40).map(|n| format!("k{n:02}")).collect();
        for (n, key) in keys.iter().enumerate() {
            all.put(key, vec![n as u8; 10].into(), &Precondition::None).unwrap();
        }
        bucket.fail(bucket::LATE, 1000);
        let gets: Vec<Get> = keys.iter().map(Get::whole).collect();
        let answers = all.get_many(&gets);
        assert!(answers.iter().zip(0..).all(|(a, n)| a.as_ref().unwrap().as_ref().unwrap()[..] == [n; 10]));
        assert!(bucket.most_at_once() >= 16, "{dialect:?}: {} objects", bucket.most_at_once());
        // The same of ranges of one object, of another server.
        let bucket = Bucket::start(dialect);
        let all = store(&bucket, dialect, "");
        all.put("long", vec![1; 400_000].into(), &Precondition::None).unwrap();
        let source = Store::open(&all, "long").unwrap().unwrap();
        bucket.fail(bucket::LATE, 1000);
        let ranges: Vec<_> = (0..40).map(|n| ByteRange::new(199_999 + n * 5000, 10)).collect();
        assert!(source.read(&ranges).unwrap().iter().all(|bytes| bytes[..] == [1; 10]));
        assert!(bucket.most_at_once() >= 16, "{dialect:?}: {} ranges", bucket.most_at_once());
    }
}

#[test]
fn a_write_whose_answer_is_lost_is_known_to_be_done() {
    for dialect in DIALECTS {
        let bucket = Bucket::start(dialect);
        let store = store(&bucket, dialect, "");
        for (n, fault) in [bucket::LOST, bucket::DONE_503].into_iter().enumerate() {
            let key = format!("k{n}");
            bucket.fail(fault, 1);
            let first = store.put(&key, "one".into(), &Precondition::Absent).unwrap();
            assert_eq!(store.version(&key).unwrap(), Some(first.clone()), "{dialect:?} {fault}");
            bucket.fail(fault, 1);
            let second = store.put(&key, "two".into(), &Precondition::Matches(first.clone())).unwrap();
            assert_eq!(store.version(&key).unwrap(), Some(second), "{dialect:?} {fault}");
            assert_eq!(store.get(&key).unwrap().unwrap(), "two");
            // Without a further try a precondition that does not hold is one, whatever is there.
            let refused = store.put(&key, "two".into(), &Precondition::Absent).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::AlreadyExists, "{dialect:?}: {refused}");
            let refused = store.put(&key, "two".into(), &Precondition::Matches(first)).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Changed, "{dialect:?}: {refused}");
        }
    }
}

#[test]
fn races_have_one_winner() {
    for dialect in DIALECTS {
        let bucket = Bucket::start(dialect);
        let store = store(&bucket, dialect, "");
        // Somebody else was faster, and the server too busy to say so.
        bucket.fail(bucket::OVERTAKEN_503, 1);
        let lost = store.put("k", "ours".into(), &Precondition::Absent).unwrap_err();
        assert_eq!(lost.kind(), ErrorKind::AlreadyExists, "{dialect:?}: {lost}");
        let version = store.version("k").unwrap().unwrap();
        bucket.fail(bucket::OVERTAKEN_503, 1);
        let lost = store.put("k", "ours".into(), &Precondition::Matches(version)).unwrap_err();
        assert_eq!(lost.kind(), ErrorKind::Changed, "{dialect:?}: {lost}");
        assert_eq!(store.get("k").unwrap().unwrap(), "somebody else's");
        // Adding one under a precondition loses none of them.
        store.put("n", "0".into(), &Precondition::Absent).unwrap();
        let add = || loop {
            let version = store.version("n").unwrap().unwrap();
            let n: u32 = std::str::from_utf8(&store.get("n").unwrap().unwrap()).unwrap().parse().unwrap();
            match store.put("n", (n + 1).to_string().into(), &Precondition::Matches(version)) {
                Ok(_) => break,
                Err(e) => assert_eq!(e.kind(), ErrorKind::Changed, "{dialect:?}: {e}"),
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..5).for_each(|_| add()));
            }
        });
        assert_eq!(store.get("n").unwrap().unwrap(), "20", "{dialect:?}");
    }
}

#[test]
fn long_objects_are_sent_in_parts() {
    let bucket = Bucket::start(Dialect::S3);
    let store = store(&bucket, Dialect::S3, "");
    let long: Bytes = (0..70u32 << 18).flat_map(u32::to_le_bytes).collect::<Vec<u8>>().into();
    let version = store.put("long", long.clone(), &Precondition::None).unwrap();
    assert_eq!(store.version("long").unwrap(), Some(version.clone()));
    assert!(store.get("long").unwrap().unwrap() == long);
    let sent = bucket.log().iter().filter(|r| r.target.contains("partNumber=")).count();
    assert_eq!((sent, bucket.uploads()), (5, 0));
    // A part that fails once is sent again; one that never gets there leaves nothing behind.
    bucket.fail(503, 1);
    store.put("long", long.clone(), &Precondition::None).unwrap();
    let before = bucket.log().len();
    bucket.fail(403, 3);
    let refused = store.put("other", long.clone(), &Precondition::None).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Permission, "{refused}");
    assert!(bucket.log().len() > before);
    bucket.fail_behind(1, 403, 3);
    let refused = store.put("other", long.clone(), &Precondition::None).unwrap_err();
    assert!(refused.kind() == ErrorKind::Permission && refused.to_string().contains("part "), "{refused}");
    assert_eq!((store.len("other").unwrap(), bucket.uploads()), (None, 0));
    // Under a precondition it goes as one.
    store.put("long", long.clone(), &Precondition::Matches(store.version("long").unwrap().unwrap())).unwrap();
    assert_eq!(store.put("long", long, &Precondition::Absent).unwrap_err().kind(), ErrorKind::AlreadyExists);
}
