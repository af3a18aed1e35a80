//! Declaration of budgets before round 1: the release of each device, and its filter.

use std::collections::HashMap;
use std::sync::Arc;

use lapa_privacy::accountant::{Accountant, Pld, Rdp, gdp};
use lapa_privacy::allocate::Basis;
use lapa_privacy::{
    Adjacency, Budget, ClipUnit, Filter, FilterKind, Mechanism, NoiseKind, Release, calibrate,
    renyi_order,
};

use super::device_budget::unit;
use super::odometer::composed;
use super::{DeviceBudget, NoiseRule, PrivacyError, Result};
use crate::aggregate::Histograms;
use crate::config::{Access, BatchSampling, Clip, Experiment, NoiseLevel, Privacy};
use crate::model::MOST_SAMPLES;

/// The public number of samples of each device: |D_k|, or under add-remove adjacency, where |D_k|
/// is not public, the same n̂ for all: the middle of the sizes that the configuration gives. (It
/// refuses add-remove where it gives none.) Refuses a device whose sums have no proof.
pub(crate) fn public_samples(experiment: &Experiment, sizes: &[u32]) -> Result<Vec<u32>> {
    let summed = experiment.privacy.is_some()
        && experiment.learn.clip == Clip::Sample
        && experiment.noise() == NoiseKind::Gaussian;
    if let Some(device) = sizes.iter().position(|&n| summed && n as usize > MOST_SAMPLES) {
        return Err(PrivacyError::Budget(format!(
            "device {device} has {} samples: the rounding of sums of clipped gradients is proved \
             for up to {MOST_SAMPLES}; deal them to more devices, or use privacy.noise = \
             \"discrete-gaussian\", whose sums are exact",
            sizes[device]
        )));
    }
    let hidden = experiment.adjacency() == Adjacency::AddRemove;
    Ok(match experiment.partition.scheme.middle_samples().filter(|_| hidden) {
        Some(middle) => vec![middle; sizes.len()],
        None => sizes.to_vec(),
    })
}

/// The experiment for updates that are computed outside of the engine: nothing but the whole of them
/// can be clipped, so that one record moves them by up to 2C and no sampling is counted.
pub(crate) fn of_whole_updates(experiment: &Experiment) -> Experiment {
    let mut experiment = experiment.clone();
    experiment.learn.clip = Clip::Device;
    experiment.learn.batch_fraction = 1.0;
    experiment.learn.sampling = BatchSampling::Full;
    experiment
}

/// The release of a device of `public_samples`, without noise yet.
pub(crate) fn release(experiment: &Experiment, public_samples: u32) -> Release {
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
        shared_channel: experiment.transmit.access == Access::Noma
            && experiment.transmit.perfect_sic
            && experiment.channel_trust() > 0.0,
    }
}

/// ε^T of all devices together on basis paper; `None` if each has its own budget. Where it follows
/// from `privacy.initial_sigma`, ε_k^[1] = ε^T/(T·K) is the same for all devices, since σ_k and Δs_k
/// both go by 1/|D_k|.
pub(crate) fn total_epsilon(experiment: &Experiment, public_samples: &[u32]) -> Option<f64> {
    let privacy = experiment.privacy.as_ref().filter(|privacy| privacy.basis == Basis::Paper)?;
    let (rounds, devices) = (f64::from(experiment.run.rounds), public_samples.len() as f64);
    Some(match privacy.level {
        NoiseLevel::Epsilon(epsilon) => epsilon,
        NoiseLevel::InitialSigma(sigma) => {
            let mean = public_samples.iter().map(|&n| f64::from(n)).sum::<f64>() / devices;
            let first = Release {
                sigma_artificial: sigma * mean / f64::from(public_samples[0]),
                noise: NoiseKind::Gaussian,
                ..release(experiment, public_samples[0])
            };
            rounds * devices * first.claimed_epsilon(privacy.delta)
        }
    })
}

/// The budgets of all devices. `known` is the kind of filter that a shared ledger already holds for
/// a device: it is fixed with the first release.
pub(crate) fn declare(
    experiment: &Experiment,
    public_samples: &[u32],
    known: &dyn Fn(u32) -> Option<FilterKind>,
) -> Result<Vec<Arc<DeviceBudget>>> {
    let certified = experiment.privacy.as_ref().filter(|_| experiment.is_certified());
    let mean = public_samples.iter().map(|&n| f64::from(n)).sum::<f64>()
        / public_samples.len().max(1) as f64;
    // Devices with the same numbers share a budget: a plan takes an accountant some time.
    let mut shared: HashMap<u32, Vec<(Option<FilterKind>, _)>> = HashMap::new();
    let mut filters: HashMap<(u64, String), Filter> = HashMap::new();
    let mut budgets = Vec::with_capacity(public_samples.len());
    for (device, &samples) in (0..).zip(public_samples) {
        let known = certified.and_then(|_| known(device));
        let made = shared.entry(samples).or_default();
        if let Some((_, budget)) = made.iter().find(|(kind, _)| *kind == known) {
            budgets.push(Arc::clone(budget));
            continue;
        }
        let release = release(experiment, samples);
        let mut filter = None;
        if let Some(privacy) = certified {
            let sigma = privacy.initial_sigma().map(|sigma| sigma * mean / f64::from(samples));
            let noisy = sigma.map(|sigma_artificial| {
                Release { sigma_artificial, ..release.clone() }.mechanism()
            });
            let noise = noisy.transpose()?.map(|mechanism| mechanism.noise_multiplier());
            let key = (noise.unwrap_or(0.0).to_bits(), format!("{known:?}"));
            if !filters.contains_key(&key) {
                let new = Choice { experiment, privacy, noise, known }.filter(&release)?;
                filters.insert(key.clone(), new);
            }
            filter = filters.get(&key).cloned();
        }
        let budget = Arc::new(DeviceBudget {
            release,
            filter,
            basis: experiment.basis(),
            delta: experiment.delta(),
            noisy: experiment.privacy.is_some(),
            rule: NoiseRule::from_control(&experiment.control),
            trust: experiment.channel_trust(),
        });
        made.push((known, Arc::clone(&budget)));
        budgets.push(budget);
    }
    Ok(budgets)
}

