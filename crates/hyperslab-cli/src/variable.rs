//! The elements of netCDF variables.

use bytes::Bytes;
use hyperslab::convention::netcdf::{NetcdfView, Variable};
use hyperslab::dtype::{Conversion, DType};
use hyperslab::shape::{byte_count, to_usize};
use hyperslab::{Error, ErrorKind, File, Object, Result, Selection};
use std::ops::Range;

/// Elements of a variable as stored: all of them, or those in `rows` along the first axis. Along unlimited dimensions
/// that others made longer it ends in fill values.
pub(crate) fn read(file: &File, view: &NetcdfView, variable: &Variable, rows: Range<u64>) -> Result<Bytes> {
    let Object::Array(array) = file.object(&variable.node, variable.path.as_str())? else {
        return Err(Error::new(ErrorKind::Corrupt, format!("{} is not an array", variable.path)));
    };
    let mut wanted = view.shape(variable);
    let mut own = variable.meta.space.dims().to_vec();
    let mut selection = Selection::all();
    if let (Some(w), Some(o)) = (wanted.first_mut(), own.first_mut())
        && (rows.start > 0 || rows.end < *w)
    {
        let end = rows.end.min(*o).max(rows.start.min(*o));
        let start = rows.start.min(*o);
        selection = Selection::parse(&format!("[{start}:{end}]"))?;
        (*w, *o) = (rows.end.saturating_sub(rows.start), end - start);
    }
    let size = variable.meta.dtype.size();
    let mut stored = if own.contains(&0) { Vec::new() } else { array.read_raw(selection)?.bytes };
    // Numbers in a layout without a word in netCDF are shown in another.
    if let (from @ (DType::Integer(_) | DType::Float(_)), to @ (DType::Integer(_) | DType::Float(_))) =
        (array.dtype(), &variable.meta.dtype)
        && from != to
    {
        stored = Conversion::between(from, to)?.convert(&stored)?;
    }
    if own == wanted {
        return Ok(stored.into());
    }
    let total = byte_count(&wanted, size)?;
    if total > array.options().limits.output {
        return Err(Error::limit("bytes of an array", total.into(), array.options().limits.output.into()));
    }
    let mut out = view.fill(variable).repeat(to_usize(total / (size.max(1) as u64))?);
    overlay(&stored, &own, &mut out, &wanted, size)?;
    Ok(out.into())
}

/// Copies the elements of a box of extents `from_dims` to the corner of one of extents `to_dims`.
fn overlay(from: &[u8], from_dims: &[u64], to: &mut [u8], to_dims: &[u64], size: usize) -> Result<()> {
    let last = |dims: &[u64]| dims.last().copied().unwrap_or(1);
    let row = to_usize(last(from_dims))?.saturating_mul(size);
    let part = to_usize(last(from_dims).min(last(to_dims)))?.saturating_mul(size);
    if row == 0 {
        return Ok(());
    }
    let outer = from_dims.len().saturating_sub(1);
    let mut at: Vec<u64> = vec![0; outer];
    for stored in from.chunks_exact(row) {
        let inside = at.iter().zip(to_dims).all(|(a, w)| a < w);
        let place = at.iter().zip(to_dims).fold(0u64, |n, (a, w)| n.saturating_mul(*w).saturating_add(*a));
        let place = to_usize(place.saturating_mul(last(to_dims)).saturating_mul(size as u64))?;
        let target = to.get_mut(place..place.saturating_add(part));
        if let (true, Some(target), Some(stored)) = (inside, target, stored.get(..part)) {
            target.copy_from_slice(stored);
        }
        for (at, length) in at.iter_mut().zip(from_dims).rev() {
            *at += 1;
            if *at < *length {
                break;
            }
            *at = 0;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::overlay;

    #[test]
    fn a_box_is_laid_over_a_larger_one() {
        let mut to = vec![9; 2 * 3 * 4];
        overlay(&[1, 2, 3, 4, 5, 6], &[1, 2, 3], &mut to, &[2, 3, 4], 1).unwrap();
        assert_eq!(to[..12], [1, 2, 3, 9, 4, 5, 6, 9, 9, 9, 9, 9]);
        assert_eq!(to[12..], [9; 12]);
        // A scalar, and two bytes an element.
        let mut to = vec![0; 2];
        overlay(&[7, 8], &[], &mut to, &[], 2).unwrap();
        assert_eq!(to, [7, 8]);
    }
}
