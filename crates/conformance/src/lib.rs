//! Helpers of the tests against the reference libraries.
