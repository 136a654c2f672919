//! Object headers from bytes made by hand.

use super::{Header, Objects};
use crate::error::ErrorKind;
use crate::format::hdf5::message::kind;
use crate::format::hdf5::parse::lookup3;
use crate::format::hdf5::test_space::space;

/// A message of a version 1 header.
fn message(kind: u16, flags: u8, body: &[u8]) -> Vec<u8> {
    let mut m = Vec::new();
    m.extend(kind.to_le_bytes());
    m.extend((body.len() as u16).to_le_bytes());
    m.extend([flags, 0, 0, 0]);
    m.extend(body);
    m
}

fn continuation(address: u64, length: u64) -> Vec<u8> {
    let mut body = address.to_le_bytes().to_vec();
    body.extend(length.to_le_bytes());
    message(kind::CONTINUATION, 0, &body)
}

/// A version 1 header.
fn early(messages: &[u8]) -> Vec<u8> {
    let mut h = vec![1, 0, 9, 0, 1, 0, 0, 0];
    h.extend((messages.len() as u32).to_le_bytes());
    h.extend([0; 4]);
    h.extend(messages);
    h
}

/// A version 2 header.
fn late(flags: u8, prefix: &[u8], messages: &[u8]) -> Vec<u8> {
    let mut h = b"OHDR\x02".to_vec();
    h.push(flags);
    h.extend(prefix);
    h.push(messages.len() as u8);
    h.extend(messages);
    let sum = lookup3(&h);
    h.extend(sum.to_le_bytes());
    h
}

#[test]
fn version_1_goes_on_elsewhere() {
    let mut first = message(kind::NIL, 0, &[0; 8]);
    first.extend(message(kind::COMMENT, 1, b"first\0\0\0"));
    first.extend(continuation(200, 16));
    let mut bytes = early(&first);
    bytes.resize(200, 0xee);
    bytes.extend(message(kind::COMMENT, 0, b"second\0\0"));
    let header = Header::open(&space(&bytes), 0).unwrap();
    let bodies: Vec<_> =
        header.all(kind::COMMENT).map(|m| (m.bytes[..5].to_vec(), m.flags, m.offset)).collect();
    assert_eq!(bodies, [(b"first".to_vec(), 1, 40), (b"secon".to_vec(), 0, 208)]);
    assert_eq!((header.version, header.messages.len()), (1, 2));
}

#[test]
fn continuations_that_go_in_circles_end() {
    let first = continuation(16, 24);
    let bytes = early(&first);
    let error = Header::open(&space(&bytes), 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[test]
fn version_2_has_times_order_and_gaps() {
    let mut prefix = Vec::new();
    for t in [1u32, 2, 3, 4] {
        prefix.extend(t.to_le_bytes());
    }
    prefix.extend(7u16.to_le_bytes());
    prefix.extend(5u16.to_le_bytes());
    // Type, size, flags, order of creation, body; then a gap of three bytes.
    let messages = [0x0c, 2, 0, 0, 9, 0, b'h', b'i', 0, 0, 0];
    let bytes = late(0x34, &prefix, &messages);
    let header = Header::open(&space(&bytes), 0).unwrap();
    assert_eq!(header.phase_change, Some((7, 5)));
    let times = header.times.unwrap();
    assert_eq!((times.access, times.modification, times.change, times.birth), (1, 2, 3, 4));
    assert_eq!(header.messages.len(), 1);
    assert_eq!(header.messages[0].creation_order, Some(9));
    assert_eq!(header.messages[0].bytes[..], *b"hi");

    let mut torn = bytes.clone();
    *torn.last_mut().unwrap() ^= 1;
    assert_eq!(Header::open(&space(&torn), 0).unwrap_err().kind(), ErrorKind::Checksum);
}

#[test]
fn unknown_messages_are_passed_over_unless_they_must_be_known() {
    let open = |flags| Header::open(&space(&early(&message(0x77, flags, &[0; 8]))), 0);
    assert_eq!(open(0).unwrap().messages.len(), 1);
    // To be known by writers only.
    assert!(open(0x08).is_ok());
    let error = open(0x80).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("0x0077"), "{error}");
}

#[test]
fn what_is_no_header_says_so() {
    let kind = |bytes: &[u8]| Header::open(&space(bytes), 0).unwrap_err().kind();
    assert_eq!(kind(b"nothing of the kind"), ErrorKind::Corrupt);
    assert_eq!(kind(b"OHDR\x03\0\0\0\0\0\0\0"), ErrorKind::Corrupt);
    assert_eq!(kind(&early(&message(1, 0, &[0; 8]))[..20]), ErrorKind::Truncated);
    // A header of 4 GiB in a file of a few bytes.
    assert_eq!(kind(&[1, 0, 1, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]), ErrorKind::Truncated);
    let nothing = early(&message(kind::COMMENT, 0, b"neither\0"));
    let objects = Objects::new(space(&nothing), false);
    let header = objects.header(0).unwrap();
    assert_eq!(objects.kind(&header).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn a_message_shared_with_itself_is_refused() {
    // Version 2, at address 0: this header.
    let bytes = early(&message(kind::DATATYPE, 0x02, &[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    let objects = Objects::new(space(&bytes), false);
    let header = objects.header(0).unwrap();
    let error = objects.datatype(&header.messages[0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}
