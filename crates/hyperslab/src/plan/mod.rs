//! What a read will do, as a pure and printable value.
