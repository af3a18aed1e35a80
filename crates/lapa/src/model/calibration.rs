//! Calibration images of batch norm: public images that the statistics of evaluation come from.
//!
//! They are training images that no device holds, which stand for a public set of the base station. Where
//! too few are known to be such, a part of the test images is held out, and accuracy is that of
//! the others. So no image is evaluated with statistics that it is part of.

use rand::seq::index;

use crate::data::Split;
use crate::seed::{Purpose, stream};

/// Calibration images where there are as many.
const MOST: usize = 1_000;

/// Fewest training images that are a calibration set.
const LEAST: usize = 250;

/// Images of a split, by ascending number.
#[derive(Clone)]
pub(crate) struct Images {
    pub split: Split,
    pub numbers: Vec<u32>,
}

impl Images {
    /// All images of `split`.
    pub fn all(split: Split) -> Self {
        Self { numbers: (0..split.len() as u32).collect(), split }
    }

    /// Training images outside of all that is `held`, drawn by `seed`; `None` if too few are.
    pub fn unheld<'a>(
        train: &Split,
        held: impl Iterator<Item = &'a [u32]>,
        seed: u64,
    ) -> Option<Self> {
        let mut free = vec![true; train.len()];
        held.flatten().for_each(|&number| free[number as usize] = false);
        let mut unheld = Self::all(train.clone());
        unheld.numbers.retain(|&number| free[number as usize]);
        (unheld.numbers.len() >= LEAST).then(|| unheld.divide(MOST, seed).0)
    }

    /// A tenth of the images, drawn by `seed`, and the others. Of fewer than ten images, all and all.
    pub fn hold_out(self, seed: u64) -> (Self, Self) {
        match self.numbers.len() / 10 {
            0 => (self.clone(), self),
            tenth => self.divide(tenth.min(MOST), seed),
        }
    }

    /// At most `most` images, drawn by `seed`, and the others.
    fn divide(self, most: usize, seed: u64) -> (Self, Self) {
        let count = self.numbers.len();
        let mut drawn = vec![false; count];
        let mut rng = stream(seed, Purpose::Calibration, 0, 0);
        index::sample(&mut rng, count, most.min(count)).iter().for_each(|at| drawn[at] = true);
        let part = |of: bool| {
            let kept = self.numbers.iter().zip(&drawn).filter(|(_, drawn)| **drawn == of);
            Self { split: self.split.clone(), numbers: kept.map(|(&number, _)| number).collect() }
        };
        (part(true), part(false))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::data::digits;
    use crate::shape::Shape;

    #[test]
    fn unheld_images_are_on_no_device() {
        let train = digits(2_000, 1).train;
        let devices: Vec<Vec<u32>> = vec![(0..2_000).step_by(3).collect(), vec![1, 4, 1999]];
        let of = |devices: &[Vec<u32>], seed| {
            Images::unheld(&train, devices.iter().map(|held| &**held), seed).map(|i| i.numbers)
        };
        let drawn = of(&devices, 7).unwrap();
        let distinct: BTreeSet<u32> = drawn.iter().copied().collect();
        assert_eq!((drawn.len(), distinct.len()), (MOST, MOST));
        assert!(drawn.is_sorted() && devices.iter().flatten().all(|held| !distinct.contains(held)));
        assert_eq!(of(&devices, 7).unwrap(), drawn);
        assert_ne!(of(&devices, 8).unwrap(), drawn);
        // All of them if they are few, and no result if they are too few.
        let most: Vec<u32> = (250..2_000).collect();
        assert_eq!(of(std::slice::from_ref(&most), 7).unwrap(), (0..250).collect::<Vec<_>>());
        assert_eq!(of(&[most, vec![3]], 7), None);
    }

    #[test]
    fn held_out_images_are_not_evaluated() {
        for (test, calibration, evaluated) in
            [(0, 0, 0), (1, 1, 1), (9, 9, 9), (10, 1, 9), (95, 9, 86), (12_000, 1_000, 11_000)]
        {
            let shape = Shape::new(1, 1, 1);
            let split = Split { values: vec![0u8; 0].into(), labels: vec![0; test], shape };
            let (held_out, others) = Images::all(split).hold_out(3);
            assert_eq!((held_out.numbers.len(), others.numbers.len()), (calibration, evaluated));
            if test >= 10 {
                let mut all = [held_out.numbers, others.numbers].concat();
                all.sort_unstable();
                assert_eq!(all, (0..test as u32).collect::<Vec<_>>());
            }
        }
    }
}
