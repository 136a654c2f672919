//! Conversion of stored elements to wanted ones.
