//! Version 1 B-trees, built from all their children at once (specification, III.A.1).

use super::disk::Disk;
use super::encoder::Encoder;
use crate::error::{Error, Result};
use crate::format::hdf5::parse::UNDEFINED;

/// What a tree indexes, and how large its nodes are.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeKind {
    /// 0 symbol table nodes of a group, 1 chunks.
    pub(super) node_type: u8,
    /// Half the number of children that a node has room for.
    pub(super) k: u16,
    /// Bytes of a key.
    pub(super) key_size: usize,
}

impl TreeKind {
    /// Bytes of a node.
    pub(super) fn node_size(&self, disk: &Disk) -> u64 {
        let offset = usize::from(disk.sizes().offset);
        let children = 2 * usize::from(self.k);
        (8 + 2 * offset + children * (self.key_size + offset) + self.key_size) as u64
    }
}

/// Writes a tree over `children` with one key more than these: key *i* stands before child *i*. Gives the address of the
/// root, which is `root` if there is one to be kept.
pub(super) fn write(
    disk: &mut Disk,
    kind: TreeKind,
    children: &[u64],
    keys: &[Vec<u8>],
    root: Option<u64>,
) -> Result<u64> {
    if keys.len() != children.len() + 1 || keys.iter().any(|k| k.len() != kind.key_size) {
        return Err(Error::invalid("a version 1 B-tree has one key more than children, all of one size"));
    }
    let capacity = 2 * usize::from(kind.k).max(1);
    let size = kind.node_size(disk);
    let mut children = children.to_vec();
    // Which key stands before each child; one more for the end.
    let mut marks: Vec<usize> = (0..keys.len()).collect();
    for level in 0..=u8::MAX {
        let nodes = children.len().div_ceil(capacity).max(1);
        let (share, more) = (children.len() / nodes, children.len() % nodes);
        let addresses = (0..nodes)
            .map(|_| match root.filter(|_| nodes == 1) {
                Some(root) => Ok(root),
                None => disk.allocate(size, 8),
            })
            .collect::<Result<Vec<_>>>()?;
        let at = |i: Option<usize>| i.and_then(|i| addresses.get(i)).copied().unwrap_or(UNDEFINED);
        let mut next_marks = Vec::with_capacity(nodes + 1);
        let mut first = 0;
        for i in 0..nodes {
            let count = share + usize::from(i < more);
            let mut out = Encoder::new(disk.sizes());
            out.put(b"TREE").u8(kind.node_type).u8(level).u16(count as u16);
            out.address(at(i.checked_sub(1))).address(at(Some(i + 1)));
            let key =
                |i: usize| marks.get(i).and_then(|&m| keys.get(m)).map(Vec::as_slice).unwrap_or_default();
            for (child, i) in children.iter().skip(first).take(count).zip(first..) {
                out.put(key(i)).address(*child);
            }
            out.put(key(first + count));
            let mut bytes = out.finish();
            bytes.resize(size as usize, 0);
            disk.put(at(Some(i)), &bytes)?;
            next_marks.extend(marks.get(first));
            first += count;
        }
        if nodes == 1 {
            return Ok(at(Some(0)));
        }
        next_marks.extend(marks.last());
        marks = next_marks;
        children = addresses;
    }
    Err(Error::unsupported("a version 1 B-tree of more than 255 levels"))
}
