//! Buffers that are handed out again, so that a step after the first asks the system for no memory.

use std::collections::BTreeMap;

/// Free buffers by capacity.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: BTreeMap<usize, Vec<Vec<f32>>>,
}

/// Capacity for `len` values: four sizes between powers of two, because the number of rows of a step varies a
/// little from draw to draw and the buffer of the last step should still fit.
fn capacity_class(len: usize) -> usize {
    let step = (len.next_power_of_two() / 8).max(64);
    len.next_multiple_of(step)
}

impl Pool {
    /// A buffer of `len` values that are left over from its last use: write before you read.
    pub(crate) fn take(&mut self, len: usize) -> Vec<f32> {
        let class = capacity_class(len);
        let mut buffer = self.free.get_mut(&class).and_then(Vec::pop).unwrap_or_else(|| Vec::with_capacity(class));
        buffer.resize(len, 0.0);
        buffer
    }

    /// A buffer of zeros.
    pub(crate) fn take_zeros(&mut self, len: usize) -> Vec<f32> {
        let mut buffer = self.take(len);
        buffer.fill(0.0);
        buffer
    }

    /// Takes a buffer back.
    pub(crate) fn give(&mut self, buffer: Vec<f32>) {
        let capacity = buffer.capacity();
        // A buffer that was not born here may have any capacity; kept under it, it would never be found again.
        if capacity > 0 && capacity_class(capacity) == capacity {
            self.free.entry(capacity).or_default().push(buffer);
        }
    }

    /// Number of values in free buffers.
    #[cfg(test)]
    pub(crate) fn free_values(&self) -> usize {
        self.free.iter().map(|(capacity, buffers)| capacity * buffers.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_its_own_class() {
        for len in [1, 63, 64, 65, 1000, 4097, 5800 * 128, 29_011 * 128] {
            let class = capacity_class(len);
            assert!(class >= len && class <= len + len / 4 + 64);
            assert_eq!(capacity_class(class), class);
        }
    }

    #[test]
    fn a_buffer_comes_back_for_a_length_near_its_own() {
        let mut pool = Pool::default();
        let buffer = pool.take(5800 * 128);
        let place = buffer.as_ptr();
        pool.give(buffer);
        let again = pool.take(5790 * 128);
        assert_eq!(again.as_ptr(), place);
    }
}
