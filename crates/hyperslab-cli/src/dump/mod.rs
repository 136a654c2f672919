//! `dump`: a file as CDL, byte for byte as `ncdump` of the netCDF library prints it.
//!
//! A group is shown in this order: types, dimensions, variables with their attributes, attributes of the group, data,
//! groups ([`Dump::group`]). What netCDF has no word for, and what could not be read, is shown as a comment.

mod data;
mod number;
mod special;
mod text;
mod value;

use crate::args;
use crate::output::{Failure, Out, Outcome, say};
use hyperslab::convention::netcdf::time::Times;
use hyperslab::convention::netcdf::{
    Attribute, Class, DataModel, Group, NetcdfView, Type, UserType, Variable,
};
use hyperslab::dtype::{DType, NetcdfType};
use hyperslab::model::Value;
use hyperslab::shape::Name;
use hyperslab::{File, OpenOptions};
use std::collections::HashMap;
use std::path::Path;
use text::{Lines, Place, name, quoted, trimmed};
use value::Formats;

/// Words after which a blank follows in attributes, so that they are not taken for the start of a section.
const KEYWORDS: [&[u8]; 5] = [b"variables", b"dimensions", b"data", b"group", b"types"];

/// Prints a file. False: something could not be shown.
pub(crate) fn run(arguments: &args::Dump, options: &OpenOptions, out: &mut Out) -> Outcome<bool> {
    let file = crate::output::open_at(arguments.file.clone(), &arguments.version, options)?;
    let view = file.netcdf()?;
    if arguments.kind {
        out.line(kind_text(view.model()))?;
        return Ok(true);
    }
    let formats = Formats::new(arguments.precision.as_deref()).map_err(Failure::Other)?;
    let mut dump = Dump {
        file: &file,
        view: &view,
        arguments,
        lines: Lines::new(out, usize::from(arguments.length)),
        formats,
        groups: dump_groups(&view, &arguments.groups)?,
        variables: split(&arguments.variables),
        names: HashMap::new(),
        complete: true,
    };
    for (place, d) in view.dimensions().iter().enumerate() {
        dump.names.entry((d.group, &d.name)).or_insert(place);
    }
    dump.check_variables()?;
    let title = arguments.name.clone().unwrap_or_else(|| title(file.name()));
    dump.lines.put("netcdf ")?;
    dump.lines.put(name(title.as_bytes()))?;
    dump.lines.put(" {\n")?;
    dump.group(0)?;
    dump.lines.put("}\n")?;
    arguments.stats.say(file.traffic());
    Ok(dump.complete)
}

/// The name of a file without folder and ending.
fn title(path: &str) -> String {
    let last = Path::new(path).file_name().map_or_else(|| path.into(), |n| n.to_string_lossy().into_owned());
    match last.rfind('.') {
        Some(at) => last[..at].to_string(),
        None => last,
    }
}

fn kind_text(model: DataModel) -> &'static str {
    match model {
        DataModel::Classic => "classic",
        DataModel::Offset64 => "64-bit offset",
        DataModel::Data64 => "cdf5",
        DataModel::NetCdf4 => "netCDF-4",
        DataModel::NetCdf4Classic => "netCDF-4 classic model",
    }
}

/// Comma-separated lists as one list.
fn split(lists: &[String]) -> Vec<String> {
    lists.iter().flat_map(|l| l.split(',')).filter(|s| !s.is_empty()).map(str::to_string).collect()
}

/// The groups whose data is wanted; none for all.
fn dump_groups(view: &NetcdfView, lists: &[String]) -> Outcome<Vec<usize>> {
    let mut found = Vec::new();
    for wanted in split(lists) {
        let before = found.len();
        for (place, group) in view.groups().iter().enumerate() {
            let matches = match wanted.starts_with('/') {
                true => group.path == wanted,
                false => group.parent.is_some() && group.name.as_bytes() == wanted.as_bytes(),
            };
            if matches {
                found.push(place);
            }
        }
        if found.len() == before {
            return Err(Failure::Other(format!("{wanted}: there is no such group")));
        }
    }
    Ok(found)
}

