//! Decides what a read will do, as a value: nothing here does I/O on data.

use std::fmt;

/// What a read will do.
#[derive(Clone, Debug)]
pub struct ReadPlan {}

impl fmt::Display for ReadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("")
    }
}
