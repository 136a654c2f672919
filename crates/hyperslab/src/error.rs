//! One public error: a kind with a stable code, a message, where it happened, the likely cause and the next step.
//!
//! Every layer adds the frame that it knows (`chunk [3, 0]`, `dataset /temp`, `file a.h5`), so that the text reads from
//! the outside in: *what failed, where, why, what to do next*.

use std::borrow::Cow;
use std::fmt;

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of wrong it is. Three questions matter: is the file wrong, is the caller wrong, or do we lack something?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The named thing does not exist.
    NotFound,
    /// The named thing exists already.
    AlreadyExists,
    /// The caller asked for something that has no meaning.
    InvalidArgument,
    /// An index or coordinate lies outside the array.
    OutOfBounds,
    /// The file breaks its format's rules.
    Corrupt,
    /// A stored checksum does not match the bytes.
    Checksum,
    /// The file is shorter than a structure in it says.
    Truncated,
    /// Valid, but a feature this crate does not have.
    Unsupported,
    /// A budget of [`Limits`](crate::Limits) would be exceeded.
    LimitExceeded,
    /// The operating system or the network failed.
    Io,
    /// The object changed while it was being read.
    Changed,
    /// Access is not allowed, by the system or by policy.
    Permission,
    /// The caller cancelled the work.
    Cancelled,
    /// A writer has the file open, and what was asked for is not written yet.
    NotYet,
}

impl ErrorKind {
    /// A stable short code for programs, printed in front of every message.
    pub fn code(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "E_NOT_FOUND",
            ErrorKind::AlreadyExists => "E_EXISTS",
            ErrorKind::InvalidArgument => "E_ARGUMENT",
            ErrorKind::OutOfBounds => "E_BOUNDS",
            ErrorKind::Corrupt => "E_CORRUPT",
            ErrorKind::Checksum => "E_CHECKSUM",
            ErrorKind::Truncated => "E_TRUNCATED",
            ErrorKind::Unsupported => "E_UNSUPPORTED",
            ErrorKind::LimitExceeded => "E_LIMIT",
            ErrorKind::Io => "E_IO",
            ErrorKind::Changed => "E_CHANGED",
            ErrorKind::Permission => "E_PERMISSION",
            ErrorKind::Cancelled => "E_CANCELLED",
            ErrorKind::NotYet => "E_NOT_YET",
        }
    }
}

/// The error of this crate. Small (one pointer), so that results stay cheap.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    /// Structure and offset in the file, where the fault lies in a structure.
    place: Option<(Cow<'static, str>, u64)>,
    /// Frames from the innermost outwards.
    context: Vec<String>,
    hint: Option<Cow<'static, str>>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
    /// A concurrent writer may have caused it, whatever its kind.
    torn: bool,
    /// As many attempts were made as are allowed.
    tried: bool,
}

