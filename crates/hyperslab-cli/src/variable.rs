//! The elements of netCDF variables.

use bytes::Bytes;
use hyperslab::convention::netcdf::{NetcdfView, Variable};
use hyperslab::shape::{byte_count, to_usize};
use hyperslab::{Error, ErrorKind, File, Object, Result, Selection};

/// All elements of a variable as stored. Along unlimited dimensions that others made longer it ends in fill values.
pub(crate) fn read(file: &File, view: &NetcdfView, variable: &Variable) -> Result<Bytes> {
    let Object::Array(array) = file.object(&variable.node, variable.path.as_str())? else {
        return Err(Error::new(ErrorKind::Corrupt, format!("{} is not an array", variable.path)));
    };
    let wanted = view.shape(variable);
    let own = variable.meta.space.dims();
    let size = variable.meta.dtype.size();
    let stored = if own.contains(&0) { Vec::new() } else { array.read_raw(Selection::all())?.bytes };
    if own == wanted {
        return Ok(stored.into());
    }
    let total = byte_count(&wanted, size)?;
    if total > array.options().limits.output {
        return Err(Error::limit("bytes of an array", total.into(), array.options().limits.output.into()));
    }
    let mut out = view.fill(variable).repeat(to_usize(total / (size.max(1) as u64))?);
    // Rows of the last axis, one after the other.
    let row = to_usize(own.last().copied().unwrap_or(1).min(wanted.last().copied().unwrap_or(1)))? * size;
    let own_row = to_usize(own.last().copied().unwrap_or(1))? * size;
    if own_row == 0 {
        return Ok(out.into());
    }
    let mut at: Vec<u64> = own.iter().map(|_| 0).collect();
    let outer = own.len().saturating_sub(1);
    for part in stored.chunks_exact(own_row) {
        let inside = at.iter().zip(&wanted).take(outer).all(|(a, w)| a < w);
        let place = at.iter().zip(&wanted).fold(0u64, |n, (a, w)| n.saturating_mul(*w).saturating_add(*a));
        let place = to_usize(place.saturating_mul(size as u64))?;
        if inside && let (Some(to), Some(from)) = (out.get_mut(place..place + row), part.get(..row)) {
            to.copy_from_slice(from);
        }
        for axis in (0..outer).rev() {
            at[axis] += 1;
            if at[axis] < own[axis] {
                break;
            }
            at[axis] = 0;
        }
    }
    Ok(out.into())
}
