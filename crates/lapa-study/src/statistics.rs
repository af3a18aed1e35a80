//! Means over seeds and how sure they are.

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
            let half = student_quantile(values.len() as u32 - 1) * error;
            [mean - half, mean + half]
        });
        Self { mean, interval }
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

    /// Whether the whole interval is above 0; none without an interval.
    pub fn is_positive(&self) -> Option<bool> {
        self.interval.map(|[low, _]| low > 0.0)
    }

    /// Whether the interval holds `value`; none without an interval.
    pub fn holds(&self, value: f64) -> Option<bool> {
        self.interval.map(|[low, high]| (low..=high).contains(&value))
    }
}

/// The 97.5 % quantile of Student's t with `freedom` degrees of freedom, at least 1.
fn student_quantile(freedom: u32) -> f64 {
    let (mut low, mut high) = (0.0, 13.0);
    // P(|T| < t) rises with t; 60 halvings leave less than a unit of the last place.
    for _ in 0..60 {
        let t = 0.5 * (low + high);
        match student_within(t, freedom) < 0.95 {
            true => low = t,
            false => high = t,
        }
    }
    0.5 * (low + high)
}

/// P(|T| < t) for an integer number of degrees of freedom: Abramowitz and Stegun 26.7.3 and 26.7.4.
fn student_within(t: f64, freedom: u32) -> f64 {
    let angle = (t / f64::from(freedom).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let odd = !freedom.is_multiple_of(2);
    // cos θ + 2/3 cos³θ + …, or 1 + 1/2 cos²θ + …
    let (mut term, mut k) = if odd { (cosine, 3) } else { (1.0, 2) };
    let mut sum = 0.0;
    while k <= freedom {
        sum += term;
        term *= f64::from(k - 1) / f64::from(k) * cosine * cosine;
        k += 2;
    }
    match odd {
        true => std::f64::consts::FRAC_2_PI * (angle + sine * sum),
        false => sine * sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy 1.17.1: `scipy.stats.t.ppf(0.975, df)`.
    #[test]
    fn quantiles_match_scipy() {
        for (freedom, expected) in [
            (1, 12.706_204_736_174_694),
            (2, 4.302_652_729_749_462),
            (3, 3.182_446_305_283_707_8),
            (4, 2.776_445_105_197_793_4),
            (9, 2.262_157_162_798_205),
            (30, 2.042_272_456_301_237_8),
        ] {
            let quantile = student_quantile(freedom);
            assert!((quantile / expected - 1.0).abs() < 1e-13, "{freedom}: {quantile}");
        }
    }

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
