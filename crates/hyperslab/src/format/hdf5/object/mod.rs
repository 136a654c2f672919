//! Object headers, version 1 and 2.
