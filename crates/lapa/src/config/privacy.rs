//! Gives the keys of `[privacy]` their values and refuses what proves nothing.

use lapa_privacy::allocate::Basis;
use lapa_privacy::{Adjacency, ClipUnit, EventError, NoiseKind, Release};

use super::defaults;
use super::document::Document;
use super::error::ConfigError;
use super::experiment::{
    AllocatorName, BatchSampling, Clip, Learn, PartitionSpec, Privacy, Profile, Update,
};
use super::raw::RawPrivacy;
use super::resolve::word;

/// Whether a file asks for noise: by a budget, or by an allocator that needs one.
pub(super) fn is_noisy(raw: &RawPrivacy) -> bool {
    match raw.allocator {
        Some(allocator) => allocator != AllocatorName::None,
        None => raw.epsilon.is_some() || raw.initial_sigma.is_some(),
    }
}

/// A flag that sets the noise another way takes the file's way with it: epsilon, initial_sigma
/// and allocator = "none" exclude each other.
pub(super) fn prefer_flags(raw: &mut RawPrivacy, document: &Document) {
    let flagged = |key: &str| document.is_flagged(&format!("privacy.{key}"));
    let (epsilon, sigma) = (flagged("epsilon"), flagged("initial_sigma"));
    let silent = flagged("allocator") && raw.allocator == Some(AllocatorName::None);
    if !epsilon && (sigma || silent) {
        raw.epsilon = None;
    }
    if !sigma && (epsilon || silent) {
        raw.initial_sigma = None;
    }
}

pub(super) fn resolve(
    raw: RawPrivacy,
    profile: Profile,
    learn: &Learn,
    document: &Document,
) -> Result<Privacy, ConfigError> {
    let basis = raw.basis.unwrap_or(defaults::basis(profile));
    let allocator = raw.allocator.unwrap_or(defaults::allocator(basis, is_noisy(&raw)));
    refuse_keys_of_other_allocators(&raw, allocator, document)?;
    if raw.epsilon.is_some() && raw.initial_sigma.is_some() {
        return Err(document.error(
            &["privacy.initial_sigma", "privacy.epsilon"],
            "`privacy.epsilon` and `privacy.initial_sigma` both set the noise".into(),
            "remove one of them; the other follows from it",
        ));
    }
    let noisy = allocator != AllocatorName::None;
    let sampling = raw.sampling.unwrap_or(defaults::sampling(basis, allocator, learn.update));
    let lapa = allocator == AllocatorName::Lapa;
    let privacy = Privacy {
        basis,
        allocator,
        epsilon: match (noisy, raw.initial_sigma) {
            (true, None) => Some(raw.epsilon.unwrap_or(defaults::EPSILON)),
            _ => None,
        },
        delta: raw.delta.unwrap_or(defaults::DELTA),
        initial_sigma: raw.initial_sigma,
        sampling,
        adjacency: raw.adjacency.unwrap_or(defaults::adjacency(sampling)),
        noise: raw.noise.unwrap_or(defaults::NOISE),
        entropy: raw.entropy.unwrap_or_default(),
        ledger: raw.ledger,
        budget_share: raw.budget_share,
        channel_trust: raw.channel_trust.unwrap_or(defaults::CHANNEL_TRUST),
        pid_proportional: lapa.then(|| raw.pid_proportional.unwrap_or(defaults::PID_PROPORTIONAL)),
        pid_integral: lapa.then(|| raw.pid_integral.unwrap_or(defaults::PID_INTEGRAL)),
        pid_window: lapa.then(|| raw.pid_window.unwrap_or(defaults::PID_WINDOW)),
        pid_error: lapa.then(|| raw.pid_error.unwrap_or(defaults::pid_error(basis))),
        decay: lapa.then(|| raw.decay.unwrap_or(defaults::DECAY)),
    };
    if privacy.budget_share.is_some() && !(noisy && basis == Basis::Certified) {
        return Err(document.error(
            &["privacy.budget_share", "privacy.basis", "privacy.allocator"],
            "`privacy.budget_share` belongs to `privacy.basis` = \"certified\" with noise: \
             elsewhere devices have no budgets of their own"
                .into(),
            "remove budget_share, or set privacy.epsilon on basis certified",
        ));
    }
    if noisy {
        check_noise(&privacy, learn, document)?;
    }
    check_batches(&privacy, learn, document)?;
    Ok(privacy)
}

