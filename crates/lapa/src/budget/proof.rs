//! The proof of a run in words: guarantee, adversary, theorem, assumptions, limits.

use lapa_privacy::{Adjacency, NoiseKind, Release};

use super::round_up;
use crate::aggregate::Histograms;
use crate::config::{Entropy, Experiment, Privacy};

/// Facts of a run that its proof mentions, beside the experiment.
#[derive(Clone, Debug, Default)]
pub struct ProofFacts {
    /// Proven ε of the worst device.
    pub epsilon: f64,
    /// Theorem of the filters; `None` without filters.
    pub theorem: Option<&'static str>,
    /// True if devices keep their own ledgers, so that the base station relies on their word.
    pub on_trust: bool,
    /// ε that the worst device has spent if no channel noise is counted, where known.
    pub without_channel: Option<f64>,
    /// The paper's sum over all devices and the release of the first device, where known.
    pub claimed: Option<(f64, Release)>,
}

/// The proof of a run, a paragraph each. Every paragraph begins with its subject and a colon.
pub fn proof(experiment: &Experiment, facts: &ProofFacts) -> Vec<String> {
    let Some(privacy) = &experiment.privacy else {
        return vec![
            "Guarantee: none. No noise was added, so nothing is proven and ε is infinite.".into(),
        ];
    };
    let mut paragraphs =
        if experiment.is_certified() { declared(privacy, facts) } else { recorded(privacy, facts) };
    paragraphs.push(format!("Adversary: {}.", adversary(experiment.channel_trust())));
    if experiment.is_certified() {
        paragraphs.extend(facts.theorem.map(|theorem| format!("Theorem: {theorem}.")));
    }
    paragraphs.push(match experiment.partition.scheme.shared() {
        None => DISJOINT.into(),
        Some(_) => SHARED_RECORDS.into(),
    });
    paragraphs.extend(experiment.aggregate.rule.histograms().map(|sent| labels(sent).to_owned()));
    if privacy.channel_trust > 0.0 {
        let shared = facts.claimed.as_ref().is_some_and(|(_, release)| release.shared_channel);
        paragraphs.push(if shared {
            SHARED.into()
        } else {
            trust(privacy.channel_trust, facts.without_channel)
        });
    }
    if experiment.control.noise.goes_by_sum() {
        paragraphs.push(
            "Noise control: the sum rule (control.switch.rule) ends artificial noise when channel \
             noise suffices in the sum over the devices. Single devices may have less noise than \
             required; the proven ε counts the noise that they actually had."
                .into(),
        );
    }
    paragraphs.extend(limits(privacy, experiment.run.entropy));
    paragraphs
}

/// The adversary that the guarantee holds against; with the seed's entropy, one without the seed.
pub fn adversary(channel_trust: f64) -> &'static str {
    match channel_trust {
        0.0 => "anyone who sees every transmission",
        _ => "anyone who receives every transmission with at least the declared receiver noise",
    }
}

/// The system, where every record is on one device.
const DISJOINT: &str = "System: the devices hold disjoint records, so the guarantee of the whole \
                        system is that of the worst device.";

/// The system, where devices draw from one training set.
const SHARED_RECORDS: &str = "System: virtual devices share the images of one training set. The guarantee is for a record of one \
     device; copies of the same image on other devices count as records of others. Nothing is claimed \
     for an image with all of its copies.";

/// Scope of the spent ε of a simulation.
const ALL_RUNS: &str = "Spent ε: it covers all runs on the same ledger.";

/// Budgets that were declared before round 1 and are enforced.
fn declared(privacy: &Privacy, facts: &ProofFacts) -> Vec<String> {
    let (epsilon, delta) = (round_up(facts.epsilon), privacy.delta);
    let guarantee = format!(
        "({epsilon}, {delta:e})-differentially private under {} adjacency ({})",
        privacy.adjacency,
        neighbors(privacy.adjacency)
    );
    if facts.on_trust {
        vec![
            format!(
                "Guarantee: declared by the devices. Each device limits all that it ever releases to \
                 ε ≤ {epsilon}, in its own ledger, which the base station cannot see. The \
                 records of a device that does so are {guarantee}."
            ),
            "Spent ε: it covers only the releases that this base station requested in this run."
                .into(),
        ]
    } else {
        vec![
            format!("Guarantee: proven. The records of each device are {guarantee}."),
            ALL_RUNS.into(),
        ]
    }
}

