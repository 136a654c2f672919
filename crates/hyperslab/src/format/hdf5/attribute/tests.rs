//! Tests of attributes.
