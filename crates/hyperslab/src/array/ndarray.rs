//! To and from the `ndarray` crate.

use super::{Array, ArrayData};
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::select::IntoSelection;
use crate::shape::to_usize;
use ndarray::{ArrayD, IxDyn};

impl Array {
    /// Reads elements as `T` into an array of the `ndarray` crate; see [`Array::read`]. For a fixed number of axes, call
    /// `into_dimensionality` on the result.
    pub fn read_ndarray<T: Element>(&self, selection: impl IntoSelection) -> Result<ArrayD<T>> {
        self.read::<T>(selection)?.try_into()
    }
}

impl<T> TryFrom<ArrayData<T>> for ArrayD<T> {
    type Error = Error;

    fn try_from(read: ArrayData<T>) -> Result<ArrayD<T>> {
        let shape: Vec<usize> = read.shape.iter().map(|&n| to_usize(n)).collect::<Result<_>>()?;
        ArrayD::from_shape_vec(IxDyn(&shape), read.data)
            .map_err(|e| Error::invalid(format!("the shape {shape:?} does not suit its elements: {e}")))
    }
}

impl<T: Clone> From<ArrayD<T>> for ArrayData<T> {
    fn from(array: ArrayD<T>) -> ArrayData<T> {
        let shape = array.shape().iter().map(|&n| n as u64).collect();
        // In C order, whatever the order in memory.
        let whole = array.is_standard_layout();
        let count = array.len();
        let data = if whole {
            let (mut data, offset) = array.into_raw_vec_and_offset();
            // A part of a larger array still has all of its memory.
            data.drain(..offset.unwrap_or(0).min(data.len()));
            data.truncate(count);
            data
        } else {
            array.iter().cloned().collect()
        };
        ArrayData { shape, data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_order_survive() {
        let data = ArrayData { shape: vec![2, 3], data: vec![1, 2, 3, 4, 5, 6] };
        let array: ArrayD<i32> = data.clone().try_into().unwrap();
        assert_eq!(array[[1, 0]], 4);
        assert_eq!(ArrayData::from(array.clone()), data);
        let turned = ArrayData::from(array.reversed_axes());
        assert_eq!(turned, ArrayData { shape: vec![3, 2], data: vec![1, 4, 2, 5, 3, 6] });
        assert!(ArrayD::try_from(ArrayData { shape: vec![4], data: vec![1, 2] }).is_err());
    }

    #[test]
    fn sliced_arrays_keep_their_part_only() {
        let mut array: ArrayD<i32> = ArrayData { shape: vec![4], data: vec![1, 2, 3, 4] }.try_into().unwrap();
        array.slice_axis_inplace(ndarray::Axis(0), (1..3).into());
        assert_eq!(ArrayData::from(array), ArrayData { shape: vec![2], data: vec![2, 3] });
    }
}
