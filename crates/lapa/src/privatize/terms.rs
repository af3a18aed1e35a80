//! What a run declares before round 1: the release of each device, and its filter.

use std::collections::HashMap;

use lapa_privacy::accountant::{Accountant, Pld, Rdp, gdp};
use lapa_privacy::allocate::AllocatorConfig;
use lapa_privacy::{
    AccountError, Adjacency, Budget, ClipUnit, Event, EventError, Filter, FilterKind, Mechanism,
    NoiseKind, Release, calibrate, renyi_order,
};

use super::noise_control::NoiseRule;
use super::own::Refusal;
use super::scale::{Amplitudes, Trusted};
use crate::aggregate::Histograms;
use crate::config::{BatchSampling, Clip, Experiment, Privacy};
use crate::model::MOST_SAMPLES;
use crate::transmit::Link;

/// Why noise cannot be set or recorded.
#[derive(Debug, thiserror::Error)]
pub enum PrivatizeError {
    /// An accountant refuses.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// A release has no provable sensitivity.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The ledger refuses.
    #[error(transparent)]
    Ledger(#[from] lapa_privacy::ledger::LedgerError),
    /// The allocator refuses.
    #[error(transparent)]
    Allocate(#[from] lapa_privacy::allocate::AllocateError),
    /// Noise of a strange size.
    #[error(transparent)]
    Sigma(#[from] lapa_privacy::mechanism::SigmaError),
    /// Sums on the grid are out of its range.
    #[error(transparent)]
    Grid(#[from] lapa_privacy::mechanism::GridError),
    /// The operating system gives no entropy.
    #[error(transparent)]
    Entropy(#[from] lapa_privacy::mechanism::EntropyError),
    /// An update cannot be sent as amplitudes.
    #[error(transparent)]
    Uplink(#[from] lapa_wireless::uplink::UplinkError),
    /// A shared ledger has a plan with less noise than asked for.
    #[error(
        "privacy.initial_sigma asks for {noise} sensitivities of noise, but the ledger's plan for \
         this data has {planned}: use the plan's, or another ledger"
    )]
    OtherPlan {
        /// The multiplier asked for.
        noise: f64,
        /// The planned one.
        planned: f64,
    },
    /// A shared ledger has nothing left for this data.
    #[error(
        "{}: nothing is left of any device's budget (privacy.epsilon = {epsilon}) on this data",
        ledger.display()
    )]
    NothingLeft {
        /// The ledger.
        ledger: std::path::PathBuf,
        /// The budget.
        epsilon: f64,
    },
    /// A budget that is nothing at the order of a shared ledger.
    #[error(
        "privacy.epsilon = {epsilon} leaves nothing to spend at the Rényi order {order:.3} that the \
         ledger was begun with"
    )]
    BudgetTooSmall {
        /// The budget.
        epsilon: f64,
        /// The order.
        order: f64,
    },
    /// A noise level that no budget goes with.
    #[error(
        "privacy.initial_sigma = {sigma} makes epsilon {epsilon} over all rounds: \
         allowed is what makes it from 0.001 to 1000000"
    )]
    InitialSigma {
        /// σ₀
        sigma: f64,
        /// The ε that follows from it.
        epsilon: f64,
    },
    /// A device with more samples than the proof of floating-point sums covers.
    #[error(
        "device {device} has {samples} samples: the rounding of sums of clipped gradients is \
         proved for up to {MOST_SAMPLES}; deal them to more devices, or use privacy.noise = \
         \"discrete-gaussian\", whose sums are exact"
    )]
    TooManySamples {
        /// The device.
        device: usize,
        /// Its samples.
        samples: u32,
    },
    /// A device's ledger with a budget for each of several numbers.
    #[error(
        "{}: it has accounts of devices {numbers:?}, but a ledger is one device's, whatever its \
         number, and has one budget; what these released cannot be told apart any more: take it as \
         spent, and use a new ledger for records that this one was never used for only",
        ledger.display()
    )]
    SeveralAccounts {
        /// The ledger.
        ledger: std::path::PathBuf,
        /// The numbers.
        numbers: Vec<u32>,
    },
    /// A device refuses what it is asked for.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A real release without a record that lasts.
    #[error(
        "run.entropy = \"os\" makes real releases, which need a ledger in a file: \
         call Federation::record_in before the first round"
    )]
    NotRecorded,
    /// A ledger that lacks releases which the checkpoint knows of.
    #[error(
        "the ledger knows run {run} up to round {recorded}, but its checkpoint, after round \
         {round}, knows of releases in round {asked}: this is not the ledger that the run has written to, or config.resolved.toml was \
         changed since"
    )]
    LedgerBehind {
        /// The run.
        run: String,
        /// The last round in the ledger.
        recorded: u32,
        /// The last round with releases that the checkpoint knows of.
        asked: u32,
        /// The round of the checkpoint.
        round: u32,
    },
}

