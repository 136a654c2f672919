//! What every store must do. Each implementation runs it; whatever breaks a promise panics.

use super::*;

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// What a store has after [`fill`].
const OBJECTS: &[(&str, &str)] = &[
    (".zgroup", "{}"),
    ("a-b/c", "dash"),
    ("a/.zarray", "meta"),
    ("a/0.0", "0123456789"),
    ("a/deep/er/x", "deep"),
    ("ab", "not below a"),
    ("empty", ""),
    ("z\u{e9}/\u{4e2d} %2B+&?#", "odd names"),
];

/// Gives a store the objects that [`check_reading`] looks for.
pub fn fill(store: &dyn Store) {
    for (key, value) in OBJECTS {
        store.put(key, bytes(value), &Precondition::None).unwrap();
    }
}

/// Reading, of a store that has the objects of [`fill`] and no others.
pub fn check_reading(store: &dyn Store) {
    check_objects(store);
    check_listing(store);
}

/// Reading of objects, by their keys.
pub fn check_objects(store: &dyn Store) {
    for (key, value) in OBJECTS {
        assert_eq!(store.get(key).unwrap().as_deref(), Some(value.as_bytes()), "{key}");
        assert_eq!(store.len(key).unwrap(), Some(value.len() as u64), "{key}");
        let source = store.open(key).unwrap().unwrap();
        assert_eq!(source.len().unwrap(), value.len() as u64);
        assert_eq!(source.read(&[ByteRange::new(0, value.len() as u64)]).unwrap()[0], bytes(value));
        let beyond = source.read(&[ByteRange::new(1, value.len().max(1) as u64)]);
        assert_eq!(beyond.unwrap_err().kind(), ErrorKind::Truncated);
        assert!(store.version(key).unwrap().is_some());
    }
    // A prefix is no object. A store that keeps prefixes as folders may say that one is in the way.
    for key in ["a", "a/deep"] {
        match store.get(key) {
            Ok(found) => assert_eq!(found, None, "{key}"),
            Err(e) => assert!(e.kind() == ErrorKind::Io && e.to_string().contains(key), "{key}: {e}"),
        }
    }
    // Absent: something below an object, no such object.
    for key in ["ab/c", "empty/x/y"] {
        // A store that keeps prefixes as folders may say that an object is in the way.
        match store.get(key) {
            Ok(found) => assert_eq!(found, None, "{key}"),
            Err(e) => {
                let object = key.split('/').next().unwrap();
                assert!(e.kind() == ErrorKind::Io && e.to_string().contains(object), "{key}: {e}");
            }
        }
    }
    for key in ["none", "a/none/x"] {
        assert_eq!(store.get(key).unwrap(), None, "{key}");
        assert_eq!(store.len(key).unwrap(), None, "{key}");
        assert!(store.open(key).unwrap().is_none(), "{key}");
        assert!(store.version(key).unwrap().is_none(), "{key}");
    }
    // What is no key is an error, never an absence.
    for key in ["", "/", "/a", "a/", "a//0.0", "..", "a/../ab", "./ab", "a\0"] {
        assert_eq!(store.get(key).unwrap_err().kind(), ErrorKind::InvalidArgument, "{key:?}");
        assert_eq!(store.len(key).unwrap_err().kind(), ErrorKind::InvalidArgument, "{key:?}");
    }
    let gets = [
        Get::range("a/0.0", ByteRange::new(2, 3)),
        Get::whole("none"),
        Get::suffix("a/0.0", 4),
        Get::suffix("a/0.0", 400),
        Get::range("a/0.0", ByteRange::new(8, 3)),
        Get::range("none", ByteRange::new(0, 3)),
        Get::whole("a/0.0"),
        Get::range("a/0.0", ByteRange::new(10, 0)),
        Get::suffix("empty", 4),
        Get::range("a/0.0", ByteRange::new(u64::MAX, 2)),
    ];
    // Twice: what is known the second time may not change an answer.
    for _ in 0..2 {
        let answers = store.get_many(&gets);
        assert_eq!(answers.len(), gets.len());
        let text: Vec<_> = answers
            .iter()
            .map(|a| match a {
                Ok(Some(b)) => std::str::from_utf8(b).unwrap(),
                Ok(None) => "absent",
                Err(e) => e.code(),
            })
            .collect();
        let expected = [
            "234",
            "absent",
            "6789",
            "0123456789",
            "E_TRUNCATED",
            "absent",
            "0123456789",
            "",
            "",
            "E_TRUNCATED",
        ];
        assert_eq!(text, expected);
    }
    // An answer that is longer than it may be is refused, alone.
    let most = |most| Get::whole("a/0.0").within(most);
    let answers = store.get_many(&[most(9), most(10), Get::suffix("a/0.0", 3).within(2)]);
    assert_eq!(answers[0].as_ref().unwrap_err().kind(), ErrorKind::LimitExceeded);
    assert_eq!(answers[1].as_ref().unwrap().as_deref(), Some(&b"0123456789"[..]));
    assert_eq!(answers[2].as_ref().unwrap_err().kind(), ErrorKind::LimitExceeded);
    assert_eq!(store.get_within("none", 0).unwrap(), None);
    assert_eq!(store.get_range("a/0.0", ByteRange::new(9, 1)).unwrap().as_deref(), Some(&b"9"[..]));
}

