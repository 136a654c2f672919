//! Dimensions: HDF5's dimension scales, with the attributes by which netCDF-4 finds its dimensions and their order.
//!
//! A dimension is an array: that of the variable of its name whose first axis it is, or else one without data that is there
//! for nothing else. Which of them is known when the transaction is committed.

use super::object::{Attribute, AttributeValue, Body, Id, NewDimension, Object, Target, Value};
use super::transaction::Transaction;
use crate::dtype::{ByteOrder, CharSet, DType, Field, FloatType, IntegerType, ReferenceKind, StringPadding};
use crate::error::{Error, ErrorKind, Result};
use crate::format::hdf5::message::attribute::AttributeMessage;
use crate::format::hdf5::parse::Cursor;
use crate::model::write::{ArraySpec, LayoutSpec, ObjectPath, TargetPart};
use crate::model::{Dataspace, Dimension};
use crate::shape::Name;
use bytes::Bytes;
use std::collections::BTreeMap;

/// What the name of a scale that is no variable says, in front of the length in ten places.
const NO_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable.";
/// What the link of a variable is called that has the name of a dimension and is not its scale.
const NON_COORDINATE: &str = "_nc4_non_coord_";

fn int32() -> DType {
    DType::Integer(IntegerType::new(4, ByteOrder::Little, true))
}

fn numbers(values: &[i32]) -> Value {
    Value::Fixed(values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>().into())
}

pub(super) fn text(bytes: &[u8]) -> (DType, Value) {
    let mut stored = bytes.to_vec();
    stored.push(0);
    let dtype = DType::String {
        size: stored.len(),
        padding: StringPadding::NullTerminated,
        charset: if bytes.is_ascii() { CharSet::Ascii } else { CharSet::Utf8 },
    };
    (dtype, Value::Fixed(stored.into()))
}

fn list(length: u64) -> Dataspace {
    Dataspace::Simple { dims: vec![length], max: vec![Some(length)] }
}

/// Which arrays use a scale, and for which axis.
type Users = BTreeMap<Id, Vec<(Id, u32)>>;

