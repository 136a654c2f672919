//! Arrays with the same elements of another type, or over another fill value.

use super::cells::{Cells, Kind};
use super::slab::{BaseSlab, convert};
use super::values::Values;
use super::{StagedArray, buffer_of};
use crate::dtype::{Conversion, DType};
use crate::error::{Context, Error, Result};
use crate::shape::element_count;
use hyperslab_kernels::canvas::Convert;

impl StagedArray {
    /// The same elements as another type, converted as HDF5 does. Base slabs are read into memory and then gone; staged
    /// slabs are converted when they are next read or written, each as a whole.
    pub fn astype(&self, dtype: &DType) -> Result<StagedArray> {
        if *dtype == self.dtype {
            return Ok(self.copy());
        }
        let mut new = self.copy();
        new.load()?;
        let bases = new.ledger.bases;
        for slab in 1..=bases {
            new.drop_base(slab);
        }
        new.retype(dtype)?;
        new.reclaim();
        Ok(new)
    }

    /// The same, with base slabs of the new type instead of reading the old ones: one for each that there is, with the
    /// same extents and equal elements. [`BaseSlab::converted`] makes one that converts when it is read.
    pub fn astype_over(&self, dtype: &DType, bases: Vec<BaseSlab>) -> Result<StagedArray> {
        if *dtype == self.dtype {
            return Ok(self.copy());
        }
        let mut new = self.copy();
        let there: Vec<usize> =
            (1..=new.ledger.bases).filter(|&s| new.slabs.get(s).is_some_and(Option::is_some)).collect();
        if there.len() != bases.len() {
            return Err(Error::invalid(format!(
                "{} base slabs to take the place of {}",
                bases.len(),
                there.len()
            )));
        }
        let extents: Vec<Option<Vec<u64>>> =
            there.iter().map(|&s| new.ledger.slabs.get(s).cloned().flatten()).collect();
        for &slab in &there {
            new.drop_base(slab);
        }
        new.retype(dtype)?;
        for ((slab, base), extents) in there.into_iter().zip(bases).zip(extents) {
            if base.dtype() != dtype {
                return Err(Error::invalid(format!("a base slab of {} instead of {dtype}", base.dtype())));
            }
            let (swapped, shape, table) = new.adopt(base, extents.as_deref())?;
            if let (Some(slot), Some(extents), Some(hashes)) =
                (new.slabs.get_mut(slab), new.ledger.slabs.get_mut(slab), new.hash_tables.get_mut(slab))
            {
                (*slot, *extents, *hashes) = (Some(swapped), Some(shape), table);
            }
        }
        new.check_places()?;
        new.reclaim();
        Ok(new)
    }

    fn drop_base(&mut self, slab: usize) {
        if let (Some(slot), Some(extents), Some(table)) =
            (self.slabs.get_mut(slab), self.ledger.slabs.get_mut(slab), self.hash_tables.get_mut(slab))
        {
            (*slot, *extents, *table) = (None, None, None);
        }
    }

    /// Makes the full and staged slabs those of another type; there are no base slabs.
    fn retype(&mut self, dtype: &DType) -> Result<()> {
        let conversion = || Conversion::between(&self.dtype, dtype);
        let fill = match self.kind {
            Kind::Fixed(_) => convert(&*self.buffer(0)?.cells()?, &conversion()?)?,
            Kind::Objects => {
                return Err(Error::unsupported(format!("conversion of {} to {dtype}", self.dtype)));
            }
        };
        let mut used: Vec<usize> = self.slabs.iter().skip(1).flatten().filter_map(buffer_of).collect();
        used.sort_unstable();
        used.dedup();
        for buffer in used {
            let converted = self.buffer(buffer)?.astype(conversion()?)?;
            if let Some(slot) = self.buffers.get_mut(buffer) {
                *slot = Some(converted);
            }
        }
        if let Some(slot) = self.buffers.first_mut() {
            *slot = Some(super::slab::Buffer::new(fill));
        }
        self.hash_tables.iter_mut().for_each(|table| *table = None);
        self.dtype = dtype.clone();
        self.kind = Kind::of(dtype);
        Ok(())
    }

