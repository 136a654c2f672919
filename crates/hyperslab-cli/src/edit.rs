//! Changes of files in place: `set`, `attr`, `resize`, `mv`, `rm`, `append`.

use crate::args::{Append, Attr, Move, Remove, Resize, Set};
use crate::interrupt::Busy;
use crate::output::{Failure, Outcome};
use hyperslab::json::Json;
use hyperslab::model::write::{Change, ObjectPath};
use hyperslab::select::Selection;
use hyperslab::source::write::WriteOptions;
use hyperslab::staged::Values;
use hyperslab::{Address, Error, OpenOptions, Transaction};
use std::io::Read;

/// Changes what is at an address, all of it or nothing.
fn change(
    address: &Address,
    open: &OpenOptions,
    run: impl FnOnce(&mut Transaction) -> Outcome<()>,
) -> Outcome<()> {
    let _busy = Busy::new();
    let mut transaction = hyperslab::edit(address.clone(), open, &WriteOptions::default())?;
    run(&mut transaction)?;
    transaction.commit()?;
    Ok(())
}

/// Values as they are written on the command line: JSON, or else text.
pub(crate) enum Given {
    Integers(Vec<u64>, Vec<i64>),
    Floats(Vec<u64>, Vec<f64>),
    Texts(Vec<u64>, Vec<String>),
}

impl Given {
    pub(crate) fn parse(text: &str) -> hyperslab::Result<Given> {
        let word = |text: &str| Ok(Given::Texts(Vec::new(), vec![text.to_owned()]));
        let Ok(json) = Json::parse(text.as_bytes()) else { return word(text) };
        let (mut shape, mut level) = (Vec::new(), vec![&json]);
        while let Some(Json::List(first)) = level.first() {
            let length = first.len();
            let mut inner = Vec::new();
            for item in &level {
                match item {
                    Json::List(items) if items.len() == length => inner.extend(items),
                    _ => {
                        return Err(Error::invalid(format!(
                            "{text} is no array: its lists differ in length"
                        )));
                    }
                }
            }
            shape.push(length as u64);
            level = inner;
        }
        let integer = |j: &&Json| match j {
            Json::Bool(v) => Some(i64::from(*v)),
            Json::Integer(v) => i64::try_from(*v).ok(),
            _ => None,
        };
        if let Some(numbers) = level.iter().map(integer).collect() {
            return Ok(Given::Integers(shape, numbers));
        }
        if let Some(numbers) = level.iter().map(|j| j.as_f64()).collect() {
            return Ok(Given::Floats(shape, numbers));
        }
        match level.iter().map(|j| j.as_str().map(str::to_owned)).collect() {
            Some(texts) => Ok(Given::Texts(shape, texts)),
            None => word(text),
        }
    }

    pub(crate) fn with<T>(
        &self,
        run: impl FnOnce(Values<'_>) -> hyperslab::Result<T>,
    ) -> hyperslab::Result<T> {
        match self {
            Given::Integers(shape, numbers) => run(Values::new(shape, numbers)?),
            Given::Floats(shape, numbers) => run(Values::new(shape, numbers)?),
            Given::Texts(shape, texts) => {
                let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                run(Values::texts(shape, &texts)?)
            }
        }
    }
}

/// The target and the value of `TARGET[SLICE]=VALUE`, blanks around the sign allowed. The slice ends where its value begins; a
/// name may have an equals sign in it.
pub(crate) fn assignment(text: &str) -> Option<(&str, &str)> {
    let behind_slice = text.match_indices(']').find_map(|(at, _)| {
        let value = text[at + 1..].trim_start().strip_prefix('=')?;
        Some((&text[..=at], value))
    });
    let (target, value) = behind_slice.or_else(|| text.rsplit_once('='))?;
    Some((target.trim_end(), value.trim_start()))
}

/// `set`: elements of an array.
pub(crate) fn set(arguments: &Set, open: &OpenOptions) -> Outcome<()> {
    let text = &arguments.assignment;
    let Some((target, value)) = assignment(text) else {
        return Err(Failure::Other(format!("{text} sets nothing: write FILE::/path[SLICE]=VALUE")));
    };
    let address = Address::locate(target);
    let (path, selection) = match address.split_slice() {
        Some((path, slice)) => (path.to_owned(), Selection::parse(slice)?),
        None => (address.path.clone(), Selection::all()),
    };
    change(&address, open, |transaction| {
        Given::parse(value)?.with(|values| transaction.set(&path, &selection, values))?;
        Ok(())
    })
}

/// `attr`: an attribute.
pub(crate) fn attr(arguments: &Attr, open: &OpenOptions) -> Outcome<()> {
    let path = &arguments.address.path;
    change(&arguments.address, open, |transaction| {
        match &arguments.value {
            Some(value) => Given::parse(value)?
                .with(|values| transaction.set_attribute(path, &arguments.name, values))?,
            None => transaction.apply(Change::DeleteAttribute {
                object: ObjectPath::parse(path)?,
                name: arguments.name.as_str().into(),
            })?,
        }
        Ok(())
    })
}

/// `resize`: the extents of an array.
pub(crate) fn resize(arguments: &Resize, open: &OpenOptions) -> Outcome<()> {
    let array = ObjectPath::parse(&arguments.address.path)?;
    let resize = Change::Resize { array, shape: arguments.shape.clone() };
    change(&arguments.address, open, |transaction| Ok(transaction.apply(resize)?))
}

/// `mv`: an object to another path.
pub(crate) fn rename(arguments: &Move, open: &OpenOptions) -> Outcome<()> {
    let (from, to) = (ObjectPath::parse(&arguments.address.path)?, ObjectPath::parse(&arguments.to)?);
    change(&arguments.address, open, |transaction| Ok(transaction.apply(Change::Rename { from, to })?))
}

/// `rm`: an object, and all below it.
pub(crate) fn remove(arguments: &Remove, open: &OpenOptions) -> Outcome<()> {
    let path = ObjectPath::parse(&arguments.address.path)?;
    change(&arguments.address, open, |transaction| Ok(transaction.apply(Change::Delete { path })?))
}

/// `append`: rows along the first axis, as packed elements from the standard input.
pub(crate) fn append(arguments: &Append, open: &OpenOptions) -> Outcome<()> {
    let mut bytes = Vec::new();
    let most = open.limits.output;
    std::io::stdin().lock().take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(Error::limit("bytes of the rows", bytes.len() as u128, most.into()).into());
    }
    let path = &arguments.address.path;
    change(&arguments.address, open, |transaction| {
        let mut staged = transaction.stage(path)?;
        let dtype = staged.dtype().clone();
        let mut shape = staged.shape().to_vec();
        let Some((rows, rest)) = shape.split_first() else {
            return Err(Error::invalid(format!("the array {path} has one element and no rows")).into());
        };
        let (before, row) = (*rows, rest.iter().product::<u64>().saturating_mul(dtype.size() as u64));
        if row == 0 || !(bytes.len() as u64).is_multiple_of(row) {
            let text = format!("{} bytes are no rows of {path}, which have {row} bytes each", bytes.len());
            return Err(Error::invalid(text)
                .hint("give elements as they are stored, one after the other")
                .into());
        }
        let added = bytes.len() as u64 / row;
        shape[0] = before + added;
        staged.resize(&shape)?;
        let mut given = shape.clone();
        given[0] = added;
        staged.set(before..before + added, Values::stored(&given, &dtype, &bytes)?)?;
        transaction.write(path, &staged)?;
        Ok(())
    })
}
