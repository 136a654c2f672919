//! An array to read from.
