//! Elements as values, for text, JSON and attributes.
