//! The program `hyperslab`.
fn main() {}
