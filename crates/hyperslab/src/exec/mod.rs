//! Runs a [`ReadPlan`](crate::plan::ReadPlan): fetches, decodes on workers, converts and places.

mod stats;

pub use stats::{Cancel, ReadStats};
