use super::v2::Tree;
use super::{v1, v2};
use crate::ErrorKind;
use crate::format::hdf5::test_space::{find, reseal, space};
use std::cmp::Ordering;

const TREES: &[u8] = include_bytes!("../../../../tests/data/btree2.h5");

/// The one tree of the file: chunks of a 5-D dataset, record type 10, depth 2.
fn chunks() -> u64 {
    find(TREES, b"BTHD")[0]
}

fn scaled(record: &[u8]) -> u64 {
    u64::from_le_bytes(record[40..48].try_into().unwrap())
}

#[test]
fn walks_all_levels_in_order() {
    let tree = Tree::open(&space(TREES), chunks(), 10).unwrap();
    assert_eq!(tree.depth(), 2);
    let mut seen = Vec::new();
    tree.for_each(&mut |r| {
        seen.push(scaled(r));
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, (0..1800).collect::<Vec<u64>>());
}

#[test]
fn searches_leaves_and_internal_nodes() {
    let tree = Tree::open(&space(TREES), chunks(), 10).unwrap();
    for wanted in 0..1800 {
        let found = tree.search(&mut |r| Ok(scaled(r).cmp(&wanted))).unwrap().unwrap();
        assert_eq!(scaled(&found), wanted);
    }
    assert!(tree.search(&mut |_| Ok(Ordering::Less)).unwrap().is_none());
    assert!(tree.search(&mut |_| Ok(Ordering::Greater)).unwrap().is_none());
}

#[test]
fn a_broken_leaf_costs_only_its_records() {
    let mut bytes = TREES.to_vec();
    let leaf = find(TREES, b"BTLF")[3] as usize;
    bytes[leaf + 9] ^= 1;
    let tree = Tree::open(&space(&bytes), chunks(), 10).unwrap();
    let (mut seen, mut faults) = (0, Vec::new());
    tree.walk(
        &mut |_| {
            seen += 1;
            Ok(())
        },
        &mut |e| {
            faults.push(e);
            Ok(())
        },
    )
    .unwrap();
    assert!((1700..1800).contains(&seen));
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].kind(), ErrorKind::Checksum);
    assert_eq!(faults[0].place(), Some(("version 2 B-tree leaf", leaf as u64)));
    assert!(tree.for_each(&mut |_| Ok(())).is_err());
}

#[test]
fn nodes_in_a_circle_end() {
    // Every pointer of the root leads to its first child.
    let tree = Tree::open(&space(TREES), chunks(), 10).unwrap();
    let root = u64::from_le_bytes(TREES[chunks() as usize + 16..][..8].try_into().unwrap());
    let count = u16::from_le_bytes(TREES[chunks() as usize + 24..][..2].try_into().unwrap()) as usize;
    let mut bytes = TREES.to_vec();
    let pointers = root as usize + 6 + count * tree.record_size();
    let pointer = 8 + 1 + 2;
    let first = bytes[pointers..pointers + pointer].to_vec();
    for i in 1..=count {
        bytes[pointers + i * pointer..][..pointer].copy_from_slice(&first);
    }
    reseal(&mut bytes, root as usize, pointers - root as usize + (count + 1) * pointer);
    let tree = Tree::open(&space(&bytes), chunks(), 10).unwrap();
    let mut seen = 0;
    let e = tree
        .for_each(&mut |_| {
            seen += 1;
            Ok(())
        })
        .unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corrupt);
    assert!(seen <= 1800);
}

#[test]
fn hostile_headers_are_refused() {
    let at = chunks() as usize;
    let length = 4 + 34;
    let with = |change: &dyn Fn(&mut [u8])| {
        let mut bytes = TREES.to_vec();
        change(&mut bytes[at..at + length]);
        reseal(&mut bytes, at, length - 4);
        Tree::open(&space(&bytes), at as u64, 10)
            .and_then(|t| t.for_each(&mut |_| Ok(())))
            .unwrap_err()
            .kind()
    };
    assert_eq!(with(&|b| b[5] = 11), ErrorKind::Corrupt); // another type
    assert_eq!(with(&|b| b[6..10].fill(0)), ErrorKind::Corrupt); // nodes of 0 bytes
    assert_eq!(with(&|b| b[10..12].fill(0)), ErrorKind::Corrupt); // records of 0 bytes
    assert_eq!(with(&|b| b[12..14].fill(0xff)), ErrorKind::LimitExceeded); // 65535 levels
    assert_eq!(with(&|b| b[16..24].fill(0xff)), ErrorKind::Corrupt); // no root
    assert_eq!(with(&|b| b[24..26].fill(0xff)), ErrorKind::Corrupt); // more records than fit
    assert_eq!(with(&|b| b[26..34].fill(0x7f)), ErrorKind::Corrupt); // more records than bytes
}

#[test]
fn version_1_nodes() {
    let mut file = b"TREE\x01\x00\x02\x00".to_vec();
    file.extend([0xff; 16]);
    for (key, child) in [(1u64, 100u64), (2, 200)] {
        file.extend(key.to_le_bytes());
        file.extend(child.to_le_bytes());
    }
    file.extend(3u64.to_le_bytes());
    let node = v1::Node::open(&space(&file), 0, v1::NodeType::Chunk, 8).unwrap();
    assert_eq!((node.level(), node.len()), (0, 2));
    assert_eq!(node.key(2).unwrap().u64().unwrap(), 3);
    assert_eq!(node.child(1).unwrap(), 200);
    assert!(node.child(2).is_err());
    assert!(node.key(3).is_err());
    let other = v1::Node::open(&space(&file), 0, v1::NodeType::Group, 8).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Corrupt);
    file[6] = 3;
    assert_eq!(
        v1::Node::open(&space(&file), 0, v1::NodeType::Chunk, 8).unwrap_err().kind(),
        ErrorKind::Truncated
    );
    let _: fn(&v2::Tree) -> bool = v2::Tree::is_empty;
}
