//! Writing: a transaction on a classic netCDF file.
//!
//! The header is kept as it will be, the data where it is. Whenever bytes are about to be written the places are *settled*:
//! a header that fits in front of the data, and variables that are the same, leave everything where it is; otherwise all data
//! is copied to a new file, which takes the place of the old one when it is committed. So an edit of values, a new record or an
//! attribute for which there is room costs what it changes, and nothing is ever moved within a file.

mod data;
mod define;
mod encode;
mod ranges;
#[cfg(test)]
mod tests;

use self::data::Data;
use self::define::Stored;
use self::ranges::Ranges;
use super::header::{Attribute, Dimension, Header, Type, Variable, Version};
use super::hierarchy::NetCdf3;
use crate::codec::{BindContext, Registry};
use crate::error::{Context, Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::model::Dataspace;
use crate::model::write::{
    ArraySpec, AttributeSpec, Change, Committed, Content, EncodedChunk, FillSpec, FillTime, HierarchyWriter,
    ObjectPath, Support, WriteLayout,
};
use crate::shape::{Name, byte_count};
use crate::source::{Source, WriteFile, WriteOptions};
use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a piece of a variable without records.
const PIECE: u64 = 1 << 20;
/// Bytes and rows of a piece of one with records, which an append reads and compares.
const RECORDS: (u64, u64) = (64 << 10, 128);

/// What is known of a variable beside its entry in the header.
#[derive(Clone, Debug)]
struct Extra {
    /// Its number, which stays.
    id: usize,
    /// Bytes of an element as the array has it: several, if texts became characters.
    width: usize,
    /// Whether elements that nobody writes are to be the fill value.
    prefilled: bool,
    /// Bytes that were written, as if records lay one after the other.
    written: Ranges,
}

/// A transaction on a classic netCDF file.
#[derive(Debug)]
pub struct Writer {
    header: Header,
    extras: Vec<Extra>,
    next_id: usize,
    data: Data,
    /// Numbers of the variables in `data`, in order.
    placed: Vec<usize>,
    /// The definitions differ from what is placed.
    changed: bool,
    /// The file that is edited, while its successor is written.
    original: Option<Arc<WriteFile>>,
    /// The length of the header on the disk.
    header_before: u64,
    /// What is there must not grow where it is.
    must_move: bool,
    /// Records after some of those that several arrays share were cut off.
    cut_to: Option<u64>,
    done: Committed,
}

/// Begins a new file. Nothing is seen of it before the commit.
pub fn create(path: impl AsRef<Path>, version: Version, options: &WriteOptions) -> Result<Writer> {
    let header = Header {
        version,
        records: Some(0),
        dimensions: Vec::new(),
        attributes: Vec::new(),
        variables: Vec::new(),
        cut: None,
        odd_padding: Vec::new(),
        length: 0,
    };
    let file = Arc::new(WriteFile::create(path, options)?);
    Writer::new(header, Vec::new(), file)
}

/// Begins to change a file, which is given as it is before too. It is locked until the transaction ends.
///
/// Fails with [`ErrorKind::Truncated`] for a file that is cut short, and with the kinds that damage has for one of which not
/// all variables can be told.
pub fn edit(
    path: impl AsRef<Path>,
    options: &WriteOptions,
    limits: &Limits,
) -> Result<(Arc<NetCdf3>, Writer)> {
    edit_file(Arc::new(WriteFile::edit(path, options)?), limits)
}

/// The same with a file that is open.
pub fn edit_file(file: Arc<WriteFile>, limits: &Limits) -> Result<(Arc<NetCdf3>, Writer)> {
    let name = file.name();
    let before = NetCdf3::open(file.before(), limits).context(|| name.clone())?;
    let mut header = clone_of(before.header());
    if let Some(cut) = &before.header().cut {
        let at = cut.place().map_or(0, |(_, at)| at);
        let text = format!("the file ends in the list of variables: {}", cut.message());
        let error = Error::new(ErrorKind::Truncated, text).at("netCDF header", at);
        return Err(error.context(format!("editing {name}")));
    }
    // A streamed file has as many records as fit into it: a longer file would have more before the commit.
    let streamed = header.records.is_none();
    let layout = super::layout::Layout::new(&header, file.len()?);
    header.records = Some(layout.records);
    let mut extras = Vec::with_capacity(header.variables.len());
    for (id, (variable, place)) in header.variables.iter().zip(&layout.places).enumerate() {
        let frame =
            |e: Error| e.context(format!("variable {}", variable.name)).context(format!("editing {name}"));
        let place = place.as_ref().map_err(|wrong| frame(wrong.error(variable.at)))?;
        if place.length > 0 && place.begin < header.length {
            let text = "its data begins within the header";
            return Err(frame(Error::corrupt("netCDF header", variable.at, text)));
        }
        let end = place.end(layout.records, layout.stride.unwrap_or(0)).unwrap_or(u64::MAX);
        let length = file.len()?;
        if end > length {
            let text = format!("its data ends at {end:#x}, the file at {length:#x}");
            return Err(frame(Error::new(ErrorKind::Truncated, text).at("data", place.begin)).hint(
                "nccopy, of netCDF-C, makes a file of full length of it, with zeros for what is missing",
            ));
        }
        let mut written = Ranges::default();
        written.insert(0, byte_count(&place.dims, place.kind.size()).map_err(frame)?);
        extras.push(Extra { id, width: place.kind.size(), prefilled: true, written });
    }
    let mut writer = Writer::new(header, extras, file)?;
    writer.header_before = writer.header.length;
    writer.must_move = streamed;
    let end = writer.data.end(writer.records()).max(writer.header.length);
    if end < writer.data.file.len()? {
        writer.data.file.set_end_of_state(end)?;
    }
    Ok((before, writer))
}

impl Writer {
    fn new(header: Header, extras: Vec<Extra>, file: Arc<WriteFile>) -> Result<Writer> {
        let placed: Vec<usize> = extras.iter().map(|extra| extra.id).collect();
        let data = Data::new(file, &header, &placed)?;
        let next_id = extras.len();
        let done = Committed::default();
        let (changed, original, header_before, must_move, cut_to) = (false, None, 0, false, None);
        Ok(Writer {
            header,
            extras,
            next_id,
            data,
            placed,
            changed,
            original,
            header_before,
            must_move,
            cut_to,
            done,
        })
    }

    fn records(&self) -> u64 {
        self.header.records.unwrap_or(0)
    }

    /// The number of the variable at a path.
    fn find(&self, path: &ObjectPath) -> Result<usize> {
        let name = define::name_of(path)?.ok_or_else(|| Error::invalid("/ is a group, not an array"))?;
        let found = self.header.variables.iter().position(|v| v.name == *name);
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no {path}")))
    }

    fn variable(&self, number: usize) -> Result<(&Variable, &Extra)> {
        match (self.header.variables.get(number), self.extras.get(number)) {
            (Some(variable), Some(extra)) => Ok((variable, extra)),
            _ => Err(Error::invalid(format!("there is no variable {number}"))),
        }
    }

    /// The name of something new in the root group.
    fn free(&self, path: &ObjectPath) -> Result<Name> {
        let name = define::name_of(path)?
            .ok_or_else(|| Error::new(ErrorKind::AlreadyExists, "the root group is always there"))?;
        define::check_name(name)?;
        if self.header.variables.iter().any(|v| v.name == *name) {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("{path} exists")));
        }
        Ok(name.clone())
    }

    /// Extents of an array, and whether the first counts records.
    fn shape(&self, variable: &Variable, width: usize) -> (Vec<u64>, bool) {
        let (mut shape, is_record) = encode::extents(&self.header, &variable.dimensions);
        if is_record {
            shape.insert(0, self.records());
        }
        // Characters that are a text are one element.
        if width > variable.kind.map_or(1, Type::size) {
            shape.pop();
        }
        (shape, is_record)
    }

    /// Bytes of a variable, all records together.
    fn total(&self, number: usize) -> Result<u64> {
        let (variable, extra) = self.variable(number)?;
        byte_count(&self.shape(variable, extra.width).0, extra.width)
    }

    fn attributes(&mut self, object: &ObjectPath) -> Result<&mut Vec<Attribute>> {
        if object.is_root() {
            return Ok(&mut self.header.attributes);
        }
        let number = self.find(object)?;
        match self.header.variables.get_mut(number) {
            Some(variable) => Ok(&mut variable.attributes),
            None => Err(Error::invalid(format!("there is no {object}"))),
        }
    }

    fn set_attribute(&mut self, object: &ObjectPath, spec: &AttributeSpec) -> Result<()> {
        define::check_name(&spec.name)?;
        let (attribute, _) = define::attribute(spec, self.header.version)?
            .map_err(|why| Error::unsupported(why).context(format!("attribute {} of {object}", spec.name)))?;
        let list = self.attributes(object)?;
        match list.iter_mut().find(|a| a.name == attribute.name) {
            Some(old) => *old = attribute,
            None => list.push(attribute),
        }
        self.changed = true;
        Ok(())
    }

    fn delete_attribute(&mut self, object: &ObjectPath, name: &Name) -> Result<()> {
        let list = self.attributes(object)?;
        let at = list.iter().position(|a| a.name == *name).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no attribute {name} of {object}"))
        })?;
        list.remove(at);
        self.changed = true;
        Ok(())
    }

    fn create_dimension(&mut self, group: &ObjectPath, wanted: &crate::model::Dimension) -> Result<()> {
        if !group.is_root() {
            return Err(Error::unsupported(format!("the group {group} in netCDF-3, which has no groups")));
        }
        define::check_name(&wanted.name)?;
        if self.header.dimensions.iter().any(|d| d.name == wanted.name) {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("there is a dimension {}", wanted.name),
            ));
        }
        let before = self.records();
        match (wanted.unlimited, wanted.length) {
            (true, length) if self.record_dimension().is_none() => {
                self.header.records = Some(before.max(length));
                self.header.dimensions.push(Dimension { name: wanted.name.clone(), length: 0 });
            }
            (true, _) => {
                return Err(Error::unsupported(format!(
                    "the unlimited dimension {} beside another one in netCDF-3",
                    wanted.name
                )));
            }
            (false, 0) => {
                let text = format!(
                    "the dimension {} of length 0 in netCDF-3, where that means unlimited",
                    wanted.name
                );
                return Err(Error::unsupported(text));
            }
            (false, length) => {
                let most = match self.header.version {
                    Version::Data64 => i64::MAX as u64,
                    _ => i32::MAX as u64,
                };
                if length > most {
                    let text = format!("the dimension {} of length {length}", wanted.name);
                    return Err(Error::unsupported(format!(
                        "{text} in CDF-{}",
                        self.header.version.number()
                    ))
                    .hint("CDF-5 has lengths of 64 bits"));
                }
                self.header.dimensions.push(Dimension { name: wanted.name.clone(), length });
            }
        }
        self.changed = true;
        self.check_places().inspect_err(|_| {
            self.header.dimensions.pop();
            self.header.records = Some(before);
        })
    }

    fn record_dimension(&self) -> Option<usize> {
        self.header.dimensions.iter().position(|d| d.length == 0)
    }

    /// Fails if the version has no numbers for the places of all variables.
    fn check_places(&mut self) -> Result<()> {
        // Far below the limits there is nothing to be worked out.
        let small = |number| self.total(number).is_ok_and(|n| n < 1 << 20);
        let (count, version) = (self.header.variables.len(), self.header.version);
        if version == Version::Data64 || (count < 1000 && (0..count).all(small)) {
            return Ok(());
        }
        let begins: Vec<(u64, u64)> = self.header.variables.iter().map(|v| (v.begin, v.size)).collect();
        let length = self.header.length;
        let done = encode::place(&mut self.header, 0);
        for (variable, (begin, size)) in self.header.variables.iter_mut().zip(begins) {
            (variable.begin, variable.size) = (begin, size);
        }
        self.header.length = length;
        done
    }

    /// A dimension for an axis without one: of this length, or the one for records.
    fn anonymous(&mut self, length: u64, unlimited: bool, prefix: &str) -> usize {
        let name = if unlimited { "record".to_owned() } else { format!("{prefix}{length}") };
        let wanted = if unlimited { 0 } else { length };
        if unlimited && let Some(number) = self.record_dimension() {
            return number;
        }
        for suffix in 0u64.. {
            let name = if suffix == 0 { name.clone() } else { format!("{name}_{suffix}") };
            match self.header.dimensions.iter().position(|d| d.name.as_bytes() == name.as_bytes()) {
                Some(number) if self.header.dimensions.get(number).is_some_and(|d| d.length == wanted) => {
                    return number;
                }
                Some(_) => {}
                None => {
                    self.header
                        .dimensions
                        .push(Dimension { name: Name::from(name.as_str()), length: wanted });
                    break;
                }
            }
        }
        self.header.dimensions.len().saturating_sub(1)
    }

    fn create_array(&mut self, path: &ObjectPath, spec: &ArraySpec) -> Result<()> {
        let name = self.free(path)?;
        let refused = |why: String| Error::unsupported(why).context(format!("array {path}"));
        let change = Change::CreateArray { path: path.clone(), spec: Box::new(spec.clone()) };
        if let Support::Dropped(why) = define::support(&change, self.header.version)? {
            return Err(refused(why));
        }
        let stored = define::stored(&spec.dtype, self.header.version).map_err(refused)?;
        let fill = define::fill(spec, stored).map_err(refused)?;
        let (dimensions, records) = (self.header.dimensions.len(), self.records());
        let back = |writer: &mut Writer, e: Error| {
            writer.header.dimensions.truncate(dimensions);
            writer.header.records = Some(records);
            e.context(format!("array {path}"))
        };
        let axes = match self.axes(spec, stored) {
            Ok(axes) => axes,
            Err(e) => return Err(back(self, e)),
        };
        let attributes =
            fill.map(|data| Attribute { name: "_FillValue".into(), kind: stored.kind, count: 1, data });
        let at = self.next_id as u64;
        self.header.variables.push(Variable {
            name,
            dimensions: axes,
            attributes: attributes.into_iter().collect(),
            kind: Ok(stored.kind),
            size: 0,
            begin: 0,
            at,
        });
        let prefilled = spec.fill != FillSpec::Undefined && spec.fill_time != Some(FillTime::Never);
        let written = Ranges::default();
        self.extras.push(Extra { id: self.next_id, width: stored.width, prefilled, written });
        if let Err(e) = self.check_places() {
            self.header.variables.pop();
            self.extras.pop();
            return Err(back(self, e));
        }
        self.next_id += 1;
        self.changed = true;
        Ok(())
    }

    /// Numbers of the dimensions of a new array; new ones for axes that have none.
    fn axes(&mut self, spec: &ArraySpec, stored: Stored) -> Result<Vec<u64>> {
        let (dims, max): (&[u64], &[Option<u64>]) = match &spec.space {
            Dataspace::Simple { dims, max } => (dims, max),
            _ => (&[], &[]),
        };
        if !spec.dimensions.is_empty() && spec.dimensions.len() != dims.len() {
            let text = format!("{} dimensions for {} axes", spec.dimensions.len(), dims.len());
            return Err(Error::invalid(text));
        }
        let mut axes = Vec::with_capacity(dims.len() + 1);
        for (axis, &length) in dims.iter().enumerate() {
            let unlimited = max.get(axis).is_some_and(Option::is_none);
            let number = match spec.dimensions.get(axis).and_then(Option::as_ref) {
                Some(path) => self.named_axis(path, axis, length, unlimited)?,
                None if unlimited => {
                    let (records, others) = (self.records(), self.has_records());
                    if others && records != length {
                        let text = format!(
                            "{length} records in a netCDF-3 file in which other arrays have {records}"
                        );
                        return Err(Error::unsupported(text));
                    }
                    self.header.records = Some(records.max(length));
                    self.anonymous(length, true, "")
                }
                None if length == 0 => {
                    return Err(Error::unsupported("an axis of fixed length 0 in netCDF-3"));
                }
                None => self.anonymous(length, false, "dim_"),
            };
            axes.push(number as u64);
        }
        if stored.kind == Type::Char && stored.width > 1 {
            axes.push(self.anonymous(stored.width as u64, false, "string") as u64);
        }
        Ok(axes)
    }

    fn has_records(&self) -> bool {
        !self.record_arrays().is_empty()
    }

    /// The numbers of all arrays with records.
    fn record_arrays(&self) -> Vec<usize> {
        let all = self.header.variables.iter().enumerate();
        all.filter(|(_, v)| encode::extents(&self.header, &v.dimensions).1)
            .map(|(number, _)| number)
            .collect()
    }

    fn named_axis(&mut self, path: &ObjectPath, axis: usize, length: u64, unlimited: bool) -> Result<usize> {
        let name = define::name_of(path)?.ok_or_else(|| Error::invalid("the root is no dimension"))?;
        let number = self.header.dimensions.iter().position(|d| d.name == *name);
        let number =
            number.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no dimension {path}")))?;
        let records = self.records();
        match self.header.dimensions.get(number).map_or(0, |d| d.length) {
            0 if axis > 0 => {
                Err(Error::unsupported(format!("the unlimited dimension {path} as axis {axis} in netCDF-3")))
            }
            0 => {
                self.header.records = Some(records.max(length));
                Ok(number)
            }
            fixed if fixed != length => {
                Err(Error::invalid(format!("axis {axis} is {length} long, its dimension {path} is {fixed}")))
            }
            _ if unlimited => {
                Err(Error::unsupported(format!("an unlimited axis on the dimension {path} of fixed length")))
            }
            _ => Ok(number),
        }
    }

    fn delete(&mut self, path: &ObjectPath) -> Result<()> {
        if path.is_root() {
            return Err(Error::invalid("the root group cannot be removed"));
        }
        let number = self.find(path)?;
        self.header.variables.remove(number);
        self.extras.remove(number);
        self.changed = true;
        Ok(())
    }

    fn rename(&mut self, from: &ObjectPath, to: &ObjectPath) -> Result<()> {
        let number = self.find(from)?;
        let name = self.free(to)?;
        if let Some(variable) = self.header.variables.get_mut(number) {
            variable.name = name;
        }
        self.changed = true;
        Ok(())
    }

    fn copy_object(&mut self, from: &ObjectPath, to: &ObjectPath) -> Result<()> {
        let number = self.find(from)?;
        let name = self.free(to)?;
        let (variable, extra) = self.variable(number)?;
        let (mut variable, mut extra) = (variable.clone(), extra.clone());
        let source = extra.id;
        (variable.name, variable.at) = (name, self.next_id as u64);
        extra.id = self.next_id;
        let written = std::mem::take(&mut extra.written);
        self.header.variables.push(variable);
        self.extras.push(extra);
        self.next_id += 1;
        self.changed = true;
        let id = self.next_id.saturating_sub(1);
        let done = self.check_places().and_then(|()| self.settle());
        if done.is_err() {
            self.header.variables.pop();
            self.extras.pop();
            return done;
        }
        self.data.copy(source, &self.data, id, &written)?;
        if let Some(extra) = self.extras.last_mut() {
            extra.written = written;
        }
        Ok(())
    }

    fn resize(&mut self, array: &ObjectPath, wanted: &[u64]) -> Result<()> {
        let number = self.find(array)?;
        let (variable, extra) = self.variable(number)?;
        let (shape, is_record) = self.shape(variable, extra.width);
        if shape == wanted {
            return Ok(());
        }
        let rest = |shape: &[u64]| shape.get(1..).map(<[u64]>::to_vec);
        if !is_record || shape.len() != wanted.len() || rest(&shape) != rest(wanted) {
            let text = format!(
                "other extents than those of its records for {array} in netCDF-3: {shape:?} to {wanted:?}"
            );
            return Err(Error::unsupported(text));
        }
        let (before, after) = (self.records(), wanted.first().copied().unwrap_or(0));
        let is_shared = self.record_arrays().len() > 1;
        self.header.records = Some(after);
        if let Err(e) = self.check_places() {
            self.header.records = Some(before);
            return Err(e.context(format!("array {array}")));
        }
        if after < before && is_shared {
            self.cut_to = Some(self.cut_to.map_or(after, |n| n.min(after)));
        }
        // The records of all arrays are the same ones.
        for number in self.record_arrays() {
            let total = self.total(number)?;
            if let Some(extra) = self.extras.get_mut(number) {
                extra.written.truncate(total);
            }
        }
        Ok(())
    }

    /// Why a change cannot be made, and the way out if another version could keep it.
    fn refused(&self, change: &Change, why: String) -> Result<Error> {
        let newer = define::support(change, Version::Data64)?;
        let error = Error::unsupported(why);
        Ok(match newer {
            Support::Dropped(_) => error,
            _ => error
                .hint("CDF-5 has it: hyperslab copy FILE FILE --to cdf5 --overwrite writes the file anew"),
        })
    }

    /// Gives everything a place, before bytes are written.
    fn settle(&mut self) -> Result<()> {
        if !self.changed && !self.must_move {
            return Ok(());
        }
        let ids: Vec<usize> = self.extras.iter().map(|extra| extra.id).collect();
        let length = encode::encode(&self.header).len() as u64;
        if !self.must_move && ids == self.placed && length <= self.data.first && !ids.is_empty() {
            self.header.length = length;
        } else if self.extras.iter().all(|extra| extra.written.is_empty()) && !self.must_move {
            // No data begins where the header was that is there.
            encode::place(&mut self.header, self.header_before.saturating_sub(length))?;
            self.data = Data::new(self.data.file.clone(), &self.header, &ids)?;
        } else {
            // Whoever edits a file may do so again.
            let is_edit = self.original.is_some() || self.header_before > 0;
            let room = if is_edit { (length / 4).next_multiple_of(512) } else { 0 };
            encode::place(&mut self.header, room)?;
            let file = Arc::new(self.data.file.successor()?);
            let data = Data::new(file, &self.header, &ids)?;
            for extra in self.extras.iter().filter(|extra| !extra.written.is_empty()) {
                self.data.copy(extra.id, &data, extra.id, &extra.written)?;
            }
            let old = std::mem::replace(&mut self.data, data);
            self.original.get_or_insert(old.file);
            self.header_before = 0;
            self.must_move = false;
        }
        self.placed = ids;
        self.changed = false;
        Ok(())
    }

    /// Writes the fill value wherever nobody has written.
    fn fill(&mut self) -> Result<()> {
        for number in 0..self.extras.len() {
            let total = self.total(number)?;
            let (variable, extra) = self.variable(number)?;
            if extra.prefilled {
                let element = fill_element(variable);
                for (start, end) in extra.written.gaps(total) {
                    self.data.fill(extra.id, start, end, &element)?;
                }
            }
        }
        Ok(())
    }
}