/// True if releases are not all equal: a label histogram is among them, channel noise makes some
/// cheaper, or another run has other ones.
fn has_other_costs(experiment: &Experiment) -> bool {
    matches!(experiment.aggregate.rule.histograms(), Some(Histograms::Noisy(_)))
        || experiment.channel_trust() > 0.0
        || experiment.budget_fraction().is_some()
}

/// Choice of a device's filter.
struct Choice<'a> {
    experiment: &'a Experiment,
    privacy: &'a Privacy,
    /// The noise multiplier of `privacy.initial_sigma`, from which ε follows.
    noise: Option<f64>,
    /// The kind that a shared ledger holds.
    known: Option<FilterKind>,
}

impl Choice<'_> {
    /// GDP for Gaussians without amplification. Where sampling amplifies, a plan proved by PLD if
    /// the schedule is fixed in advance, releases are all equal and no other run shares the budget;
    /// else Rényi at one order. (Replace-one with sampling has no Rényi bound: always a plan.)
    fn filter(&self, release: &Release) -> Result<Filter> {
        let (_, template) = unit(release)?;
        let is_fixed = self.privacy.allocator.is_fixed();
        let equal = self.experiment.run.ledger.is_none() && !has_other_costs(self.experiment);
        match template {
            Mechanism::Gaussian { .. } => self.gdp(),
            Mechanism::PoissonGaussian { adjacency, .. }
                if is_fixed && (equal || adjacency == Adjacency::ReplaceOne) =>
            {
                self.plan(template)
            }
            _ => self.renyi(template),
        }
    }

    fn budget(&self, epsilon: f64) -> Result<Budget> {
        match (self.privacy.initial_sigma(), (1e-3..=1e6).contains(&epsilon)) {
            (Some(sigma), false) => Err(PrivacyError::InitialSigma { sigma, epsilon }),
            _ => Ok(Budget::new(epsilon, self.privacy.delta)?),
        }
    }

    fn gdp(&self) -> Result<Filter> {
        let (privacy, rounds) = (self.privacy, self.experiment.run.rounds);
        let epsilon = match (privacy.epsilon(), self.noise) {
            (None, Some(noise)) => gdp::epsilon(f64::from(rounds).sqrt() / noise, privacy.delta)?,
            (epsilon, _) => epsilon.unwrap_or_default(),
        };
        Ok(Filter::gdp(self.budget(epsilon)?)?)
    }

    fn plan(&self, template: Mechanism) -> Result<Filter> {
        let (privacy, rounds) = (self.privacy, self.experiment.run.rounds);
        let given = privacy.epsilon();
        if let Some(kind @ FilterKind::Plan { epsilon, mechanism, .. }) = self.known {
            let planned = mechanism.noise_multiplier();
            if let Some(noise) = self.noise.filter(|&noise| noise > planned) {
                return Err(PrivacyError::Budget(format!(
                    "privacy.initial_sigma asks for {noise} sensitivities of noise, but the \
                     ledger's plan for this data has {planned}: use the plan's, or another ledger"
                )));
            }
            return Ok(Filter::new(kind, self.budget(given.unwrap_or(epsilon))?)?);
        }
        let noise = match (given, self.noise) {
            (None, Some(noise)) => noise,
            (epsilon, _) => {
                let budget = self.budget(epsilon.unwrap_or_default())?;
                calibrate::noise_multiplier(budget, template, rounds, Pld::default)?
            }
        };
        let mechanism = template.with_noise(noise);
        let proved = composed(Pld::default(), &mechanism, rounds, privacy.delta)?;
        Ok(Filter::plan(self.budget(given.unwrap_or(proved))?, mechanism, rounds, proved)?)
    }

    fn renyi(&self, template: Mechanism) -> Result<Filter> {
        let (privacy, rounds) = (self.privacy, self.experiment.run.rounds);
        let (epsilon, order) = match (privacy.epsilon(), self.noise) {
            (None, Some(noise)) => {
                let mut rdp = Rdp::default();
                rdp.compose(&template.with_noise(noise), rounds)?;
                rdp.epsilon_and_order(privacy.delta)?
            }
            (epsilon, _) => {
                let epsilon = epsilon.unwrap_or_default();
                (epsilon, renyi_order(self.budget(epsilon)?, template, rounds)?)
            }
        };
        let budget = self.budget(epsilon)?;
        match self.known {
            Some(FilterKind::Renyi { order }) => Filter::renyi(budget, order).map_err(|_| {
                PrivacyError::Budget(format!(
                    "privacy.epsilon = {epsilon} leaves nothing to spend at the Rényi order \
                     {order:.3} that the ledger was begun with"
                ))
            }),
            _ => Ok(Filter::renyi(budget, order)?),
        }
    }
}
