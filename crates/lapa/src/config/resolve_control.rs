//! Gives the keys of `[control]` their values, and checks them against the rest.

use lapa_privacy::Adjacency;
use lapa_privacy::allocate::Basis;

use super::control::{Control, EvaluationChoice, NoiseControl, Pilot, PowerChoice, SwitchRule};
use super::defaults;
use super::document::Document;
use super::error::ConfigError;
use super::experiment::{AllocatorName, BatchSampling, Privacy};
use super::radio::Transmit;
use super::raw::{RawControl, RawPowers, RawTransmit};
use super::resolve::word;

/// A flag for another way of noise control takes the file's switch_rule with it, one for another
/// pilot its share; one for powers that are not the file's takes those.
pub(super) fn prefer_flags(raw: &mut RawControl, transmit: &mut RawTransmit, document: &Document) {
    let flagged = |path: &str| document.is_flagged(path);
    if flagged("control.noise")
        && raw.noise != Some(NoiseControl::Switch)
        && !flagged("control.switch_rule")
    {
        raw.switch_rule = None;
    }
    if flagged("control.pilot")
        && raw.pilot != Some(Pilot::Private)
        && !flagged("control.pilot_share")
    {
        raw.pilot_share = None;
    }
    let chosen = raw.power.is_some_and(|power| power != PowerChoice::File);
    if flagged("control.power") && chosen && !flagged("transmit.power_w") {
        transmit.power_w = None;
    }
    if flagged("transmit.power_w") && !flagged("control.power") {
        raw.power = None;
    }
}

pub(super) fn control(
    raw: RawControl,
    devices: u32,
    privacy: &Privacy,
    transmit: &Transmit,
    powers: Option<&RawPowers>,
    document: &Document,
) -> Result<Control, ConfigError> {
    let noise = raw.noise.unwrap_or_default();
    let switch = noise == NoiseControl::Switch;
    if raw.switch_rule.is_some() && !switch {
        return Err(document.error(
            &["control.switch_rule", "control.noise"],
            format!(
                "`control.switch_rule` belongs to `control.noise` = \"switch\", but the noise is {}",
                word(noise)
            ),
            "remove switch_rule, or set control.noise to \"switch\"",
        ));
    }
    let power = raw.power.unwrap_or_default();
    let pilot = raw.pilot.unwrap_or_default();
    let each = defaults::POWER_W.min(transmit.max_power_w);
    let total_power_w = raw.total_power_w.unwrap_or(f64::from(devices) * each);
    let control = Control {
        noise,
        switch_rule: switch.then(|| raw.switch_rule.unwrap_or(defaults::SWITCH_RULE)),
        power,
        total_power_w,
        least_power_w: raw.least_power_w.unwrap_or(defaults::LEAST_POWER * total_power_w),
        pilot,
        pilot_share: match pilot {
            Pilot::Private => Some(raw.pilot_share.unwrap_or(defaults::PILOT_SHARE)),
            Pilot::Synthetic => None,
        },
        evaluation: raw.evaluation.unwrap_or_default(),
        bound: raw.bound.unwrap_or_default(),
        smoothness: raw.smoothness.unwrap_or(defaults::SMOOTHNESS),
        convexity: raw.convexity.unwrap_or(defaults::CONVEXITY),
        dissimilarity: raw.dissimilarity.unwrap_or(defaults::DISSIMILARITY),
        evaluations: raw.evaluations.unwrap_or(defaults::EVALUATIONS),
        episodes: raw.episodes.unwrap_or(defaults::EPISODES),
        steps: raw.steps.unwrap_or(defaults::STEPS),
        hidden: raw.hidden.unwrap_or(defaults::HIDDEN),
        batch: raw.batch.unwrap_or(defaults::BATCH),
        discount: raw.discount.unwrap_or(defaults::DISCOUNT),
        soft_update: raw.soft_update.unwrap_or(defaults::SOFT_UPDATE),
        actor_rate: raw.actor_rate.unwrap_or(defaults::ACTOR_RATE),
        critic_rate: raw.critic_rate.unwrap_or(defaults::CRITIC_RATE),
    };
    check_noise(&control, privacy, document)?;
    check_powers(&control, transmit, devices, powers, document)?;
    check_pilot(&control, raw.pilot_share.is_some(), privacy, transmit, document)?;
    Ok(control)
}

