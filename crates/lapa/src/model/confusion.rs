//! Confusion matrix: test samples by their class and by the class the model took them for.

use serde::{Deserialize, Serialize};

/// Most classes: labels are bytes.
const MOST_CLASSES: usize = 256;

/// A confusion matrix. A row has the samples of one class, a column those taken for one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Vec<u32>>", into = "Vec<Vec<u32>>")]
pub struct Confusion {
    classes: usize,
    counts: Vec<u32>,
}

/// Samples of one class that were taken for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Their class.
    pub class: usize,
    /// The class they were taken for.
    pub taken_for: usize,
    /// Their number.
    pub samples: u32,
}

impl Confusion {
    /// The matrix of these pairs of class and prediction; `None` if there is no prediction for one
    /// of them, or if there are more classes than labels can name.
    pub(crate) fn of(
        classes: usize,
        pairs: impl Iterator<Item = (u8, Option<usize>)>,
    ) -> Option<Self> {
        if classes > MOST_CLASSES {
            return None;
        }
        let mut counts = vec![0; classes * classes];
        for (class, taken_for) in pairs {
            counts[usize::from(class) * classes + taken_for?] += 1;
        }
        Some(Self { classes, counts })
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Samples of a class by the class they were taken for.
    pub fn row(&self, class: usize) -> &[u32] {
        &self.counts[class * self.classes..][..self.classes]
    }

    /// Samples of a class.
    pub fn samples(&self, class: usize) -> u32 {
        self.row(class).iter().sum()
    }

    /// Share of the samples that were taken for what they are; `None` without samples.
    pub fn accuracy(&self) -> Option<f64> {
        let right: u32 = (0..self.classes).map(|class| self.row(class)[class]).sum();
        share(right, self.counts.iter().sum())
    }

    /// The same of the samples of each class.
    pub fn class_accuracy(&self) -> Vec<Option<f64>> {
        let of = |class| share(self.row(class)[class], self.samples(class));
        (0..self.classes).map(of).collect()
    }

    /// Classes with samples from the lowest accuracy up, each with it.
    pub fn worst_classes(&self) -> Vec<(usize, f64)> {
        let known = self.class_accuracy().into_iter().enumerate();
        let mut known: Vec<_> = known.filter_map(|(class, share)| Some((class, share?))).collect();
        known.sort_by(|a, b| a.1.total_cmp(&b.1));
        known
    }

    /// All mistakes, of the most samples first.
    pub fn mistakes(&self) -> Vec<Mistake> {
        let places = self.counts.iter().enumerate().filter(|(_, samples)| **samples > 0);
        let all = places.map(|(at, &samples)| Mistake {
            class: at / self.classes,
            taken_for: at % self.classes,
            samples,
        });
        let mut all: Vec<_> = all.filter(|one| one.class != one.taken_for).collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.samples));
        all
    }

    /// The matrix as CSV, with a line of names and one line per class.
    pub fn csv(&self) -> String {
        let names = (0..self.classes).map(|class| format!(",taken_for_{class}"));
        let mut text = format!("class{}\n", names.collect::<String>());
        for class in 0..self.classes {
            let counts = self.row(class).iter().map(|samples| format!(",{samples}"));
            text += &format!("{class}{}\n", counts.collect::<String>());
        }
        text
    }
}

fn share(part: u32, of: u32) -> Option<f64> {
    (of > 0).then(|| f64::from(part) / f64::from(of))
}

impl TryFrom<Vec<Vec<u32>>> for Confusion {
    type Error = String;

    fn try_from(rows: Vec<Vec<u32>>) -> Result<Self, String> {
        let classes = rows.len();
        if classes > MOST_CLASSES {
            return Err(format!("{classes} classes; expected at most {MOST_CLASSES}"));
        }
        if let Some(class) = rows.iter().position(|row| row.len() != classes) {
            let found = rows[class].len();
            return Err(format!("{found} counts of class {class}; expected {classes}"));
        }
        let counts = rows.concat();
        if counts.iter().map(|&samples| u64::from(samples)).sum::<u64>() > u32::MAX.into() {
            return Err(format!("more than {} samples", u32::MAX));
        }
        Ok(Self { classes, counts })
    }
}

impl From<Confusion> for Vec<Vec<u32>> {
    fn from(matrix: Confusion) -> Self {
        (0..matrix.classes).map(|class| matrix.row(class).to_vec()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix() -> Confusion {
        let pairs = [(0, 0), (0, 2), (2, 2), (2, 0), (2, 0), (0, 2), (0, 1)];
        let pairs = pairs.into_iter().map(|(class, taken_for)| (class, Some(taken_for)));
        Confusion::of(3, pairs).unwrap()
    }

    #[test]
    fn samples_are_counted_by_class_and_prediction() {
        let matrix = matrix();
        let rows = [[1, 1, 2], [0, 0, 0], [2, 0, 1]];
        rows.iter().enumerate().for_each(|(class, row)| assert_eq!(matrix.row(class), row));
        assert_eq!(matrix.accuracy(), Some(2.0 / 7.0));
        assert_eq!(matrix.class_accuracy(), [Some(0.25), None, Some(1.0 / 3.0)]);
        assert_eq!(matrix.worst_classes(), [(0, 0.25), (2, 1.0 / 3.0)]);
        let mistake = |class, taken_for, samples| Mistake { class, taken_for, samples };
        assert_eq!(matrix.mistakes(), [mistake(0, 2, 2), mistake(2, 0, 2), mistake(0, 1, 1)]);
        assert_eq!(
            matrix.csv(),
            "class,taken_for_0,taken_for_1,taken_for_2\n0,1,1,2\n1,0,0,0\n2,2,0,1\n"
        );
        assert_eq!(Confusion::of(3, [(0, Some(0)), (1, None)].into_iter()), None);
        assert_eq!(Confusion::of(257, std::iter::empty()), None);
    }

    #[test]
    fn a_matrix_survives_being_written_down_and_another_shape_is_refused() {
        let text = serde_json::to_string(&matrix()).unwrap();
        assert_eq!(text, "[[1,1,2],[0,0,0],[2,0,1]]");
        assert_eq!(serde_json::from_str::<Confusion>(&text).unwrap(), matrix());
        for (text, expected) in [
            ("[[1,2],[3]]", "1 counts of class 1; expected 2"),
            ("[[4294967295,1],[0,0]]", "more than 4294967295 samples"),
        ] {
            let error = serde_json::from_str::<Confusion>(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
