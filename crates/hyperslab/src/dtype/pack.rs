//! The canonical packing of fixed-size elements.
