//! Gives the keys of `[radio]`, `[transmit]` and `[aggregate]` their values, and checks them
//! against each other and against `[privacy]`.

use lapa_privacy::allocate::Basis;
use lapa_privacy::{Adjacency, NoiseKind};

use super::defaults;
use super::document::Document;
use super::error::ConfigError;
use super::experiment::{AllocatorName, BatchSampling, Clip, Learn, Privacy};
use super::radio::{
    Access, Aggregate, Histograms, Powers, Radio, Rule, SymbolKind, Transmit, UplinkName,
};
use super::raw::{RawAggregate, RawPowers, RawRadio, RawTransmit};
use super::resolve::word;
use crate::station::aggregate::{NOISE_WEIGHT, default_floor};

pub(super) fn radio(
    raw: RawRadio,
    devices: u32,
    document: &Document,
) -> Result<Radio, ConfigError> {
    if raw.positions.is_some() && raw.regions.is_some() {
        return Err(document.error(
            &["radio.positions", "radio.regions"],
            "`radio.positions` and `radio.regions` both say where the devices are".into(),
            "remove one of them",
        ));
    }
    if let Some(positions) = raw.positions.as_ref().filter(|p| p.len() != devices as usize) {
        return Err(document.error(
            &["radio.positions"],
            format!(
                "`radio.positions` has {} entries, but there are {devices} devices: expected one \
                 [x, y, z] for each",
                positions.len()
            ),
            "give as many positions as devices, or use radio.regions",
        ));
    }
    let regions = match raw.positions {
        Some(_) => None,
        None => Some(raw.regions.unwrap_or(defaults::REGIONS.into())),
    };
    for region in regions.iter().flatten() {
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
    if regions.as_ref().is_some_and(|regions| regions.iter().all(|region| region.devices == 0)) {
        return Err(document.error(
            &["radio.regions"],
            "`radio.regions` has no region with `devices` above 0".into(),
            "give each region its share of the devices",
        ));
    }
    Ok(Radio {
        base_station: raw.base_station.unwrap_or(defaults::BASE_STATION),
        positions: raw.positions,
        antennas: raw.antennas.unwrap_or(defaults::ANTENNAS),
        carrier_hz: raw.carrier_hz.unwrap_or(defaults::CARRIER_HZ),
        path_loss_exponent: raw.path_loss_exponent.unwrap_or(defaults::PATH_LOSS_EXPONENT),
        base_gain_dbi: raw.base_gain_dbi.unwrap_or(defaults::BASE_GAIN_DBI),
        device_gain_dbi: raw.device_gain_dbi.unwrap_or(defaults::DEVICE_GAIN_DBI),
        noise_power_w: raw.noise_power_w.unwrap_or(defaults::NOISE_POWER_W),
        fading: raw.fading.unwrap_or(defaults::FADING),
        redraw_every: raw.redraw_every.unwrap_or(defaults::REDRAW_EVERY),
        regions,
    })
}

pub(super) fn transmit(
    raw: RawTransmit,
    devices: u32,
    learn: &Learn,
    document: &Document,
) -> Result<Transmit, ConfigError> {
    let uplink = raw.uplink.unwrap_or_default();
    let symbols = (uplink == UplinkName::Signal).then(|| raw.symbols.unwrap_or_default());
    let digital = uplink == UplinkName::Digital || symbols == Some(SymbolKind::Digital);
    for (key, given, used, home) in [
        ("symbols", raw.symbols.is_some(), symbols.is_some(), "uplink = \"signal\""),
        ("bits", raw.bits.is_some(), digital, "digital symbols"),
        ("range", raw.range.is_some(), digital, "digital symbols"),
    ] {
        if given && !used {
            let path = format!("transmit.{key}");
            return Err(document.error(
                &[&path, "transmit.uplink"],
                format!("`{path}` belongs to {home}, but `transmit.uplink` = {}", word(uplink)),
                &format!("remove {key}, or set transmit.uplink"),
            ));
        }
    }
    let range = defaults::range(learn.clip, learn.clip_norm, learn.update);
    let transmit = Transmit {
        uplink,
        power_w: match raw.power_w {
            None => Powers::All(defaults::POWER_W),
            Some(RawPowers::All(power)) => Powers::All(power),
            Some(RawPowers::Each(powers)) => Powers::Each(powers),
        },
        max_power_w: raw.max_power_w.unwrap_or(defaults::MAX_POWER_W),
        access: raw.access.unwrap_or_default(),
        receiver: raw.receiver.unwrap_or(defaults::RECEIVER),
        perfect_sic: raw.perfect_sic.unwrap_or(defaults::PERFECT_SIC),
        modulation: raw.modulation.unwrap_or_default(),
        symbol_rate_hz: raw.symbol_rate_hz.unwrap_or(defaults::SYMBOL_RATE_HZ),
        symbols,
        bits: digital.then(|| raw.bits.unwrap_or(defaults::BITS)),
        range: digital.then(|| raw.range.unwrap_or(range)),
    };
    check_powers(&transmit, devices, document)?;
    refuse_without_effect(&transmit, raw.receiver.is_some(), document)?;
    if transmit.is_analog() && learn.clip == Clip::None {
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
    Ok(transmit)
}

/// Where nothing interferes, there is nothing to separate.
fn refuse_without_effect(
    transmit: &Transmit,
    receiver_given: bool,
    document: &Document,
) -> Result<(), ConfigError> {
    let orthogonal = transmit.access == Access::Orthogonal;
    if orthogonal && !transmit.perfect_sic {
        return Err(document.error(
            &["transmit.perfect_sic", "transmit.access"],
            "`transmit.perfect_sic` = false has no effect with `transmit.access` = \"orthogonal\", \
             where nothing interferes"
                .into(),
            "remove perfect_sic, or use access = \"noma\"",
        ));
    }
    if receiver_given && transmit.perfect_sic && transmit.receiver != defaults::RECEIVER {
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
fn check_powers(transmit: &Transmit, devices: u32, document: &Document) -> Result<(), ConfigError> {
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

pub(super) fn aggregate(
    raw: RawAggregate,
    privacy: &Privacy,
    document: &Document,
) -> Result<Aggregate, ConfigError> {
    let rule = raw.rule.unwrap_or_default();
    let (wasserstein, noise_aware) = (rule == Rule::Wasserstein, rule == Rule::NoiseAware);
    let either = "\"wasserstein\" or \"noise-aware\"";
    for (key, given, used, home) in [
        ("metric", raw.metric.is_some(), wasserstein, "\"wasserstein\""),
        ("floor", raw.floor.is_some(), wasserstein, "\"wasserstein\""),
        ("noise_weight", raw.noise_weight.is_some(), noise_aware, "\"noise-aware\""),
        ("histograms", raw.histograms.is_some(), rule.reads_labels(), either),
        ("histogram_share", raw.histogram_share.is_some(), rule.reads_labels(), either),
    ] {
        if given && !used {
            let path = format!("aggregate.{key}");
            return Err(document.error(
                &[&path, "aggregate.rule"],
                format!(
                    "`{path}` belongs to `aggregate.rule` = {home}, but the rule is {}",
                    word(rule)
                ),
                &format!("remove {key}, or set aggregate.rule to {home}"),
            ));
        }
    }
    if raw.ser_threshold.is_some() && raw.sinr_threshold_db.is_some() {
        return Err(document.error(
            &["aggregate.sinr_threshold_db", "aggregate.ser_threshold"],
            "`aggregate.ser_threshold` and `aggregate.sinr_threshold_db` both say which devices \
             send"
                .into(),
            "remove one of them; `lapa link` shows what each threshold selects",
        ));
    }
    let metric = raw.metric.unwrap_or_default();
    let default = defaults::histograms(privacy.basis, privacy.allocator);
    let histograms = rule.reads_labels().then(|| raw.histograms.unwrap_or(default));
    let noisy = histograms == Some(Histograms::Noisy);
    if raw.histogram_share.is_some() && !noisy {
        return Err(document.error(
            &["aggregate.histogram_share", "aggregate.histograms"],
            "`aggregate.histogram_share` belongs to `aggregate.histograms` = \"noisy\"".into(),
            "remove histogram_share",
        ));
    }
    if let Some(histograms) = histograms {
        check_histograms(histograms, privacy, document)?;
    }
    Ok(Aggregate {
        rule,
        metric: wasserstein.then_some(metric),
        floor: wasserstein.then(|| raw.floor.unwrap_or(default_floor(metric))),
        noise_weight: noise_aware.then(|| raw.noise_weight.unwrap_or(NOISE_WEIGHT)),
        histograms,
        histogram_share: noisy.then(|| raw.histogram_share.unwrap_or(defaults::HISTOGRAM_SHARE)),
        ser_threshold: raw.ser_threshold,
        sinr_threshold_db: raw.sinr_threshold_db,
        none_selected: raw.none_selected.unwrap_or_default(),
    })
}

/// A flag that sets one threshold takes the file's other one with it, and one for the ideal uplink
/// takes both.
pub(super) fn prefer_flags(
    raw: &mut RawAggregate,
    uplink: Option<UplinkName>,
    document: &Document,
) {
    let ideal = uplink == Some(UplinkName::Ideal) && document.is_flagged("transmit.uplink");
    let ser = document.is_flagged("aggregate.ser_threshold");
    let sinr = document.is_flagged("aggregate.sinr_threshold_db");
    if !ser && (sinr || ideal) {
        raw.ser_threshold = None;
    }
    if !sinr && (ser || ideal) {
        raw.sinr_threshold_db = None;
    }
}

/// Noisy histograms need a budget that pays for them; exact ones prove nothing.
fn check_histograms(
    histograms: Histograms,
    privacy: &Privacy,
    document: &Document,
) -> Result<(), ConfigError> {
    let noise = privacy.allocator != AllocatorName::None;
    let certified = privacy.basis == Basis::Certified && noise;
    let error = |paths: &[&str], message: &str, help: &str| {
        Err(document.error(paths, message.into(), help))
    };
    match histograms {
        Histograms::Public if noise && privacy.adjacency == Adjacency::AddRemove => error(
            &["aggregate.histograms", "privacy.adjacency"],
            "`aggregate.histograms` = \"public\" does not go with `privacy.adjacency` = \
             \"add-remove\", under which the number of records is a secret: exact counts tell it",
            "use aggregate.histograms = \"noisy\", or adjacency = \"zero-out\"",
        ),
        Histograms::Public => Ok(()),
        Histograms::Exact if certified => error(
            &["aggregate.histograms", "privacy.basis"],
            "`aggregate.histograms` = \"exact\" does not go with `privacy.basis` = \"certified\": \
             exact label histograms make epsilon infinite",
            "use aggregate.histograms = \"noisy\", or \"public\" if labels are no secret",
        ),
        Histograms::Exact => Ok(()),
        Histograms::Noisy if !certified => error(
            &["aggregate.histograms", "privacy.basis", "privacy.epsilon"],
            "`aggregate.histograms` = \"noisy\" needs a budget that it is charged to: \
             `privacy.basis` = \"certified\" with `privacy.epsilon`",
            "use aggregate.histograms = \"public\" or \"exact\", or set privacy.epsilon",
        ),
        Histograms::Noisy if privacy.initial_sigma.is_some() => error(
            &["privacy.initial_sigma", "aggregate.histograms"],
            "`privacy.initial_sigma` sets the budget by the noise of the updates alone, which \
             leaves nothing for `aggregate.histograms` = \"noisy\"",
            "use privacy.epsilon, or aggregate.histograms = \"public\"",
        ),
        Histograms::Noisy
            if privacy.sampling == BatchSampling::Poisson
                && privacy.noise == NoiseKind::Gaussian
                && privacy.adjacency == Adjacency::ReplaceOne =>
        {
            error(
                &["aggregate.histograms", "privacy.adjacency"],
                "`privacy.adjacency` = \"replace-one\" with poisson batches can be costed only as \
                 a plan of equal releases, to which `aggregate.histograms` = \"noisy\" adds \
                 another one",
                "use adjacency = \"zero-out\", or aggregate.histograms = \"public\"",
            )
        }
        Histograms::Noisy => Ok(()),
    }
}

/// Channel noise counts only where it is on the coordinates, and each device has its own.
pub(super) fn check_channel_trust(
    privacy: &Privacy,
    transmit: &Transmit,
    document: &Document,
) -> Result<(), ConfigError> {
    let trust = privacy.channel_trust;
    if trust == 0.0 {
        return Ok(());
    }
    let error = |path: &str, why: String, help: &str| {
        let paths = ["privacy.channel_trust", path];
        Err(document.error(&paths, format!("`privacy.channel_trust` = {trust} {why}"), help))
    };
    if !transmit.is_analog() {
        return error(
            "transmit.uplink",
            format!(
                "does not go with `transmit.uplink` = {}: only coordinates sent as amplitudes \
                 arrive with the receiver's noise",
                word(transmit.uplink)
            ),
            "use transmit.uplink = \"analog\", or remove channel_trust",
        );
    }
    if transmit.perfect_sic && transmit.access == Access::Noma {
        return error(
            "transmit.perfect_sic",
            "does not go with `transmit.perfect_sic` = true and `transmit.access` = \"noma\": \
             devices decoded from one signal share one receiver noise, and whoever knows the \
             others' values takes most of it away"
                .into(),
            "use transmit.access = \"orthogonal\" (noise of its own for each device), or \
             transmit.perfect_sic = false",
        );
    }
    if privacy.allocator == AllocatorName::None {
        return error(
            "privacy.allocator",
            "counts on top of artificial noise, but there is none (allocator = \"none\")".into(),
            "set privacy.epsilon, or remove channel_trust",
        );
    }
    if privacy.sampling == BatchSampling::Poisson && privacy.adjacency == Adjacency::ReplaceOne {
        return error(
            "privacy.adjacency",
            "does not go with `privacy.adjacency` = \"replace-one\" and poisson batches, which \
             can be costed only as a plan of equal releases"
                .into(),
            "use adjacency = \"zero-out\", or remove channel_trust",
        );
    }
    if privacy.noise == NoiseKind::DiscreteGaussian {
        return error(
            "privacy.noise",
            "does not go with `privacy.noise` = \"discrete-gaussian\": no theorem at hand adds \
             the two"
                .into(),
            "use privacy.noise = \"gaussian\", or remove channel_trust",
        );
    }
    Ok(())
}
