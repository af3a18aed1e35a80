//! A row for each device.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lapa::config::{Experiment, Places};
use lapa::model::{Shape, network};
use lapa::observe::{Quantiles, number};
use lapa::radio::{Airtime, AnalogConfig, Link, Links, Threshold, UplinkConfig};
use lapa_wireless::units::{Db, Dbm, Watt};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Limit, by_limit, limits, rate};
use crate::failure::{CommandResult, Failure};
use crate::output::{self, Column, Format, count, paths};

/// Images and labels of MNIST and its like: the size of the model follows from them.
const SHAPE: (Shape, usize) = (Shape::new(1, 28, 28), 10);

#[derive(Serialize)]
struct Row {
    device: u32,
    region: Option<u32>,
    #[serde(with = "number")]
    distance_m: f64,
    #[serde(with = "number")]
    path_loss_db: f64,
    #[serde(with = "number")]
    gain_db: f64,
    #[serde(with = "number")]
    power_w: f64,
    #[serde(with = "number")]
    snr_db: f64,
    #[serde(with = "number")]
    sinr_db: f64,
    #[serde(with = "number")]
    ser: f64,
    selected: Map<String, Value>,
    /// The same for every threshold, in the order of the columns.
    #[serde(skip)]
    passes: Vec<bool>,
    /// True if it sends in a run of this configuration.
    sends: bool,
    #[serde(with = "number")]
    energy_j: f64,
}

/// The links of an experiment, and what they cost.
pub struct Table<'a> {
    experiment: &'a Experiment,
    places: Links,
    links: Vec<Link>,
    limits: Vec<Limit>,
    /// The devices that are listed.
    rows: Vec<Row>,
    all: bool,
    coordinates: usize,
    bytes: u64,
    /// Number of devices that send, and the cost of that.
    round: (usize, Airtime),
}

impl<'a> Table<'a> {
    /// The links of a round; `all` are listed, however many.
    pub fn new(experiment: &'a Experiment, round: u32, all: bool) -> Result<Self, Failure> {
        let (places, links) = super::links(experiment, round)?;
        let (shape, classes) = SHAPE;
        let network = network(&experiment.model, shape, classes)?;
        let coordinates = network.parameter_count();
        let mut transmit = experiment.transmit.clone();
        if transmit.uplink.is_ideal() {
            // It costs nothing; what the links would cost says more.
            transmit.uplink = UplinkConfig::Analog(AnalogConfig::default());
        }
        let uplink = transmit.uplink.build(&transmit)?;
        let limits = limits(&experiment.aggregate);
        let threshold = experiment.aggregate.threshold;
        let ideal = experiment.transmit.uplink.is_ideal();
        let free = ideal && threshold == Threshold::None;
        let sends = |link: &Link| free || link.passes(&threshold);
        let row = |link: &Link| -> Result<Row, Failure> {
            let device = link.device;
            let cost = uplink.airtime(&transmit, coordinates, &[*link])?;
            Ok(Row {
                device,
                region: places.placement(device).region.map(|region| region + 1),
                distance_m: places.distance(device).0,
                path_loss_db: places.path_loss(device).0,
                gain_db: Db::of(places.gain(device)).0,
                power_w: link.power.0,
                snr_db: Db::of(link.snr).0,
                sinr_db: Db::of(link.sinr).0,
                ser: link.ser,
                selected: by_limit(&limits, |limit| limit.passes(link)),
                passes: limits.iter().map(|limit| limit.passes(link)).collect(),
                sends: sends(link),
                energy_j: cost.energy.0,
            })
        };
        let listed = output::listed(&sinrs(&links), all);
        let rows = listed.into_iter().map(|i| row(&links[i])).collect::<Result<_, _>>()?;
        let senders: Vec<Link> = links.iter().filter(|link| sends(link)).copied().collect();
        let cost = uplink.airtime(&transmit, coordinates, &senders)?;
        let (bytes, round) = (uplink.bytes(coordinates), (senders.len(), cost));
        Ok(Self { experiment, places, links, limits, rows, all, coordinates, bytes, round })
    }

    /// Draws and prints.
    pub fn show(&self, folder: &Path, format: Format) -> CommandResult {
        let regions: &[_] = match &self.experiment.radio.places {
            Places::Positions(_) => &[],
            Places::Regions(regions) => regions,
        };
        let stem = folder.join("link");
        let plots = lapa_report::plot::plot_links(&self.places, &self.links, regions, &stem)?;
        let of = |value: fn(&Link) -> f64| Quantiles::of(self.links.iter().map(value));
        let value = json!({
            "devices": self.rows,
            "count": self.links.len(),
            "sinr_db": of(|link| link.sinr).map(in_db),
            "ser": of(|link| link.ser),
            "histogram": self.histogram(),
            "plots": plots,
        });
        output::print(format, &value, || self.text(&plots))
    }

    /// Number of devices in steps of 5 dB of SINR; those without any stand apart.
    fn histogram(&self) -> Vec<Value> {
        let mut steps: BTreeMap<i64, usize> = BTreeMap::new();
        for link in self.links.iter().filter(|link| link.sinr > 0.0) {
            *steps.entry((Db::of(link.sinr).0 / STEP_DB).floor() as i64).or_default() += 1;
        }
        let step = |(step, count): (i64, usize)| {
            let from = STEP_DB * step as f64;
            json!({ "sinr_db": [from, from + STEP_DB], "devices": count })
        };
        steps.into_iter().map(step).collect()
    }

