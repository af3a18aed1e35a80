//! Gives every key its value and checks the keys against each other.

use super::control::PowerChoice;
use super::defaults;
use super::document::Document;
use super::error::ConfigError;
use super::experiment::{
    Clip, Data, Experiment, Learn, ModelName, ModelSpec, Norm, Observe, PartitionSpec, Profile,
    Run, Scheme, Start,
};
use super::radio::Powers;
use super::raw::{
    MOST_DEVICES, RawData, RawExperiment, RawLearn, RawModel, RawPartition, RawPowers, RawPrivacy,
    RawRange, RawRun,
};
use super::verify::nearest;
use super::{privacy, resolve_control, resolve_radio};
use crate::data::{CLASSES, DataName};

pub(super) fn resolve(
    mut raw: RawExperiment,
    document: &Document,
) -> Result<Experiment, ConfigError> {
    privacy::prefer_flags(&mut raw.privacy, document);
    resolve_radio::prefer_flags(&mut raw.aggregate, raw.transmit.uplink, document);
    resolve_control::prefer_flags(&mut raw.control, &mut raw.transmit, document);
    let profile = raw.profile.unwrap_or_default();
    let data = data(raw.data, document)?;
    let model = model(&raw.model, profile, &data.name, document)?;
    let learn = learn(&raw.learn, profile, &data.name, &raw.privacy, document)?;
    if model.norm == Norm::Batch && learn.clip == Clip::Sample {
        return Err(document.error(
            &["model.norm", "learn.clip", "profile"],
            "`model.norm` = \"batch\" does not go with `learn.clip` = \"sample\": batch norm makes \
             one sample's gradient depend on the other samples of the batch"
                .into(),
            "use group norm (model.norm = \"group\"), or clip the device's upload \
             (learn.clip = \"device\")",
        ));
    }
    let privacy = privacy::resolve(raw.privacy, profile, &learn, document)?;
    let partition = partition(&raw.partition, document)?;
    privacy::check_sizes(&privacy, &partition, document)?;
    let radio = resolve_radio::radio(raw.radio, partition.devices, document)?;
    let powers = raw.transmit.power_w.clone();
    if powers.is_none() && raw.control.power.is_some_and(|power| power != PowerChoice::File) {
        // Set below: the default of power_w is not to be checked in its place.
        raw.transmit.power_w = Some(RawPowers::All(0.0));
    }
    let mut transmit = resolve_radio::transmit(raw.transmit, partition.devices, &learn, document)?;
    resolve_radio::check_channel_trust(&privacy, &transmit, document)?;
    let aggregate = resolve_radio::aggregate(raw.aggregate, &privacy, document)?;
    let devices = partition.devices;
    let control = resolve_control::control(
        raw.control,
        devices,
        &privacy,
        &transmit,
        powers.as_ref(),
        document,
    )?;
    if control.power != PowerChoice::File {
        transmit.power_w = Powers::All(control.average_power_w(devices, transmit.max_power_w));
    }
    Ok(Experiment {
        profile,
        run: run(&raw.run),
        data,
        partition,
        model,
        learn,
        privacy,
        radio,
        transmit,
        aggregate,
        control,
        observe: Observe { devices: raw.observe.devices.unwrap_or_default() },
    })
}

fn run(raw: &RawRun) -> Run {
    Run {
        rounds: raw.rounds.unwrap_or(defaults::ROUNDS),
        seed: raw.seed.unwrap_or(defaults::SEED),
        threads: raw.threads.unwrap_or(defaults::THREADS) as usize,
        participation: raw.participation.unwrap_or(defaults::PARTICIPATION),
        evaluate_every: raw.evaluate_every.unwrap_or(defaults::EVALUATE_EVERY),
        checkpoint_every: raw.checkpoint_every.unwrap_or(defaults::CHECKPOINT_EVERY),
    }
}

fn data(raw: RawData, document: &Document) -> Result<Data, ConfigError> {
    let name = match raw.name {
        None => defaults::DATA,
        Some(name) => {
            let guess = nearest(&name, ["mnist", "fashion-mnist", "synthetic"]);
            let help = guess.map_or("a folder of IDX files is written idx:PATH".into(), |guess| {
                format!("did you mean \"{guess}\"?")
            });
            DataName::try_from(name)
                .map_err(|e| document.error(&["data.name"], format!("`data.name`: {e}"), &help))?
        }
    };
    if let (Some(classes), false) = (raw.classes, matches!(name, DataName::Idx(_))) {
        return Err(document.error(
            &["data.classes", "data.name"],
            format!(
                "`data.classes` = {classes} does not go with `data.name` = {}, which has {CLASSES}",
                word(name)
            ),
            "remove data.classes, or use data.name = \"idx:PATH\"",
        ));
    }
    Ok(Data { name, classes: raw.classes })
}

