//! Artificial noise beside the channel's.

use super::amplitudes::Trusted;
use crate::config::{Control, NoiseControl, SwitchConfig, SwitchRule};

/// Rule of artificial noise (the paper's Section IV-A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseRule {
    /// All that is required, in every round.
    Always,
    /// All or nothing, by the sum over the devices, every round anew. It leaves single devices with
    /// too little.
    ///
    /// Differs from the paper: it has one T_th.
    Sum,
    /// As the sum, and once what is required has fallen to the channel's noise, artificial noise never
    /// returns: one T_th for all devices, as printed, eq. (23). While the requirement still rises, in
    /// the first rounds of LAPA, there is artificial noise: Section IV-A has T_th where it "decreases
    /// with training progress and aligns" with the channel's noise.
    SumLatched,
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
    pub fn from_control(control: &Control) -> Self {
        match control.noise {
            NoiseControl::Always => Self::Always,
            NoiseControl::Switch(SwitchConfig { rule }) => match rule {
                SwitchRule::Sum => Self::Sum,
                SwitchRule::SumLatched => Self::SumLatched,
                SwitchRule::PerDevice => Self::PerDevice,
            },
            NoiseControl::TopUp => Self::TopUp,
        }
    }

    /// Standard deviation of the artificial noise for a device that needs `required` in all, over
    /// a channel of which `trusted` may be counted. `sum` says whether the sum over the devices
    /// suffices ([`sum_suffices`]), or did before under [`Self::SumLatched`].
    ///
    /// Differs from the paper: it knows one T_th for all devices, after which no noise is added. Only
    /// [`Self::SumLatched`] is so; under the other rules every round is judged by itself, and
    /// artificial noise comes back when the channel falls short.
    pub(super) fn artificial(self, required: f64, trusted: Trusted, sum: bool) -> f64 {
        let suffices = match self {
            Self::Always => false,
            Self::Sum | Self::SumLatched => sum,
            Self::PerDevice => trusted.variance >= required * required,
            Self::TopUp => return top_up(required * required, trusted).sqrt(),
        };
        if suffices { 0.0 } else { required }
    }
}

/// The least σ_art² with σ_art² + κν(c₀² + max(0, σ_art² − σ_c²)) ≥ σ_req²: beyond σ_c artificial
/// noise raises the scale of the amplitudes, and so the receiver's noise. With σ_c = 0 it is
/// max(0, (σ_req² − κνc₀²)/(1 + κν)).
pub fn top_up(required_squared: f64, trusted: Trusted) -> f64 {
    // A device without power, whose ν is ∞, needs nothing.
    let missing = (required_squared - trusted.variance).max(0.0);
    if missing <= trusted.within {
        return missing;
    }
    (missing + trusted.fraction * trusted.within) / (1.0 + trusted.fraction)
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
                let trusted = Trusted { fraction: 0.3 * variance, variance, within: 0.0 };
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
            let trusted = Trusted { fraction: 0.1, variance, within: 0.0 };
            let [always, _, per_device, top_up] =
                RULES.map(|rule| rule.artificial(1.0, trusted, false));
            assert!(top_up <= per_device && per_device <= always);
            assert_eq!(per_device == 0.0, variance >= 1.0);
        }
    }

    #[test]
    fn a_sum_can_leave_one_device_with_a_tenth_of_its_noise() {
        let channel = |sigma: f64| Trusted { variance: sigma * sigma, ..Trusted::default() };
        let devices = [(1.0, channel(0.1)), (1.0, channel(1.9))];
        assert!(sum_suffices(devices.into_iter()));
        assert_eq!(NoiseRule::Sum.artificial(1.0, devices[0].1, true), 0.0);
        assert!(!sum_suffices([(1.0, channel(0.1)), (1.0, channel(1.89))].into_iter()));
    }
}
