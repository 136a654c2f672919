//! What the user selects, and how it falls on chunks.
