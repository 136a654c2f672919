//! What becomes of a change on its way to Zarr.

use crate::model::write::Support;

/// What is said in other words, each once, in order.
#[derive(Debug, Default)]
pub(super) struct Notes(Vec<String>);

impl Notes {
    pub(super) fn mapped(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.0.contains(&what) {
            self.0.push(what);
        }
    }

    pub(super) fn support(self) -> Support {
        if self.0.is_empty() { Support::Kept } else { Support::Mapped(self.0.join("; ")) }
    }
}