/// ε of the recorded noise, beside the claim of the paper's formula.
fn recorded(privacy: &Privacy, facts: &ProofFacts) -> Vec<String> {
    let mut guarantee = format!(
        "Guarantee: the proven ε of the recorded noise is {} for the worst device, under {} \
         adjacency ({}) (Gaussian differential privacy, exact for these releases).",
        round_up(facts.epsilon),
        privacy.adjacency,
        neighbors(privacy.adjacency)
    );
    let schedule = if privacy.allocator.is_fixed() {
        "Schedule: fixed in advance."
    } else {
        "Schedule: chosen during the run, so the proven ε is an odometer reading, not a guarantee \
         made in advance."
    };
    let mut paragraphs = vec![schedule.to_owned(), ALL_RUNS.into()];
    if let Some((claimed, release)) = &facts.claimed {
        guarantee += &format!(
            " The paper's formula reports ε = {}, summed over rounds and all devices: the proven ε \
             is {} times that.",
            round_up(*claimed),
            round_up(facts.epsilon / claimed)
        );
        let sensitivity = format!(
            "Sensitivity: one record can change the update of the first device by {:.3e}; the \
             paper's formula 2λC/|D_k| gives {:.3e}.",
            release.sensitivity().unwrap_or(f64::INFINITY),
            release.claimed_sensitivity()
        );
        paragraphs.insert(0, sensitivity);
    }
    paragraphs.insert(0, guarantee);
    paragraphs
}

fn neighbors(adjacency: Adjacency) -> &'static str {
    match adjacency {
        Adjacency::ZeroOut => "one record is replaced by a record with zero gradient",
        Adjacency::AddRemove => "one record is added or removed",
        Adjacency::ReplaceOne => "one record is replaced by any other",
    }
}

fn labels(sent: Histograms) -> &'static str {
    match sent {
        Histograms::Noisy(_) => {
            "Labels: each device sent a label histogram once, with noise; the guarantee includes it."
        }
        Histograms::Public => {
            "Labels: declared public (`histograms` of the rule), and the label histograms were sent \
             without noise. The guarantee does not protect labels: it covers records that differ in \
             anything but the label."
        }
        Histograms::Exact => {
            "Labels: the label histograms were sent without noise, so nothing is proven for them and \
             ε is infinite."
        }
    }
}

/// Channel noise that the paper counts and no proof does.
const SHARED: &str = "Channel: the paper's claim counts receiver noise that the devices share over \
                      NOMA. The proven ε counts artificial noise alone.";

fn trust(fraction: f64, without_channel: Option<f64>) -> String {
    let counted = match fraction {
        1.0 => "the full variance".into(),
        _ => format!("the fraction {fraction} of the variance"),
    };
    let without = without_channel.map_or(String::new(), |epsilon| {
        format!(" Without channel noise the worst device has spent ε = {}.", round_up(epsilon))
    });
    format!(
        "Assumption: {counted} of the receiver noise is counted (privacy.channel_trust). This holds \
         as long as no receiver is better than declared.{without}"
    )
}

/// Cases and attackers that the guarantee does not cover.
fn limits(privacy: &Privacy, entropy: Entropy) -> impl Iterator<Item = String> {
    let limits = [
        (
            true,
            "Not covered: the guarantee protects single records, not all records of one person. \
             Someone with several records, or with records on several devices, needs group \
             privacy. Tuning hyperparameters on the same data is not covered either.",
        ),
        (
            privacy.noise == NoiseKind::Gaussian,
            "Arithmetic: the proof covers the rounding of sums but treats the noise as real \
             numbers, so floating-point rounding of the noise is not covered; use privacy.noise = \
             \"discrete-gaussian\" if it matters.",
        ),
        (
            entropy == Entropy::Seed,
            "Simulation: noise and batches follow from the seed, so there is no guarantee against \
             anyone who knows the seed.",
        ),
    ];
    limits.into_iter().filter(|(applies, _)| *applies).map(|(_, limit)| limit.into())
}