/// Under add-remove adjacency the sizes of devices are private: batches need a public one.
pub(super) fn check_sizes(
    privacy: &Privacy,
    partition: &PartitionSpec,
    document: &Document,
) -> Result<(), ConfigError> {
    let noisy = privacy.allocator != AllocatorName::None;
    if noisy && privacy.adjacency == Adjacency::AddRemove && partition.middle_samples().is_none() {
        return Err(document.error(
            &["privacy.adjacency", "partition.scheme"],
            format!(
                "`privacy.adjacency` = \"add-remove\" needs a public number of samples per device, \
                 which `partition.scheme` = {} leaves open here",
                word(partition.scheme)
            ),
            "use scheme mix, or scheme iid with iid_samples; or adjacency zero-out",
        ));
    }
    Ok(())
}

fn refuse_keys_of_other_allocators(
    raw: &RawPrivacy,
    allocator: AllocatorName,
    document: &Document,
) -> Result<(), ConfigError> {
    use AllocatorName::{Arb, Lapa, None, OptimalSplit, Uniform};
    let noisy: &[_] = &[Uniform, Arb, Lapa, OptimalSplit];
    let homes: [(&str, bool, &[AllocatorName]); 8] = [
        ("epsilon", raw.epsilon.is_some(), noisy),
        ("initial_sigma", raw.initial_sigma.is_some(), noisy),
        ("noise", raw.noise.is_some_and(|noise| noise != defaults::NOISE), noisy),
        ("pid_proportional", raw.pid_proportional.is_some(), &[Lapa]),
        ("pid_integral", raw.pid_integral.is_some(), &[Lapa]),
        ("pid_window", raw.pid_window.is_some(), &[Lapa]),
        ("pid_error", raw.pid_error.is_some(), &[Lapa]),
        ("decay", raw.decay.is_some(), &[Lapa]),
    ];
    for (key, given, allocators) in homes {
        if given && !allocators.contains(&allocator) {
            let path = format!("privacy.{key}");
            let home = match allocators {
                [only] => word(only),
                _ => "an allocator that adds noise".into(),
            };
            let is = match allocator {
                None => "no noise (allocator = \"none\")".into(),
                other => word(other),
            };
            return Err(document.error(
                &[&path, "privacy.allocator"],
                format!("`{path}` belongs to {home}, but the allocator is {is}"),
                &format!("remove {key}, or set privacy.allocator"),
            ));
        }
    }
    Ok(())
}

/// How batches are drawn, with or without noise.
fn check_batches(privacy: &Privacy, learn: &Learn, document: &Document) -> Result<(), ConfigError> {
    let sampling = privacy.sampling;
    if learn.update == Update::Epoch && sampling != BatchSampling::Fixed {
        return Err(document.error(
            &["privacy.sampling", "learn.update"],
            format!(
                "`privacy.sampling` = {} does not go with `learn.update` = \"epoch\", which passes \
                 over all samples in shuffled batches",
                word(sampling)
            ),
            "use privacy.sampling = \"fixed\", or learn.update = \"gradient\"",
        ));
    }
    if sampling == BatchSampling::Full && learn.batch_fraction != 1.0 {
        return Err(document.error(
            &["learn.batch_fraction", "privacy.sampling"],
            format!(
                "`learn.batch_fraction` = {} does not go with `privacy.sampling` = \"full\"",
                learn.batch_fraction
            ),
            "remove batch_fraction, or use privacy.sampling = \"poisson\"",
        ));
    }
    if sampling == BatchSampling::Poisson && learn.clip != Clip::Sample {
        return Err(document.error(
            &["privacy.sampling", "learn.clip"],
            format!(
                "`privacy.sampling` = \"poisson\" does not go with `learn.clip` = {}: without a \
                 bound per sample no amplification is proved",
                word(learn.clip)
            ),
            "use learn.clip = \"sample\", or privacy.sampling = \"fixed\"",
        ));
    }
    Ok(())
}