/// The terms of one device.
#[derive(Clone, Debug)]
pub(super) struct DeviceTerms {
    /// Its release, without noise yet.
    pub release: Release,
    /// What holds it to its budget; none where nothing is enforced.
    pub filter: Option<Filter>,
}

/// The public number of samples of each device: |D_k|, or under add-remove adjacency, where |D_k|
/// is not public, the same n̂ for all: the middle of the sizes that the configuration gives. (It
/// refuses add-remove where it gives none.) Refuses a device whose sums have no proof.
pub(crate) fn public_samples(
    experiment: &Experiment,
    sizes: &[u32],
) -> Result<Vec<u32>, PrivatizeError> {
    let summed = experiment.privacy.is_some()
        && experiment.learn.clip == Clip::Sample
        && experiment.noise() == NoiseKind::Gaussian;
    if let Some(device) = sizes.iter().position(|&n| summed && n as usize > MOST_SAMPLES) {
        return Err(PrivatizeError::TooManySamples { device, samples: sizes[device] });
    }
    let hidden = experiment.adjacency() == Adjacency::AddRemove;
    Ok(match experiment.partition.scheme.middle_samples().filter(|_| hidden) {
        Some(middle) => vec![middle; sizes.len()],
        None => sizes.to_vec(),
    })
}

/// The experiment as it is for updates that are computed elsewhere: of those nothing but the whole
/// can be clipped, so that one record moves them by up to 2C and no sampling is counted.
pub(crate) fn of_whole_updates(experiment: &Experiment) -> Experiment {
    let mut experiment = experiment.clone();
    experiment.learn.clip = Clip::Device;
    experiment.learn.batch_fraction = 1.0;
    experiment.learn.sampling = BatchSampling::Full;
    experiment
}

/// The release of a device of `public_samples`, without noise yet.
fn release(experiment: &Experiment, public_samples: u32) -> Release {
    let learn = &experiment.learn;
    Release {
        clip: if learn.clip == Clip::Sample { ClipUnit::Sample } else { ClipUnit::Device },
        clip_norm: learn.clip_norm.unwrap_or(f64::INFINITY),
        denominator: learn.sampling.denominator(learn.batch_fraction, public_samples),
        records: public_samples,
        learning_rate: learn.learning_rate,
        adjacency: experiment.adjacency(),
        sampling: learn.sampling.declared(learn.batch_fraction),
        noise: experiment.noise(),
        sigma_artificial: 0.0,
        sigma_channel: 0.0,
        kappa: 0.0,
    }
}

