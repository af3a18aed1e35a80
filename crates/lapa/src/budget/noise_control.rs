//! Artificial noise beside the channel's.

use super::amplitudes::Trusted;
use crate::config::{Control, NoiseControl, SwitchConfig, SwitchRule};

/// Rule of artificial noise (the paper's Section IV-A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseRule {
    /// All that is required, in every round.
    Always,
    /// All or nothing, by the sum over the devices: as printed, eq. (23). It leaves single devices
    /// with too little.
    Sum,
    /// All or nothing, by each device's own channel.
    ///
    /// Differs from the paper: it compares sums over the devices.
    PerDevice,
    /// The difference to the channel's noise.
    ///
    /// Differs from the paper: it adds all or nothing.
    TopUp,
}

impl NoiseRule {
    /// The rule of an experiment.
    pub fn of(control: &Control) -> Self {
        match control.noise {
            NoiseControl::Always => Self::Always,
            NoiseControl::Switch(SwitchConfig { rule: SwitchRule::Sum }) => Self::Sum,
            NoiseControl::Switch(SwitchConfig { rule: SwitchRule::PerDevice }) => Self::PerDevice,
            NoiseControl::TopUp => Self::TopUp,
        }
    }

    /// Standard deviation of the artificial noise for a device that needs `required` in all, over
    /// a channel of which `trusted` may be counted. `sum` says whether the sum over the devices
    /// suffices ([`sum_suffices`]).
    ///
    /// Differs from the paper: it knows one T_th for all devices, after which no noise is added;
    /// as the last crossing that is known only in hindsight. Here every round is judged by itself,
    /// and artificial noise comes back when the channel falls short.
    pub(super) fn artificial(self, required: f64, trusted: Trusted, sum: bool) -> f64 {
        let suffices = match self {
            Self::Always => false,
            Self::Sum => sum,
            Self::PerDevice => trusted.variance >= required * required,
            Self::TopUp => {
                return top_up(required * required, trusted.fraction, trusted.variance).sqrt();
            }
        };
        if suffices { 0.0 } else { required }
    }
}

/// σ_art² = max(0, (σ_req² − κνc₀²)/(1 + κν)), where κν is `trusted_fraction` and κνc₀² is
/// `trusted_variance`: then σ_art² + κν(c₀² + σ_art²) is σ_req², or more. Artificial noise raises the
/// scale of the amplitudes, and so the receiver's noise.
pub fn top_up(required_squared: f64, trusted_fraction: f64, trusted_variance: f64) -> f64 {
    // A device without power, whose ν is ∞, needs nothing.
    (required_squared - trusted_variance).max(0.0) / (1.0 + trusted_fraction)
}

/// True if the channel's noise suffices by the paper's equality of sums, eq. (23): Σσ_channel ≥ Σσ_required.
///
/// Differs from the paper: σ_channel is what may be counted of a real coordinate's noise, in units
/// of the gradient. That the sums are equal protects no single device: with a channel of 0.1 and
/// 1.9 where 1 and 1 are required, the first device has a tenth of its noise.
pub(super) fn sum_suffices(devices: impl Iterator<Item = (f64, Trusted)>) -> bool {
    let (mut required, mut channel) = (0.0, 0.0);
    for (sigma, trusted) in devices {
        required += sigma;
        channel += trusted.variance.sqrt();
    }
    channel >= required
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: [NoiseRule; 4] =
        [NoiseRule::Always, NoiseRule::Sum, NoiseRule::PerDevice, NoiseRule::TopUp];

    /// Noise that counts in the end.
    fn counted(artificial: f64, trusted: Trusted) -> f64 {
        (artificial * artificial * (1.0 + trusted.fraction) + trusted.variance).sqrt()
    }

    #[test]
    fn no_rule_but_the_sum_leaves_a_device_short() {
        for required in [1e-6, 0.1, 1.0, 30.0] {
            for variance in [0.0, 1e-9, 0.5, 1.0, 1e4] {
                let trusted = Trusted { fraction: 0.3 * variance, variance };
                for rule in [NoiseRule::Always, NoiseRule::PerDevice, NoiseRule::TopUp] {
                    // Whatever the sum says.
                    let artificial = rule.artificial(required, trusted, true);
                    let counted = counted(artificial, trusted);
                    assert!(counted >= required * (1.0 - 1e-12), "{rule:?} {required} {variance}");
                    if rule == NoiseRule::TopUp && artificial > 0.0 {
                        assert!(counted <= required * (1.0 + 1e-12), "exactly what is required");
                    }
                }
            }
        }
    }

    #[test]
    fn top_up_adds_no_more_than_any_sound_rule() {
        for variance in [0.0, 0.2, 0.9, 1.0, 5.0] {
            let trusted = Trusted { fraction: 0.1, variance };
            let [always, _, per_device, top_up] =
                RULES.map(|rule| rule.artificial(1.0, trusted, false));
            assert!(top_up <= per_device && per_device <= always);
            assert_eq!(per_device == 0.0, variance >= 1.0);
        }
    }

    #[test]
    fn a_sum_can_leave_one_device_with_a_tenth_of_its_noise() {
        let channel = |sigma: f64| Trusted { fraction: 0.0, variance: sigma * sigma };
        let devices = [(1.0, channel(0.1)), (1.0, channel(1.9))];
        assert!(sum_suffices(devices.into_iter()));
        assert_eq!(NoiseRule::Sum.artificial(1.0, devices[0].1, true), 0.0);
        assert!(!sum_suffices([(1.0, channel(0.1)), (1.0, channel(1.89))].into_iter()));
    }
}