/// What the noise is worth must be known.
fn check_noise(privacy: &Privacy, learn: &Learn, document: &Document) -> Result<(), ConfigError> {
    let certified = privacy.basis == Basis::Certified;
    if certified && learn.update == Update::Epoch {
        return Err(document.error(
            &["learn.update", "privacy.basis"],
            "`privacy.basis` = \"certified\" requires `learn.update` = \"gradient\": the steps of \
             a local epoch see the same samples again and again, and noise on their sum alone \
             bounds none of them"
                .into(),
            "use learn.update = \"gradient\", or privacy.basis = \"paper\"",
        ));
    }
    if certified && learn.clip != Clip::Sample {
        return Err(document.error(
            &["learn.clip", "privacy.basis"],
            format!(
                "`privacy.basis` = \"certified\" requires `learn.clip` = \"sample\", not {}: only \
                 a clip of each sample's gradient bounds what one sample can change",
                word(learn.clip)
            ),
            "use learn.clip = \"sample\", or privacy.basis = \"paper\"",
        ));
    }
    if learn.update == Update::Epoch && learn.clip == Clip::Sample {
        return Err(document.error(
            &["learn.clip", "learn.update"],
            "noise on `learn.update` = \"epoch\" requires `learn.clip` = \"device\": a sample moves \
             all later steps of the epoch, so that clipping it bounds the upload by no more than \
             clipping the upload does"
                .into(),
            "use learn.clip = \"device\", or learn.update = \"gradient\"",
        ));
    }
    if learn.clip == Clip::None {
        return Err(document.error(
            &["learn.clip", "privacy.allocator"],
            "`learn.clip` = \"none\" leaves no bound that noise could be set by".into(),
            "use learn.clip = \"device\" or \"sample\"",
        ));
    }
    if certified && privacy.allocator == AllocatorName::OptimalSplit {
        return Err(document.error(
            &["privacy.allocator", "privacy.basis"],
            "`privacy.allocator` = \"optimal-split\" shares one pot over the devices, which \
             `privacy.basis` = \"certified\" does not have: each device has its own budget"
                .into(),
            "use uniform, arb or lapa, or privacy.basis = \"paper\"",
        ));
    }
    if !certified && privacy.sampling == BatchSampling::Poisson {
        return Err(document.error(
            &["privacy.sampling", "privacy.basis"],
            "`privacy.sampling` = \"poisson\" does not go with `privacy.basis` = \"paper\": the \
             printed formulas know no sampling"
                .into(),
            "use privacy.sampling = \"fixed\", or privacy.basis = \"certified\"",
        ));
    }
    if !certified && privacy.noise == NoiseKind::DiscreteGaussian {
        return Err(document.error(
            &["privacy.noise", "privacy.basis"],
            "`privacy.noise` = \"discrete-gaussian\" requires `privacy.basis` = \"certified\""
                .into(),
            "use privacy.noise = \"gaussian\", or privacy.basis = \"certified\"",
        ));
    }
    let amplified = privacy.sampling == BatchSampling::Poisson
        && learn.batch_fraction < 1.0
        && privacy.noise == NoiseKind::Gaussian;
    if amplified && privacy.adjacency == Adjacency::ReplaceOne && privacy.budget_share.is_some() {
        return Err(document.error(
            &["privacy.budget_share", "privacy.adjacency"],
            "`privacy.budget_share` does not go with `privacy.adjacency` = \"replace-one\" and \
             poisson batches, which can be costed only as a plan of equal releases"
                .into(),
            "use adjacency = \"zero-out\", or remove budget_share",
        ));
    }
    if amplified
        && privacy.adjacency == Adjacency::ReplaceOne
        && privacy.allocator != AllocatorName::Uniform
    {
        return Err(document.error(
            &["privacy.adjacency", "privacy.allocator"],
            format!(
                "`privacy.adjacency` = \"replace-one\" with poisson batches can be costed only for \
                 a schedule fixed in advance, not for `privacy.allocator` = {}",
                word(privacy.allocator)
            ),
            "use adjacency = \"zero-out\", or allocator = \"uniform\"",
        ));
    }
    // Any pair without a proven sensitivity; the numbers do not matter here.
    let release = Release {
        clip: if learn.clip == Clip::Sample { ClipUnit::Sample } else { ClipUnit::Device },
        clip_norm: 1.0,
        denominator: 1.0,
        records: 1,
        learning_rate: 1.0,
        adjacency: privacy.adjacency,
        sampling: privacy.sampling.declared(learn.batch_fraction),
        noise: privacy.noise,
        sigma_artificial: 1.0,
        sigma_channel: 0.0,
        kappa: 0.0,
    };
    match release.sensitivity() {
        Err(error @ EventError::Pair { .. }) => Err(document.error(
            &["privacy.adjacency", "privacy.sampling"],
            format!(
                "`privacy.adjacency` = {} does not go with `privacy.sampling` = {}: {error}",
                word(privacy.adjacency),
                word(privacy.sampling)
            ),
            "use the default adjacency of that sampling: remove privacy.adjacency",
        )),
        _ => Ok(()),
    }
}
