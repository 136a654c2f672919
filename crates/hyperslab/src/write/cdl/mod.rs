//! Files of CDL: what `ncgen` does, for every format.
//!
//! `types` finds types by their names, `value` turns what is written into elements, `data` lays these out and works out how
//! long unlimited dimensions are, `attribute` and `special` do the same for attributes that are some and those that say
//! how things are stored, `time` reads times that
//! are written as texts, and `kind` chooses a format.

mod attribute;
mod data;
mod kind;
mod special;
#[cfg(test)]
mod tests;
mod time;
mod types;
mod value;

use super::{Fit, Format, Transaction};
use crate::convention::netcdf::cdl::{self, Attribute, Data, Dataset, Group, Item, Variable};
use crate::dtype::{ByteOrder, DType, StringPadding};
use crate::error::{Context, Error, Result};
use crate::exec::encode::{ChunkData, NewChunk};
use crate::limits::Limits;
use crate::model::write::{ArraySpec, AttributeSpec, Change, Content, FillSpec, ObjectPath, Support};
use crate::model::{Dataspace, Dimension};
use crate::shape::{Name, element_count};
use data::Axis;
use special::{Special, is_special};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use types::Known;

/// What becomes of a string that is none, where there is no such thing.
const NIL: &str = "NIL is written as an empty string";

/// A text in CDL, from which files can be made.
#[derive(Debug)]
pub struct Cdl<'a> {
    source: Source<'a>,
    dataset: Dataset,
    /// Whether netCDF-4 is to have no more than classic netCDF has, if not the text is to say so.
    classic_model: Option<bool>,
}

/// The text, to tell places in it.
#[derive(Debug)]
struct Source<'a> {
    text: &'a [u8],
    limits: Limits,
}

impl Source<'_> {
    /// An error at the `n`-th value from `at` on.
    fn wrong(&self, at: usize, n: usize, what: impl fmt::Display) -> Error {
        Error::invalid(format!("{}: {what}", self.place(at, n)))
    }

    fn place(&self, at: usize, n: usize) -> String {
        let (line, column) = cdl::place(self.text, at, n);
        format!("line {line}, column {column}")
    }
}

/// A group and where it is.
struct Place<'a> {
    group: &'a Group,
    path: ObjectPath,
    /// The group around it.
    parent: Option<usize>,
    source: &'a Source<'a>,
}

impl Place<'_> {
    fn wrong(&self, at: usize, n: usize, what: impl fmt::Display) -> Error {
        self.source.wrong(at, n, what)
    }
}

/// A dimension that is declared.
struct Declared {
    group: usize,
    path: ObjectPath,
    length: Option<u64>,
    /// How long it is, given what variables hold.
    now: u64,
    at: usize,
}

/// A variable and what is known of it.
struct Planned<'a> {
    group: usize,
    variable: &'a Variable,
    path: ObjectPath,
    dtype: DType,
    committed: Option<ObjectPath>,
    /// Its dimensions, as places among all.
    dimensions: Vec<usize>,
    special: Special,
    data: Option<&'a Data>,
    /// Its values, if they are not those of `data`.
    rows: Option<Vec<Item>>,
}

