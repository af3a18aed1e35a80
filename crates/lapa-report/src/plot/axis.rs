//! Ends of an axis, and the distance of its ticks.

/// A linear axis with ticks at the multiples of `step`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    pub low: f64,
    pub high: f64,
    pub step: f64,
}

/// Room between the outermost value and the end of the axis, as a share of its length.
const MARGIN: f64 = 0.02;

impl Axis {
    /// A horizontal axis of about as many `steps`: starts at a tick and ends with the data.
    /// `values` must be finite and not empty, here and below.
    ///
    /// No axis ends exactly at a value, which would cut its marker in half.
    pub fn horizontal(values: impl Iterator<Item = f64> + Clone, steps: f64) -> Self {
        let whole = values.clone().all(|v| v.fract() == 0.0);
        let (low, high) = spread(values, if whole { 1.0 } else { 0.0 });
        let mut step = nice_step((high - low) / steps);
        if whole {
            step = step.max(1.0);
        }
        let (first, margin) = ((low / step).floor() * step, MARGIN * (high - low));
        let low = if low - first < margin && first != 0.0 { low - margin } else { first };
        Self { low, high: high + margin, step }
    }

    /// A horizontal axis with room for markers at its ends.
    pub fn padded(values: impl Iterator<Item = f64> + Clone, steps: f64) -> Self {
        let axis = Self::horizontal(values.clone(), steps);
        let low = values.fold(f64::INFINITY, f64::min);
        let margin = 0.05 * (axis.high - axis.low);
        Self { low: axis.low.min(low) - margin, high: axis.high + margin, ..axis }
    }

    /// A vertical axis: starts and ends at a tick, at 0 when that is near, and inside `limits`.
    pub fn vertical(values: impl Iterator<Item = f64>, limits: (f64, f64), steps: f64) -> Self {
        let (mut low, mut high) = spread(values, 0.0);
        if low > 0.0 && low < 0.4 * high {
            low = 0.0;
        }
        let step = nice_step((high - low) / steps);
        // The small shift keeps 0.3/0.1 = 3.0000000000000004 from costing a whole step.
        let first = ((low / step + 1e-9).floor() * step).max(limits.0);
        let last = ((high / step - 1e-9).ceil() * step).min(limits.1);
        let margin = MARGIN * (last - first);
        low = if low - first >= margin || first == 0.0 { first } else { low - margin };
        high = if last - high >= margin { last } else { high + margin };
        Self { low, high, step }
    }

    /// First and last value of a logarithmic axis: decades around the positive values.
    pub fn logarithmic(values: impl Iterator<Item = f64>) -> (f64, f64) {
        let (low, high) = spread(values.map(f64::log10), 0.0);
        let (first, last) = (low.floor(), high.ceil());
        let margin = MARGIN * (last - first);
        let low = if low - first >= margin { first } else { low - margin };
        let high = if last - high >= margin { last } else { high + margin };
        (10f64.powf(low), 10f64.powf(high))
    }

    /// Number of digits after the point that tell the ticks apart.
    pub fn decimals(&self) -> usize {
        (-self.step.log10() - 1e-9).ceil().max(0.0) as usize
    }
}

/// Smallest and largest value, moved apart when they are the same.
fn spread(values: impl Iterator<Item = f64>, least: f64) -> (f64, f64) {
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if high - low > 1e-9 * high.abs().max(low.abs()) {
        return (low, high);
    }
    let margin = match 0.1 * high.abs() {
        0.0 => 1.0,
        tenth => tenth.max(least),
    };
    (low - margin, high + margin)
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `rough`.
fn nice_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|&s| s >= rough).unwrap_or(rough)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

    fn near(axis: Axis, low: f64, high: f64, step: f64) {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(
            close(axis.low, low) && close(axis.high, high) && close(axis.step, step),
            "{axis:?}"
        );
    }

    #[test]
    fn steps_are_one_two_or_five() {
        for (rough, step) in [(0.9, 1.0), (1.1, 2.0), (3.0, 5.0), (7.0, 10.0), (0.013, 0.02)] {
            assert!((nice_step(rough) / step - 1.0).abs() < 1e-12, "{rough}");
        }
    }

    #[test]
    fn rounds_have_whole_ticks() {
        near(Axis::horizontal([1.0, 2.0, 3.0].into_iter(), 8.0), 0.96, 3.04, 1.0);
        near(Axis::horizontal([3.0, 203.0].into_iter(), 8.0), 0.0, 207.0, 50.0);
        near(Axis::horizontal([5.0].into_iter(), 8.0), 3.96, 6.04, 1.0);
    }

    #[test]
    fn values_have_zero_when_near_and_stay_in_their_limits() {
        near(Axis::vertical([0.1, 0.97].into_iter(), (0.0, 1.0), 6.0), 0.0, 1.0, 0.2);
        near(Axis::vertical([0.962, 0.991].into_iter(), (0.0, 1.0), 6.0), 0.96, 0.995, 0.005);
        near(Axis::vertical([0.99, 1.0].into_iter(), (0.0, 1.0), 6.0), 0.9898, 1.0002, 0.002);
        near(Axis::vertical([0.1, 2.31].into_iter(), ALL, 6.0), 0.0, 2.5, 0.5);
        near(Axis::vertical([0.0].into_iter(), ALL, 6.0), -1.04, 1.04, 0.5);
        near(Axis::vertical([0.3, 0.6].into_iter(), ALL, 6.0), 0.294, 0.606, 0.05);
    }

    #[test]
    fn logarithmic_axes_span_decades() {
        let (low, high) = Axis::logarithmic([0.3, 20.0].into_iter());
        assert!((low - 0.1).abs() < 1e-12 && (high - 100.0).abs() < 1e-9, "{low} {high}");
        let (low, high) = Axis::logarithmic([1.0].into_iter());
        assert!(low < 0.1 && high > 10.0 && low * high > 0.999, "{low} {high}");
    }

    #[test]
    fn decimals_tell_ticks_apart() {
        let decimals = |step| Axis { low: 0.0, high: 1.0, step }.decimals();
        assert_eq!([50.0, 1.0, 0.5, 0.1, 0.02, 0.01, 0.002].map(decimals), [0, 0, 1, 1, 2, 2, 3]);
    }
}