/// The terms of all devices. `declared` is what a shared ledger already holds for a device: the
/// kind of a filter is fixed with its first release.
pub(super) fn terms(
    experiment: &Experiment,
    public_samples: &[u32],
    declared: &dyn Fn(u32) -> Option<FilterKind>,
) -> Result<Vec<DeviceTerms>, PrivatizeError> {
    let mean = public_samples.iter().map(|&n| f64::from(n)).sum::<f64>()
        / public_samples.len().max(1) as f64;
    // Devices with the same numbers share the work: a plan takes an accountant some time.
    let mut known: HashMap<(u64, String), Filter> = HashMap::new();
    let mut devices = Vec::with_capacity(public_samples.len());
    for (device, &samples) in (0..).zip(public_samples) {
        let release = release(experiment, samples);
        let filter = match &experiment.privacy {
            Some(privacy) if experiment.is_certified() => {
                let sigma = privacy.initial_sigma().map(|s| s * mean / f64::from(samples));
                let noise = match sigma {
                    Some(sigma_artificial) => {
                        let noisy = Release { sigma_artificial, ..release.clone() };
                        Some(noisy.mechanism()?.noise_multiplier())
                    }
                    None => None,
                };
                let declared = declared(device);
                let key = (noise.unwrap_or(0.0).to_bits(), format!("{declared:?}"));
                Some(match known.get(&key) {
                    Some(filter) => filter.clone(),
                    None => {
                        let filter = filter(experiment, privacy, &release, noise, declared)?;
                        known.insert(key, filter.clone());
                        filter
                    }
                })
            }
            _ => None,
        };
        devices.push(DeviceTerms { release, filter });
    }
    Ok(devices)
}

/// Whether releases are not all equal: a label histogram is among them, noise of the channel makes
/// some cheaper, or another run has other ones.
fn has_other_costs(experiment: &Experiment) -> bool {
    matches!(experiment.aggregate.rule.histograms(), Some(Histograms::Noisy(_)))
        || experiment
            .privacy
            .as_ref()
            .is_some_and(|privacy| privacy.channel_trust > 0.0 || privacy.budget_fraction < 1.0)
}

/// The filter of a device: GDP for unamplified Gaussians; where sampling is counted, a plan costed
/// by PLD if the schedule is fixed in advance, releases are all equal and no other run shares the
/// budget, else Rényi at one order. (Replace-one with sampling has no Rényi bound: always a plan.) `noise` is the noise
/// multiplier of `privacy.initial_sigma`, from which ε follows.
fn filter(
    experiment: &Experiment,
    privacy: &Privacy,
    release: &Release,
    noise: Option<f64>,
    declared: Option<FilterKind>,
) -> Result<Filter, PrivatizeError> {
    let rounds = experiment.run.rounds;
    let (_, template) = unit(release)?;
    let given = privacy.epsilon();
    let budget = |epsilon: f64| match (privacy.initial_sigma(), (1e-3..=1e6).contains(&epsilon)) {
        (Some(sigma), false) => Err(PrivatizeError::InitialSigma { sigma, epsilon }),
        _ => Ok(Budget::new(epsilon, privacy.delta)?),
    };
    Ok(match (template, privacy.allocator) {
        (Mechanism::Gaussian { .. }, _) => {
            let epsilon = match (given, noise) {
                (None, Some(noise)) => {
                    gdp::epsilon(f64::from(rounds).sqrt() / noise, privacy.delta)?
                }
                (epsilon, _) => epsilon.unwrap_or_default(),
            };
            Filter::gdp(budget(epsilon)?)?
        }
        (Mechanism::PoissonGaussian { adjacency, .. }, AllocatorConfig::Uniform)
            if (experiment.run.ledger.is_none() && !has_other_costs(experiment))
                || adjacency == Adjacency::ReplaceOne =>
        {
            if let Some(kind @ FilterKind::Plan { epsilon, mechanism, .. }) = declared {
                let planned = mechanism.noise_multiplier();
                if let Some(noise) = noise.filter(|&noise| noise > planned) {
                    return Err(PrivatizeError::OtherPlan { noise, planned });
                }
                return Ok(Filter::new(kind, budget(given.unwrap_or(epsilon))?)?);
            }
            let mechanism = match (given, noise) {
                (None, Some(noise)) => template.with_noise(noise),
                (epsilon, _) => {
                    let budget = budget(epsilon.unwrap_or_default())?;
                    let new = || -> Box<dyn Accountant> { Box::new(Pld::default()) };
                    let noise = calibrate::noise_multiplier(budget, template, rounds, &new)?;
                    template.with_noise(noise)
                }
            };
            let proved = pld(mechanism, rounds, privacy.delta)?;
            Filter::plan(budget(given.unwrap_or(proved))?, mechanism, rounds, proved)?
        }
        _ => {
            let declared = match declared {
                Some(FilterKind::Renyi { order }) => Some(order),
                _ => None,
            };
            let (epsilon, order) = match (given, noise) {
                (None, Some(noise)) => {
                    let mut rdp = Rdp::default();
                    rdp.compose(&template.with_noise(noise), rounds)?;
                    rdp.epsilon_and_order(privacy.delta)?
                }
                (epsilon, _) => {
                    let epsilon = epsilon.unwrap_or_default();
                    (epsilon, renyi_order(budget(epsilon)?, template, rounds)?)
                }
            };
            match declared {
                None => Filter::renyi(budget(epsilon)?, order)?,
                Some(order) => Filter::renyi(budget(epsilon)?, order)
                    .map_err(|_| PrivatizeError::BudgetTooSmall { epsilon, order })?,
            }
        }
    })
}

