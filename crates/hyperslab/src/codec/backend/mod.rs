//! The two streams that well-kept libraries decode and encode for us, behind one face: C by default, pure Rust with the feature
//! `pure` and without default features. Everything else in this module is Rust in either case.

#[cfg(feature = "c-codecs")]
mod c;
#[cfg(feature = "c-codecs")]
pub(super) use c::{Deflater, Inflater, Unzstd, Zstd};

#[cfg(not(feature = "c-codecs"))]
mod pure;
#[cfg(not(feature = "c-codecs"))]
pub(super) use pure::{Deflater, Inflater, Unzstd, Zstd};

#[cfg(not(any(feature = "c-codecs", feature = "pure")))]
compile_error!("hyperslab needs one of its features `c-codecs` (the default) and `pure`");

/// Why a stream could not be decoded into a buffer.
#[derive(Debug)]
pub(super) enum Failure {
    /// It holds more than the buffer.
    Full,
    /// It is damaged or cut short, in the words of the library.
    Damaged(String),
}

/// What is around a deflated stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Envelope {
    /// RFC 1950.
    Zlib,
    /// RFC 1952.
    Gzip,
}
