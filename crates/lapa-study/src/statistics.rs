//! Means over seeds and how sure they are.

use lapa_report::student::{quantile, upper_tail};
use serde::{Deserialize, Serialize};

/// Level of every test.
pub const LEVEL: f64 = 0.05;
/// Power at which the smallest detectable difference is stated.
const POWER: f64 = 0.8;

/// A mean with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Both ends of the interval; `None` for a single value.
    pub interval: Option<[f64; 2]>,
}

/// Mean and standard error of two or more values.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0) / n).sqrt())
}

impl Estimate {
    /// Student's interval for the mean of independent normal values. Of paired differences it is
    /// the interval of the paired t-test.
    ///
    /// # Panics
    /// If there is no value.
    pub fn of(values: &[f64]) -> Self {
        assert!(!values.is_empty(), "an estimate needs a value");
        if let [value] = values {
            return Self { mean: *value, interval: None };
        }
        let (mean, error) = mean_and_error(values);
        let half = quantile(0.95, values.len() as u32 - 1) * error;
        Self { mean, interval: Some([mean - half, mean + half]) }
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

    /// True if the interval holds `value`; `None` without an interval.
    pub fn holds(&self, value: f64) -> Option<bool> {
        self.interval.map(|[low, high]| (low..=high).contains(&value))
    }
}

/// One-sided p-value of Student's t-test: the chance of such a mean, or a larger one, if the true mean
/// is 0. `None` for fewer than two values.
///
/// Values that are all equal leave no doubt about a mean that is not 0.
pub fn p_above_zero(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let (mean, error) = mean_and_error(values);
    Some(match error {
        0.0 if mean > 0.0 => 0.0,
        0.0 => 1.0,
        error => upper_tail(mean / error, values.len() as u32 - 1),
    })
}

/// The smallest true mean that a one-sided t-test at `level` would show in 80 of 100 studies with
/// values that scatter like these: (t_{1−level} + t_{0.8})·s/√n. `None` for fewer than two values.
///
/// It takes Student's quantile for the noncentral one, which is a little too large.
pub fn detectable(values: &[f64], level: f64) -> Option<f64> {
    let freedom = (values.len() as u32).checked_sub(1).filter(|freedom| *freedom > 0)?;
    let (_, error) = mean_and_error(values);
    let one_sided = |confidence: f64| quantile(2.0 * confidence - 1.0, freedom);
    Some((one_sided(1.0 - level) + one_sided(POWER)) * error)
}

/// p-values of several tests, corrected so that all that are below a level are so together (S. Holm,
/// "A Simple Sequentially Rejective Multiple Test Procedure", 1979).
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut corrected = vec![1.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (rank, &at) in order.iter().enumerate() {
        let left = (p_values.len() - rank) as f64;
        largest = largest.max((left * p_values[at]).min(1.0));
        corrected[at] = largest;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy 1.17.1: `ttest_rel(a, b).confidence_interval(0.95)` and
    /// `ttest_1samp(values, 0).confidence_interval(0.95)`.
    #[test]
    fn intervals_match_scipy() {
        let paired = Estimate::of(&[94.38 - 93.83, 94.72 - 94.0, 94.21 - 94.07, 95.1 - 94.4]);
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

    /// scipy 1.17.1: `ttest_1samp(values, 0, alternative="greater").pvalue`.
    #[test]
    fn one_sided_tests_match_scipy() {
        let p = p_above_zero(&[1.3, 0.2, -0.7, 2.2, 0.9]).unwrap();
        assert!((p - 0.093_790_965_217_755_76).abs() < 1e-13, "{p}");
        assert_eq!(p_above_zero(&[1.0]), None);
        assert_eq!(p_above_zero(&[2.0, 2.0]), Some(0.0));
        assert_eq!(p_above_zero(&[0.0, 0.0]), Some(1.0));
    }

    /// statsmodels 0.15.0: `multipletests(p, method="holm")[1]`.
    #[test]
    fn holms_correction_matches_statsmodels() {
        let corrected = holm(&[0.04, 0.001, 0.03, 0.2, 0.012]);
        for (ours, expected) in corrected.into_iter().zip([0.09, 0.005, 0.09, 0.2, 0.048]) {
            assert!((ours - expected).abs() < 1e-15, "{ours} {expected}");
        }
        assert!(holm(&[]).is_empty());
    }

    /// scipy 1.17.1: `(t.ppf(0.95, 9) + t.ppf(0.8, 9)) * s / sqrt(10)`. By `nct` the power at this
    /// difference is 0.805.
    #[test]
    fn a_detectable_difference_has_its_power() {
        let values: Vec<f64> = (0..10).map(f64::from).collect();
        let difference = detectable(&values, LEVEL).unwrap();
        assert!((difference - 2.600_866_815_663_307_5).abs() < 1e-12, "{difference}");
        assert_eq!(detectable(&[1.0], LEVEL), None);
    }
}
