//! `[radio]`, `[transmit]` and `[aggregate]`, also against `[privacy]`.

use lapa_privacy::{Adjacency, NoiseKind, word_of};
use lapa_wireless::noma::Receiver;

use super::super::document::Document;
use super::super::experiment::Experiment;
use super::{Check, word};
use crate::aggregate::Histograms;
use crate::data::CLASSES;
use crate::device::{BatchSampling, Clip};
use crate::radio::settings::{Access, Places, Powers};

/// Places for all devices.
pub(super) fn places(experiment: &Experiment, document: &Document) -> Check {
    let devices = experiment.partition.scheme.devices();
    let regions = match &experiment.radio.places {
        Places::Positions(positions) if positions.len() == devices as usize => return Ok(()),
        Places::Positions(positions) => {
            return Err(document.error(
                &["radio.positions"],
                format!(
                    "`radio.positions` has {} entries, but there are {devices} devices: expected \
                     one [x, y, z] for each",
                    positions.len()
                ),
                "give as many positions as devices, or use radio.regions",
            ));
        }
        Places::Regions(regions) => regions,
    };
    for region in regions {
        for (axis, [min, max]) in [("x", region.x), ("y", region.y)] {
            if min > max {
                return Err(document.error(
                    &["radio.regions"],
                    format!(
                        "`radio.regions` has a region with {axis} = [{min}, {max}]: expected \
                         [min, max] with min at most max"
                    ),
                    &format!("write {axis} = [{max}, {min}]"),
                ));
            }
        }
    }
    if regions.iter().all(|region| region.devices == 0) {
        return Err(document.error(
            &["radio.regions"],
            "`radio.regions` has no region with `devices` above 0",
            "give each region its share of the devices",
        ));
    }
    Ok(())
}

/// Without interference there is nothing to separate.
pub(super) fn interference(experiment: &Experiment, document: &Document) -> Check {
    let transmit = &experiment.transmit;
    let orthogonal = transmit.access == Access::Orthogonal;
    if orthogonal && !transmit.perfect_sic {
        return Err(document.error(
            &["transmit.perfect_sic", "transmit.access"],
            "`transmit.perfect_sic` = false has no effect with `transmit.access` = \"orthogonal\", \
             where nothing interferes",
            "remove perfect_sic, or use access = \"noma\"",
        ));
    }
    if transmit.perfect_sic && transmit.receiver != Receiver::Matched {
        return Err(document.error(
            &["transmit.receiver", "transmit.perfect_sic", "transmit.access"],
            format!(
                "`transmit.receiver` = {} has no effect where no interference is left \
                 (perfect_sic = true, or access = \"orthogonal\"): every receiver is then the \
                 matched one",
                word(transmit.receiver)
            ),
            "set transmit.perfect_sic = false, or remove receiver",
        ));
    }
    Ok(())
}

/// E|p_k s_k|² = |p_k|² ≤ P_0, the paper's eq. (5).
pub(super) fn powers(experiment: &Experiment, document: &Document) -> Check {
    let (transmit, devices) = (&experiment.transmit, experiment.partition.scheme.devices());
    let most = transmit.max_power_w;
    let (which, powers): (_, &[f64]) = match &transmit.power_w {
        Powers::All(power) => ("", std::slice::from_ref(power)),
        Powers::Each(powers) => (" of a device", powers),
    };
    if let Some(power) = powers.iter().find(|&&power| power > most) {
        return Err(document.error(
            &["transmit.power_w", "transmit.max_power_w"],
            format!(
                "`transmit.power_w`{which} is {power}, above `transmit.max_power_w` = {most}: \
                 expected from 0 to {most}"
            ),
            "lower the power, or raise transmit.max_power_w",
        ));
    }
    match &transmit.power_w {
        Powers::Each(powers) if powers.len() != devices as usize => Err(document.error(
            &["transmit.power_w"],
            format!(
                "`transmit.power_w` has {} numbers, but there are {devices} devices: expected one \
                 for each, or a single number",
                powers.len()
            ),
            "give as many powers as devices",
        )),
        _ => Ok(()),
    }
}

/// Amplitudes have a bounded power only if updates are clipped.
pub(super) fn amplitudes(experiment: &Experiment, document: &Document) -> Check {
    let uplink = experiment.transmit.uplink;
    if uplink.is_analog() && experiment.learn.clip == Clip::None {
        return Err(document.error(
            &["transmit.uplink", "learn.clip"],
            format!(
                "`transmit.uplink` = {} sends amplitudes, whose power is bounded only if updates \
                 are clipped, but `learn.clip` = \"none\"",
                word(uplink)
            ),
            "use learn.clip = \"device\" or \"sample\", or transmit.uplink = \"digital\"",
        ));
    }
    Ok(())
}

