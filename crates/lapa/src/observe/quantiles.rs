//! Quantiles over the devices of a round.

use super::{DeviceRecord, DeviceSummary, Quantiles};

impl Quantiles {
    /// Quantiles of the values, interpolated linearly between order statistics (type 7 of
    /// R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American
    /// Statistician 50(4), 1996; numpy's default). `None` without values.
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let at = |p: f64| {
            let position = p * last as f64;
            let (below, share) = (position as usize, position.fract());
            let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
            // Equal neighbors, exact positions and −∞ apart, so that infinities give no NaN.
            let exact = share == 0.0 || low == high || low == f64::NEG_INFINITY;
            if exact { low } else { low + share * (high - low) }
        };
        Some(Self { min: at(0.0), q25: at(0.25), median: at(0.5), q75: at(0.75), max: at(1.0) })
    }
}

impl DeviceSummary {
    /// Summarizes the devices of a round.
    pub fn of(devices: &[DeviceRecord]) -> Self {
        let all = |field: fn(&DeviceRecord) -> Option<f64>| {
            Quantiles::of(devices.iter().filter_map(field))
        };
        let over = |field: fn(&DeviceRecord) -> Option<f64>| {
            Quantiles::of(devices.iter().filter(|d| d.selected).filter_map(field))
        };
        Self {
            count: devices.iter().filter(|d| d.selected).count() as u32,
            samples: over(|d| Some(f64::from(d.samples))),
            weight: over(|d| Some(d.weight)),
            epsilon: over(|d| Some(d.epsilon)),
            sigma_artificial: over(|d| Some(d.sigma_artificial)),
            sigma_required: over(|d| Some(d.sigma_required)),
            spent_claimed: over(|d| Some(d.spent_claimed)),
            spent_provable: over(|d| Some(d.spent_provable)),
            angle: over(|d| d.angle),
            sinr_db: all(|d| Some(d.sinr_db)),
            ser: all(|d| Some(d.ser)),
            sigma_channel: over(|d| Some(d.sigma_channel)),
            gradient_norm: over(|d| d.gradient_norm),
            clipped: over(|d| d.clipped),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> [f64; 5] {
        let q = Quantiles::of(values.iter().copied()).unwrap();
        [q.min, q.q25, q.median, q.q75, q.max]
    }

    /// The right-hand sides are numpy.quantile(values, [0, 0.25, 0.5, 0.75, 1]).
    #[test]
    fn quantiles_agree_with_numpy() {
        assert_eq!(of(&[7.0]), [7.0; 5]);
        assert_eq!(of(&[2.0, 1.0]), [1.0, 1.25, 1.5, 1.75, 2.0]);
        assert_eq!(of(&[4.0, 1.0, 3.0, 2.0]), [1.0, 1.75, 2.5, 3.25, 4.0]);
        assert_eq!(of(&[5.0, 1.0, 4.0, 2.0, 3.0]), [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(of(&[-3.0, 10.0, 0.5, 8.0, 2.0, 2.0]), [-3.0, 0.875, 2.0, 6.5, 10.0]);
    }

    #[test]
    fn infinities_stay_infinities_and_no_value_has_no_quantiles() {
        let inf = f64::INFINITY;
        assert_eq!(of(&[inf, inf]), [inf; 5]);
        assert_eq!(of(&[1.0, 2.0, inf]), [1.0, 1.5, 2.0, inf, inf]);
        assert_eq!(of(&[-inf, 1.0, 2.0]), [-inf, -inf, 1.0, 1.5, 2.0]);
        assert_eq!(Quantiles::of(std::iter::empty()), None);
    }

    #[test]
    fn a_summary_takes_each_field_from_its_own() {
        let device = |k: u32| DeviceRecord {
            device: k,
            samples: 100 * k,
            weight: 0.1 * f64::from(k),
            epsilon: 0.5 * f64::from(k),
            sigma_artificial: 20.0 + f64::from(k),
            sigma_required: 60.0 + f64::from(k),
            spent_claimed: 30.0 + f64::from(k),
            spent_provable: 40.0 + f64::from(k),
            angle: (k > 1).then_some(f64::from(k)),
            sinr_db: f64::from(k),
            ser: 0.01 * f64::from(k),
            selected: k < 4,
            sigma_channel: 50.0 + f64::from(k),
            gradient_norm: Some(10.0 + f64::from(k)),
            clipped: Some(f64::from(k % 2)),
        };
        // Of a device that does not send only the link counts.
        let summary = DeviceSummary::of(&[device(1), device(2), device(3), device(4)]);
        assert_eq!(summary.sinr_db.unwrap().max, 4.0);
        assert_eq!(summary.ser.unwrap().min, 0.01);
        assert_eq!(summary.sigma_channel.unwrap().max, 53.0);
        assert_eq!(summary.count, 3);
        assert_eq!(summary.samples.unwrap().max, 300.0);
        assert_eq!(summary.weight.unwrap().min, 0.1);
        assert_eq!(summary.epsilon.unwrap().max, 1.5);
        assert_eq!(summary.sigma_artificial.unwrap().median, 22.0);
        assert_eq!(summary.sigma_required.unwrap().max, 63.0);
        assert_eq!(summary.spent_claimed.unwrap().min, 31.0);
        assert_eq!(summary.spent_provable.unwrap().max, 43.0);
        assert_eq!(summary.angle.unwrap().min, 2.0);
        assert_eq!(summary.gradient_norm.unwrap().median, 12.0);
        assert_eq!(summary.clipped.unwrap().q25, 0.5);
        let nobody = DeviceSummary::of(&[]);
        assert_eq!((nobody.count, nobody.samples), (0, None));
    }
}
