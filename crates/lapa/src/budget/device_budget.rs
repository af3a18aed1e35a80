//! One device's budget: what its releases are, what they cost, and the filter that limits them.

use lapa_privacy::allocate::Basis;
use lapa_privacy::ledger::DeclaredBudget;
use lapa_privacy::{
    AccountError, Event, EventError, Filter, FilterKind, Histogram, Mechanism, NoiseKind, Release,
};

use super::account::kind_of_costs;
use super::amplitudes::{Amplitudes, Trusted};
use super::{NoiseRule, Odometer, Result};

/// A cost below this part of an equal one is refused rather than sent as pure noise.
const FLOOR: f64 = 0.01;

/// A hair more noise, so that σ/Δ rounds to no less than the multiplier paid for.
pub(super) const ROUNDING: f64 = 1.0 + 1e-12;

/// The kind of a declared budget where nothing is enforced.
const UNLIMITED: &str = "unlimited";

/// The budget of one device, declared before round 1. It prices single releases; what was spent is
/// in a ledger.
#[derive(Clone, Debug)]
pub(crate) struct DeviceBudget {
    /// Its release, without noise yet.
    pub release: Release,
    /// The filter that holds it to its budget; `None` where nothing is enforced.
    pub filter: Option<Filter>,
    pub basis: Basis,
    pub delta: f64,
    /// False if updates get no noise at all.
    pub noisy: bool,
    pub rule: NoiseRule,
    /// κ, the part of the channel noise's variance that counts.
    pub trust: f64,
}

/// A release with its price, not yet on record.
pub(crate) struct Priced {
    pub event: Event,
    /// In the filter's currency; where nothing is enforced, the provable μ².
    pub cost: f64,
    /// σ_required: the noise on each coordinate that the granted cost asks for.
    pub sigma_required: f64,
}

/// The channel of a device that sends amplitudes: how they are scaled, and the variance ν of the
/// receiver's noise at unit power.
pub(super) type Channel<'a> = Option<(&'a Amplitudes, f64)>;

impl DeviceBudget {
    /// The most that may be spent, in the filter's currency; ∞ where nothing is enforced.
    pub fn capacity(&self) -> f64 {
        self.filter.as_ref().map_or(f64::INFINITY, Filter::capacity)
    }

    /// The part of the budget that a run may spend, in the filter's currency.
    pub fn part(&self, fraction: Option<f64>) -> f64 {
        fraction.map_or(1.0, |fraction| fraction) * self.capacity()
    }

    /// ε of the budget; ∞ where nothing is enforced.
    pub fn epsilon(&self) -> f64 {
        self.filter.as_ref().map_or(f64::INFINITY, |filter| filter.budget().epsilon())
    }

    /// True for a plan, which grants whole releases only.
    pub fn is_plan(&self) -> bool {
        self.filter.as_ref().is_some_and(|f| matches!(f.kind(), FilterKind::Plan { .. }))
    }

    /// The least cost that is worth sending, in a run of `rounds`.
    pub(crate) fn floor(&self, rounds: u32) -> f64 {
        self.filter.as_ref().map_or(0.0, |filter| floor(filter, rounds))
    }

    /// The budget as a ledger declares it.
    pub(crate) fn declared(&self) -> DeclaredBudget {
        let kind = match &self.filter {
            None => UNLIMITED.into(),
            Some(filter) => kind_of_costs(filter, self.release.adjacency, self.trust),
        };
        let (epsilon, delta) = (self.epsilon(), self.delta);
        DeclaredBudget { kind, epsilon, delta, capacity: self.capacity() }
    }

    /// σ_required: the noise that a cost pays for.
    ///
    /// On basis paper the cost is ε_k and σ = Δs·√(2 ln(1.25/δ))/ε_k, below the paper's eq. (19).
    pub(crate) fn required(&self, cost: f64) -> Result<f64> {
        let Some(filter) = &self.filter else {
            return Ok(self.release.claimed_sigma(cost, self.delta));
        };
        let (sensitivity, unit) = unit(&self.release)?;
        let noise = filter.mechanism_for(unit, cost)?.noise_multiplier();
        Ok(sensitivity * (noise / unit.noise_multiplier() * ROUNDING))
    }

