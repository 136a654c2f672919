//! Messages of an object header.
