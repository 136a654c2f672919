//! What the small LZ77 formats have in common.

/// A place in an output of known length, filled from its start.
pub(super) struct Output<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl<'a> Output<'a> {
    pub(super) fn new(out: &'a mut [u8]) -> Self {
        Output { out, at: 0 }
    }

    /// Bytes written so far.
    pub(super) fn len(&self) -> usize {
        self.at
    }

    /// Appends bytes; `None` if they do not fit.
    #[inline]
    pub(super) fn literals(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.at.checked_add(bytes.len())?;
        self.out.get_mut(self.at..end)?.copy_from_slice(bytes);
        self.at = end;
        Some(())
    }

    /// Appends `len` bytes that repeat what stands `distance` bytes before; `None` if there is no such place or no room.
    #[inline]
    pub(super) fn repeat(&mut self, distance: usize, len: usize) -> Option<()> {
        let from = self.at.checked_sub(distance)?;
        let end = self.at.checked_add(len)?;
        if end > self.out.len() || distance == 0 {
            return None;
        }
        if distance == 1 {
            let byte = *self.out.get(from)?;
            self.out.get_mut(self.at..end)?.fill(byte);
        } else {
            // A source that overlaps the target doubles with every copy.
            while self.at < end {
                let n = (self.at - from).min(end - self.at);
                self.out.copy_within(from..from + n, self.at);
                self.at += n;
            }
        }
        self.at = end;
        Some(())
    }
}

/// Finds earlier places with the same three bytes.
pub(super) struct Matcher {
    /// By hash, one more than the place; 0: none.
    places: Vec<u32>,
}

/// Bits of the hash.
const HASH_BITS: u32 = 14;

impl Matcher {
    pub(super) fn new() -> Self {
        Matcher { places: vec![0; 1 << HASH_BITS] }
    }

    /// The last place before `at` that starts with the same three bytes and is at most `window` away; remembers `at`.
    pub(super) fn find(&mut self, input: &[u8], at: usize, window: usize) -> Option<usize> {
        let key = input.get(at..at + 3)?;
        let hash = (u32::from(key[0]) | u32::from(key[1]) << 8 | u32::from(key[2]) << 16)
            .wrapping_mul(0x9e37_79b1)
            >> (32 - HASH_BITS);
        let slot = self.places.get_mut(hash as usize)?;
        let place = (*slot as usize).checked_sub(1);
        *slot = u32::try_from(at + 1).unwrap_or(0);
        place.filter(|&p| at - p <= window && input.get(p..p + 3) == Some(key))
    }
}

/// How many bytes from `a` and from `b` on are equal, at most `max`; `b` is the later place.
pub(super) fn common(input: &[u8], a: usize, b: usize, max: usize) -> usize {
    let from = input.get(a..).unwrap_or_default();
    let to = input.get(b..).unwrap_or_default();
    from.iter().zip(to).take(max).take_while(|(x, y)| x == y).count()
}
