//! Changes of files in place: `set`, `attr`, `resize`, `mv`, `rm`, `append`.

use crate::args::{Append, Attr, Move, Remove, Resize, Rows, Set};
use crate::given::Given;
use crate::interrupt::Busy;
use crate::output::{Failure, Outcome};
use hyperslab::dtype::{DType, Packing};
use hyperslab::model::write::{Change, ObjectPath};
use hyperslab::select::Selection;
use hyperslab::source::write::WriteOptions;
use hyperslab::{Address, Context, Error, OpenOptions, Transaction};
use std::io::Read;

/// Changes what is at an address, all of it or nothing; once more where another writer was faster.
fn change(
    address: &Address,
    open: &OpenOptions,
    mut run: impl FnMut(&mut Transaction) -> Outcome<()>,
) -> Outcome<()> {
    let _busy = Busy::new();
    // What the library does not know of ends it, too.
    let mut other = None;
    let done = hyperslab::change(address.clone(), open, &WriteOptions::default(), |transaction| {
        run(transaction).map_err(|failure| match failure {
            Failure::Library(e) => e,
            failure => {
                other = Some(failure);
                Error::invalid("the change was given up")
            }
        })
    });
    match other {
        Some(failure) => Err(failure),
        None => Ok(done?),
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
        let mut staged = transaction.stage(&path)?;
        let selected = selection.resolve(staged.shape(), &open.limits).context(|| format!("array {path}"))?;
        Given::parse_for(value, staged.dtype(), selected.shape())?
            .with(|values| staged.set(&selection, values).context(|| format!("array {path}")))?;
        transaction.write(&path, &staged)?;
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

/// One structural change.
fn apply(address: &Address, open: &OpenOptions, what: &Change) -> Outcome<()> {
    change(address, open, |transaction| Ok(transaction.apply(what.clone())?))
}

/// `resize`: the extents of an array.
pub(crate) fn resize(arguments: &Resize, open: &OpenOptions) -> Outcome<()> {
    let array = ObjectPath::parse(&arguments.address.path)?;
    apply(&arguments.address, open, &Change::Resize { array, shape: arguments.shape.clone() })
}

/// `mv`: an object to another path.
pub(crate) fn rename(arguments: &Move, open: &OpenOptions) -> Outcome<()> {
    let (from, to) = (ObjectPath::parse(&arguments.address.path)?, ObjectPath::parse(&arguments.to)?);
    apply(&arguments.address, open, &Change::Rename { from, to })
}

/// `rm`: an object, and all below it.
pub(crate) fn remove(arguments: &Remove, open: &OpenOptions) -> Outcome<()> {
    let path = ObjectPath::parse(&arguments.address.path)?;
    apply(&arguments.address, open, &Change::Delete { path })
}

/// `append`: rows along the first axis, from the standard input.
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
        let Some((&before, rest)) = shape.split_first() else {
            return Err(Error::invalid(format!("the array {path} has one element and no rows")).into());
        };
        let rest = rest.to_vec();
        let given = match arguments.format {
            Rows::Raw => raw_rows(path, &dtype, &rest, &bytes)?,
            Rows::Json => Given::rows(&bytes, &dtype, &rest)?,
        };
        let added = given.shape().first().copied().unwrap_or(0);
        shape[0] = before
            .checked_add(added)
            .ok_or_else(|| Error::invalid(format!("{added} rows more than {before} of {path}")))?;
        staged.resize(&shape).context(|| format!("array {path}"))?;
        if added > 0 {
            if given.shape().get(1..) != Some(&rest) {
                let text = format!("values of shape {:?} for rows of {rest:?}", given.shape());
                let error = Error::invalid(text).hint("each row needs as many elements as the array has");
                return Err(error.into());
            }
            given
                .with(|values| staged.set(before..before + added, values))
                .context(|| format!("array {path}"))?;
        }
        transaction.write(path, &staged)?;
        Ok(())
    })
}

/// Rows as `get --format raw` writes them, as they are stored.
fn raw_rows(path: &str, dtype: &DType, rest: &[u64], bytes: &[u8]) -> Outcome<Given> {
    let packing = Packing::new(dtype).map_err(|_| {
        Error::unsupported(format!("appending elements of type {dtype} to {path} as bytes"))
            .hint("give the rows as JSON: --format json")
    })?;
    let row = rest.iter().product::<u64>().saturating_mul(packing.packed_size() as u64);
    if row == 0 || !(bytes.len() as u64).is_multiple_of(row) {
        let text = format!("{} bytes are no rows of {path}, which have {row} bytes each", bytes.len());
        return Err(Error::invalid(text)
            .hint("give elements as `get --format raw` writes them: one after the other, little-endian")
            .into());
    }
    let mut shape = vec![bytes.len() as u64 / row];
    shape.extend(rest);
    let stored = if bytes.is_empty() { Vec::new() } else { packing.unpack(bytes)? };
    Ok(Given::Stored(shape, dtype.clone(), stored))
}