fn model(
    raw: &RawModel,
    profile: Profile,
    data: &DataName,
    document: &Document,
) -> Result<ModelSpec, ConfigError> {
    let name = raw.name.unwrap_or_default();
    let norm = match name {
        ModelName::Cnn => raw.norm.unwrap_or(defaults::norm(profile)),
        ModelName::Mlp | ModelName::Logistic => raw.norm.unwrap_or(Norm::None),
    };
    if name != ModelName::Cnn && norm != Norm::None {
        return Err(document.error(
            &["model.norm", "model.name"],
            format!(
                "`model.norm` = {} does not go with `model.name` = {}: that model has no \
                 normalization layer, so only \"none\" is allowed",
                word(norm),
                word(name)
            ),
            "remove model.norm, or use model.name = \"cnn\"",
        ));
    }
    let start = raw.start.unwrap_or_default();
    if start == Start::Digits && *data == DataName::Synthetic {
        return Err(document.error(
            &["model.start", "data.name"],
            "`model.start` = \"digits\" does not go with `data.name` = \"synthetic\": these are \
             the digits that the devices hold, so training on them first would not be public"
                .into(),
            "use model.start = \"random\", or other data",
        ));
    }
    Ok(ModelSpec { name, norm, start })
}

fn learn(
    raw: &RawLearn,
    profile: Profile,
    data: &DataName,
    raw_privacy: &RawPrivacy,
    document: &Document,
) -> Result<Learn, ConfigError> {
    let update = raw.update.unwrap_or_default();
    let clip = raw.clip.unwrap_or(defaults::clip(profile));
    let batch_fraction =
        raw.batch_fraction.unwrap_or(defaults::batch_fraction(raw_privacy.sampling));
    let noisy = privacy::is_noisy(raw_privacy);
    let clip_norm = match (clip, raw.clip_norm) {
        (Clip::None, None) => None,
        (Clip::None, Some(norm)) => {
            return Err(document.error(
                &["learn.clip_norm", "learn.clip"],
                format!("`learn.clip_norm` = {norm} does not go with `learn.clip` = \"none\""),
                "remove clip_norm, or set clip to \"device\" or \"sample\"",
            ));
        }
        (_, norm) => Some(norm.unwrap_or(defaults::clip_norm(clip, update, batch_fraction))),
    };
    Ok(Learn {
        update,
        batch_fraction,
        learning_rate: raw.learning_rate.unwrap_or(defaults::learning_rate(data, clip, update)),
        momentum: raw.momentum.unwrap_or(defaults::momentum(update)),
        averaging: raw.averaging.unwrap_or(defaults::averaging(clip, noisy)),
        clip,
        clip_norm,
    })
}

fn partition(raw: &RawPartition, document: &Document) -> Result<PartitionSpec, ConfigError> {
    let scheme = raw.scheme.unwrap_or_default();
    refuse_keys_of_other_schemes(raw, scheme, document)?;
    let labels = range("partition.labels", raw.labels, document)?;
    let iid_samples = range("partition.iid_samples", raw.iid_samples, document)?;
    let non_iid_samples = range("partition.non_iid_samples", raw.non_iid_samples, document)?;

    let mut spec = PartitionSpec {
        scheme,
        devices: raw.devices.unwrap_or(defaults::DEVICES),
        iid: None,
        non_iid: None,
        labels: None,
        iid_samples: None,
        non_iid_samples: None,
        concentration: None,
        shards: None,
    };
    match scheme {
        Scheme::Mix => {
            let [devices, iid, non_iid] = mix_devices(raw, document)?;
            spec.devices = devices;
            spec.iid = Some(iid);
            spec.non_iid = Some(non_iid);
            spec.labels = Some(labels.unwrap_or(defaults::LABELS));
            spec.iid_samples = Some(iid_samples.unwrap_or(defaults::IID_SAMPLES));
            spec.non_iid_samples = Some(non_iid_samples.unwrap_or(defaults::NON_IID_SAMPLES));
        }
        Scheme::Dirichlet => {
            spec.concentration = Some(raw.concentration.unwrap_or(defaults::CONCENTRATION));
        }
        Scheme::Shards => spec.shards = Some(raw.shards.unwrap_or(defaults::SHARDS)),
        Scheme::Iid => spec.iid_samples = iid_samples,
    }
    Ok(spec)
}