/// What PLD proves for a plan.
fn pld(mechanism: Mechanism, releases: u32, delta: f64) -> Result<f64, AccountError> {
    let mut pld = Pld::default();
    pld.compose(&mechanism, releases)?;
    pld.epsilon(delta)
}

/// Δ, and the mechanism of a release with σ = Δ.
fn unit(release: &Release) -> Result<(f64, Mechanism), EventError> {
    let sensitivity = release.sensitivity()?;
    let unit = Release { sigma_artificial: sensitivity, ..release.clone() };
    Ok((sensitivity, unit.mechanism()?))
}

impl DeviceTerms {
    /// σ_required: the noise that a share pays for.
    ///
    /// On basis paper the share is ε_k and σ = Δs·√(2 ln(1.25/δ))/ε_k, below the paper's eq. (19).
    pub fn required(&self, share: f64, delta: f64) -> Result<f64, PrivatizeError> {
        let Some(filter) = &self.filter else {
            return Ok(self.release.claimed_sigma(share, delta));
        };
        let (sensitivity, unit) = unit(&self.release)?;
        let noise = filter.mechanism_for(unit, share)?.noise_multiplier();
        // A hair more noise, so that σ/Δ rounds to no less than the multiplier paid for.
        Ok(sensitivity * (noise / unit.noise_multiplier() * (1.0 + 1e-12)))
    }

    /// The release of a device that needs `required`, with what `rule` leaves to artificial
    /// noise, and its cost in the filter's currency (on basis paper the provable μ², which nothing
    /// limits).
    ///
    /// What may be counted of the channel's noise beyond `required` lowers the cost.
    pub fn priced(
        &self,
        required: f64,
        rule: NoiseRule,
        sum_suffices: bool,
        channel: Option<(&Amplitudes, &Link)>,
    ) -> Result<(Event, f64), PrivatizeError> {
        let mut release = self.release.clone();
        let trusted = self.trusted(channel)?;
        release.sigma_artificial = rule.artificial(required, trusted, sum_suffices);
        if let Some((amplitudes, link)) = channel {
            amplitudes.declare(&mut release, link)?;
        }
        let cost = self.cost(&release)?;
        Ok((Event::Release(release), cost))
    }

    /// What may be counted of the channel's noise.
    pub fn trusted(
        &self,
        channel: Option<(&Amplitudes, &Link)>,
    ) -> Result<Trusted, PrivatizeError> {
        match channel {
            Some((amplitudes, link)) => Ok(amplitudes.trusted(&self.release, link)?),
            None => Ok(Trusted::default()),
        }
    }

    /// What a release costs: in the filter's currency, or the provable μ² where nothing is
    /// enforced.
    pub fn cost(&self, release: &Release) -> Result<f64, PrivatizeError> {
        let mechanism = release.mechanism()?;
        match (&self.filter, mechanism) {
            (Some(filter), _) => Ok(filter.cost(&mechanism)?),
            // Rounded up by more than the division and the square round.
            (None, Mechanism::Gaussian { noise_multiplier: z }) => Ok((1.0 + 1e-15) / (z * z)),
            (None, Mechanism::NonPrivate) => Ok(f64::INFINITY),
            (None, _) => Err(AccountError::Unsupported { accountant: "gdp", mechanism }.into()),
        }
    }
}