/// Noisy histograms need a budget that pays for them; exact ones prove nothing.
pub(super) fn histograms(experiment: &Experiment, document: &Document) -> Check {
    let rule = experiment.aggregate.rule;
    let Some(histograms) = rule.histograms() else { return Ok(()) };
    few_histograms(experiment, document)?;
    let (certified, noise) = (experiment.is_certified(), experiment.privacy.is_some());
    let adjacency = experiment.adjacency();
    let key = &*format!("aggregate.{}.histograms", word_of(rule));
    let (paths, message, help) = match histograms {
        Histograms::Public if noise && adjacency == Adjacency::AddRemove => (
            [key, "privacy.adjacency"],
            format!(
                "`{key}` = \"public\" does not go with `privacy.adjacency` = \"add-remove\", under \
                 which the number of records is a secret: exact counts tell it"
            ),
            format!("use {key} = \"noisy\", or adjacency = \"zero-out\""),
        ),
        Histograms::Exact if certified => (
            [key, "privacy.basis"],
            format!(
                "`{key}` = \"exact\" does not go with `privacy.basis` = \"certified\": exact label \
                 histograms make epsilon infinite"
            ),
            format!("use {key} = \"noisy\", or \"public\" if labels are no secret"),
        ),
        Histograms::Noisy(_) if !certified => (
            [key, "privacy.basis"],
            format!(
                "`{key}` = \"noisy\" needs a budget that it is charged to: `privacy.basis` = \
                 \"certified\" with `privacy.epsilon`"
            ),
            format!("use {key} = \"public\" or \"exact\", or set privacy.epsilon"),
        ),
        Histograms::Noisy(_) if experiment.initial_sigma().is_some() => (
            ["privacy.initial_sigma", key],
            format!(
                "`privacy.initial_sigma` sets the budget by the noise of the updates alone, which \
                 leaves nothing for `{key}` = \"noisy\""
            ),
            format!("use privacy.epsilon, or {key} = \"public\""),
        ),
        Histograms::Noisy(_)
            if experiment.learn.sampling == BatchSampling::Poisson
                && experiment.noise() == NoiseKind::Gaussian
                && adjacency == Adjacency::ReplaceOne =>
        {
            (
                [key, "privacy.adjacency"],
                format!(
                    "`privacy.adjacency` = \"replace-one\" with poisson batches can be costed only \
                     as a plan of equal releases, to which `{key}` = \"noisy\" adds another one"
                ),
                format!("use adjacency = \"zero-out\", or {key} = \"public\""),
            )
        }
        Histograms::Public | Histograms::Exact | Histograms::Noisy(_) => return Ok(()),
    };
    Err(document.error(&paths, message, &help))
}

/// As many histograms as a base station keeps.
fn few_histograms(experiment: &Experiment, document: &Document) -> Check {
    let devices = experiment.partition.scheme.devices() as usize;
    let classes = experiment.data.classes.map_or(CLASSES, |classes| classes as usize);
    Histograms::check(devices, classes).map_err(|why| {
        document.error(
            &["aggregate.rule", "partition.scheme"],
            format!("`aggregate.rule` = {} {why}", word(experiment.aggregate.rule)),
            "use aggregate.rule = \"fedavg\" or \"fedadp\", or fewer devices",
        )
    })
}

/// Channel noise counts only where it is on the coordinates, and each device has its own.
pub(super) fn channel_trust(experiment: &Experiment, document: &Document) -> Check {
    let (transmit, trust) = (&experiment.transmit, experiment.channel_trust());
    if trust == 0.0 {
        return Ok(());
    }
    let error = |path: &str, why: &str, help: &str| {
        let paths = ["privacy.channel_trust", path];
        Err(document.error(&paths, format!("`privacy.channel_trust` = {trust} {why}"), help))
    };
    if !transmit.uplink.is_analog() {
        return error(
            "transmit.uplink",
            &format!(
                "does not go with `transmit.uplink` = {}: only coordinates sent as amplitudes \
                 arrive with the receiver's noise",
                word(transmit.uplink)
            ),
            "use transmit.uplink = \"analog\", or remove channel_trust",
        );
    }
    if experiment.is_certified() && transmit.uplink.noise_part() != 0.5 {
        return error(
            "transmit.analog.variance",
            "does not go with `transmit.analog.variance` = \"full\" and `privacy.basis` = \
             \"certified\": of complex noise only half falls on a real coordinate",
            "remove transmit.analog.variance, or use privacy.basis = \"paper\"",
        );
    }
    if experiment.is_certified() && transmit.perfect_sic && transmit.access == Access::Noma {
        return error(
            "transmit.perfect_sic",
            "does not go with `transmit.perfect_sic` = true, `transmit.access` = \"noma\" and \
             `privacy.basis` = \"certified\": devices decoded from one signal share one receiver \
             noise, and anyone who knows the others' values removes most of it",
            "use transmit.access = \"orthogonal\" (noise of its own for each device), \
             transmit.perfect_sic = false, or privacy.basis = \"paper\"",
        );
    }
    if experiment.learn.sampling == BatchSampling::Poisson
        && experiment.adjacency() == Adjacency::ReplaceOne
    {
        return error(
            "privacy.adjacency",
            "does not go with `privacy.adjacency` = \"replace-one\" and poisson batches, which \
             can be costed only as a plan of equal releases",
            "use adjacency = \"zero-out\", or remove channel_trust",
        );
    }
    if experiment.noise() == NoiseKind::DiscreteGaussian {
        return error(
            "privacy.noise",
            "does not go with `privacy.noise` = \"discrete-gaussian\": no theorem at hand adds \
             the two",
            "use privacy.noise = \"gaussian\", or remove channel_trust",
        );
    }
    Ok(())
}
