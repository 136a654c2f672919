//! Tests of object headers.
