//! Elements that are staged, as content for a writer.

use crate::error::Result;
use crate::model::write::Content;
use crate::staged::Block;
use bytes::Bytes;

/// Both hold elements of variable length in the same way.
pub(crate) fn content(block: &Block) -> Result<Content> {
    Ok(match block.objects() {
        Some(elements) => Content::Objects { elements: elements.to_vec(), targets: Vec::new() },
        None => Content::Fixed(Bytes::copy_from_slice(block.bytes().unwrap_or(&[]))),
    })
}
