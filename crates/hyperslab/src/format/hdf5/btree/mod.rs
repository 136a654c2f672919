//! B-trees, version 1 and 2.