/// Channel noise can stand in for artificial noise only where it counts, device by device.
fn check_noise(
    control: &Control,
    privacy: &Privacy,
    document: &Document,
) -> Result<(), ConfigError> {
    if control.noise != NoiseControl::Always && privacy.channel_trust == 0.0 {
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
    if control.switch_rule == Some(SwitchRule::Sum) && privacy.basis == Basis::Certified {
        return Err(document.error(
            &["control.switch_rule", "privacy.basis"],
            "`control.switch_rule` = \"sum\" does not go with `privacy.basis` = \"certified\": a \
             sum over devices protects none of them"
                .into(),
            "use control.switch_rule = \"per-device\", or privacy.basis = \"paper\"",
        ));
    }
    Ok(())
}

/// P_min ≤ Σ|p_k|² ≤ P_max must leave a choice, and one key sets the powers.
fn check_powers(
    control: &Control,
    transmit: &Transmit,
    devices: u32,
    given: Option<&RawPowers>,
    document: &Document,
) -> Result<(), ConfigError> {
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
    let average = control.average_power_w(devices, transmit.max_power_w);
    let other = |powers: &RawPowers| !matches!(powers, RawPowers::All(power) if *power == average);
    if control.power != PowerChoice::File && given.is_some_and(other) {
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

/// Powers are fitted to the noise that a pilot asked for, over links on which it matters.
fn check_pilot(
    control: &Control,
    share_given: bool,
    privacy: &Privacy,
    transmit: &Transmit,
    document: &Document,
) -> Result<(), ConfigError> {
    let private = control.pilot == Pilot::Private;
    if share_given && !private {
        return Err(document.error(
            &["control.pilot_share", "control.pilot"],
            "`control.pilot_share` belongs to `control.pilot` = \"private\"".into(),
            "remove pilot_share: a pilot on synthetic digits spends no budget",
        ));
    }
    if private && control.evaluation == EvaluationChoice::Live {
        return Err(document.error(
            &["control.evaluation", "control.pilot"],
            "`control.evaluation` = \"live\" does not go with `control.pilot` = \"private\": every \
             evaluation would spend the devices' budgets"
                .into(),
            "use control.pilot = \"synthetic\", or evaluation = \"trace\"",
        ));
    }
    if private && privacy.basis == Basis::Paper {
        return Err(document.error(
            &["control.pilot", "privacy.basis"],
            "`control.pilot` = \"private\" needs `privacy.basis` = \"certified\": on basis paper \
             no device has a budget that the pilot could be charged to"
                .into(),
            "use control.pilot = \"synthetic\", or privacy.basis = \"certified\"",
        ));
    }
    if private
        && privacy.sampling == BatchSampling::Poisson
        && privacy.adjacency == Adjacency::ReplaceOne
    {
        return Err(document.error(
            &["control.pilot", "privacy.adjacency"],
            "`control.pilot` = \"private\" does not go with `privacy.adjacency` = \"replace-one\" \
             and poisson batches, which can be costed only as a plan of equal releases"
                .into(),
            "use adjacency = \"zero-out\", or control.pilot = \"synthetic\"",
        ));
    }
    if private && privacy.initial_sigma.is_some() {
        return Err(document.error(
            &["privacy.initial_sigma", "control.pilot"],
            "`privacy.initial_sigma` sets the budget by the noise of the run alone, which leaves \
             nothing for `control.pilot` = \"private\""
                .into(),
            "use privacy.epsilon, or control.pilot = \"synthetic\"",
        ));
    }
    let optimized = control.power.needs_pilot();
    if optimized && !transmit.is_analog() {
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
    if optimized && privacy.allocator == AllocatorName::None {
        return Err(document.error(
            &["control.power", "privacy.allocator"],
            format!(
                "`control.power` = {} fits powers to the noise that privacy asks for, but there is \
                 none (allocator = \"none\")",
                word(control.power)
            ),
            "set privacy.epsilon, or use control.power = \"equal\"",
        ));
    }
    Ok(())
}