fn refuse_keys_of_other_schemes(
    raw: &RawPartition,
    scheme: Scheme,
    document: &Document,
) -> Result<(), ConfigError> {
    use Scheme::{Dirichlet, Iid, Mix, Shards};
    let homes: [(&str, bool, &[Scheme]); 7] = [
        ("iid", raw.iid.is_some(), &[Mix]),
        ("non_iid", raw.non_iid.is_some(), &[Mix]),
        ("labels", raw.labels.is_some(), &[Mix]),
        ("iid_samples", raw.iid_samples.is_some(), &[Mix, Iid]),
        ("non_iid_samples", raw.non_iid_samples.is_some(), &[Mix]),
        ("concentration", raw.concentration.is_some(), &[Dirichlet]),
        ("shards", raw.shards.is_some(), &[Shards]),
    ];
    for (key, given, schemes) in homes {
        if given && !schemes.contains(&scheme) {
            let home: Vec<_> = schemes.iter().map(word).collect();
            let home = home.join(" or ");
            let path = format!("partition.{key}");
            return Err(document.error(
                &[&path, "partition.scheme"],
                format!(
                    "`{path}` belongs to `partition.scheme` = {home}, but the scheme is {}",
                    word(scheme)
                ),
                &format!("remove {key}, or set partition.scheme to {home}"),
            ));
        }
    }
    Ok(())
}

/// Devices, IID devices and non-IID devices of a mix.
fn mix_devices(raw: &RawPartition, document: &Document) -> Result<[u32; 3], ConfigError> {
    let error = |message: String, help: &str| {
        let paths = ["partition.devices", "partition.iid", "partition.non_iid"];
        Err(document.error(&paths, message, help))
    };
    let sum = |iid: u32, non_iid: u32| u64::from(iid) + u64::from(non_iid);
    match (raw.devices, raw.iid, raw.non_iid) {
        (Some(devices), Some(iid), Some(non_iid)) if u64::from(devices) != sum(iid, non_iid) => {
            error(
                format!(
                    "`partition.devices` = {devices} is not the sum of `partition.iid` = {iid} and \
                     `partition.non_iid` = {non_iid}, which is {}",
                    sum(iid, non_iid)
                ),
                "remove one of the three; the other two imply it",
            )
        }
        (Some(devices), Some(iid), None) if iid <= devices => Ok([devices, iid, devices - iid]),
        (Some(devices), None, Some(non_iid)) if non_iid <= devices => {
            Ok([devices, devices - non_iid, non_iid])
        }
        (Some(devices), Some(part), None) | (Some(devices), None, Some(part)) => error(
            format!(
                "`partition.{}` = {part} is more than `partition.devices` = {devices}",
                if raw.iid.is_some() { "iid" } else { "non_iid" }
            ),
            "raise partition.devices, or remove it",
        ),
        (Some(devices), None, None) if devices != defaults::DEVICES => error(
            format!("`partition.devices` = {devices} leaves open how many devices are IID"),
            "give partition.iid or partition.non_iid too",
        ),
        (_, iid, non_iid) => {
            let iid = iid.unwrap_or(defaults::IID);
            let non_iid = non_iid.unwrap_or(defaults::NON_IID);
            match u32::try_from(sum(iid, non_iid)) {
                Ok(devices @ 1..=MOST_DEVICES) => Ok([devices, iid, non_iid]),
                _ => error(
                    format!(
                        "`partition.iid` = {iid} and `partition.non_iid` = {non_iid} make {} \
                         devices: expected from 1 to {MOST_DEVICES}",
                        sum(iid, non_iid)
                    ),
                    "change partition.iid or partition.non_iid",
                ),
            }
        }
    }
}

fn range(
    path: &str,
    raw: Option<RawRange>,
    document: &Document,
) -> Result<Option<[u32; 2]>, ConfigError> {
    let range = raw.map(<[u32; 2]>::from);
    match range {
        Some([min, max]) if min > max => Err(document.error(
            &[path],
            format!("`{path}` is [{min}, {max}]: expected [min, max] with min at most max"),
            &format!("write [{max}, {min}]"),
        )),
        _ => Ok(range),
    }
}

/// A word of the configuration as the user writes it, in quotes.
pub(super) fn word(value: impl serde::Serialize) -> String {
    serde_json::to_string(&value).unwrap_or_default()
}