impl Error {
    /// An error of `kind` with a message that says what failed, without a trailing full stop.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Error(Box::new(Inner {
            kind,
            message: message.into(),
            place: None,
            context: Vec::new(),
            hint: None,
            source: None,
            torn: false,
            tried: false,
        }))
    }

    /// The file breaks its format: `structure` at file offset `offset` is wrong as `message` says.
    #[cold]
    pub fn corrupt(
        structure: impl Into<Cow<'static, str>>,
        offset: u64,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Error::new(ErrorKind::Corrupt, message).at(structure, offset)
    }

    /// A checksum stored in `structure` does not match.
    #[cold]
    pub fn checksum(
        structure: impl Into<Cow<'static, str>>,
        offset: u64,
        stored: u32,
        computed: u32,
    ) -> Self {
        Error::new(
            ErrorKind::Checksum,
            format!("checksum mismatch: stored {stored:#010x}, computed {computed:#010x}"),
        )
        .at(structure, offset)
    }

    /// A valid feature that this crate does not have; `feature` names it.
    #[cold]
    pub fn unsupported(feature: impl fmt::Display) -> Self {
        Error::new(ErrorKind::Unsupported, format!("not supported: {feature}"))
    }

    /// The caller asked for something that has no meaning.
    #[cold]
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::InvalidArgument, message)
    }

    /// A limit named `what` would be exceeded.
    #[cold]
    pub fn limit(what: impl fmt::Display, wanted: u128, allowed: u128) -> Self {
        Error::new(ErrorKind::LimitExceeded, format!("{what}: {wanted} wanted, {allowed} allowed"))
    }

    /// An operating-system error while doing `what` (for example `read a.h5`).
    #[cold]
    pub fn io(what: impl fmt::Display, source: std::io::Error) -> Self {
        let kind = match source.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            std::io::ErrorKind::PermissionDenied => ErrorKind::Permission,
            std::io::ErrorKind::AlreadyExists => ErrorKind::AlreadyExists,
            std::io::ErrorKind::UnexpectedEof => ErrorKind::Truncated,
            _ => ErrorKind::Io,
        };
        let is_full =
            matches!(source.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded);
        let mut e = Error::new(kind, format!("{what}: {source}"));
        e.0.source = Some(Box::new(source));
        if is_full { e.hint("make room there, or write to another disk") } else { e }
    }

    /// Names the structure and the file offset where the fault lies; the innermost place wins.
    #[must_use]
    pub fn at(mut self, structure: impl Into<Cow<'static, str>>, offset: u64) -> Self {
        if self.0.place.is_none() {
            self.0.place = Some((structure.into(), offset));
        }
        self
    }

    /// Adds an outer frame, such as `dataset /temp` or `chunk [3, 0]`.
    #[must_use]
    pub fn context(mut self, frame: impl fmt::Display) -> Self {
        // A cycle of frames must not grow without bound.
        if self.0.context.len() < 32 {
            self.0.context.push(frame.to_string());
        }
        self
    }

    /// Says what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// What kind of wrong it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The stable short code of the kind.
    pub fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    /// The bare message, without code, place and frames.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Structure and file offset, where known.
    pub fn place(&self) -> Option<(&str, u64)> {
        self.0.place.as_ref().map(|(s, o)| (s.as_ref(), *o))
    }

    /// What to do next, where known.
    pub fn next_step(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Whether a later attempt may succeed because a concurrent writer may have caused this.
    pub fn is_torn(&self) -> bool {
        self.0.torn || matches!(self.0.kind, ErrorKind::Checksum | ErrorKind::Truncated)
    }

    /// Says that a concurrent writer may have caused this: it was found in bytes that no checksum vouches for.
    #[must_use]
    pub fn torn(mut self) -> Self {
        self.0.torn = true;
        self
    }

    /// Whether it is what was left after all attempts that are allowed.
    pub fn is_tried(&self) -> bool {
        self.0.tried
    }

    /// Says that it is still so after all attempts that are allowed.
    #[must_use]
    pub fn tried(mut self) -> Self {
        self.0.tried = true;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.code())?;
        for frame in self.0.context.iter().rev() {
            write!(f, "{frame}: ")?;
        }
        if let Some((structure, offset)) = &self.0.place {
            write!(f, "{structure} at {offset:#x}: ")?;
        }
        f.write_str(&self.0.message)?;
        if let Some(hint) = &self.0.hint {
            write!(f, " ({hint})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|e| e.as_ref() as _)
    }
}

/// Adds frames to the error of a result.
pub trait Context<T> {
    /// Adds an outer frame, made only if there is an error.
    fn context<D: fmt::Display>(self, frame: impl FnOnce() -> D) -> Result<T>;
    /// Names structure and offset, where the error does not yet.
    fn at(self, structure: &'static str, offset: u64) -> Result<T>;
}

impl<T> Context<T> for Result<T> {
    fn context<D: fmt::Display>(self, frame: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|e| e.context(frame()))
    }
    fn at(self, structure: &'static str, offset: u64) -> Result<T> {
        self.map_err(|e| e.at(structure, offset))
    }
}
