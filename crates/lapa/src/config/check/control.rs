//! `[control]` against the rest.

use lapa_privacy::Adjacency;

use super::super::control::{EvaluationChoice, MOST_FITTED, NoiseControl, Pilot, PilotTooLarge};
use super::super::document::Document;
use super::super::experiment::Experiment;
use super::{Check, word};
use crate::device::BatchSampling;
use crate::optimize::PowerChoice;
use crate::radio::settings::Powers;

/// Channel noise can stand in for artificial noise only where it counts, device by device.
pub(super) fn noise(experiment: &Experiment, document: &Document) -> Check {
    let control = &experiment.control;
    if control.noise != NoiseControl::Always && experiment.channel_trust() == 0.0 {
        return Err(document.error(
            &["control.noise", "privacy.channel_trust"],
            format!(
                "`control.noise` = {} needs `privacy.channel_trust` above 0: else no noise of the \
                 channel may be counted",
                word(control.noise)
            ),
            "set privacy.channel_trust (1 counts all of it), or control.noise = \"always\"",
        ));
    }
    if let NoiseControl::Switch(switch) = control.noise
        && control.noise.goes_by_sum()
        && experiment.is_certified()
    {
        return Err(document.error(
            &["control.switch.rule", "privacy.basis"],
            format!(
                "`control.switch.rule` = {} does not go with `privacy.basis` = \"certified\": a \
                 sum over devices protects none of them",
                word(switch.rule)
            ),
            "use control.switch.rule = \"per-device\", or privacy.basis = \"paper\"",
        ));
    }
    Ok(())
}

/// P_min ≤ Σ|p_k|² ≤ P_max must leave a choice, and one key sets the powers.
pub(super) fn powers(experiment: &Experiment, document: &Document) -> Check {
    let (control, transmit) = (&experiment.control, &experiment.transmit);
    let devices = experiment.partition.scheme.devices();
    let (least, most) = (control.least_power_w, control.total_power_w);
    if least > most {
        return Err(document.error(
            &["control.least_power_w", "control.total_power_w"],
            format!(
                "`control.least_power_w` = {least} is above `control.total_power_w` = {most}: \
                 expected from 0 to {most}"
            ),
            "lower least_power_w, or raise total_power_w",
        ));
    }
    let reach = f64::from(devices) * transmit.max_power_w;
    if least > reach {
        return Err(document.error(
            &["control.least_power_w", "control.total_power_w", "transmit.max_power_w"],
            format!(
                "`control.least_power_w` = {least} is more than {devices} devices with at most \
                 `transmit.max_power_w` = {} can send with, which is {reach}",
                transmit.max_power_w
            ),
            "lower control.total_power_w and least_power_w, or raise transmit.max_power_w",
        ));
    }
    let average = Powers::All(control.average_power_w(devices, transmit.max_power_w));
    if control.power != PowerChoice::File && transmit.power_w != average {
        return Err(document.error(
            &["transmit.power_w", "control.power"],
            format!(
                "`transmit.power_w` and `control.power` = {} both set the powers",
                word(control.power)
            ),
            "remove transmit.power_w, or set control.power = \"file\"",
        ));
    }
    Ok(())
}

/// A pilot on private data needs a budget that it can be charged to.
pub(super) fn pilot(experiment: &Experiment, document: &Document) -> Check {
    let control = &experiment.control;
    if control.pilot == Pilot::Synthetic {
        return Ok(());
    }
    if control.evaluation == EvaluationChoice::Live {
        return Err(document.error(
            &["control.evaluation", "control.pilot"],
            "`control.evaluation` = \"live\" does not go with `control.pilot` = \"private\": every \
             evaluation would release updates of the devices' records",
            "use control.pilot = \"synthetic\", or evaluation = \"trace\"",
        ));
    }
    // Basis paper enforces no budget.
    if !experiment.is_certified() {
        return Ok(());
    }
    if control.pilots > 1 {
        return Err(document.error(
            &["control.pilots", "control.pilot"],
            format!(
                "`control.pilots` = {} does not go with `control.pilot` = \"private\" and \
                 `privacy.basis` = \"certified\": every pilot would spend the devices' budgets",
                control.pilots
            ),
            "use control.pilots = 1, or control.pilot = \"synthetic\"",
        ));
    }
    if experiment.learn.sampling == BatchSampling::Poisson
        && experiment.adjacency() == Adjacency::ReplaceOne
    {
        return Err(document.error(
            &["control.pilot", "privacy.adjacency"],
            "`control.pilot` = \"private\" does not go with `privacy.adjacency` = \"replace-one\" \
             and poisson batches, which can be costed only as a plan of equal releases",
            "use adjacency = \"zero-out\", or control.pilot = \"synthetic\"",
        ));
    }
    if experiment.initial_sigma().is_some() {
        return Err(document.error(
            &["privacy.initial_sigma", "control.pilot"],
            "`privacy.initial_sigma` sets the budget by the noise of the run alone, which leaves \
             nothing for `control.pilot` = \"private\"",
            "use privacy.epsilon, or control.pilot = \"synthetic\"",
        ));
    }
    Ok(())
}

/// Powers are fitted to the noise that a pilot asked for, over links on which it matters.
pub(super) fn fitted_powers(experiment: &Experiment, document: &Document) -> Check {
    let (control, transmit) = (&experiment.control, &experiment.transmit);
    if !control.needs_pilot() {
        return Ok(());
    }
    if !transmit.uplink.is_analog() {
        return Err(document.error(
            &["control.power", "transmit.uplink"],
            format!(
                "`control.power` = {} fits powers to the receiver's noise on amplitudes, which \
                 `transmit.uplink` = {} does not send",
                word(control.power),
                word(transmit.uplink)
            ),
            "use transmit.uplink = \"analog\", or control.power = \"equal\"",
        ));
    }
    if experiment.privacy.is_none() {
        return Err(document.error(
            &["control.power", "privacy"],
            format!(
                "`control.power` = {} fits powers to the noise that privacy asks for, but there is \
                 none",
                word(control.power)
            ),
            "set privacy.epsilon, or use control.power = \"equal\"",
        ));
    }
    let (rounds, devices) = (experiment.run.rounds, experiment.partition.scheme.devices());
    if devices > MOST_FITTED {
        return Err(document.error(
            &["control.power", "partition.scheme"],
            format!(
                "`control.power` = {} fits a power to each of {devices} devices: expected at most \
                 {MOST_FITTED}, whose powers take 7 MB of the 8 MiB that config.resolved.toml may have",
                word(control.power)
            ),
            "use fewer devices, or control.power = \"equal\" or \"full\"",
        ));
    }
    let optimizer = control.optimizers.get(control.power);
    let fits = optimizer.map_or(Ok(()), |optimizer| optimizer.check(devices as usize));
    let fits = fits.map_err(|error| format!("{devices} devices: {error}"));
    let pilot = PilotTooLarge::check(rounds, devices).map_err(|error| error.to_string());
    match pilot.and(fits) {
        Ok(()) => Ok(()),
        Err(why) => Err(document.error(
            &["control.power", "partition.scheme", "run.rounds"],
            format!("`control.power` = {} needs a pilot: {why}", word(control.power)),
            "or use control.power = \"equal\" or \"full\", which need no pilot",
        )),
    }
}
