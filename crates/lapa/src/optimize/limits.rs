//! Limits of the transmit amplitudes.

/// Limits without a choice.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LimitsError {
    /// No device.
    #[error("there is no device")]
    NoDevice,
    /// A number without meaning.
    #[error("{name} = {value} W: expected {allowed}")]
    Power {
        /// Name of the power.
        name: &'static str,
        /// Its value.
        value: f64,
        /// Allowed values.
        allowed: &'static str,
    },
}

/// Tolerance of P_min: more than the rounding of a sum over 10⁵ devices.
const SLACK: f64 = 1e-9;

/// P_min ≤ Σ|p_k|² ≤ P_max (the paper's eq. (28)) and |p_k|² ≤ P_0 (its eq. (5)).
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    devices: usize,
    least_total_w: f64,
    most_total_w: f64,
    most_each_w: f64,
}

impl Limits {
    /// P_min, P_max and P_0 for `devices` devices.
    pub fn new(
        devices: usize,
        least_total_w: f64,
        most_total_w: f64,
        most_each_w: f64,
    ) -> Result<Self, LimitsError> {
        if devices == 0 {
            return Err(LimitsError::NoDevice);
        }
        let least = ("least total power", least_total_w);
        let most = ("largest total power", most_total_w);
        let each = ("largest power of a device", most_each_w);
        let positive = |(_, value): (_, f64)| value > 0.0 && value.is_finite();
        let checks = [
            (least_total_w >= 0.0 && least_total_w.is_finite(), least, "a finite number from 0"),
            (positive(most), most, "a finite number above 0"),
            (positive(each), each, "a finite number above 0"),
            (least_total_w <= most_total_w, least, "at most the largest total power"),
            (
                least_total_w <= devices as f64 * most_each_w,
                least,
                "at most the power of all devices together",
            ),
        ];
        if let Some((_, (name, value), allowed)) = checks.into_iter().find(|(fits, ..)| !fits) {
            return Err(LimitsError::Power { name, value, allowed });
        }
        Ok(Self { devices, least_total_w, most_total_w, most_each_w })
    }

    /// Devices K.
    pub fn devices(&self) -> usize {
        self.devices
    }

    /// P_min
    pub fn least_total_w(&self) -> f64 {
        self.least_total_w
    }

    /// P_max
    pub fn most_total_w(&self) -> f64 {
        self.most_total_w
    }

    /// P_0
    pub fn most_each_w(&self) -> f64 {
        self.most_each_w
    }

    /// Amplitudes of P_max/K watts each, or P_0 where that is less.
    pub fn equal(&self) -> Vec<f64> {
        let each = (self.most_total_w / self.devices as f64).sqrt();
        let mut amplitudes = vec![each; self.devices];
        self.project(&mut amplitudes);
        amplitudes
    }

    /// Amplitudes of P_0 watts each, scaled down to P_max.
    pub fn full(&self) -> Vec<f64> {
        let mut amplitudes = vec![self.cap(); self.devices];
        self.project(&mut amplitudes);
        amplitudes
    }

    /// Moves amplitudes to the nearest ones that are allowed, in O(K log K).
    ///
    /// With p⁺ the amplitudes without their negative parts, that is min(s·p⁺, √P_0): s = 1 where
    /// that is allowed, else the s for which the powers add up to P_max or P_min. For P_max these
    /// are the conditions of Karush, Kuhn and Tucker, with multiplier 1/s − 1, of a convex problem.
    /// For P_min the allowed set is not convex, but at a given total the nearest point has the
    /// largest Σp_k⁺·x_k, which is a convex problem again; negative amplitudes count as 0 there.
    /// Devices with p⁺ = 0 share equally what P_min asks for beyond P_0 of all others.
    ///
    /// NaN counts as 0 and +∞ as the largest finite number. Allowed amplitudes stay as they are.
    ///
    /// # Panics
    /// If there is not one amplitude per device.
    pub fn project(&self, amplitudes: &mut [f64]) {
        assert_eq!(amplitudes.len(), self.devices, "amplitudes and devices");
        for p in amplitudes.iter_mut() {
            *p = if p.is_nan() { 0.0 } else { p.clamp(0.0, f64::MAX) };
        }
        let cap = self.cap();
        let capped: f64 = amplitudes.iter().map(|&p| p.min(cap) * p.min(cap)).sum();
        if capped > self.most_total_w {
            self.spread(amplitudes, self.most_total_w);
        } else if capped < self.least_total_w * (1.0 - SLACK) {
            self.spread(amplitudes, self.least_total_w);
        } else {
            amplitudes.iter_mut().for_each(|p| *p = p.min(cap));
        }
    }

    /// Sets p_k to min(s·p_k, √P_0) with s such that the powers add up to `total_w`, or as near to
    /// it as the limits allow. Where amplitudes above 0 do not suffice, the others share the rest
    /// equally. Amplitudes must be finite and not negative.
    pub(super) fn spread(&self, amplitudes: &mut [f64], total_w: f64) {
        let cap = self.cap();
        let largest = amplitudes.iter().fold(0f64, |a, &b| a.max(b));
        if largest > 0.0 {
            // In two steps: 1/largest may overflow, and squares of amplitudes may, too.
            amplitudes.iter_mut().for_each(|p| *p /= largest);
        }
        let mut descending = amplitudes.to_vec();
        descending.sort_unstable_by(|a, b| b.total_cmp(a));
        // Of those from each rank on, the sum of squares; smallest first, to lose nothing.
        let mut rest = vec![0.0; self.devices];
        let mut sum = 0.0;
        for (rest, p) in rest.iter_mut().zip(&descending).rev() {
            sum += p * p;
            *rest = sum;
        }
        // The more devices are at P_0, the larger s: the first number of them that fits is it.
        let mut outcome = (f64::INFINITY, cap);
        for (at_cap, (&p, &rest)) in descending.iter().zip(&rest).enumerate() {
            let left = (total_w - at_cap as f64 * cap * cap).max(0.0);
            if rest == 0.0 {
                outcome = (f64::INFINITY, (left / (self.devices - at_cap) as f64).sqrt().min(cap));
                break;
            }
            let ratio = left / rest;
            // A ratio may overflow where its root does not.
            let scale = if ratio.is_finite() { ratio.sqrt() } else { left.sqrt() / rest.sqrt() };
            if scale * p <= cap {
                outcome = (scale, 0.0);
                break;
            }
        }
        let (scale, silent) = outcome;
        for p in amplitudes.iter_mut() {
            // Squares that underflow are as good as 0.
            *p = if *p * *p == 0.0 { silent } else { (*p * scale).min(cap) };
        }
        self.round_down(amplitudes);
    }

    /// √P_0, whose square is not above P_0.
    fn cap(&self) -> f64 {
        let root = self.most_each_w.sqrt();
        if root * root > self.most_each_w { root.next_down() } else { root }
    }

    /// Takes what rounding put above P_max off all devices alike.
    fn round_down(&self, amplitudes: &mut [f64]) {
        let mut step = f64::EPSILON;
        while total(amplitudes) > self.most_total_w {
            amplitudes.iter_mut().for_each(|p| *p *= 1.0 - step);
            step *= 2.0;
        }
    }
}

/// Σ|p_k|²
fn total(amplitudes: &[f64]) -> f64 {
    amplitudes.iter().map(|p| p * p).sum()
}