fn check_listing(store: &dyn Store) {
    let keys: Vec<_> = OBJECTS.iter().map(|(key, _)| key.to_string()).collect();
    assert_eq!(store.list("").unwrap(), keys);
    assert_eq!(store.list("a").unwrap(), ["a/.zarray", "a/0.0", "a/deep/er/x"]);
    assert_eq!(store.list("a/").unwrap(), store.list("a").unwrap());
    assert!(store.list("none").unwrap().is_empty());
    assert!(store.list("ab").unwrap().is_empty());
    let search = |prefix| {
        let found = store.search(prefix).unwrap();
        (found.objects.join(" "), found.prefixes.join(" "))
    };
    let pair = |a: &str, b: &str| (a.to_string(), b.to_string());
    assert_eq!(search(""), pair(".zgroup ab empty", "a a-b z\u{e9}"));
    assert_eq!(search("a"), pair(".zarray 0.0", "deep"));
    assert_eq!(search("a/deep/"), pair("", "er"));
    assert_eq!(search("ab"), pair("", ""));
    assert_eq!(search("none"), pair("", ""));
    assert_eq!(store.list("../x").unwrap_err().kind(), ErrorKind::InvalidArgument);
    let lengths = |prefix: &str, deep| {
        let found = store.lengths(prefix, deep).unwrap();
        found.into_iter().map(|(key, length)| format!("{key}:{length}")).collect::<Vec<_>>()
    };
    assert_eq!(lengths("", false), [".zgroup:2", "ab:11", "empty:0"]);
    assert_eq!(lengths("a/", false), ["a/.zarray:4", "a/0.0:10"]);
    assert_eq!(lengths("a", true), ["a/.zarray:4", "a/0.0:10", "a/deep/er/x:4"]);
    assert_eq!(lengths("", true).len(), OBJECTS.len());
    assert!(lengths("ab", true).is_empty() && lengths("none", false).is_empty());
}

/// Writing and reading, of an empty store.
pub fn check_all(store: &dyn Store) {
    assert!(store.list("").unwrap().is_empty());
    assert_eq!(store.search("").unwrap(), Listing::default());
    assert_eq!(store.get(".zgroup").unwrap(), None);
    fill(store);
    check_reading(store);
    check_writing(store);
    // Everything is as it was.
    check_reading(store);
    for (key, _) in OBJECTS {
        assert!(store.delete(key).unwrap(), "{key}");
        assert!(!store.delete(key).unwrap(), "{key}");
    }
    assert!(store.list("").unwrap().is_empty());
    assert_eq!(store.search("").unwrap(), Listing::default());
}

fn check_writing(store: &dyn Store) {
    let kind = |key: &str, when: &Precondition| store.put(key, bytes("x"), when).unwrap_err().kind();
    assert_eq!(kind("../out", &Precondition::None), ErrorKind::InvalidArgument);
    assert_eq!(kind("ab", &Precondition::Absent), ErrorKind::AlreadyExists);
    assert_eq!(store.get("ab").unwrap().unwrap(), bytes("not below a"));
    let first = store.put("w/new", bytes("one"), &Precondition::Absent).unwrap();
    assert_eq!(store.version("w/new").unwrap(), Some(first.clone()));
    assert_eq!(kind("w/new", &Precondition::Absent), ErrorKind::AlreadyExists);
    // A shorter one leaves no tail.
    let second = store.put("w/new", bytes("2"), &Precondition::Matches(first.clone())).unwrap();
    assert_eq!(store.get("w/new").unwrap().unwrap(), bytes("2"));
    assert_ne!(first, second);
    assert_eq!(kind("w/new", &Precondition::Matches(first)), ErrorKind::Changed);
    assert_eq!(store.get("w/new").unwrap().unwrap(), bytes("2"));
    let none = Precondition::Matches(second.clone());
    assert_eq!(kind("w/none", &none), ErrorKind::Changed);
    assert_eq!(store.get("w/none").unwrap(), None);
    // A failed write leaves nothing behind.
    assert_eq!(store.list("w").unwrap(), ["w/new"]);
    assert!(store.delete("w/new").unwrap());
    assert_eq!(store.version("w/new").unwrap(), None);
}
