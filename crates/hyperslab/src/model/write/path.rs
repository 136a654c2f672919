//! Where an object is, from the root of its hierarchy.

use crate::error::{Error, Result};
use crate::shape::Name;
use std::fmt;

/// The names on the way from the root to an object; none for the root itself. Unlike text, it can hold names that are not
/// UTF-8. `Display` gives `/a/b`.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectPath(Vec<Name>);

impl ObjectPath {
    /// The root.
    pub fn root() -> ObjectPath {
        ObjectPath::default()
    }

    /// From text: names joined by `/`, empty ones left out. A name that is not UTF-8 is spelled `hex:` and its bytes in
    /// hex. `.` and `..` are not names.
    pub fn parse(text: &str) -> Result<ObjectPath> {
        if let Some(name) = text.split('/').find(|name| matches!(*name, "." | "..")) {
            return Err(Error::invalid(format!("{name:?} is no name of an object, in the path {text}")));
        }
        Ok(ObjectPath::spelled(text))
    }

    /// The same for a path that a walk gave: `..` in it is what an object of HDF5 is called.
    pub fn spelled(text: &str) -> ObjectPath {
        text.split('/').filter(|name| !name.is_empty()).map(Name::parse).collect()
    }

    /// The object called `name` in the group at this path.
    #[must_use]
    pub fn join(&self, name: impl Into<Name>) -> ObjectPath {
        let mut path = self.clone();
        path.0.push(name.into());
        path
    }

    /// The group that it is in, and its name; `None` for the root.
    pub fn split(&self) -> Option<(ObjectPath, &Name)> {
        let (name, group) = self.0.split_last()?;
        Some((ObjectPath(group.to_vec()), name))
    }

    /// The names from the root on.
    pub fn names(&self) -> &[Name] {
        &self.0
    }

    /// Whether it is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// What follows `group` on the way, if this is that group or something below it.
    pub fn below(&self, group: &ObjectPath) -> Option<&[Name]> {
        self.0.strip_prefix(group.0.as_slice())
    }
}

impl FromIterator<Name> for ObjectPath {
    fn from_iter<T: IntoIterator<Item = Name>>(names: T) -> Self {
        ObjectPath(names.into_iter().collect())
    }
}

impl fmt::Display for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("/");
        }
        self.0.iter().try_for_each(|name| write!(f, "/{name}"))
    }
}

impl fmt::Debug for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
