//! How much artificial noise there is beside the channel's.

use super::scale::Trusted;
use crate::config::{Control, NoiseControl, SwitchRule};

/// When artificial noise gives way to the channel's (the paper's Section IV-A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replacement {
    /// Never.
    Never,
    /// In all of it, when the sum over the devices suffices.
    Sum,
    /// In all of it, for each device whose channel suffices.
    PerDevice,
    /// In part, by what the channel brings.
    TopUp,
}

impl Replacement {
    pub fn new(control: &Control) -> Self {
        match (control.noise, control.switch_rule) {
            (NoiseControl::Always, _) => Self::Never,
            (NoiseControl::Switch, Some(SwitchRule::Sum)) => Self::Sum,
            (NoiseControl::Switch, _) => Self::PerDevice,
            (NoiseControl::TopUp, _) => Self::TopUp,
        }
    }

    /// Standard deviation of the artificial noise for a device that needs `required` in all, over
    /// a channel of which `trusted` may be counted. `sum` says whether the sum over the devices
    /// suffices ([`sum_suffices`]).
    ///
    /// `TopUp`: σ_art² + κν(B²/q + σ_art²) = σ_required² solved for σ_art, since artificial noise
    /// raises the scale of the amplitudes and so the receiver's noise.
    ///
    /// Differs from the paper: it knows one T_th for all devices, after which no noise is added;
    /// as the last crossing that is known only in hindsight. Here every round is judged by itself,
    /// and artificial noise comes back when the channel falls short.
    pub fn artificial(self, required: f64, trusted: Trusted, sum: bool) -> f64 {
        let suffices = match self {
            Self::Never => false,
            Self::Sum => sum,
            Self::PerDevice => trusted.variance >= required * required,
            Self::TopUp => {
                let wanting = required * required - trusted.variance;
                return (wanting / (1.0 + trusted.share)).max(0.0).sqrt();
            }
        };
        if suffices { 0.0 } else { required }
    }
}

/// Whether the channel's noise suffices by the paper's equality of sums, Σσ_channel ≥ Σσ_required.
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

    const RULES: [Replacement; 4] =
        [Replacement::Never, Replacement::Sum, Replacement::PerDevice, Replacement::TopUp];

    /// What is counted in the end.
    fn counted(artificial: f64, trusted: Trusted) -> f64 {
        (artificial * artificial * (1.0 + trusted.share) + trusted.variance).sqrt()
    }

    #[test]
    fn no_device_is_left_short_but_by_the_sum() {
        for required in [1e-6, 0.1, 1.0, 30.0] {
            for variance in [0.0, 1e-9, 0.5, 1.0, 1e4] {
                let trusted = Trusted { share: 0.3 * variance, variance };
                for rule in RULES {
                    let artificial = rule.artificial(required, trusted, false);
                    let counted = counted(artificial, trusted);
                    assert!(counted >= required * (1.0 - 1e-12), "{rule:?} {required} {variance}");
                    if rule == Replacement::TopUp && artificial > 0.0 {
                        assert!(counted <= required * (1.0 + 1e-12), "exactly what is required");
                    }
                }
            }
        }
    }

    #[test]
    fn top_up_adds_no_more_than_any_sound_rule() {
        for variance in [0.0, 0.2, 0.9, 1.0, 5.0] {
            let trusted = Trusted { share: 0.1, variance };
            let [never, _, per_device, top_up] =
                RULES.map(|rule| rule.artificial(1.0, trusted, false));
            assert!(top_up <= per_device && per_device <= never);
            assert_eq!(per_device == 0.0, variance >= 1.0);
        }
    }

    #[test]
    fn a_sum_can_leave_one_device_with_a_tenth_of_its_noise() {
        let channel = |sigma: f64| Trusted { share: 0.0, variance: sigma * sigma };
        let devices = [(1.0, channel(0.1)), (1.0, channel(1.9))];
        assert!(sum_suffices(devices.into_iter()));
        assert_eq!(Replacement::Sum.artificial(1.0, devices[0].1, true), 0.0);
        assert!(!sum_suffices([(1.0, channel(0.1)), (1.0, channel(1.89))].into_iter()));
    }
}