/// What stands for elements that were never written.
fn fill_element(variable: &Variable) -> Bytes {
    let Ok(kind) = variable.kind else { return Bytes::new() };
    let own = variable.attributes.iter().find(|a| a.name.as_bytes() == b"_FillValue");
    let own = own.filter(|a| a.kind == kind && a.count == 1).map(|a| a.data.clone());
    own.unwrap_or_else(|| Bytes::from_static(kind.fill()))
}

impl HierarchyWriter for Writer {
    fn format(&self) -> &'static str {
        match self.header.version {
            Version::Classic => "netCDF-3 classic",
            Version::Offset64 => "netCDF-3 64-bit offset",
            Version::Data64 => "netCDF-3 64-bit data",
        }
    }

    fn support(&self, change: &Change) -> Result<Support> {
        define::support(change, self.header.version)
    }

    fn apply(&mut self, change: Change) -> Result<()> {
        if let Support::Dropped(why) = define::support(&change, self.header.version)? {
            return Err(self.refused(&change, why)?);
        }
        match change {
            Change::CreateDimension { group, dimension } => self.create_dimension(&group, &dimension),
            Change::CreateArray { path, spec } => self.create_array(&path, &spec),
            Change::SetAttribute { object, attribute } => self.set_attribute(&object, &attribute),
            Change::DeleteAttribute { object, name } => self.delete_attribute(&object, &name),
            Change::Delete { path } => self.delete(&path),
            Change::Rename { from, to } => self.rename(&from, &to),
            Change::CopyObject { from, to } => self.copy_object(&from, &to),
            Change::Resize { array, shape } => self.resize(&array, &shape),
            other => Err(Error::unsupported(format!("{other:?} in netCDF-3"))),
        }
    }

    fn layout(&self, array: &ObjectPath) -> Result<WriteLayout> {
        let (variable, extra) = self.variable(self.find(array)?)?;
        let kind = variable.kind.map_err(|number| Error::unsupported(format!("the type {number}")))?;
        let (shape, is_record) = self.shape(variable, extra.width);
        let dtype = if kind == Type::Char { super::header::text(extra.width) } else { kind.dtype() };
        let mut chunk = define::pieces(&shape, is_record, extra.width, PIECE);
        if is_record && let Some((rows, rest)) = chunk.split_first_mut() {
            let most = RECORDS.0 / byte_count(rest, extra.width)?.max(1);
            *rows = most.clamp(1, RECORDS.1).min(*rows);
        }
        let context =
            BindContext { dtype: &dtype, chunk: &chunk, chunk_bytes: byte_count(&chunk, extra.width)? };
        let pipeline = Arc::new(Registry::default().pipeline(&[], &context)?);
        let fill = define::repeated(&fill_element(variable), extra.width)?;
        let (block, may_skip_fill) = (vec![1; shape.len()], extra.prefilled);
        Ok(WriteLayout { dtype, shape, chunk, block, cut_edges: true, fill, may_skip_fill, pipeline })
    }

    fn flatten(&mut self, array: &ObjectPath, _content: &Content) -> Result<Bytes> {
        Err(Error::unsupported(format!("elements of variable length of {array} in netCDF-3")))
    }

    fn write_chunks(&mut self, array: &ObjectPath, chunks: Vec<EncodedChunk>) -> Result<()> {
        let layout = self.layout(array)?;
        let number = self.find(array)?;
        self.settle()?;
        let (_, extra) = self.variable(number)?;
        let (id, width) = (extra.id, extra.width);
        for chunk in chunks {
            let frame = || format!("chunk {:?} of {array}", chunk.coord);
            let within = chunk.coord.len() == layout.shape.len()
                && chunk.coord.iter().zip(layout.grid()).all(|(&c, n)| c < n);
            if !within {
                return Err(Error::new(ErrorKind::OutOfBounds, format!("{} is outside of it", frame())));
            }
            let (start, extent) = (layout.start_of(&chunk.coord), layout.valid_of(&chunk.coord));
            let length = byte_count(&extent, width)?;
            // A piece is whole rows of the last axes, and so one run of bytes.
            let first = start
                .iter()
                .zip(&layout.shape)
                .try_fold(0u64, |n, (&at, &d)| n.checked_mul(d)?.checked_add(at));
            let offset = first.and_then(|n| n.checked_mul(width as u64));
            let offset = offset.ok_or_else(|| Error::invalid(format!("{} is beyond any file", frame())))?;
            match &chunk.bytes {
                Some(bytes) if bytes.len() as u64 == length => self.data.write(id, offset, bytes)?,
                Some(bytes) => {
                    let text = format!("{} has {} bytes instead of {length}", frame(), bytes.len());
                    return Err(Error::invalid(text));
                }
                None => self.data.fill(id, offset, offset.saturating_add(length), &layout.fill)?,
            }
            if let Some(extra) = self.extras.get_mut(number) {
                extra.written.insert(offset, offset.saturating_add(length));
            }
            self.done.bytes = self.done.bytes.saturating_add(length);
            self.done.chunks += 1;
        }
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<Committed> {
        if let Some(cut) = self.cut_to.filter(|&cut| self.records() > cut) {
            let text = format!("fewer records ({cut}) and then more of them in one edit of netCDF-3");
            return Err(Error::unsupported(text).hint("commit the first, and begin another edit"));
        }
        // The last chance for what grew since.
        encode::place(&mut clone_of(&self.header), 0)?;
        self.settle()?;
        self.fill()?;
        let mut bytes = encode::encode(&self.header);
        self.done.bytes = self.done.bytes.saturating_add(bytes.len() as u64);
        let end = self.data.end(self.records()).max(bytes.len() as u64);
        // Nothing of a longer header may be left.
        let before = self.header_before.min(self.data.first).min(1 << 30) as usize;
        if bytes.len() < before {
            bytes.resize(before, 0);
        }
        let file = &self.data.file;
        file.write_at(0, &bytes)?;
        file.set_len(end)?;
        if let Some(original) = &self.original {
            original.abandon()?;
        }
        file.commit()?;
        Ok(self.done)
    }
}

/// The same definitions once more.
fn clone_of(header: &Header) -> Header {
    Header {
        version: header.version,
        records: header.records,
        dimensions: header.dimensions.clone(),
        attributes: header.attributes.clone(),
        variables: header.variables.clone(),
        cut: None,
        odd_padding: Vec::new(),
        length: header.length,
    }
}
