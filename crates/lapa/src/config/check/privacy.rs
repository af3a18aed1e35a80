//! `[privacy]` and how batches are drawn: refuses what proves nothing.

use lapa_privacy::allocate::Basis;
use lapa_privacy::{Adjacency, ClipUnit, EventError, NoiseKind, Release};

use super::super::document::Document;
use super::super::experiment::Experiment;
use super::super::privacy::Privacy;
use super::{Check, word};
use crate::device::{BatchSampling, Clip, Learn, Update};

/// Draws of batches, with or without noise.
pub(super) fn batches(experiment: &Experiment, document: &Document) -> Check {
    let learn = &experiment.learn;
    let sampling = learn.sampling;
    if learn.local_epochs > 1 && learn.update == Update::Gradient {
        return Err(document.error(
            &["learn.local_epochs", "learn.update"],
            format!(
                "`learn.local_epochs` = {} does not go with `learn.update` = \"gradient\", which \
                 takes one batch in a round",
                learn.local_epochs
            ),
            "remove local_epochs, or use learn.update = \"epoch\"",
        ));
    }
    if learn.update == Update::Epoch && sampling != BatchSampling::Fixed {
        return Err(document.error(
            &["learn.sampling", "learn.update"],
            format!(
                "`learn.sampling` = {} does not go with `learn.update` = \"epoch\", which passes \
                 over all samples in shuffled batches",
                word(sampling)
            ),
            "use learn.sampling = \"fixed\", or learn.update = \"gradient\"",
        ));
    }
    if sampling == BatchSampling::Full && learn.batch_fraction != 1.0 {
        return Err(document.error(
            &["learn.batch_fraction", "learn.sampling"],
            format!(
                "`learn.batch_fraction` = {} does not go with `learn.sampling` = \"full\"",
                learn.batch_fraction
            ),
            "remove batch_fraction, or use learn.sampling = \"poisson\"",
        ));
    }
    // On basis certified any other clip is refused anyway.
    let certified = experiment.is_certified();
    if sampling == BatchSampling::Poisson && learn.clip != Clip::Sample && !certified {
        return Err(document.error(
            &["learn.sampling", "learn.clip"],
            format!(
                "`learn.sampling` = \"poisson\" does not go with `learn.clip` = {}: without a \
                 bound per sample no amplification is proved",
                word(learn.clip)
            ),
            "use learn.clip = \"sample\", or learn.sampling = \"fixed\"",
        ));
    }
    Ok(())
}

/// Noise of which it is known what it is worth.
pub(super) fn noise(experiment: &Experiment, document: &Document) -> Check {
    let (Some(privacy), learn) = (&experiment.privacy, &experiment.learn) else { return Ok(()) };
    clipping(privacy, learn, document)?;
    basis(privacy, learn, document)?;
    plan(privacy, learn, document)?;
    sensitivity(privacy, learn, document)
}

/// Choices that the formulas of the basis know.
fn basis(privacy: &Privacy, learn: &Learn, document: &Document) -> Check {
    let certified = privacy.basis == Basis::Certified;
    if certified && privacy.allocator.needs_total() {
        return Err(document.error(
            &["privacy.allocator", "privacy.basis"],
            format!(
                "`privacy.allocator` = {} divides one total budget over the devices, which \
                 `privacy.basis` = \"certified\" does not have: each device has its own budget",
                word(privacy.allocator)
            ),
            "use uniform, arb or lapa, or privacy.basis = \"paper\"",
        ));
    }
    if !certified && learn.sampling == BatchSampling::Poisson {
        return Err(document.error(
            &["learn.sampling", "privacy.basis"],
            "`learn.sampling` = \"poisson\" does not go with `privacy.basis` = \"paper\": the \
             printed formulas know no sampling",
            "use learn.sampling = \"fixed\", or privacy.basis = \"certified\"",
        ));
    }
    if !certified && privacy.noise == NoiseKind::DiscreteGaussian {
        return Err(document.error(
            &["privacy.noise", "privacy.basis"],
            "`privacy.noise` = \"discrete-gaussian\" requires `privacy.basis` = \"certified\"",
            "use privacy.noise = \"gaussian\", or privacy.basis = \"certified\"",
        ));
    }
    if certified && privacy.noise == NoiseKind::ComplexGaussian {
        return Err(document.error(
            &["privacy.noise", "privacy.basis"],
            "`privacy.noise` = \"complex-gaussian\" requires `privacy.basis` = \"paper\": its real \
             part carries half of the noise that a proof needs",
            "use privacy.noise = \"gaussian\", or privacy.basis = \"paper\"",
        ));
    }
    Ok(())
}

