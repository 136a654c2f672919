//! The superblock, its extension, and where the file ends.