impl Transaction {
    pub(super) fn create_dimension(&mut self, group: &ObjectPath, dimension: &Dimension) -> Result<()> {
        let path = group.join(dimension.name.clone());
        let id = self.find(group)?;
        self.check_editable(id)?;
        let name = &dimension.name;
        if name.is_empty() || name.as_bytes().iter().any(|&b| b == 0 || b == b'/') {
            return Err(Error::invalid(format!("{name:?} is no name of a dimension")));
        }
        let taken = self.group(id)?.dimensions.iter().any(|d| d.name == *name);
        if taken || self.stored_scale(&path).is_some() {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("the dimension {path} exists")));
        }
        let number = match self.next_dimension {
            Some(number) => number,
            None => self.numbered_dimensions()?,
        };
        self.next_dimension = Some(number.saturating_add(1));
        let (length, unlimited) = (dimension.length, dimension.unlimited);
        let new = NewDimension { name: name.clone(), length, unlimited, number };
        self.group_mut(id)?.dimensions.push(new);
        Ok(())
    }

    /// Fails unless the dimensions of a new array are there and as long as its axes.
    pub(super) fn check_dimensions(&mut self, spec: &ArraySpec) -> Result<()> {
        for (path, &length) in spec.dimensions.iter().zip(spec.space.dims()) {
            let Some(path) = path else { continue };
            let there = match self.new_dimension(path) {
                Some(dimension) => dimension.length,
                None => match self.stored_scale(path) {
                    Some(id) => self.array(id)?.space.dims().first().copied().unwrap_or(0),
                    None => {
                        return Err(Error::new(ErrorKind::NotFound, format!("there is no dimension {path}")));
                    }
                },
            };
            let unlimited = self.new_dimension(path).is_some_and(|d| d.unlimited);
            if there != length && !unlimited {
                return Err(Error::invalid(format!(
                    "an axis of {length} for the dimension {path} of {there}"
                )));
            }
        }
        Ok(())
    }

    fn new_dimension(&mut self, path: &ObjectPath) -> Option<NewDimension> {
        let (group, name) = path.split()?;
        let id = self.find(&group).ok()?;
        self.group(id).ok()?.dimensions.iter().find(|d| d.name == *name).cloned()
    }

    /// The array at a path of the file that is a scale.
    fn stored_scale(&mut self, path: &ObjectPath) -> Option<Id> {
        let id = self.find(path).ok()?;
        self.object(id).ok()?.stored.as_ref()?;
        self.array(id).ok()?;
        self.load_attributes(id).ok()?;
        // Images and tables have one, too.
        let class = self.object(id).ok()?.attributes.iter().find(|a| a.name.as_bytes() == b"CLASS")?;
        data_of(class)?.starts_with(b"DIMENSION_SCALE").then_some(id)
    }

    /// Behind the numbers that the dimensions of the file have.
    fn numbered_dimensions(&mut self) -> Result<i32> {
        let (mut todo, mut seen) = (vec![self.root], std::collections::HashSet::new());
        let (mut next, wanted) = (0i32, Name::from("_Netcdf4Dimid"));
        while let Some(id) = todo.pop() {
            if !seen.insert(id) || self.object(id)?.stored.is_none() {
                continue;
            }
            if let Body::Group(group) = &self.object(id)?.body {
                let names: Vec<Name> = group.links.keys().cloned().collect();
                for name in names {
                    if let Some(Target::Object(child)) = self.child(id, &name)? {
                        todo.push(child);
                    }
                }
                continue;
            }
            self.load_attributes(id)?;
            let found = self.object(id)?.attributes.iter().find(|a| a.name == wanted).cloned();
            if let Some(number) = found.and_then(|a| self.number_in(&a)) {
                next = next.max(number.saturating_add(1));
            }
        }
        Ok(next)
    }

    /// The first element of an attribute of whole numbers of 32 bits, in the byte order that it has.
    fn number_in(&mut self, attribute: &Attribute) -> Option<i32> {
        let bytes = *data_of(attribute)?.first_chunk::<4>()?;
        let dtype = match &attribute.what {
            AttributeValue::New { dtype, .. } => dtype.clone(),
            AttributeValue::Kept { body, .. } => self.parse_attribute(body).ok()?.0,
        };
        match dtype {
            DType::Integer(t) if t.size == 4 && t.order == ByteOrder::Big => Some(i32::from_be_bytes(bytes)),
            DType::Integer(t) if t.size == 4 => Some(i32::from_le_bytes(bytes)),
            _ => None,
        }
    }

    fn set_own(&mut self, id: Id, name: &str, dtype: DType, space: Dataspace, value: Value) -> Result<()> {
        let what = AttributeValue::New { dtype, committed: None, space, value };
        self.put_attribute(id, Name::from(name), what)
    }

    /// Makes the scales of all new dimensions, and tells arrays and scales of each other.
    pub(super) fn make_scales(&mut self) -> Result<()> {
        // Groups by path: dimensions are known by theirs.
        let mut groups = vec![(ObjectPath::root(), self.root)];
        let (mut scales, mut arrays) = (BTreeMap::new(), Vec::new());
        let mut seen = std::collections::HashSet::from([self.root]);
        let mut next = 0;
        while let Some((path, id)) = groups.get(next).cloned() {
            next += 1;
            for dimension in std::mem::take(&mut self.group_mut(id)?.dimensions) {
                let own = path.join(dimension.name.clone());
                let scale = self.scale(id, &own, &dimension)?;
                scales.insert(own, (scale, dimension.number));
            }
            let group = self.group(id)?;
            let below: Vec<(Name, Id, i64)> = group
                .links
                .iter()
                .filter_map(|(name, link)| match link.target {
                    Target::Object(child) => Some((name.clone(), child, link.order)),
                    _ => None,
                })
                .collect();
            for (name, child, _) in below {
                if !seen.insert(child) {
                    continue;
                }
                match &self.object(child)?.body {
                    Body::Group(_) => groups.push((path.join(name), child)),
                    Body::Array(array) if !array.dimensions.is_empty() => arrays.push(child),
                    _ => {}
                }
            }
        }
        let mut users = Users::new();
        arrays.sort();
        for id in arrays {
            self.attach(id, &mut scales, &mut users)?;
        }
        for (scale, users) in users {
            self.add_users(scale, &users)?;
        }
        Ok(())
    }

    /// The array that is the scale of a new dimension, made if there is none.
    fn scale(&mut self, group: Id, path: &ObjectPath, dimension: &NewDimension) -> Result<Id> {
        let NewDimension { name, length, unlimited, number } = dimension;
        let there = match self.group(group)?.links.get(name).map(|l| (l.target.clone(), l.order)) {
            Some((Target::Object(id), order)) => Some((id, order)),
            _ => None,
        };
        let coordinate = match there {
            Some((id, _)) => match &self.object(id)?.body {
                Body::Array(array) => array.dimensions.first().and_then(Option::as_ref) == Some(path),
                _ => false,
            },
            None => false,
        };
        let (id, label) = match there {
            Some((id, _)) if coordinate => (id, name.as_bytes().to_vec()),
            _ => {
                if let Some((_, order)) = there {
                    let aside = Name::from([NON_COORDINATE.as_bytes(), name.as_bytes()].concat());
                    let links = &mut self.group_mut(group)?.links;
                    if links.contains_key(&aside) {
                        return Err(Error::new(ErrorKind::AlreadyExists, format!("{aside} exists")));
                    }
                    if let Some(mut link) = links.remove(name) {
                        link.order = order;
                        links.insert(aside, link);
                    }
                }
                let id = self.scale_without_variable(*length, *unlimited)?;
                self.link((group, name.clone()), Target::Object(id), None)?;
                (id, format!("{NO_VARIABLE}{length:10}").into_bytes())
            }
        };
        let (dtype, value) = text(b"DIMENSION_SCALE");
        self.set_own(id, "CLASS", dtype, Dataspace::Scalar, value)?;
        let (dtype, value) = text(&label);
        self.set_own(id, "NAME", dtype, Dataspace::Scalar, value)?;
        self.set_own(id, "_Netcdf4Dimid", int32(), Dataspace::Scalar, numbers(&[*number]))?;
        Ok(id)
    }

    fn scale_without_variable(&mut self, length: u64, unlimited: bool) -> Result<Id> {
        let float = FloatType::ieee(4, ByteOrder::Big).map(DType::Float);
        let dtype = float.ok_or_else(|| Error::invalid("there is no float of 4 bytes"))?;
        let max = if unlimited { None } else { Some(length) };
        let mut spec = ArraySpec::new(dtype, Dataspace::Simple { dims: vec![length], max: vec![max] });
        if unlimited {
            spec.layout = LayoutSpec::Chunked { chunk: vec![length.clamp(1, 1024)], shard: None };
        }
        let array = self.new_array(&spec)?;
        let tracks = self.options.track_order;
        Ok(self.add(Object::new(Body::Array(Box::new(array)), tracks)))
    }

    /// Says in an array which scales its axes have.
    fn attach(
        &mut self,
        id: Id,
        scales: &mut BTreeMap<ObjectPath, (Id, i32)>,
        users: &mut Users,
    ) -> Result<()> {
        let dimensions = std::mem::take(&mut self.array_mut(id)?.dimensions);
        let mut found = Vec::new();
        for path in &dimensions {
            let scale = match path {
                None => None,
                Some(path) => match scales.get(path) {
                    Some(&scale) => Some(scale),
                    None => {
                        let missing =
                            || Error::new(ErrorKind::NotFound, format!("there is no dimension {path}"));
                        let scale = self.find(path).map_err(|_| missing())?;
                        let number = Name::from("_Netcdf4Dimid");
                        let number =
                            self.object(scale)?.attributes.iter().find(|a| a.name == number).cloned();
                        let scale = (scale, number.and_then(|a| self.number_in(&a)).unwrap_or(0));
                        scales.insert(path.clone(), scale);
                        Some(scale)
                    }
                },
            };
            found.push(scale);
        }
        if found.first().copied().flatten().is_some_and(|(scale, _)| scale == id) {
            // A coordinate variable is a scale, and a scale has none itself.
            if found.len() > 1 {
                let ids: Vec<i32> = found.iter().map(|s| s.map_or(0, |(_, number)| number)).collect();
                self.set_own(id, "_Netcdf4Coordinates", int32(), list(ids.len() as u64), numbers(&ids))?;
            }
            return Ok(());
        }
        let (mut elements, mut targets) = (Vec::new(), Vec::new());
        for (scale, axis) in found.iter().zip(0u32..) {
            let mut element = u64::from(scale.is_some()).to_le_bytes().to_vec();
            if let Some((scale, _)) = scale {
                targets.push((*scale, TargetPart::Object));
                element.extend_from_slice(&(targets.len() as u64).to_le_bytes());
                users.entry(*scale).or_default().push((id, axis));
            }
            elements.push(Bytes::from(element));
        }
        let offset = usize::from(self.disk.sizes().offset);
        let dtype = DType::VarLen {
            size: 8 + offset,
            base: Box::new(DType::Reference { size: offset, kind: ReferenceKind::Object }),
        };
        let count = elements.len() as u64;
        self.set_own(id, "DIMENSION_LIST", dtype, list(count), Value::Objects { elements, targets })
    }

    /// Says in a scale which arrays use it.
    fn add_users(&mut self, scale: Id, users: &[(Id, u32)]) -> Result<()> {
        let offset = usize::from(self.disk.sizes().offset);
        let dtype = DType::Compound {
            size: 2 * offset.max(4),
            fields: vec![
                Field {
                    name: Name::from("dataset"),
                    offset: 0,
                    dtype: DType::Reference { size: offset, kind: ReferenceKind::Object },
                },
                Field { name: Name::from("dimension"), offset: offset.max(4), dtype: int32() },
            ],
        };
        self.load_attributes(scale)?;
        let name = Name::from("REFERENCE_LIST");
        let old = self.object(scale)?.attributes.iter().find(|a| a.name == name).cloned();
        let mut stored = old.as_ref().and_then(data_of).map(|b| b.to_vec()).unwrap_or_default();
        if let Some(Attribute { what: AttributeValue::Kept { body, .. }, .. }) = &old {
            // Signed or not, the number of an axis is the same.
            let (own, ..) = self.parse_attribute(&body.clone())?;
            if !is_reference_list(&own, &dtype) {
                return Err(Error::unsupported("adding to a REFERENCE_LIST of another type"));
            }
        }
        let value = if stored.is_empty() {
            let (mut elements, mut targets) = (Vec::new(), Vec::new());
            for &(array, axis) in users {
                targets.push((array, TargetPart::Object));
                let mut element = (targets.len() as u64).to_le_bytes().to_vec();
                element.extend_from_slice(&axis.to_le_bytes());
                elements.push(Bytes::from(element));
            }
            Value::Objects { elements, targets }
        } else {
            for &(array, axis) in users {
                let address = self.address_of(array)?.to_le_bytes();
                let start = stored.len();
                stored.extend_from_slice(address.get(..offset).unwrap_or(&address));
                stored.resize(start + offset.max(4), 0);
                stored.extend_from_slice(&axis.to_le_bytes());
                stored.resize(start + dtype.size(), 0);
            }
            Value::Fixed(stored.into())
        };
        let count = value.count(dtype.size()) as u64;
        self.set_own(scale, "REFERENCE_LIST", dtype, list(count), value)
    }
}

/// Whether elements of a REFERENCE_LIST of a file are stored as those that are added to it.
fn is_reference_list(own: &DType, added: &DType) -> bool {
    let (DType::Compound { size, fields }, DType::Compound { size: wanted, fields: others }) = (own, added)
    else {
        return false;
    };
    let same = |(a, b): (&Field, &Field)| {
        let number = |dtype: &DType| match dtype {
            DType::Integer(t) => Some((t.size, t.order)),
            _ => None,
        };
        a.offset == b.offset
            && (a.dtype == b.dtype || number(&a.dtype).is_some() && number(&a.dtype) == number(&b.dtype))
    };
    size == wanted && fields.len() == others.len() && fields.iter().zip(others).all(same)
}

/// The elements of an attribute as stored, if they are known.
fn data_of(attribute: &Attribute) -> Option<Bytes> {
    match &attribute.what {
        AttributeValue::New { value: Value::Fixed(bytes), .. } => Some(bytes.clone()),
        AttributeValue::New { .. } => None,
        AttributeValue::Kept { body, .. } => {
            let cursor = Cursor::new(body, "attribute message", 0);
            AttributeMessage::parse(body, cursor, &mut None).ok().map(|m| m.data)
        }
    }
}
