//! Buffers for results: zeroed, fallible, on huge pages where they pay; and plain elements seen as bytes.

use std::alloc::{Layout, alloc_zeroed};

/// A type whose every bit pattern is a value, and which has no padding.
///
/// # Safety
/// Implementors are made of nothing but initialised bytes, for any of which the value is valid.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

macro_rules! plain {
    ($($t:ty),*) => {$(
        // SAFETY: numbers, and arrays of them, have neither padding nor invalid bit patterns.
        unsafe impl Plain for $t {}
    )*};
}
plain!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, [f32; 2], [f64; 2]);
// SAFETY: a transparent wrapper of `u16`.
unsafe impl Plain for half::f16 {}

/// Buffers from here on are worth huge pages. Miri has none, and takes long over many bytes.
const HUGE_FROM: usize = if cfg!(miri) { 4 << 10 } else { 4 << 20 };

/// `n` elements of zero bytes; `None` where there is no memory for them.
///
/// Fresh memory comes zeroed from the system, page by page as it is first touched, so this costs no pass over it.
pub fn zeroed<T: Plain>(n: usize) -> Option<Vec<T>> {
    let layout = Layout::array::<T>(n).ok()?;
    if layout.size() == 0 {
        return Some(Vec::new());
    }
    // SAFETY: the layout has a size.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return None;
    }
    if layout.size() >= HUGE_FROM {
        advise_huge(start, layout.size());
    }
    // SAFETY: `start` comes from the global allocator with the layout of `n` elements, and zero bytes are a value of a
    // plain type.
    Some(unsafe { Vec::from_raw_parts(start.cast::<T>(), n, n) })
}

/// Asks for huge pages in the whole pages of a block. A wish only: failure changes nothing.
#[cfg(all(target_os = "linux", not(miri)))]
fn advise_huge(start: *mut u8, length: usize) {
    const PAGE: usize = 4096;
    let skip = start.align_offset(PAGE);
    if skip < length {
        let whole = (length - skip) & !(PAGE - 1);
        // SAFETY: the range lies in one live allocation, and this advice does not change what is in it.
        unsafe { libc::madvise(start.add(skip).cast(), whole, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise_huge(_: *mut u8, _: usize) {}

/// Elements as the bytes they are made of, in the order of this machine.
pub fn bytes_of_mut<T: Plain>(elements: &mut [T]) -> &mut [u8] {
    let length = size_of_val(elements);
    // SAFETY: plain types are all initialised bytes, and any bytes written are a value of them; the borrow is passed on.
    unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), length) }
}

/// Elements as the bytes they are made of, in the order of this machine.
pub fn bytes_of<T: Plain>(elements: &[T]) -> &[u8] {
    // SAFETY: as in `bytes_of_mut`, for reading only.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_zeroed_and_of_the_asked_length() {
        for n in [0, 1, 1000, HUGE_FROM / 8 + 3] {
            let v = zeroed::<f64>(n).unwrap();
            assert_eq!(v.len(), n);
            assert!(v.iter().all(|&x| x == 0.0));
        }
        assert!(zeroed::<f64>(usize::MAX / 4).is_none());
    }

    #[test]
    fn elements_are_their_bytes() {
        let mut v = [u16::from_ne_bytes([1, 2]), u16::from_ne_bytes([3, 4])];
        bytes_of_mut(&mut v)[0] = 9;
        assert_eq!(bytes_of(&v), [9, 2, 3, 4]);
    }
}
