//! Gives every key its value: that of the file or a flag, or a default.

use std::collections::BTreeSet;

use lapa_privacy::allocate::{Basis, PidError};
use lapa_privacy::word_of;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::check::check;
use super::choice::{ToTypes, pointer};
use super::defaults;
use super::document::{Document, remove};
use super::error::ConfigError;
use super::experiment::{Experiment, MANY_DEVICES, ObserveDevices, Profile};
use super::printed::printed;
use super::schema::{CHOICE, FILE, NONE, TYPES, is_key, properties};
use super::verify::nearest;
use crate::aggregate::default_floor;
use crate::data::{DataName, NAMES};
use crate::device::BatchSampling;
use crate::optimize::PowerChoice;
use crate::radio::settings::Powers;

/// An experiment, and the keys whose values follow others.
pub(super) struct Resolved {
    pub experiment: Experiment,
    pub followers: BTreeSet<String>,
}

/// The experiment of a document, or all that is wrong with it: the `mistakes` that were found before,
/// and contradictions. Where a value was refused, those between given values alone are sure.
pub(super) fn resolve(
    document: &Document,
    mut mistakes: Vec<ConfigError>,
) -> Result<Resolved, ConfigError> {
    // Of values that cannot even be read, the mistakes say more.
    let (resolved, contradictions) = match settle(document) {
        Ok(settled) => settled,
        Err(error) => return Err(ConfigError::first(mistakes.into_iter()).unwrap_or(error)),
    };
    let all = mistakes.is_empty();
    mistakes.extend(contradictions.into_iter().filter(|error| all || error.is_between_given));
    ConfigError::first(mistakes.into_iter()).map_or(Ok(resolved), Err)
}

/// The experiment of the values that are allowed, and all contradictions in it.
fn settle(document: &Document) -> Result<(Resolved, Vec<ConfigError>), ConfigError> {
    let mut settings = Settings::new(document)?;
    settings.prefer_flags();
    settings.fill();
    let powers_given = settings.is_given("transmit.power_w");
    let mut experiment = settings.typed()?;
    settings.fill_powers(&mut experiment, powers_given);
    settings.fill_observed(&mut experiment);
    settings.errors.extend(check(&experiment, document));
    Ok((Resolved { experiment, followers: settings.followers }, settings.errors))
}

/// The values of a file, while those that follow others are filled in.
struct Settings<'a> {
    document: &'a Document<'a>,
    values: Value,
    followers: BTreeSet<String>,
    errors: Vec<ConfigError>,
}

impl<'a> Settings<'a> {
    fn new(document: &'a Document<'a>) -> Result<Self, ConfigError> {
        let mut values = document.values()?;
        if let Value::Object(sections) = &mut values {
            sections.retain(|_, section| section != NONE);
        }
        Ok(Self { document, values, followers: BTreeSet::new(), errors: Vec::new() })
    }

    fn is_given(&self, path: &str) -> bool {
        self.values.pointer(&pointer(path)).is_some()
    }

