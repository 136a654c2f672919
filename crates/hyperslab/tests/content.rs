//! Elements of a real file in all the forms that need no Rust type.

use hyperslab::array::Item;
use hyperslab::model::{NodeKind, Value};
use hyperslab::{ErrorKind, File, Selection, Verdict};
use std::path::Path;

fn ocean() -> File {
    hyperslab::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/ocean.h5").as_path())
        .unwrap()
}

#[test]
fn text_of_fixed_and_of_any_length() {
    let file = ocean();
    let notes = file.array("/ships/notes").unwrap();
    assert_eq!(
        notes.read_strings(Selection::all()).unwrap(),
        ["calm", "fog, then rain", "", "größte Welle 9 m"]
    );
    assert_eq!(notes.read_strings(1..2).unwrap(), ["fog, then rain"]);
    let e = file.array("/sst").unwrap().read_strings(Selection::all()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn values_of_compounds_sequences_and_references() {
    let file = ocean();
    let stations = file.array("/ships/stations").unwrap().read_values(Selection::all()).unwrap();
    assert_eq!(stations[2].field("name").and_then(Value::as_str), Some("CHARLIE"));
    assert_eq!(stations[1].field("depth").and_then(Value::as_integer), Some(-3100));
    assert_eq!(stations[1].field("active"), Some(&Value::Bool(false)));
    let tracks = file.array("/ships/tracks").unwrap().read_values(Selection::all()).unwrap();
    assert_eq!(tracks[1].to_string(), "[0, 10, 20, 30, 40]");
    // Each axis has a list of scales, which are references.
    let Value::List(axes) = file.array("/sst").unwrap().attribute("DIMENSION_LIST").unwrap() else {
        panic!()
    };
    let Value::List(scales) = &axes[1] else { panic!() };
    let Value::Reference(reference) = &scales[0] else { panic!() };
    let hyperslab::model::Reference::Object(node) = reference.as_ref() else { panic!() };
    assert_eq!(file.paths()[node], "/lat");
}

#[test]
fn packed_elements_have_no_paddings() {
    let file = ocean();
    let stations = file.array("/ships/stations").unwrap();
    let packed = stations.read_packed(Selection::all()).unwrap();
    assert_eq!((packed.shape.as_slice(), packed.bytes.len()), (&[3][..], 3 * (8 + 4 + 4 + 2 + 1)));
    assert_eq!(packed.bytes[8..12], 12.5f32.to_le_bytes());
    let e = file.array("/ships/notes").unwrap().read_packed(Selection::all()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn provenance_holds_or_is_not_stated() {
    let file = ocean();
    let provenance = file.array("/sst").unwrap().verify_provenance().unwrap();
    assert_eq!(provenance.verdict, Verdict::Ok);
    assert_eq!(provenance.source.as_deref(), Some("numpy, seed 7"));
    assert_eq!(file.array("/lat").unwrap().verify_provenance().unwrap().verdict, Verdict::NoHash);
}

#[test]
fn a_changed_hash_is_a_mismatch_and_nonsense_is_an_error() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/ocean.h5");
    let bytes = std::fs::read(path).unwrap();
    let hash = b"0d9ac53c";
    let at = bytes.windows(hash.len()).position(|w| w == hash).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let verify = |letter: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = letter;
        let path = folder.path().join("changed.h5");
        std::fs::write(&path, bytes).unwrap();
        let file = hyperslab::open(path.as_path()).unwrap();
        file.array("/sst").unwrap().verify_provenance()
    };
    // The hash lies in a heap without checksums.
    let Verdict::Mismatch { stated, computed } = verify(b'f').unwrap().verdict else { panic!("a mismatch") };
    assert!(stated.starts_with("fd9ac53c") && computed.starts_with("0d9ac53c"), "{stated} {computed}");
    let error = verify(b'x').unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("is not a SHA-256 in hex"), "{error}");
}

#[test]
fn everything_stored_is_verified() {
    let file = ocean();
    let mut faults = Vec::new();
    let mut chunks = 0;
    for entry in file.walk() {
        if let Item::Object(_, NodeKind::Array) = entry.item {
            let array = file.array(&entry.path).unwrap();
            chunks += array.verify(&mut |f| faults.push(f)).chunks;
        }
    }
    assert!(faults.is_empty(), "{faults:?}");
    assert_eq!(chunks, 16 + 7);
}

#[test]
fn an_address_leads_to_an_array_and_a_selection() {
    let file = ocean();
    let address = hyperslab::Address::parse("ocean.h5::/current[0, 28:30, 0]");
    let (object, selection) = file.locate(&address).unwrap();
    let hyperslab::Object::Array(sst) = object else { panic!() };
    assert_eq!(sst.read::<f32>(selection).unwrap().data, [29.38, 29.27]);
    let e = file.locate(&hyperslab::Address::parse("x::/sstt[0]")).unwrap_err();
    assert!(e.to_string().contains("did you mean sst?"), "{e}");
}
