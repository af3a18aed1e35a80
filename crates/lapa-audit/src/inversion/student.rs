//! Paired t-tests and straight lines.

use lapa_report::student::{quantile, upper_tail};

/// The p-value of the paired t-test that `a` is below `b` on average, against that it is not; 1
/// with fewer than two pairs.
pub(crate) fn p_below(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len().min(b.len());
    if n < 2 {
        return 1.0;
    }
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| b - a).collect();
    let mean = differences.iter().sum::<f64>() / n as f64;
    let squares: f64 = differences.iter().map(|d| (d - mean).powi(2)).sum();
    let error = (squares / (n as f64 - 1.0) / n as f64).sqrt();
    if error > 0.0 {
        upper_tail(mean / error, n as u32 - 1)
    } else {
        f64::from(u8::from(mean <= 0.0))
    }
}

/// A straight line by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Line {
    pub slope: f64,
    pub intercept: f64,
    /// Student's interval of the slope.
    pub interval: [f64; 2],
    /// Share of the variance that the line explains; 0 where there is none.
    pub r_squared: f64,
}

impl Line {
    /// Line through the points (x, y); `None` for fewer than three, or all at one x.
    pub fn fit(x: &[f64], y: &[f64], confidence: f64) -> Option<Self> {
        let n = x.len().min(y.len());
        let mean = |values: &[f64]| values.iter().sum::<f64>() / n as f64;
        let (mean_x, mean_y) = (mean(x), mean(y));
        let pairs = || x.iter().zip(y).map(|(x, y)| (x - mean_x, y - mean_y));
        let xx: f64 = pairs().map(|(x, _)| x * x).sum();
        let yy: f64 = pairs().map(|(_, y)| y * y).sum();
        if n < 3 || xx == 0.0 {
            return None;
        }
        let slope = pairs().map(|(x, y)| x * y).sum::<f64>() / xx;
        let residuals: f64 = pairs().map(|(x, y)| (y - slope * x).powi(2)).sum();
        let freedom = n as u32 - 2;
        let half = quantile(confidence, freedom) * (residuals / f64::from(freedom) / xx).sqrt();
        Some(Self {
            slope,
            intercept: mean_y - slope * mean_x,
            interval: [slope - half, slope + half],
            r_squared: if yy > 0.0 { 1.0 - residuals / yy } else { 0.0 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy 1.17.1: `stats.ttest_rel(a, b, alternative="less")`,
    /// `stats.linregress` with `slope ± stats.t.ppf(0.975, 5)·stderr`.
    #[test]
    fn figures_match_scipy() {
        let (a, b) = ([0.12, 0.3, 0.22, 0.19, 0.25, 0.31], [0.1, 0.2, 0.25, 0.1, 0.2, 0.28]);
        assert!((p_below(&a, &b) - 0.960_951_016_876_225_2).abs() < 1e-12);
        assert!((p_below(&b, &a) - 0.039_048_983_123_774_75).abs() < 1e-12);
        let x = [0.0, 5.0, 10.0, 20.0, 40.0, 60.0, 80.0];
        let y = [0.9f64, 0.7, 0.65, 0.5, 0.3, 0.22, 0.11].map(f64::ln);
        let line = Line::fit(&x, &y, 0.95).unwrap();
        for (ours, scipys) in [
            (line.slope, -0.024_550_082_803_879_363),
            (line.intercept, -0.176_153_314_794_332_5),
            (line.interval[0], -0.027_400_495_076_784_194),
            (line.interval[1], -0.021_699_670_530_974_532),
            (line.r_squared, 0.989_902_612_067_219_5),
        ] {
            assert!((ours - scipys).abs() < 1e-12, "{ours} {scipys}");
        }
    }

    #[test]
    fn too_little_says_nothing() {
        assert_eq!(p_below(&[0.0], &[1.0]), 1.0);
        assert_eq!(p_below(&[1.0, 1.0], &[1.0, 1.0]), 1.0);
        assert_eq!(Line::fit(&[0.0, 1.0], &[0.0, 1.0], 0.95), None);
        let flat = Line::fit(&[0.0, 1.0, 2.0], &[3.0; 3], 0.95).unwrap();
        assert_eq!((flat.slope, flat.interval, flat.r_squared), (0.0, [0.0, 0.0], 0.0));
    }
}
