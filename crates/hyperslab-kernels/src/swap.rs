//! Numbers with their bytes in the other order.

/// Reverses the bytes of each element of `N` bytes, in place. Bytes after the last whole element stay.
pub fn swap_in_place<const N: usize>(elements: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if N > 1 && 16 % N == 0 && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { wide::swap::<N>(elements) };
    }
    swap_plain::<N>(elements);
}

fn swap_plain<const N: usize>(elements: &mut [u8]) {
    elements.chunks_exact_mut(N).for_each(<[u8]>::reverse);
}

/// 32 bytes a step. SSE2, which is all that compilers may count on, has no instruction that moves bytes about freely.
#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_shuffle_epi8, _mm256_storeu_si256};

    /// # Safety
    /// The processor has AVX2, and `N` divides 16.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn swap<const N: usize>(elements: &mut [u8]) {
        // The shuffle works on each half of 16 bytes by itself: byte `i` comes from the mirror image in its element.
        let order: [u8; 32] = std::array::from_fn(|i| (i % 16 / N * N + N - 1 - i % N) as u8);
        // SAFETY: 32 bytes are read from 32 bytes.
        let order = unsafe { _mm256_loadu_si256(order.as_ptr().cast()) };
        let mut blocks = elements.chunks_exact_mut(32);
        for block in &mut blocks {
            let at = block.as_mut_ptr().cast::<__m256i>();
            // SAFETY: the block is 32 bytes long, and neither access asks for alignment.
            unsafe { _mm256_storeu_si256(at, _mm256_shuffle_epi8(_mm256_loadu_si256(at), order)) };
        }
        super::swap_plain::<N>(blocks.into_remainder());
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
            for count in 0..40 {
                let mut bytes: Vec<u8> = (0..size * count).map(|i| i as u8).collect();
                let expected: Vec<u8> = bytes.chunks(size).flat_map(|c| c.iter().rev().copied()).collect();
                swap_elements(&mut bytes, size);
                assert_eq!(bytes, expected);
            }
        }
    }

    #[test]
    fn bytes_after_the_last_element_stay() {
        let mut bytes: Vec<u8> = (0..67).collect();
        swap_in_place::<4>(&mut bytes);
        assert_eq!(bytes[60..], [63, 62, 61, 60, 64, 65, 66]);
    }
}