    /// The value that is given, if any.
    fn get<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        T::deserialize(self.values.pointer(&pointer(path))?).ok()
    }

    /// The value that is given, or else `default`, which follows other keys.
    fn follow<T: Serialize + DeserializeOwned>(&mut self, path: &str, default: T) -> T {
        self.followers.insert(path.into());
        if let Some(given) = self.get(path) {
            return given;
        }
        let mut place = &mut self.values;
        for key in path.split('.') {
            place = &mut place[key];
        }
        *place = serde_json::to_value(&default).unwrap_or_default();
        default
    }

    /// Forgets a key of the file.
    fn forget(&mut self, path: &str) {
        remove(&mut self.values, path);
    }

    /// A flag for powers that are not the file's takes those with it, and a flag for powers the
    /// file's way to choose them. One for the ideal uplink takes thresholds.
    fn prefer_flags(&mut self) {
        let flagged = |path: &str| self.document.is_flagged(path);
        let power: PowerChoice = self.get("control.power").unwrap_or_default();
        let (by_choice, by_hand) = (flagged("control.power"), flagged("transmit.power_w"));
        let ideal = flagged("transmit.uplink")
            && self.get::<String>("transmit.uplink").is_some_and(|uplink| uplink == "ideal");
        if by_choice && power != PowerChoice::File && !by_hand {
            self.forget("transmit.power_w");
        }
        if by_hand && !by_choice {
            self.forget("control.power");
        }
        for threshold in ["aggregate.ser_threshold", "aggregate.sinr_threshold_db"] {
            if ideal && !self.document.is_flagged(threshold) {
                self.forget(threshold);
            }
        }
    }

    /// Fills in what follows other keys.
    fn fill(&mut self) {
        let profile = self.get("profile").unwrap_or_default();
        let model = self.get("model.name").unwrap_or_default();
        self.follow("model.norm", defaults::norm(profile, model));

        let private = self.is_given("privacy");
        let basis = private.then(|| self.follow("privacy.basis", defaults::basis(profile)));
        let update = self.get("learn.update").unwrap_or_default();
        let sampling = self.follow("learn.sampling", defaults::sampling(basis, update));
        if profile == Profile::Printed && basis != Some(Basis::Certified) {
            self.fill_printed(basis);
        }
        if let Some(basis) = basis {
            self.fill_privacy(basis, sampling);
        }
        let clip = self.follow("learn.clip", defaults::clip(profile));
        let fraction = self.follow("learn.batch_fraction", defaults::batch_fraction(sampling));
        let epochs = self.get("learn.local_epochs").unwrap_or(1);
        let clip_norm = defaults::clip_norm(clip, update, fraction, epochs);
        let clip_norm = self.follow("learn.clip_norm", clip_norm);
        let data = self.data_name();
        self.follow("learn.learning_rate", defaults::learning_rate(&data, clip, update));
        self.follow("learn.momentum", defaults::momentum(update));
        self.follow("learn.averaging", defaults::averaging(clip, private));

        let range = defaults::range(clip, clip_norm, update);
        match self.get::<String>("transmit.uplink").as_deref() {
            Some("digital") => drop(self.follow("transmit.digital.range", range)),
            Some("signal")
                if self.get::<String>("transmit.signal.symbols").as_deref() == Some("digital") =>
            {
                self.follow("transmit.signal.digital.range", range);
            }
            _ => {}
        }
        let rule = self.get::<String>("aggregate.rule").unwrap_or_default();
        if rule == "wasserstein" {
            let metric = self.get("aggregate.wasserstein.metric").unwrap_or_default();
            self.follow("aggregate.wasserstein.floor", default_floor(metric));
        }
        let histograms = format!("aggregate.{rule}.histograms");
        if is_key(&histograms) {
            self.follow(&histograms, word_of(defaults::histograms(basis)));
        }
    }

    /// Fills in the printed forms of the choices that are made.
    fn fill_printed(&mut self, basis: Option<Basis>) {
        if let Some(basis) = basis {
            self.follow("privacy.allocator", word_of(defaults::allocator(basis)));
        }
        for (path, value) in printed() {
            let (section, key) = path.split_once('.').unwrap_or_default();
            let table = key.split_once('.').map(|(table, _)| table);
            let applies = table.is_none_or(|table| self.is_chosen(section, table));
            if applies && (section != "privacy" || basis.is_some()) {
                self.follow(path, value);
            }
        }
    }

    /// True for a table that belongs to no choice, or to the one that is made.
    fn is_chosen(&self, section: &str, table: &str) -> bool {
        let keys = properties(&FILE).and_then(|keys| properties(keys.get(section)?));
        let choice = keys.and_then(|keys| Some((keys, keys.get(table)?.get(CHOICE)?.as_str()?)));
        choice.is_none_or(|(keys, selector)| {
            let given = self.get::<String>(&format!("{section}.{selector}"));
            given.as_deref().or_else(|| keys[selector]["default"].as_str()) == Some(table)
        })
    }

    fn fill_privacy(&mut self, basis: Basis, sampling: BatchSampling) {
        let allocator = word_of(defaults::allocator(basis));
        if self.follow("privacy.allocator", allocator) == "lapa" {
            let error = self.follow("privacy.lapa.error", PidError::default_for(basis));
            self.follow("privacy.lapa.proportional", error.default_gain());
            self.follow("privacy.lapa.integral", error.default_gain());
        }
        self.follow("privacy.adjacency", defaults::adjacency(sampling));
    }

    /// Fills in powers, which go by the number of devices.
    fn fill_powers(&mut self, experiment: &mut Experiment, powers_given: bool) {
        let devices = experiment.partition.scheme.devices();
        let Experiment { control, transmit, .. } = experiment;
        if !self.document.is_given("control.total_power_w") {
            control.total_power_w = defaults::total_power_w(devices, transmit.max_power_w);
        }
        if !self.document.is_given("control.least_power_w") {
            control.least_power_w = defaults::least_power_w(control.total_power_w);
        }
        if !powers_given && control.power != PowerChoice::File {
            transmit.power_w = Powers::All(control.average_power_w(devices, transmit.max_power_w));
        }
        for path in ["control.total_power_w", "control.least_power_w", "transmit.power_w"] {
            self.followers.insert(path.into());
        }
    }

    /// Fills in the form of the metrics, which goes by the devices of a round.
    fn fill_observed(&mut self, experiment: &mut Experiment) {
        let devices = experiment.partition.scheme.devices() as usize;
        if !self.document.is_given("observe.devices") {
            let large = experiment.taking_part(devices) >= MANY_DEVICES;
            experiment.observe.devices =
                if large { ObserveDevices::Summary } else { ObserveDevices::List };
        }
        self.followers.insert("observe.devices".into());
    }

    /// The name of the data; an unknown one is an error.
    fn data_name(&mut self) -> DataName {
        let Some(name) = self.get::<String>("data.name") else { return DataName::default() };
        let guess = nearest(&name, NAMES);
        let help = guess.map_or(
            "a folder of IDX files is written idx:PATH, a table csv:PATH".into(),
            |guess| format!("did you mean \"{guess}\"?"),
        );
        DataName::try_from(name).unwrap_or_else(|e| {
            let message = format!("`data.name`: {e}");
            self.errors.push(self.document.error(&["data.name"], message, &help));
            self.forget("data.name");
            DataName::default()
        })
    }

    /// The values in their types.
    fn typed(&mut self) -> Result<Experiment, ConfigError> {
        let mut to_types = ToTypes { document: self.document, errors: Vec::new() };
        let mut values = std::mem::take(&mut self.values);
        to_types.convert(&mut values, &TYPES, "");
        self.errors.append(&mut to_types.errors);
        serde_json::from_value(values)
            .map_err(|error| self.document.error_at("", 0..0, error.to_string(), None))
    }
}
