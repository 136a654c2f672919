//! Links of groups: symbol table, compact, dense.
