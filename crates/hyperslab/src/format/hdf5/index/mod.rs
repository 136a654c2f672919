//! Chunk indexes: chunk coordinates in, byte location out.
