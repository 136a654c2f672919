//! Files, groups, and the resolution of paths through links.
