//! Attributes, compact and dense.