impl<'a> Cdl<'a> {
    /// Reads CDL: see [`cdl::parse`].
    pub fn parse(text: &'a [u8], limits: &Limits) -> Result<Cdl<'a>> {
        let dataset = cdl::parse(text, limits)?;
        Ok(Cdl { source: Source { text, limits: limits.clone() }, dataset, classic_model: None })
    }

    /// Whether netCDF-4 that is written has to be of the *classic model*: no groups, no types and no second unlimited
    /// dimension, and marked as such. Without this it is as the attribute `_Format` of the text says.
    #[must_use]
    pub fn with_classic_model(mut self, classic_model: bool) -> Self {
        self.classic_model = Some(classic_model);
        self
    }

    fn is_classic_model(&self, format: Format) -> bool {
        let wanted = self.classic_model.unwrap_or_else(|| kind::is_classic_model(&self.dataset.root));
        wanted && format == Format::NetCdf4
    }

    /// What the text says.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// The format that the text asks for with `_Format`, or else the least of classic netCDF, CDF-2, CDF-5 and netCDF-4
    /// that holds all that it says.
    pub fn format(&self) -> Result<Format> {
        match kind::said(&self.dataset.root) {
            Ok(Some((format, _))) => Ok(format),
            Ok(None) => kind::least(&self.dataset),
            Err((attribute, text)) => {
                let what = format!("_Format is {text:?}, which is no format");
                Err(self
                    .source
                    .wrong(attribute.at, 0, what)
                    .hint("formats are classic, 64-bit offset, cdf5, netCDF-4 and netCDF-4 classic model"))
            }
        }
    }

    /// Writes everything to a new file of this format, which is there once the transaction is committed. Gives what is kept
    /// in other words than those of the text, or not at all because it only says how something is stored.
    ///
    /// Fails with [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument), line and column for values that do not fit their types, names that are not
    /// declared, and more values than there is room for; with
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for what the format has not.
    pub fn write_to(&self, transaction: &mut Transaction, format: Format) -> Result<Vec<String>> {
        let classic_model = self.is_classic_model(format);
        if classic_model && let Some((at, what)) = kind::beyond_classic(&self.dataset) {
            return Err(Error::unsupported(format!(
                "{}: {what} in the classic model",
                self.source.place(at, 0)
            ))
            .hint("choose --kind netcdf4"));
        }
        let places = self.places()?;
        let mut known = Vec::new();
        for group in 0..places.len() {
            types::define(&mut known, &places, group)?;
        }
        let mut dimensions = self.dimensions(&places)?;
        let mut planned = self.variables(&places, &known, &dimensions, format)?;
        attach_data(&places, &mut planned)?;
        self.measure(&planned, &mut dimensions)?;
        let mut maker = Maker {
            source: &self.source,
            transaction,
            format,
            classic_model,
            places: &places,
            known: &known,
            dimensions: &dimensions,
            notes: BTreeMap::new(),
        };
        maker.structure()?;
        for variable in &planned {
            let fill = maker.variable(variable)?;
            maker.data(variable, fill)?;
        }
        Ok(maker
            .notes
            .into_iter()
            .map(|(why, (first, count))| match count {
                1 => format!("{first}: {why}"),
                more => format!("{first} and {} more: {why}", more - 1),
            })
            .collect())
    }

    /// All groups, each behind the one around it.
    fn places(&self) -> Result<Vec<Place<'_>>> {
        let source = &self.source;
        let mut places = Vec::new();
        let mut todo = vec![(&self.dataset.root, ObjectPath::root(), None)];
        while let Some((group, path, parent)) = todo.pop() {
            let number = places.len();
            for inner in group.groups.iter().rev() {
                check_name(source, &inner.name, None)?;
                todo.push((inner, path.join(inner.name.as_str()), Some(number)));
            }
            places.push(Place { group, path, parent, source });
        }
        Ok(places)
    }

    fn dimensions(&self, places: &[Place<'_>]) -> Result<Vec<Declared>> {
        let mut all = Vec::new();
        for (number, place) in places.iter().enumerate() {
            for dimension in &place.group.dimensions {
                check_name(&self.source, &dimension.name, Some(dimension.at))?;
                all.push(Declared {
                    group: number,
                    path: place.path.join(dimension.name.as_str()),
                    length: dimension.length,
                    now: dimension.length.unwrap_or(0),
                    at: dimension.at,
                });
            }
        }
        Ok(all)
    }

    fn variables<'b>(
        &'b self,
        places: &'b [Place<'b>],
        known: &[Known],
        dimensions: &[Declared],
        format: Format,
    ) -> Result<Vec<Planned<'b>>> {
        let by_name: HashMap<(usize, &[u8]), usize> = dimensions
            .iter()
            .enumerate()
            .filter_map(|(i, d)| Some(((d.group, d.path.names().last()?.as_bytes()), i)))
            .collect();
        let mut all = Vec::new();
        for (group, place) in places.iter().enumerate() {
            for variable in &place.group.variables {
                check_name(&self.source, &variable.name, Some(variable.at))?;
                let (dtype, committed) = types::resolve(known, places, group, &variable.kind, variable.at)?;
                let mut found = Vec::new();
                for name in &variable.dimensions {
                    let dimension = if name.starts_with('/') {
                        dimensions.iter().position(|d| d.path.to_string() == *name)
                    } else {
                        let mut at = Some(group);
                        std::iter::from_fn(|| {
                            let group = at?;
                            at = places.get(group).and_then(|p| p.parent);
                            Some(by_name.get(&(group, name.as_bytes())).copied())
                        })
                        .flatten()
                        .next()
                    };
                    found.push(dimension.ok_or_else(|| {
                        let what = format!("{name}, of the variable {}, is no dimension", variable.name);
                        place
                            .wrong(variable.at, 0, what)
                            .hint("declare it under dimensions: of this group or of one around it")
                    })?);
                }
                let special = Special::of(&variable.attributes, found.len(), place)?;
                all.push(Planned {
                    group,
                    variable,
                    path: place.path.join(variable.name.as_str()),
                    dtype: if is_classic(format) {
                        types::in_order(&dtype, ByteOrder::Big)
                    } else {
                        special.dtype(dtype)
                    },
                    committed: committed.filter(|_| is_hdf5(format)),
                    dimensions: found,
                    special,
                    data: None,
                    rows: None,
                });
            }
        }
        Ok(all)
    }

    /// Makes unlimited dimensions as long as the longest variable.
    fn measure(&self, planned: &[Planned<'_>], dimensions: &mut [Declared]) -> Result<()> {
        for p in planned {
            let Some((at, values)) = p.values() else { continue };
            let axes = axes(p, dimensions);
            let lengths = data::measure(&self.source, &p.dtype, &axes, values)
                .context(|| format!("{}, variable {}", self.source.place(at, 0), p.path))?;
            for (&number, length) in p.dimensions.iter().zip(lengths) {
                if let Some(dimension) = dimensions.get_mut(number) {
                    dimension.now = dimension.now.max(length);
                }
            }
        }
        Ok(())
    }
}

