//! Label histograms: what they cost a device, and what the base station has of them.
//!
//! They leave a device once, before round 1, and are charged before anything is drawn, like an
//! update. Weights that depend on labels are then a function of what was released.

use lapa_privacy::ledger::{Grant, Request};
use lapa_privacy::mechanism::DiscreteGaussian;
use lapa_privacy::{Event, Histogram, Mechanism, NoiseKind};
use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use super::budgets::Budgets;
use super::terms::{DeviceTerms, PrivatizeError};

impl Budgets {
    /// What a device may spend on its label histogram: `share` of what the run may spend on it.
    pub(crate) fn histogram_share(&self, device: u32, share: Option<f64>) -> f64 {
        self.accounts[device as usize].histogram_share(share)
    }

    /// Charges each device for its label histogram, in the ledger's round 0: with noise for
    /// `share` of what the run may spend on the device, or without noise (ε = ∞) for none. Devices
    /// with nothing left get no grant.
    pub fn grant_histograms(
        &mut self,
        share: Option<f64>,
    ) -> Result<Vec<Option<Histogram>>, PrivatizeError> {
        self.expect_a_file()?;
        let requests: Vec<Request> = (0..)
            .zip(&self.accounts)
            .map(|(device, account)| Request { device, share: account.histogram_share(share) })
            .collect();
        let accounts = &self.accounts;
        let grants = self.ledger.record_round(
            &self.run,
            0,
            self.repeat,
            0.0,
            &requests,
            &mut |device, share| priced(&accounts[device as usize].terms, share),
        )?;
        let mut granted = Vec::with_capacity(grants.len());
        for (device, grant) in (0..).zip(grants) {
            granted.push(match grant {
                Grant::Released { event, cost, .. } => {
                    self.charge(0, device, &event, cost)?;
                    match event {
                        Event::Histogram(histogram) => Some(histogram),
                        Event::Release(_) | Event::NonPrivate { .. } => None,
                    }
                }
                Grant::Refused => None,
            });
        }
        Ok(granted)
    }
}

/// The histogram with the noise that a share pays for, and its cost; no noise where nothing is
/// enforced.
pub(super) fn priced(terms: &DeviceTerms, share: f64) -> Result<(Event, f64), PrivatizeError> {
    let (adjacency, noise) = (terms.release.adjacency, terms.release.noise);
    let exact = Histogram { adjacency, noise, sigma: 0.0 };
    let Some(filter) = &terms.filter else { return Ok((Event::Histogram(exact), f64::INFINITY)) };
    let unit = match noise {
        NoiseKind::Gaussian => Mechanism::Gaussian { noise_multiplier: 1.0 },
        NoiseKind::DiscreteGaussian => Mechanism::DiscreteGaussian { noise_multiplier: 1.0 },
    };
    let noise_multiplier = filter.mechanism_for(unit, share)?.noise_multiplier();
    // A hair more noise, so that σ/Δ rounds to no less than the multiplier paid for.
    let sigma = exact.sensitivity() * noise_multiplier * (1.0 + 1e-12);
    let histogram = Histogram { sigma, ..exact };
    let cost = filter.cost(&histogram.mechanism()?)?;
    Ok((Event::Histogram(histogram), cost))
}

/// The counts with the noise of a histogram that is on record.
pub fn noisy_counts(
    counts: &[u32],
    histogram: &Histogram,
    rng: &mut dyn Rng,
) -> Result<Vec<f64>, PrivatizeError> {
    let counts = counts.iter().map(|&count| f64::from(count));
    Ok(match histogram.noise {
        _ if histogram.sigma == 0.0 => counts.collect(),
        NoiseKind::Gaussian => counts
            .map(|count| count + histogram.sigma * rng.sample::<f64, _>(StandardNormal))
            .collect(),
        NoiseKind::DiscreteGaussian => {
            let noise = DiscreteGaussian::new(histogram.sigma)?;
            counts.map(|count| count + noise.sample(rng) as f64).collect()
        }
    })
}