    fn text(&self, plots: &[PathBuf; 2]) -> String {
        let titles = self.limits.iter().map(|limit| limit.title.as_str());
        let header = COLUMNS.iter().map(|(name, _)| *name).chain(titles).chain([">energy (J)"]);
        let cells = |row: &Row| {
            let passes = row.passes.iter().map(|&pass| if pass { "✓" } else { "·" }.to_owned());
            let energy = format!("{:.3e}", row.energy_j);
            COLUMNS.iter().map(|(_, cell)| cell(row)).chain(passes).chain([energy]).collect()
        };
        let header: Vec<&str> = header.collect();
        let by: output::By = ("SINR", |sinr| format!("{:.1} dB", Db::of(sinr).0));
        // All devices are listed, or those that the table shows.
        let at = |i: usize| match self.rows.len() == self.links.len() {
            true => self.rows.get(i),
            false => self.rows.iter().find(|row| row.device as usize == i),
        };
        let cells = |i: usize| at(i).map(cells).unwrap_or_default();
        let mut text = output::bounded(&header, &sinrs(&self.links), self.all, by, cells);
        for line in self.summary() {
            text += &format!("{line}\n");
        }
        text + &format!("plots: {}\n", paths(plots))
    }

    /// A line on rounds that not all devices take part in.
    fn participants(&self, devices: usize) -> Option<String> {
        let participants = self.experiment.taking_part(devices);
        let share = self.experiment.run.participation;
        (participants < devices).then(|| {
            format!(
                "run.participation = {share}: {participants} of these devices in each round; all figures here \
                 are for all of them at once"
            )
        })
    }

    fn summary(&self) -> Vec<String> {
        let devices = self.links.len();
        let passed = self.limits.iter().map(|limit| {
            let count = self.links.iter().filter(|link| limit.passes(link)).count();
            format!("{count} at {}", limit.title)
        });
        let mut lines = vec![format!(
            "devices that pass each threshold, of {devices}: {}",
            passed.collect::<Vec<_>>().join(", ")
        )];
        // As ratios: decibels of a silent device would spoil a median.
        let of = |value: fn(&Link) -> f64| Quantiles::of(self.links.iter().map(value));
        if let (Some(sinr), Some(ser), Some(power), Some(noise)) = (
            of(|link| link.sinr),
            of(|link| link.ser),
            of(|link| link.power.0),
            of(|link| link.receiver_noise.sqrt()),
        ) {
            let db = |ratio: f64| format!("{:.1}", Db::of(ratio).0);
            let dbm = |watt: f64| format!("{:.1}", Dbm::from(Watt(watt)).0);
            lines.push(format!(
                "SINR {} dB (median), {} to {}; SER {} (median), {} to {}",
                db(sinr.median),
                db(sinr.min),
                db(sinr.max),
                rate(ser.median),
                rate(ser.min),
                rate(ser.max)
            ));
            lines.push(format!(
                "transmit power {} dBm (median), noise {} dBm per antenna; receiver noise per unit \
                 amplitude: σ = {:.3e} (median)",
                dbm(power.median),
                dbm(self.experiment.radio.noise_power_w),
                noise.median
            ));
        }
        let (senders, Airtime { time, energy }) = self.round;
        lines.push(format!(
            "{} transmitting: airtime {:.4} s, radiated energy {:.3e} J per round; each sends {} \
             values in {} bytes",
            count(senders, "device"),
            time.0,
            energy.0,
            self.coordinates,
            self.bytes
        ));
        lines.extend(self.participants(devices));
        if self.experiment.transmit.uplink.is_ideal() {
            lines.push(
                "transmit.uplink = \"ideal\" uses these links for thresholds only; airtime, energy \
                 and bytes are those of \"analog\""
                    .into(),
            );
        }
        lines
    }
}

fn in_db(Quantiles { min, q25, median, q75, max }: Quantiles) -> Quantiles {
    let [min, q25, median, q75, max] = [min, q25, median, q75, max].map(|ratio| Db::of(ratio).0);
    Quantiles { min, q25, median, q75, max }
}

/// Steps of the histogram.
const STEP_DB: f64 = 5.0;

/// As ratios: decibels of a silent device would spoil a quantile.
fn sinrs(links: &[Link]) -> Vec<f64> {
    links.iter().map(|link| link.sinr).collect()
}

/// Columns before those of the thresholds.
const COLUMNS: [Column<Row>; 9] = [
    (">device", |row| row.device.to_string()),
    (">region", |row| row.region.map_or("-".into(), |region| region.to_string())),
    (">distance (m)", |row| format!("{:.2}", row.distance_m)),
    (">path loss (dB)", |row| format!("{:.2}", row.path_loss_db)),
    (">‖h‖² (dB)", |row| format!("{:.2}", row.gain_db)),
    (">power (W)", |row| format!("{:.3e}", row.power_w)),
    (">SNR (dB)", |row| format!("{:.2}", row.snr_db)),
    (">SINR (dB)", |row| format!("{:.2}", row.sinr_db)),
    (">SER", |row| rate(row.ser)),
];
