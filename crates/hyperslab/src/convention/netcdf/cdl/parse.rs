//! From words to the model: one function for each rule of the grammar.

use super::lex::{Lexer, Text, Token};
use super::{Attribute, Data, Dataset, Dimension, Group, Item, UserType, Variable};
use crate::error::{Error, Result};
use crate::limits::Limits;
use std::collections::{HashMap, HashSet};

/// Names of types that CDL has by itself, all spellings.
const PRIMITIVE: [&str; 18] = [
    "char", "byte", "short", "int", "long", "integer", "float", "real", "double", "ubyte", "ushort", "uint",
    "ulong", "uinteger", "int64", "uint64", "string", "unsigned",
];

struct Parser<'a> {
    lexer: Lexer<'a>,
    limits: &'a Limits,
    at: usize,
    token: Token,
    /// Names of all user-defined types so far.
    types: HashSet<String>,
}

pub(super) fn dataset(text: &[u8], limits: &Limits) -> Result<Dataset> {
    let text = Text::new(text);
    let mut lexer = Lexer::new(&text);
    match lexer.next()? {
        (_, Token::Name(word, true)) if word.eq_ignore_ascii_case("netcdf") => {}
        (at, _) => return Err(lexer.wrong(at, "CDL begins with the word netcdf")),
    }
    let name = lexer.until_brace()?;
    let (at, token) = lexer.next()?;
    let mut parser = Parser { lexer, limits, at, token, types: HashSet::new() };
    let root = parser.group(String::new(), 0)?;
    match &parser.token {
        Token::End => Ok(Dataset { name, root }),
        _ => Err(parser.wrong("nothing may follow the last brace")),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Section {
    None,
    Types,
    Dimensions,
    Variables,
    Data,
}

impl Parser<'_> {
    fn wrong(&self, what: impl std::fmt::Display) -> Error {
        self.lexer.wrong(self.at, what)
    }

    fn step(&mut self) -> Result<Token> {
        let (at, next) = self.lexer.next()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn is(&self, mark: char) -> bool {
        self.token == Token::Mark(mark)
    }

    /// Whether what comes is an attribute of the group, which may follow types too.
    fn is_attribute(&mut self) -> Result<bool> {
        let is_typed = matches!(self.token, Token::Name(..));
        Ok(self.is(':') || is_typed && self.lexer.clone().next()?.1 == Token::Mark(':'))
    }

    /// Takes a mark if it is there.
    fn take(&mut self, mark: char) -> Result<bool> {
        let there = self.is(mark);
        if there {
            self.step()?;
        }
        Ok(there)
    }

    fn require(&mut self, mark: char) -> Result<()> {
        if self.take(mark)? { Ok(()) } else { Err(self.wrong(format!("a {mark} is missing here"))) }
    }

    fn name(&mut self, what: &str) -> Result<String> {
        match &self.token {
            Token::Name(..) => match self.step()? {
                Token::Name(name, _) => Ok(name),
                _ => Err(self.wrong(format!("the name of {what} is missing here"))),
            },
            _ => Err(self.wrong(format!("the name of {what} is missing here"))),
        }
    }

    fn size(&mut self, what: &str) -> Result<u64> {
        let value = match self.token {
            Token::Integer(value, _) => u64::try_from(value).ok(),
            _ => None,
        };
        let value = value.ok_or_else(|| self.wrong(format!("{what} is a whole number from zero on")))?;
        self.step()?;
        Ok(value)
    }

    /// A group from its `{` to its `}`.
    fn group(&mut self, name: String, depth: u32) -> Result<Group> {
        self.limits.check_depth("groups of CDL", depth)?;
        self.require('{')?;
        let mut group = Group { name, ..Group::default() };
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut section = Section::None;
        while !self.is('}') {
            match &self.token {
                Token::End => return Err(self.wrong("the text ends inside of a group")),
                Token::Section("group") => {
                    self.step()?;
                    let name = self.name("a group")?;
                    let inner = self.group(name, depth + 1)?;
                    group.groups.push(inner);
                    section = Section::None;
                    continue;
                }
                Token::Section(word) => {
                    section = match *word {
                        "types" => Section::Types,
                        "dimensions" => Section::Dimensions,
                        "variables" => Section::Variables,
                        _ => Section::Data,
                    };
                    self.step()?;
                    continue;
                }
                _ => {}
            }
            if section == Section::Types && !self.is_attribute()? {
                let user = self.user_type()?;
                self.types.insert(user.name().to_owned());
                group.types.push(user);
                self.take(';')?;
                continue;
            }
            self.statement(section, &mut group, &mut places)?;
            self.require(';')?;
        }
        self.step()?;
        Ok(group)
    }

    /// A declaration, an attribute or the data of a variable.
    fn statement(
        &mut self,
        section: Section,
        group: &mut Group,
        places: &mut HashMap<String, usize>,
    ) -> Result<()> {
        if self.take(':')? {
            let attribute = self.attribute(None)?;
            group.attributes.push(attribute);
            return Ok(());
        }
        let (at, plain) = (self.at, matches!(&self.token, Token::Name(_, true)));
        let first = self.name("a type, dimension or variable")?;
        if self.take(':')? {
            // A type before the attribute of a group, or a variable.
            let primitive = plain && PRIMITIVE.contains(&first.as_str());
            let last = first.rsplit('/').next().unwrap_or("");
            if primitive || !places.contains_key(&first) && self.types.contains(last) {
                let attribute = self.attribute(Some(first))?;
                group.attributes.push(attribute);
                return Ok(());
            }
            return self.of_variable(at, &first, None, group, places);
        }
        if matches!(self.token, Token::Name(..)) {
            let at = self.at;
            let second = self.name("a variable")?;
            if self.take(':')? {
                return self.of_variable(at, &second, Some(first), group, places);
            }
            return self.variables(first, (at, second), group, places);
        }
        match section {
            Section::Dimensions => self.dimensions(at, first, group),
            Section::Data => {
                self.require('=')?;
                let at = self.at;
                group.data.push(Data { variable: first, values: self.items(0)?, at });
                Ok(())
            }
            _ => Err(self.lexer.wrong(at, format!("{first} is no declaration"))),
        }
    }

    fn of_variable(
        &mut self,
        at: usize,
        name: &str,
        kind: Option<String>,
        group: &mut Group,
        places: &HashMap<String, usize>,
    ) -> Result<()> {
        let attribute = self.attribute(kind)?;
        match places.get(name).and_then(|&place| group.variables.get_mut(place)) {
            Some(variable) => variable.attributes.push(attribute),
            None => {
                let what = format!("{name} has an attribute, and is no variable of this group");
                return Err(self.lexer.wrong(at, what));
            }
        }
        Ok(())
    }

    /// From the name on.
    fn attribute(&mut self, kind: Option<String>) -> Result<Attribute> {
        let name = self.name("an attribute")?;
        self.require('=')?;
        let at = self.at;
        Ok(Attribute { name, kind, values: self.items(0)?, at })
    }

    fn dimensions(&mut self, at: usize, first: String, group: &mut Group) -> Result<()> {
        let (mut at, mut name) = (at, first);
        loop {
            self.require('=')?;
            let unlimited =
                matches!(&self.token, Token::Name(word, true) if word.eq_ignore_ascii_case("unlimited"));
            let length = if unlimited {
                self.step()?;
                None
            } else {
                Some(self.size("the length of a dimension")?)
            };
            if group.dimensions.iter().any(|d| d.name == name) {
                let what = format!("{name} is a dimension of this group already");
                return Err(self.lexer.wrong(at, what));
            }
            group.dimensions.push(Dimension { name, length, at });
            if !self.take(',')? {
                return Ok(());
            }
            at = self.at;
            name = self.name("a dimension")?;
        }
    }

    fn variables(
        &mut self,
        kind: String,
        first: (usize, String),
        group: &mut Group,
        places: &mut HashMap<String, usize>,
    ) -> Result<()> {
        let (mut at, mut name) = first;
        loop {
            let mut dimensions = Vec::new();
            if self.take('(')? {
                loop {
                    dimensions.push(self.name("a dimension")?);
                    if !self.take(',')? {
                        break;
                    }
                }
                self.require(')')?;
            }
            if places.insert(name.clone(), group.variables.len()).is_some() {
                let what = format!("{name} is a variable of this group already");
                return Err(self.lexer.wrong(at, what));
            }
            let kind = kind.clone();
            group.variables.push(Variable { name, kind, dimensions, attributes: Vec::new(), at });
            if !self.take(',')? {
                return Ok(());
            }
            at = self.at;
            name = self.name("a variable")?;
        }
    }

    fn user_type(&mut self) -> Result<UserType> {
        let at = self.at;
        let first = self.name("a type")?;
        match first.as_str() {
            "opaque" if self.take('(')? => {
                let size = self.size("the size of an opaque type")?;
                self.require(')')?;
                Ok(UserType::Opaque { at, size, name: self.name("a type")? })
            }
            "compound" | "struct" | "structure" => {
                let name = self.name("a type")?;
                self.require('{')?;
                let mut fields = Vec::new();
                while !self.take('}')? {
                    self.fields(&mut fields)?;
                    self.require(';')?;
                }
                Ok(UserType::Compound { at, name, fields })
            }
            _ if self.take('(')? => {
                self.require('*')?;
                self.require(')')?;
                Ok(UserType::VarLen { at, base: first, name: self.name("a type")? })
            }
            _ if self.token == Token::Name("enum".into(), true) => {
                self.step()?;
                let name = self.name("a type")?;
                self.require('{')?;
                let mut members = Vec::new();
                loop {
                    let member = self.name("a member")?;
                    self.require('=')?;
                    let Token::Integer(value, _) = self.token else {
                        return Err(self.wrong("the value of a member is an integer"));
                    };
                    self.step()?;
                    members.push((member, value));
                    if !self.take(',')? {
                        break;
                    }
                }
                self.require('}')?;
                Ok(UserType::Enum { at, name, base: first, members })
            }
            _ => Err(self.wrong("not a type: enum, compound, opaque(size) or base(*) is expected")),
        }
    }

    /// Members of a compound that have one type.
    fn fields(&mut self, fields: &mut Vec<(String, String, Vec<u64>)>) -> Result<()> {
        let kind = self.name("the type of a member")?;
        loop {
            let name = self.name("a member")?;
            let mut extents = Vec::new();
            if self.take('(')? {
                loop {
                    extents.push(self.size("an extent")?);
                    if !self.take(',')? {
                        break;
                    }
                }
                self.require(')')?;
            }
            fields.push((name, kind.clone(), extents));
            if !self.take(',')? {
                return Ok(());
            }
        }
    }

    /// Values with commas between them; none before a `;` or `}`.
    fn items(&mut self, depth: u32) -> Result<Vec<Item>> {
        self.limits.check_depth("braces of CDL", depth)?;
        let mut items = Vec::new();
        if self.is(';') || self.is('}') {
            return Ok(items);
        }
        loop {
            items.push(self.item(depth)?);
            if !self.take(',')? {
                return Ok(items);
            }
        }
    }

    fn item(&mut self, depth: u32) -> Result<Item> {
        if self.take('{')? {
            let items = self.items(depth + 1)?;
            self.require('}')?;
            return Ok(Item::List(items));
        }
        if !matches!(
            self.token,
            Token::Name(..)
                | Token::Integer(..)
                | Token::Single(_)
                | Token::Double(_)
                | Token::Text(_)
                | Token::Char(_)
                | Token::Opaque(_)
        ) {
            return Err(self.wrong("a value is missing here"));
        }
        Ok(match self.step()? {
            Token::Integer(value, kind) => Item::Integer(value, kind),
            Token::Single(value) => Item::Single(value),
            Token::Double(value) => Item::Double(value),
            Token::Text(text) => Item::Text(text),
            Token::Char(byte) => Item::Char(byte),
            Token::Opaque(bytes) => Item::Opaque(bytes),
            Token::Name(word, true) if word == "_" => Item::Fill,
            Token::Name(word, true) if word == "NIL" => Item::Nil,
            Token::Name(mut word, _) => {
                // ncdump does not escape the blanks in names of members.
                while let Token::Name(..) = self.token {
                    if let Token::Name(more, _) = self.step()? {
                        word.push(' ');
                        word.push_str(&more);
                    }
                }
                Item::Name(word)
            }
            _ => return Err(self.wrong("a value is missing here")),
        })
    }
}
