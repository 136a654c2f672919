//! Elements that are staged, as content for a writer.

use crate::model::write::Content;
use crate::staged::Block;

/// Both hold elements of variable length in the same way.
pub(crate) fn content(block: Block) -> Content {
    match block.into_elements() {
        Ok(bytes) => Content::Fixed(bytes.into()),
        Err(elements) => Content::Objects { elements, targets: Vec::new() },
    }
}
