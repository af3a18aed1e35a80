//! Means over seeds and how sure they are.

use lapa_report::student::quantile;
use serde::{Deserialize, Serialize};

/// A mean with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Both ends of the interval; none for a single value.
    pub interval: Option<[f64; 2]>,
}

impl Estimate {
    /// Student's interval for the mean of independent normal values. Of paired differences it is
    /// the interval of the paired t-test.
    ///
    /// # Panics
    /// If there is no value.
    pub fn of(values: &[f64]) -> Self {
        assert!(!values.is_empty(), "an estimate needs a value");
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let interval = (values.len() > 1).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            let error = (squares / (n - 1.0) / n).sqrt();
            let half = quantile(0.95, values.len() as u32 - 1) * error;
            [mean - half, mean + half]
        });
        Self { mean, interval }
    }

    /// The same of values that may be missing.
    pub fn of_each(values: Option<Vec<f64>>) -> Option<Self> {
        values.map(|values| Self::of(&values))
    }

    /// The same with an interval that keeps to the values there can be.
    pub fn within(self, least: f64, most: f64) -> Self {
        let interval = self.interval.map(|ends| ends.map(|end| end.clamp(least, most)));
        Self { interval, ..self }
    }

    /// Of the differences `a - b`, seed by seed.
    ///
    /// # Panics
    /// If there is no value, or not as many of each.
    pub fn of_differences(a: &[f64], b: &[f64]) -> Self {
        assert_eq!(a.len(), b.len(), "pairs");
        let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
        Self::of(&differences)
    }

    /// True if the whole interval is above 0; none without an interval.
    pub fn is_positive(&self) -> Option<bool> {
        self.interval.map(|[low, _]| low > 0.0)
    }

    /// True if the interval holds `value`; none without an interval.
    pub fn holds(&self, value: f64) -> Option<bool> {
        self.interval.map(|[low, high]| (low..=high).contains(&value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy 1.17.1: `ttest_rel(a, b).confidence_interval(0.95)` and
    /// `ttest_1samp(values, 0).confidence_interval(0.95)`.
    #[test]
    fn intervals_match_scipy() {
        let paired =
            Estimate::of_differences(&[94.38, 94.72, 94.21, 95.1], &[93.83, 94.0, 94.07, 94.4]);
        let single = Estimate::of(&[1.3, 0.2, -0.7, 2.2, 0.9]);
        for (estimate, mean, expected) in [
            (paired, 0.5275, [0.099_074_678_172_509_53, 0.955_925_321_827_483]),
            (single, 0.78, [-0.584_136_169_051_124, 2.144_136_169_051_124]),
        ] {
            assert!((estimate.mean - mean).abs() < 1e-12);
            for (ours, scipys) in estimate.interval.unwrap().into_iter().zip(expected) {
                assert!((ours - scipys).abs() < 1e-12, "{ours} {scipys}");
            }
        }
        assert_eq!((paired.is_positive(), single.is_positive()), (Some(true), Some(false)));
        assert_eq!((single.holds(2.0), single.holds(2.2)), (Some(true), Some(false)));
        assert_eq!(Estimate::of(&[0.7]), Estimate { mean: 0.7, interval: None });
    }

    #[test]
    fn an_interval_of_fractions_keeps_to_fractions() {
        // Student's reaches from -3.1 to 4.5.
        let wide = Estimate::of(&[0.4, 1.0]);
        assert!(wide.interval.unwrap()[0] < -3.0 && wide.interval.unwrap()[1] > 4.0);
        assert_eq!(wide.within(0.0, 1.0), Estimate { mean: 0.7, interval: Some([0.0, 1.0]) });
        let narrow = Estimate::of(&[0.7, 0.701]);
        assert_eq!(narrow.within(0.0, 1.0), narrow);
        let one = Estimate::of(&[0.7]);
        assert_eq!(one.within(0.0, 1.0), one);
    }
}
