//! Names for types that nobody named, so that a file in which they have one can be written.

use super::Type;
use super::build::Builder;
use super::kind::{UserType, class_of, type_of};
use crate::dtype::DType;
use crate::shape::Name;

impl Builder<'_> {
    /// The type of elements stored as `dtype`. If it has no name it gets one in the root group, made of `stem`, and so do
    /// the parts of it that need one. `None` if netCDF has no word for some part.
    pub(super) fn name_type(&mut self, dtype: &DType, stem: &Name) -> Option<Type> {
        if let Some(known) = type_of(dtype, &self.types) {
            return Some(known);
        }
        let class = class_of(dtype).filter(|_| is_sayable(dtype, 0))?;
        self.name_parts(dtype, stem);
        let name = self.free_name(stem);
        let place = self.types.len();
        self.types.push(UserType { name, group: 0, class, dtype: dtype.clone(), invented: true });
        if let Some(root) = self.groups.first_mut() {
            root.types.push(place);
        }
        Some(Type::User(place))
    }

    /// Names the types that are parts of one.
    pub(super) fn name_parts(&mut self, dtype: &DType, stem: &Name) {
        let longer = |part: &[u8]| Name::from([stem.as_bytes(), b"_", part].concat().as_slice());
        let parts: Vec<(Name, &DType)> = match dtype {
            DType::Compound { fields, .. } => {
                fields.iter().map(|f| (longer(f.name.as_bytes()), item(&f.dtype))).collect()
            }
            DType::VarLen { base, .. } => vec![(longer(b"item"), base)],
            _ => Vec::new(),
        };
        for (stem, part) in parts {
            if class_of(part).is_some() {
                self.name_type(part, &stem);
            }
        }
    }

    /// A name that nothing in the root group has.
    fn free_name(&mut self, stem: &Name) -> Name {
        let taken = self.taken.get_or_insert_with(|| {
            let links = self.hierarchy.links(&self.hierarchy.root()).unwrap_or_default();
            links.links.into_iter().map(|link| link.name).collect()
        });
        for number in 1u64.. {
            let ending = if number == 1 { "_t".to_owned() } else { format!("_t{number}") };
            // `/` and the like stand in names of members, and in no name of an object.
            let stem: Vec<u8> =
                stem.as_bytes().iter().map(|&b| if b == b'/' || b < b' ' { b'_' } else { b }).collect();
            let name = Name::from([stem.as_slice(), ending.as_bytes()].concat().as_slice());
            if taken.insert(name.clone()) {
                return name;
            }
        }
        stem.clone()
    }
}

/// What an array in a compound is an array of.
fn item(dtype: &DType) -> &DType {
    match dtype {
        DType::Array { base, .. } => base,
        other => other,
    }
}

/// Whether netCDF has words for all parts of a type.
fn is_sayable(dtype: &DType, depth: u32) -> bool {
    if depth > 256 {
        return false;
    }
    match dtype {
        DType::Integer(t) => t.is_whole() && matches!(t.size, 1 | 2 | 4 | 8),
        DType::Float(t) => t.is_ieee() && matches!(t.size, 4 | 8),
        DType::String { .. } | DType::VarString { .. } | DType::Opaque { .. } => true,
        DType::Enum { base, .. } => is_sayable(base, depth + 1),
        DType::VarLen { base, .. } => !matches!(**base, DType::Array { .. }) && is_sayable(base, depth + 1),
        DType::Compound { fields, .. } => fields.iter().all(|f| is_sayable(item(&f.dtype), depth + 1)),
        _ => false,
    }
}
