//! B-trees: the old kind ([`v1`]), which indexes symbol tables and chunks, and the new ([`v2`]), which indexes links,
//! attributes, huge heap objects, shared messages and chunks (specification, III.A).

pub mod v1;
pub mod v2;

#[cfg(test)]
mod tests;