/// Whether it is one of the forms of netCDF-3, in which numbers begin with their most significant byte.
fn is_classic(format: Format) -> bool {
    matches!(format, Format::NetCdf3 | Format::Cdf2 | Format::Cdf5)
}

/// Whether it has named types, and texts that are none.
fn is_hdf5(format: Format) -> bool {
    matches!(format, Format::Hdf5 | Format::NetCdf4)
}

/// Fails for what is no name of an object.
fn check_name(source: &Source<'_>, name: &str, at: Option<usize>) -> Result<()> {
    if !name.is_empty() && !name.contains('/') && !matches!(name, "." | "..") {
        return Ok(());
    }
    let what = format!("{name:?} is no name of a group, dimension or variable");
    Err(at.map_or_else(|| Error::invalid(what.clone()), |at| source.wrong(at, 0, &what)))
}

fn axes(planned: &Planned<'_>, dimensions: &[Declared]) -> Vec<Axis> {
    let axis = |&number: &usize| {
        dimensions.get(number).map(|d| Axis { length: d.now, unlimited: d.length.is_none() })
    };
    planned.dimensions.iter().filter_map(axis).collect()
}

/// Finds the variables that values are of.
fn attach_data<'a>(places: &'a [Place<'a>], planned: &mut [Planned<'a>]) -> Result<()> {
    let by_path: HashMap<String, usize> =
        planned.iter().enumerate().map(|(i, p)| (p.path.to_string(), i)).collect();
    for place in places {
        for data in &place.group.data {
            let name = &data.variable;
            let path = if name.starts_with('/') {
                name.clone()
            } else {
                let group = place.path.to_string();
                format!("{}/{name}", group.trim_end_matches('/'))
            };
            let found = by_path.get(&path).and_then(|&i| planned.get_mut(i));
            let Some(found) = found else {
                return Err(place.wrong(data.at, 0, format!("values of {name}, which is no variable")));
            };
            if found.data.is_some() {
                return Err(place.wrong(data.at, 0, format!("values of {name} for a second time")));
            }
            found.data = Some(data);
            if matches!(found.dtype, DType::Integer(_) | DType::Float(_))
                && data.values.iter().any(time::has_text)
            {
                let times = time::times(place.group, found.variable);
                found.rows = times.map(|times| time::numbers(&times, &data.values));
            }
            if types::is_character(&found.dtype) && data.values.iter().any(has_line) {
                let continued = cdl::continued(place.source.text, data.at);
                found.rows = Some(joined(&data.values, &mut continued.into_iter()));
            }
        }
    }
    Ok(())
}

impl Planned<'_> {
    /// Its values, and where they stand.
    fn values(&self) -> Option<(usize, &[Item])> {
        let data = self.data?;
        Some((data.at, self.rows.as_deref().unwrap_or(&data.values)))
    }
}

/// Whether a text ends a line. The parser bounds the depth of lists.
fn has_line(item: &Item) -> bool {
    match item {
        Item::Text(text) => text.ends_with(b"\n"),
        Item::List(items) => items.iter().any(has_line),
        _ => false,
    }
}

/// Values with the texts that go on in one.
fn joined(items: &[Item], continued: &mut dyn Iterator<Item = bool>) -> Vec<Item> {
    let mut all: Vec<Item> = Vec::with_capacity(items.len());
    for item in items {
        if let Item::List(inner) = item {
            all.push(Item::List(joined(inner, continued)));
            continue;
        }
        let goes_on = continued.next().unwrap_or(false);
        match (all.last_mut(), item) {
            (Some(Item::Text(row)), Item::Text(more)) if goes_on => row.extend_from_slice(more),
            _ => all.push(item.clone()),
        }
    }
    all
}