/// A pair of adjacency and sampling with a proven sensitivity.
fn sensitivity(privacy: &Privacy, learn: &Learn, document: &Document) -> Check {
    // The numbers do not matter here.
    let release = Release {
        clip: if learn.clip == Clip::Sample { ClipUnit::Sample } else { ClipUnit::Device },
        clip_norm: 1.0,
        denominator: 1.0,
        records: 1,
        learning_rate: 1.0,
        adjacency: privacy.adjacency,
        sampling: learn.sampling.declared(learn.batch_fraction),
        noise: privacy.noise,
        sigma_artificial: 1.0,
        sigma_channel: 0.0,
        kappa: 0.0,
        shared_channel: false,
    };
    match release.sensitivity() {
        Err(error @ EventError::Pair { .. }) => Err(document.error(
            &["privacy.adjacency", "learn.sampling"],
            format!(
                "`privacy.adjacency` = {} does not go with `learn.sampling` = {}: {error}",
                word(privacy.adjacency),
                word(learn.sampling)
            ),
            "use the default adjacency of that sampling: remove privacy.adjacency",
        )),
        _ => Ok(()),
    }
}

/// A clip that bounds what one record can change.
fn clipping(privacy: &Privacy, learn: &Learn, document: &Document) -> Check {
    let certified = privacy.basis == Basis::Certified;
    if certified && learn.update == Update::Epoch {
        return Err(document.error(
            &["learn.update", "privacy.basis"],
            "`privacy.basis` = \"certified\" requires `learn.update` = \"gradient\": the steps of \
             a local epoch see the same samples again and again, and noise on their sum alone \
             bounds none of them",
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
             clipping the upload does",
            "use learn.clip = \"device\", or learn.update = \"gradient\"",
        ));
    }
    if learn.clip == Clip::None {
        return Err(document.error(
            &["learn.clip", "privacy"],
            "`learn.clip` = \"none\" leaves no bound that noise could be set by",
            "use learn.clip = \"device\" or \"sample\"",
        ));
    }
    Ok(())
}

/// Replace-one with sampling has a cost only for a schedule that is fixed in advance.
fn plan(privacy: &Privacy, learn: &Learn, document: &Document) -> Check {
    let amplified = learn.sampling == BatchSampling::Poisson
        && learn.batch_fraction < 1.0
        && privacy.noise == NoiseKind::Gaussian;
    if amplified && privacy.adjacency == Adjacency::ReplaceOne && privacy.budget_fraction < 1.0 {
        return Err(document.error(
            &["privacy.budget_fraction", "privacy.adjacency"],
            "`privacy.budget_fraction` does not go with `privacy.adjacency` = \"replace-one\" and \
             poisson batches, which can be costed only as a plan of equal releases",
            "use adjacency = \"zero-out\", or remove budget_fraction",
        ));
    }
    if amplified && privacy.adjacency == Adjacency::ReplaceOne && !privacy.allocator.is_fixed() {
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
    Ok(())
}

/// A fraction of the budget needs devices with budgets of their own.
pub(super) fn budget(experiment: &Experiment, document: &Document) -> Check {
    let fraction = experiment.privacy.as_ref().map_or(1.0, |privacy| privacy.budget_fraction);
    if fraction < 1.0 && !experiment.is_certified() {
        return Err(document.error(
            &["privacy.budget_fraction", "privacy.basis"],
            "`privacy.budget_fraction` belongs to `privacy.basis` = \"certified\": elsewhere \
             devices have no budgets of their own",
            "remove budget_fraction, or use privacy.basis = \"certified\"",
        ));
    }
    Ok(())
}

/// Under add-remove adjacency the sizes of devices are private: batches need a public one.
pub(super) fn sizes(experiment: &Experiment, document: &Document) -> Check {
    let scheme = &experiment.partition.scheme;
    let hidden = experiment.privacy.is_some() && experiment.adjacency() == Adjacency::AddRemove;
    if hidden && scheme.middle_samples().is_none() {
        return Err(document.error(
            &["privacy.adjacency", "partition.scheme"],
            format!(
                "`privacy.adjacency` = \"add-remove\" needs a public number of samples per device, \
                 which `partition.scheme` = {} leaves open here",
                word(scheme)
            ),
            "use scheme mix, or scheme iid with samples; or adjacency zero-out",
        ));
    }
    Ok(())
}
