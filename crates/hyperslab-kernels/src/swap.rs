//! Numbers with their bytes in the other order.

/// Reverses the bytes of each element of `N` bytes, in place. Bytes after the last whole element stay.
pub fn swap_in_place<const N: usize>(elements: &mut [u8]) {
    for element in elements.chunks_exact_mut(N) {
        element.reverse();
    }
}

/// Reverses the bytes of each element of `size` bytes, in place.
pub fn swap_elements(elements: &mut [u8], size: usize) {
    match size {
        0 | 1 => {}
        2 => swap_in_place::<2>(elements),
        4 => swap_in_place::<4>(elements),
        8 => swap_in_place::<8>(elements),
        16 => swap_in_place::<16>(elements),
        _ => elements.chunks_exact_mut(size).for_each(<[u8]>::reverse),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_element_is_reversed() {
        for size in 1..20 {
            let mut bytes: Vec<u8> = (0..size as u8 * 5).collect();
            let expected: Vec<u8> = bytes.chunks(size).flat_map(|c| c.iter().rev().copied()).collect();
            swap_elements(&mut bytes, size);
            assert_eq!(bytes, expected);
        }
    }
}