/// Writes what is planned.
struct Maker<'a> {
    source: &'a Source<'a>,
    transaction: &'a mut Transaction,
    format: Format,
    classic_model: bool,
    places: &'a [Place<'a>],
    known: &'a [Known],
    dimensions: &'a [Declared],
    /// What is kept in other words: the first object of which it is so, and of how many.
    notes: BTreeMap<String, (String, usize)>,
}

impl Maker<'_> {
    fn note(&mut self, object: String, why: String) {
        self.notes.entry(why).or_insert((object, 0)).1 += 1;
    }

    /// Makes a change that the text asks for at `at`.
    fn apply(&mut self, at: usize, object: String, change: Change) -> Result<()> {
        let place = || format!("{}, {object}", self.source.place(at, 0));
        match self.transaction.support(&change).context(place)? {
            Support::Kept => {}
            // These are what netCDF is made of there.
            Support::Mapped(_) if is_hdf5(self.format) => {}
            Support::Mapped(why) => self.note(object.clone(), why),
            Support::Dropped(why) => {
                return Err(Error::unsupported(why)
                    .context(place())
                    .hint("choose another --kind: netcdf4 holds everything that CDL can say"));
            }
        }
        self.transaction.apply(change).context(place)
    }

    /// Groups, types and dimensions, and the attributes of groups.
    fn structure(&mut self) -> Result<()> {
        for (number, place) in self.places.iter().enumerate() {
            if !place.path.is_root() {
                let change = Change::CreateGroup { path: place.path.clone() };
                self.apply(0, format!("group {}", place.path), change)?;
            }
            for (known, user) in self.known.iter().filter(|k| k.group == number).zip(&place.group.types) {
                let change = Change::CommitType { path: known.path.clone(), dtype: known.dtype.clone() };
                let object = format!("type {}", known.path);
                if self.format.is_zarr() {
                    self.note(object, "Zarr has no named types; what is of it has its own".into());
                    continue;
                }
                self.apply(user.at(), object, change)?;
            }
        }
        for declared in self.dimensions {
            let Some((group, name)) = declared.path.split() else { continue };
            let dimension =
                Dimension { name: name.clone(), length: declared.now, unlimited: declared.length.is_none() };
            let change = Change::CreateDimension { group, dimension };
            self.apply(declared.at, format!("dimension {}", declared.path), change)?;
        }
        for (number, place) in self.places.iter().enumerate() {
            for attribute in &place.group.attributes {
                if place.path.is_root() && is_special(attribute, false) {
                    continue;
                }
                let spec = attribute::attribute(attribute, None, self.known, self.places, number)?;
                self.set(&place.path, attribute, spec)?;
            }
        }
        if self.classic_model {
            let change = Change::SetAttribute { object: ObjectPath::root(), attribute: strict() };
            self.transaction.apply(change)?;
        }
        Ok(())
    }

    fn set(&mut self, object: &ObjectPath, attribute: &Attribute, mut spec: AttributeSpec) -> Result<()> {
        if attribute.values.contains(&Item::Nil) && !is_hdf5(self.format) {
            self.note(format!("attribute {} of {object}", attribute.name), NIL.into());
        }
        if !is_hdf5(self.format) {
            spec.committed = None;
        }
        if is_classic(self.format)
            && let DType::String { padding, .. } = &mut spec.dtype
        {
            // Nothing fills a text up there: NULs are characters like others.
            *padding = StringPadding::SpacePadded;
        }
        let named = if object.is_root() {
            format!("attribute {}", attribute.name)
        } else {
            format!("attribute {} of {object}", attribute.name)
        };
        self.apply(attribute.at, named, Change::SetAttribute { object: object.clone(), attribute: spec })
    }

    /// Makes a variable with its attributes; gives the element that stands for what nobody wrote, and whether the file
    /// knows it.
    fn variable(&mut self, planned: &Planned<'_>) -> Result<(Vec<u8>, bool)> {
        let own = planned.variable.attributes.iter().find(|a| a.name == "_FillValue");
        let of = Some((&planned.dtype, planned.committed.as_ref()));
        let own = match own {
            Some(a) => Some(attribute::attribute(a, of, self.known, self.places, planned.group)?),
            None => None,
        };
        let classic = is_classic(self.format);
        let default = data::default_fill(self.source, &planned.dtype)?;
        let (fill, spec) = match &own {
            Some(AttributeSpec { content: Content::Fixed(bytes), .. }) => {
                (bytes.to_vec(), FillSpec::Value(Content::Fixed(bytes.clone())))
            }
            Some(AttributeSpec { content: Content::Objects { elements, .. }, .. }) => {
                let element = elements.first().map(|e| e.to_vec()).unwrap_or_default();
                let content = Content::Objects { elements: elements.clone(), targets: Vec::new() };
                (element, FillSpec::Value(content))
            }
            None if types::atomic(&planned.dtype).is_some() => {
                (default.clone(), FillSpec::Value(Content::Fixed(default.into())))
            }
            // Without one a variable of netCDF-4 is taken for one whose elements are not defined.
            None if self.format == Format::NetCdf4 => {
                let mut zero = Vec::new();
                types::zero_into(&planned.dtype, &self.source.limits, 0, &mut zero)?;
                let content = match planned.dtype.is_fixed() {
                    true => Content::Fixed(zero.into()),
                    false => Content::Objects { elements: vec![zero.into()], targets: Vec::new() },
                };
                (default, FillSpec::Value(content))
            }
            None => (default, FillSpec::Default),
        };
        let zeros = fill.iter().all(|&b| b == 0);
        let own_known = own.is_some() || types::atomic(&planned.dtype).is_some();
        let is_known = classic || own_known || zeros;
        let axes = axes(planned, self.dimensions);
        let dims: Vec<u64> = axes.iter().map(|axis| axis.length).collect();
        let max = axes.iter().map(|axis| (!axis.unlimited).then_some(axis.length)).collect();
        let space = if dims.is_empty() { Dataspace::Scalar } else { Dataspace::Simple { dims, max } };
        let mut array = ArraySpec::new(planned.dtype.clone(), space);
        array.committed.clone_from(&planned.committed);
        array.fill = match spec {
            _ if planned.special.no_fill => FillSpec::Undefined,
            // There it is the attribute.
            _ if classic => FillSpec::Default,
            spec => spec,
        };
        if !classic {
            array.filters = planned.special.filters(&planned.dtype);
            array.layout = planned.special.layout();
        }
        let path = |&number: &usize| self.dimensions.get(number).map(|d| d.path.clone());
        array.dimensions = planned.dimensions.iter().map(path).collect();
        let change = Change::CreateArray { path: planned.path.clone(), spec: Box::new(array) };
        self.apply(planned.variable.at, format!("variable {}", planned.path), change)?;
        for attribute in planned.variable.attributes.iter().filter(|a| !is_special(a, true)) {
            let spec = match (&own, attribute.name.as_str()) {
                (Some(own), "_FillValue") => own.clone(),
                _ => attribute::attribute(attribute, None, self.known, self.places, planned.group)?,
            };
            self.set(&planned.path, attribute, spec)?;
        }
        Ok((fill, is_known))
    }

    /// Writes the values of a variable.
    fn data(&mut self, planned: &Planned<'_>, (fill, is_known): (Vec<u8>, bool)) -> Result<()> {
        let Some((at, values)) = planned.values() else { return Ok(()) };
        let place = || format!("{}, variable {}", self.source.place(at, 0), planned.path);
        if types::is_text(&planned.dtype) && values.contains(&Item::Nil) && !is_hdf5(self.format) {
            self.note(format!("variable {}", planned.path), NIL.into());
        }
        let axes = axes(planned, self.dimensions);
        let lengths: Vec<u64> = axes.iter().map(|axis| axis.length).collect();
        let sides = (axes.as_slice(), lengths.as_slice());
        let elements = data::elements(self.source, at, &planned.dtype, sides, &fill, values)
            .context(|| format!("variable {}", planned.path))?;
        let layout = self.transaction.writer.layout(&planned.path).context(place)?;
        let fit = Fit::new(&planned.dtype, &layout.dtype).context(place)?;
        let size = planned.dtype.size();
        let count = match is_known {
            true => elements.count(size) as u64,
            false => element_count(&layout.shape)?,
        };
        let mut chunks = data::chunks(&layout, count).map(|coord| {
            let content = fit.run(elements.chunk(&layout, size, &coord, &fill)?)?;
            Ok(NewChunk { coord, data: ChunkData::Elements(content) })
        });
        self.transaction.write_chunks(&planned.path, &mut chunks).context(place)?;
        Ok(())
    }
}

/// What netCDF-C marks a file with that is to have no more than classic netCDF has.
fn strict() -> AttributeSpec {
    AttributeSpec {
        name: Name::from("_nc3_strict"),
        dtype: types::primitive("int", ByteOrder::Little).unwrap_or_else(types::character),
        committed: None,
        space: Dataspace::Scalar,
        content: Content::Fixed(1i32.to_le_bytes().to_vec().into()),
    }
}
