//! The bits of many levels as one stream.

/// A view of levels (indices of a quantizer, each of `bits` bits, held by f32) as a stream of bits,
/// the highest bit of the first level first, cut into groups of `width` bits. After the last level
/// come zeros, which cannot be set.
pub(super) struct BitStream<'a> {
    levels: &'a mut [f32],
    bits: usize,
    width: usize,
}

impl<'a> BitStream<'a> {
    pub(super) fn new(levels: &'a mut [f32], bits: u32, width: u32) -> Self {
        Self { levels, bits: bits as usize, width: width as usize }
    }

    /// The bits of one group, the first one highest.
    pub(super) fn group(&self, index: usize) -> u32 {
        self.places(index).fold(0, |group, (level, shift)| {
            let level = self.levels.get(level).map_or(0, |&level| level as u32);
            group << 1 | level >> shift & 1
        })
    }

    /// Replaces the bits of one group.
    pub(super) fn set_group(&mut self, index: usize, group: u32) {
        for ((level, shift), place) in self.places(index).zip((0..self.width).rev()) {
            if let Some(level) = self.levels.get_mut(level) {
                let bit = group >> place & 1;
                *level = (*level as u32 & !(1 << shift) | bit << shift) as f32;
            }
        }
    }

    /// For each bit of a group its level, and its place there.
    fn places(&self, index: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (bits, width) = (self.bits, self.width);
        (index * width..(index + 1) * width).map(move |bit| (bit / bits, bits - 1 - bit % bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the digits as text, for groups within levels, across them and past the end.
    #[test]
    fn groups_are_the_digits_in_order() {
        let levels = [0b10110u32, 0b00111, 0b11001, 0b01010, 0b11111];
        let mut text: String = levels.iter().map(|level| format!("{level:05b}")).collect();
        for width in 1..=7 {
            text.truncate(25);
            let groups = 25usize.div_ceil(width);
            text.extend(std::iter::repeat_n('0', groups * width - 25));
            let mut held = levels.map(|level| level as f32);
            let mut stream = BitStream::new(&mut held, 5, width as u32);
            for index in 0..groups {
                let digits = &text[index * width..][..width];
                assert_eq!(format!("{:0width$b}", stream.group(index)), digits);
            }
            // All bits flipped, one group after the other.
            for index in 0..groups {
                let group = stream.group(index);
                stream.set_group(index, !group & ((1 << width) - 1));
            }
            assert_eq!(held, levels.map(|level| (!level & 0b11111) as f32));
        }
    }
}
