//! What a user holds: files, groups, arrays.

mod array;
mod file;