    /// The release that a granted cost pays for, with what the noise rule leaves to artificial
    /// noise. Channel noise that counts beyond σ_required lowers the price.
    pub(super) fn price(&self, granted: f64, by_sum: bool, channel: Channel<'_>) -> Result<Priced> {
        if !self.noisy {
            let event = Event::NonPrivate { what: "update without noise".into() };
            return Ok(Priced { event, cost: f64::INFINITY, sigma_required: 0.0 });
        }
        let sigma_required = self.required(granted)?;
        let mut release = self.release.clone();
        let trusted = self.trusted(channel)?;
        let artificial = self.rule.artificial(sigma_required, trusted, by_sum);
        release.sigma_artificial = artificial / release.noise.parts().sqrt();
        if let Some((amplitudes, receiver_noise)) = channel {
            amplitudes.declare(&mut release, receiver_noise)?;
        }
        let cost = self.cost(&release)?;
        Ok(Priced { event: Event::Release(release), cost, sigma_required })
    }

    /// The release that a granted cost pays for over a link without noise.
    pub(crate) fn price_alone(&self, granted: f64) -> Result<Priced> {
        self.price(granted, false, None)
    }

    /// The label histogram that a granted cost pays for; exact where nothing is enforced.
    pub(crate) fn price_histogram(&self, granted: f64) -> Result<Priced> {
        let (adjacency, noise) = (self.release.adjacency, self.release.noise);
        let mut histogram = Histogram { adjacency, noise, sigma: 0.0 };
        let mut cost = f64::INFINITY;
        if let Some(filter) = &self.filter {
            let unit = match noise {
                NoiseKind::Gaussian | NoiseKind::ComplexGaussian => {
                    Mechanism::Gaussian { noise_multiplier: 1.0 }
                }
                NoiseKind::DiscreteGaussian => {
                    Mechanism::DiscreteGaussian { noise_multiplier: 1.0 }
                }
            };
            let noise_multiplier = filter.mechanism_for(unit, granted)?.noise_multiplier();
            histogram.sigma = histogram.sensitivity() * noise_multiplier * ROUNDING;
            cost = filter.cost(&histogram.mechanism()?)?;
        }
        let sigma_required = histogram.sigma;
        Ok(Priced { event: Event::Histogram(histogram), cost, sigma_required })
    }

    /// The channel noise that counts.
    pub(super) fn trusted(&self, channel: Channel<'_>) -> Result<Trusted> {
        match channel {
            Some((amplitudes, noise)) => Ok(amplitudes.trusted(&self.release, noise)?),
            None => Ok(Trusted::default()),
        }
    }

    /// The cost of a release: in the filter's currency, or the provable μ² where nothing is
    /// enforced.
    fn cost(&self, release: &Release) -> Result<f64> {
        let mechanism = release.mechanism()?;
        match (&self.filter, mechanism) {
            (Some(filter), _) => Ok(filter.cost(&mechanism)?),
            // Rounded up by more than the division and the square round.
            (None, Mechanism::Gaussian { noise_multiplier: z }) => Ok((1.0 + 1e-15) / (z * z)),
            (None, Mechanism::NonPrivate) => Ok(f64::INFINITY),
            (None, _) => Err(AccountError::Unsupported { accountant: "gdp", mechanism }.into()),
        }
    }

    /// The cost of an event that cost `cost`, if no channel noise counts.
    pub(super) fn cost_without_channel(&self, event: &Event, cost: f64) -> Result<f64> {
        match event {
            Event::Release(release) if release.kappa > 0.0 => {
                self.cost(&Release { kappa: 0.0, ..release.clone() })
            }
            _ => Ok(cost),
        }
    }

    /// ε of one event: as claimed on basis paper, by itself as proved on certified.
    pub(crate) fn epsilon_of(&self, event: &Event, odometer: &mut Odometer) -> Result<f64> {
        match self.basis {
            Basis::Paper => Ok(event.claimed_epsilon(self.delta)),
            Basis::Certified => odometer.single(event, self.delta),
        }
    }

    /// ε that `spent` is worth.
    pub(crate) fn provable(&self, spent: f64, odometer: &mut Odometer) -> Result<f64> {
        odometer.provable(self.filter.as_ref(), spent, self.delta)
    }
}

/// The least cost that is worth sending.
pub(crate) fn floor(filter: &Filter, rounds: u32) -> f64 {
    match filter.kind() {
        FilterKind::Plan { .. } => 1.0,
        FilterKind::Gdp | FilterKind::Renyi { .. } => FLOOR * filter.capacity() / f64::from(rounds),
    }
}

/// Δ, and the mechanism of a release with σ = Δ.
pub(super) fn unit(release: &Release) -> Result<(f64, Mechanism), EventError> {
    let sensitivity = release.sensitivity()?;
    let unit = Release { sigma_artificial: sensitivity, ..release.clone() };
    Ok((sensitivity, unit.mechanism()?))
}