struct Dump<'a> {
    file: &'a File,
    view: &'a NetcdfView,
    arguments: &'a args::Dump,
    lines: Lines<'a>,
    formats: Formats,
    /// Groups whose data is wanted; none: all.
    groups: Vec<usize>,
    /// Variables whose data is wanted; none: all.
    variables: Vec<String>,
    /// Dimensions by group and name.
    names: HashMap<(usize, &'a Name), usize>,
    /// Whether everything was shown.
    complete: bool,
}

impl Dump<'_> {
    fn check_variables(&self) -> Outcome<()> {
        for wanted in &self.variables {
            let found =
                self.view.groups().iter().any(|g| g.variables.iter().any(|v| is_called(g, v, wanted)));
            if !found {
                return Err(Failure::Other(format!("{wanted}: there is no such variable")));
            }
        }
        Ok(())
    }

    fn group(&mut self, place: usize) -> Outcome<()> {
        let view = self.view;
        let Some(group) = view.groups().get(place) else { return Ok(()) };
        if !group.types.is_empty() {
            self.heading("types:\n")?;
            self.lines.indent += 2;
            for user in group.types.iter().filter_map(|&t| view.types().get(t)) {
                self.user_type(place, user)?;
            }
            self.lines.indent -= 2;
        }
        if !group.dimensions.is_empty() {
            self.heading("dimensions:\n")?;
        }
        for d in group.dimensions.iter().filter_map(|&d| view.dimensions().get(d)) {
            self.lines.start()?;
            self.lines.put("\t")?;
            self.lines.put(name(d.name.as_bytes()))?;
            self.lines.put(match d.unlimited {
                true => format!(" = UNLIMITED ; // ({} currently)\n", d.length),
                false => format!(" = {} ;\n", d.length),
            })?;
            self.spelled("dimension", &d.name)?;
        }
        if !group.variables.is_empty() {
            self.heading("variables:\n")?;
        }
        for variable in &group.variables {
            self.variable(place, variable)?;
        }
        if !group.attributes.is_empty() || self.arguments.special {
            self.lines.put("\n")?;
            self.heading(if place == 0 { "// global attributes:\n" } else { "// group attributes:\n" })?;
        }
        for a in &group.attributes {
            self.attribute(place, b"", a, None)?;
        }
        if place == 0 && self.arguments.special {
            self.file_specials()?;
        }
        let wanted = self.groups.is_empty() || self.groups.contains(&place);
        if !self.arguments.header && wanted {
            if !group.variables.is_empty() {
                self.heading("data:\n")?;
            }
            for variable in &group.variables {
                let named = |w: &String| is_called(group, variable, w);
                if (self.variables.is_empty() || self.variables.iter().any(named))
                    && (!self.arguments.coordinates || self.is_coordinate(variable))
                {
                    self.data(place, variable)?;
                }
            }
        }
        for left in &group.left_out {
            self.complete = false;
            let line = format!("// not shown: {}: {}\n", left.path, left.reason);
            self.lines.start()?;
            self.lines.put(line)?;
            if left.failed.is_some() {
                say(format!("hyperslab: {}: {}", left.path, left.reason));
            }
        }
        for &inner in &group.groups {
            let called = view.groups().get(inner).map(|g| name(g.name.as_bytes())).unwrap_or_default();
            self.lines.put("\n")?;
            self.heading("group: ")?;
            self.lines.put(&called)?;
            self.lines.put(" {\n")?;
            self.lines.indent += 2;
            self.group(inner)?;
            self.heading("} // group ")?;
            self.lines.put(&called)?;
            self.lines.put("\n")?;
            self.lines.indent -= 2;
        }
        Ok(())
    }

    fn heading(&mut self, text: &str) -> Outcome<()> {
        self.lines.start()?;
        self.lines.put(text)
    }

    /// Groups from this one outwards.
    fn outwards(&self, place: usize) -> impl Iterator<Item = (usize, &Group)> {
        let view = self.view;
        let groups = view.groups();
        std::iter::successors(groups.get(place).map(|g| (place, g)), move |(_, g)| {
            g.parent.and_then(|p| Some((p, groups.get(p)?)))
        })
    }

    /// The name of a type as seen from a group; with its path where the name means another type there.
    fn type_name(&self, place: usize, kind: Type) -> Vec<u8> {
        let Type::User(wanted) = kind else { return kind.word().into() };
        let Some(user) = self.view.types().get(wanted) else { return Vec::new() };
        let nearest = self.outwards(place).find_map(|(_, g)| {
            let same = |t: &&usize| self.view.types().get(**t).is_some_and(|u| u.name == user.name);
            g.types.iter().find(same).copied()
        });
        let mut out = Vec::new();
        if nearest != Some(wanted) {
            out.extend(self.prefix(user.group));
        }
        out.extend(name(user.name.as_bytes()));
        out
    }

    /// The path of a group with a slash at its end.
    fn prefix(&self, place: usize) -> Vec<u8> {
        let path = self.view.groups().get(place).map(|g| g.path.as_str()).unwrap_or("/");
        let mut out = name(path.as_bytes());
        if path != "/" {
            out.push(b'/');
        }
        out
    }

    fn user_type(&mut self, place: usize, user: &UserType) -> Outcome<()> {
        let called = name(user.name.as_bytes());
        let word = |dump: &Self, dtype: &DType| match dump.view.type_of(dtype) {
            Some(kind) => dump.type_name(place, kind),
            None => dtype.to_string().into_bytes(),
        };
        match (&user.dtype, user.class) {
            (DType::Enum { base, members }, _) => {
                let mut first = word(self, base);
                first.extend(b" enum ");
                first.extend(&called);
                first.extend(b" {");
                self.lines.start()?;
                self.lines.token(&first)?;
                for (i, member) in members.iter().enumerate() {
                    let value = value::integer(base, &member.value).unwrap_or_default();
                    let mut token = name(member.name.as_bytes());
                    // The C program takes all values as signed.
                    token.extend(format!(" = {}", value as i64).bytes());
                    token.extend(if i + 1 == members.len() { &b"} ;\n"[..] } else { b", " });
                    self.lines.token(&token)?;
                }
                Ok(())
            }
            (DType::Opaque { size, .. }, _) => {
                self.lines.start()?;
                self.lines.put(format!("opaque({size}) "))?;
                self.lines.put(&called)?;
                self.lines.put(" ;\n")
            }
            (DType::VarLen { base, .. }, _) => {
                let base = word(self, base);
                self.lines.start()?;
                self.lines.put(base)?;
                self.lines.put("(*) ")?;
                self.lines.put(&called)?;
                self.lines.put(" ;\n")
            }
            (DType::Compound { fields, .. }, Class::Compound) => {
                self.heading("compound ")?;
                self.lines.put(&called)?;
                self.lines.put(" {\n")?;
                for field in fields {
                    let (base, dims) = match &field.dtype {
                        DType::Array { base, dims } => (base.as_ref(), dims.as_slice()),
                        other => (other, &[][..]),
                    };
                    let base = word(self, base);
                    self.heading("  ")?;
                    self.lines.put(base)?;
                    self.lines.put(" ")?;
                    self.lines.put(name(field.name.as_bytes()))?;
                    if !dims.is_empty() {
                        let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
                        self.lines.put(format!("({})", dims.join(", ")))?;
                    }
                    self.lines.put(" ;\n")?;
                }
                self.heading("}; // ")?;
                self.lines.put(&called)?;
                self.lines.put("\n")
            }
            _ => Ok(()),
        }
    }

    fn variable(&mut self, place: usize, variable: &Variable) -> Outcome<()> {
        let mut line = b"\t".to_vec();
        line.extend(self.type_name(place, variable.kind));
        line.push(b' ');
        line.extend(name(variable.name.as_bytes()));
        for (i, &d) in variable.dimensions.iter().enumerate() {
            line.extend(if i == 0 { &b"("[..] } else { b", " });
            line.extend(self.dimension_name(place, d));
        }
        if !variable.dimensions.is_empty() {
            line.push(b')');
        }
        line.extend(b" ;\n");
        self.lines.start()?;
        self.lines.put(line)?;
        self.spelled("variable", &variable.name)?;
        let times = self.own_times(variable);
        for a in &variable.attributes {
            self.attribute(place, variable.name.as_bytes(), a, times.as_ref())?;
        }
        if self.arguments.special {
            self.specials(variable)?;
        }
        Ok(())
    }

    /// The name of a dimension as seen from a group; with its path where the name means another one there.
    fn dimension_name(&self, place: usize, wanted: usize) -> Vec<u8> {
        let Some(dimension) = self.view.dimensions().get(wanted) else { return Vec::new() };
        let nearest = self.outwards(place).find_map(|(g, _)| self.names.get(&(g, &dimension.name)));
        let mut out = Vec::new();
        if nearest != Some(&wanted) {
            out.extend(self.prefix(dimension.group));
        }
        out.extend(name(dimension.name.as_bytes()));
        out
    }

    /// Whether a variable has one dimension and is called like it, or like another one of the same group, as `ncdump` has
    /// it.
    fn is_coordinate(&self, variable: &Variable) -> bool {
        let [only] = variable.dimensions[..] else { return false };
        let dimensions = self.view.dimensions();
        let group = dimensions.get(only).map(|d| d.group);
        dimensions.iter().any(|d| Some(d.group) == group && d.name == variable.name)
    }

    /// How the numbers of a variable are times, if that is asked for: by its units.
    fn own_times(&self, variable: &Variable) -> Option<Times> {
        let separator = match (self.arguments.times, self.arguments.iso) {
            (_, true) => 'T',
            (true, _) => ' ',
            _ => return None,
        };
        let text = |key: &str| {
            let found = variable.attributes.iter().find(|a| a.name.as_bytes() == key.as_bytes())?;
            matches!(found.kind, Type::Atomic(NetcdfType::Char))
                .then(|| std::str::from_utf8(trimmed(&found.stored.data)).ok())?
        };
        Times::new(text("units")?, text("calendar"), separator)
    }

    /// As [`Dump::own_times`], or by those of the variable in the group whose bounds it holds.
    fn times(&self, group: usize, variable: &Variable) -> Option<Times> {
        let of = |v: &Variable| {
            let bounds = v.attributes.iter().find(|a| a.name.as_bytes() == b"bounds")?;
            let named = trimmed(&bounds.stored.data) == variable.name.as_bytes();
            if named { self.own_times(v) } else { None }
        };
        self.own_times(variable).or_else(|| self.view.groups().get(group)?.variables.iter().find_map(of))
    }

    fn attribute(&mut self, place: usize, owner: &[u8], a: &Attribute, times: Option<&Times>) -> Outcome<()> {
        let typed = matches!(a.kind, Type::User(_) | Type::String);
        let mut line = b"\t\t".to_vec();
        if typed {
            line.extend(self.type_name(place, a.kind));
            line.push(b' ');
        }
        line.extend(name(owner));
        if KEYWORDS.contains(&owner) {
            line.push(b' ');
        }
        line.push(b':');
        line.extend(name(a.name.as_bytes()));
        line.extend(b" = ");
        self.lines.start()?;
        self.lines.put(line)?;
        match self.attribute_values(a) {
            Ok(values) if matches!(a.kind, Type::User(_)) => {
                let tokens = matches!(a.stored.dtype, DType::Compound { .. } | DType::VarLen { .. });
                for (i, value) in values.iter().enumerate() {
                    let mut value = value.clone();
                    if i + 1 < values.len() {
                        value.extend(b", ");
                    }
                    if tokens { self.lines.token(&value)? } else { self.lines.put(&value)? }
                }
            }
            Ok(values) => self.lines.put(values.join(&b", "[..]))?,
            Err(e) => {
                self.complete = false;
                say(format!("hyperslab: attribute {}: {e}", a.name));
                self.lines.put(format!("\"\" ; // not shown: {e}\n"))?;
                return Ok(());
            }
        }
        self.lines.put(" ;")?;
        if let Some(times) = times {
            self.comment_times(a, times)?;
        }
        self.lines.put("\n")?;
        self.spelled("attribute", &a.name)
    }

    /// Says so where CDL has no way to write a name, which stands there as in ncdump.
    fn spelled(&mut self, what: &str, called: &Name) -> Outcome<()> {
        let bytes = called.as_bytes();
        if !bytes.is_empty() && !bytes.contains(&b'/') {
            return Ok(());
        }
        self.complete = false;
        self.lines.start()?;
        self.lines.put(format!("// not shown: the name of the {what} \"{called}\", which CDL cannot write\n"))
    }

    /// The values of an attribute as times.
    fn comment_times(&mut self, a: &Attribute, times: &Times) -> Outcome<()> {
        let Ok(elements) = a.elements(&**self.file.hierarchy(), self.file_limit()) else { return Ok(()) };
        let text = |i| times.text(value::number(&elements.value(i).ok()?)?).map(|text| format!("\"{text}\""));
        let texts: Option<Vec<String>> = (0..elements.count()).map(text).collect();
        match texts.filter(|texts| !texts.is_empty()) {
            Some(texts) => self.lines.put(format!(" // {}", texts.join(", "))),
            None => Ok(()),
        }
    }

    fn attribute_values(&self, a: &Attribute) -> hyperslab::Result<Vec<Vec<u8>>> {
        let place = match self.view.model() {
            DataModel::NetCdf4 => Place::Whole,
            _ => Place::ClassicAttribute,
        };
        if a.length == 0 {
            return Ok(vec![b"\"\"".to_vec()]);
        }
        if a.kind == Type::Atomic(NetcdfType::Char) {
            return Ok(vec![quoted(&a.stored.data, place)]);
        }
        let limit = self.file_limit();
        let elements = a.elements(&**self.file.hierarchy(), limit)?;
        let one = |i| {
            let value = elements.value(i)?;
            Ok(match (a.kind, &value) {
                (Type::String, Value::Text(text)) => quoted(text.as_bytes(), place),
                (Type::String, Value::Bytes(bytes)) => quoted(bytes, place),
                (Type::String, _) => b"NIL".to_vec(),
                (Type::User(_), value) => match &a.stored.dtype {
                    DType::Enum { .. } => name(&self.formats.value(self.view, &a.stored.dtype, value)),
                    dtype => self.formats.value(self.view, dtype, value),
                },
                (kind, value) => self.formats.attribute(kind, value).into_bytes(),
            })
        };
        (0..elements.count()).map(one).collect()
    }

    /// Bytes of variable length that one attribute or slab may hold.
    fn file_limit(&self) -> u64 {
        1 << 30
    }
}

/// Whether `wanted` (`var`, `group/var` or `/group/var`) is this variable.
fn is_called(group: &Group, variable: &Variable, wanted: &str) -> bool {
    match wanted.rsplit_once('/') {
        None => variable.name == Name::from(wanted),
        Some((path, last)) if variable.name == Name::from(last) => match wanted.starts_with('/') {
            true => group.path == path || (path.is_empty() && group.path == "/"),
            false => group.path.ends_with(path),
        },
        Some(_) => false,
    }
}