    /// Whether some staged slab still has to be converted to the array's type.
    pub fn is_conversion_pending(&self) -> bool {
        self.slabs
            .iter()
            .flatten()
            .filter_map(buffer_of)
            .any(|b| self.buffer(b).is_ok_and(|b| b.is_pending()))
    }

    /// The same elements over another fill value: chunks that were never written have the new one, and so has every
    /// element that was equal to the old one. Floats are equal by value, and NaN is equal to NaN.
    pub fn refill<'v>(&self, fill: impl Into<Values<'v>>) -> Result<StagedArray> {
        let fill = fill.into();
        if element_count(fill.shape())? != 1 {
            return Err(Error::invalid(format!("a fill value of shape {:?}", fill.shape())));
        }
        let fill = fill.cells(&self.dtype).context(|| "fill value")?.into_cells();
        let old = self.buffer(0)?.cells()?;
        let mut new = self.copy();
        if *old == fill {
            return Ok(new);
        }
        new.load()?;
        let mut staged: Vec<usize> =
            new.slabs.iter().skip(new.ledger.bases + 1).flatten().filter_map(buffer_of).collect();
        staged.sort_unstable();
        staged.dedup();
        let number = Number::of(&self.dtype);
        for buffer in staged {
            replace(new.own(buffer)?, &old, &fill, number.as_ref())?;
        }
        for slab in 0..new.slabs.len() as u32 {
            if slab == 0 || new.ledger.is_staged(slab) {
                new.forget_hashes(slab);
            }
        }
        if let Some(slot) = new.buffers.first_mut() {
            *slot = Some(super::slab::Buffer::new(fill));
        }
        Ok(new)
    }
}

/// How elements of a floating-point type are compared by value.
struct Number {
    conversion: Conversion,
    /// Two numbers for a complex one.
    parts: usize,
    wide: bool,
}

impl Number {
    /// `None` where equal elements have equal bytes.
    fn of(dtype: &DType) -> Option<Number> {
        use crate::dtype::Native;
        let (base, native, parts) = match dtype {
            DType::Complex { base } => (&**base, Native::Complex64, 2),
            other => (other, Native::F64, 1),
        };
        match base {
            DType::Float(_) => {
                let conversion = Conversion::new(dtype, native, false).ok()?;
                Some(Number { conversion, parts, wide: base.size() > 8 })
            }
            _ => None,
        }
    }

    fn value(&self, stored: &[u8]) -> Result<[f64; 2]> {
        let mut native = [0; 16];
        let target = native.get_mut(..8 * self.parts).unwrap_or(&mut []);
        self.conversion.run(stored, stored.len(), target)?;
        let part = |at: usize| {
            native.get(at..).and_then(|b| b.first_chunk()).map_or(0.0, |b| f64::from_ne_bytes(*b))
        };
        Ok([part(0), part(8)])
    }
}

/// Puts `new` in the place of every element that is equal to `old`.
fn replace(cells: &mut Cells, old: &Cells, new: &Cells, number: Option<&Number>) -> Result<()> {
    match (cells, old, new) {
        (Cells::Fixed { size, bytes }, Cells::Fixed { bytes: old, .. }, Cells::Fixed { bytes: new, .. }) => {
            // Numbers that `f64` cannot tell apart are compared by their bytes.
            let value = match number.filter(|n| !n.wide) {
                Some(number) => Some((number, number.value(old)?)),
                None => None,
            };
            for element in bytes.chunks_exact_mut((*size).max(1)) {
                let same = *element == **old
                    || match &value {
                        Some((number, old)) => number
                            .value(element)?
                            .iter()
                            .zip(old)
                            .all(|(a, b)| a == b || (a.is_nan() && b.is_nan())),
                        None => false,
                    };
                if same {
                    element.copy_from_slice(new);
                }
            }
        }
        (Cells::Objects(objects), Cells::Objects(old), Cells::Objects(new)) => {
            if let ([old], [new]) = (old.as_slice(), new.as_slice()) {
                objects.iter_mut().filter(|o| *o == old).for_each(|o| o.clone_from(new));
            }
        }
        _ => return Err(Error::invalid("a fill value of another kind")),
    }
    Ok(())
}
