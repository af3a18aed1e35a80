//! One quantity varied for all devices.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use lapa::config::{Experiment, Powers};
use lapa::observe::{Quantiles, number};
use lapa::radio::Threshold;
use lapa_wireless::units::{Db, Dbm, Watt};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Limit, by_limit, limits, rate};
use crate::failure::{CommandResult, Failure};
use crate::output::{self, Format, paths, table};

/// Quantity that is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Quantity {
    /// Transmit power of all devices, from 0.001 to 10 times transmit.max_power_w.
    Power,
    /// Noise power at each antenna, from 1e-16 to 1e-10 W.
    Noise,
    /// Number of antennas of the base station, from 1 to 64.
    Antennas,
}

/// Texts about a quantity.
struct Texts {
    /// In file names.
    name: &'static str,
    /// Above a column.
    header: &'static str,
    /// Along an axis.
    label: &'static str,
}

impl Quantity {
    fn texts(self) -> Texts {
        let (name, header, label) = match self {
            Self::Power => ("power", ">power (W)", "Transmit power (W)"),
            Self::Noise => ("noise", ">noise (dBm)", "Noise power at each antenna (dBm)"),
            Self::Antennas => ("antennas", ">antennas", "Number of antennas"),
        };
        Texts { name, header, label }
    }

    fn places(self, experiment: &Experiment) -> Vec<SweptValue> {
        // Four to a decade.
        let powers = |from: f64, count: i32| {
            (0..=count).map(move |step| from * 10f64.powf(f64::from(step) / 4.0))
        };
        match self {
            Self::Power => {
                powers(1e-3 * experiment.transmit.max_power_w, 16).map(SweptValue::PowerW).collect()
            }
            Self::Noise => powers(1e-16, 24).map(SweptValue::NoisePowerW).collect(),
            Self::Antennas => (0..=6).map(|power| SweptValue::Antennas(1 << power)).collect(),
        }
    }
}

/// Value on the horizontal axis.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum SweptValue {
    PowerW(f64),
    NoisePowerW(f64),
    Antennas(u32),
}

impl SweptValue {
    /// Sets the quantity in a configuration; returns its key and value.
    fn apply(self, experiment: &mut Experiment) -> String {
        match self {
            Self::PowerW(power) => {
                experiment.transmit.power_w = Powers::All(power);
                format!("transmit.power_w = {power:.3e}")
            }
            Self::NoisePowerW(power) => {
                experiment.radio.noise_power_w = power;
                format!("radio.noise_power_w = {power:.3e}")
            }
            Self::Antennas(antennas) => {
                experiment.radio.antennas = antennas;
                format!("radio.antennas = {antennas}")
            }
        }
    }

    /// The number on the axis, and the cell in the table.
    fn shown(self) -> (f64, String) {
        match self {
            Self::PowerW(power) => (power, format!("{power:.3e}")),
            Self::NoisePowerW(power) => {
                let dbm = Dbm::from(Watt(power)).0;
                (dbm, format!("{dbm:.1}"))
            }
            Self::Antennas(antennas) => (f64::from(antennas), antennas.to_string()),
        }
    }
}

/// Links of all devices at one value of the quantity.
#[derive(Serialize)]
struct Point {
    #[serde(flatten)]
    place: SweptValue,
    #[serde(with = "number")]
    ser_median: f64,
    #[serde(with = "number")]
    ser_min: f64,
    #[serde(with = "number")]
    ser_max: f64,
    #[serde(with = "number")]
    sinr_db_median: f64,
    selected: Map<String, Value>,
    /// The same for every threshold, in the order of the columns.
    #[serde(skip)]
    counts: Vec<usize>,
    #[serde(skip)]
    ser: Quantiles,
}

/// A varied quantity and what follows from it.
pub struct Sweep {
    quantity: Quantity,
    limits: Vec<Limit>,
    points: Vec<Point>,
}

impl Sweep {
    pub fn new(experiment: &Experiment, round: u32, quantity: Quantity) -> Result<Self, Failure> {
        let limits = limits(&experiment.aggregate);
        let mut points = Vec::new();
        for place in quantity.places(experiment) {
            let mut varied = experiment.clone();
            let setting = place.apply(&mut varied);
            let (_, links) = super::links(&varied, round)
                .map_err(|error| Failure::usage(format!("with {setting}: {error}")))?;
            let ser = Quantiles::of(links.iter().map(|link| link.ser));
            let sinr = Quantiles::of(links.iter().map(|link| link.sinr));
            // Links without a device are an error above.
            let (Some(ser), Some(sinr)) = (ser, sinr) else { continue };
            let count = |limit: &Limit| links.iter().filter(|link| limit.passes(link)).count();
            points.push(Point {
                place,
                ser_median: ser.median,
                ser_min: ser.min,
                ser_max: ser.max,
                sinr_db_median: Db::of(sinr.median).0,
                selected: by_limit(&limits, count),
                counts: limits.iter().map(count).collect(),
                ser,
            });
        }
        Ok(Self { quantity, limits, points })
    }

    /// Draws and prints.
    pub fn show(&self, folder: &Path, format: Format) -> CommandResult {
        // Decibels are logarithms already.
        let (Texts { name, label, .. }, log) =
            (self.quantity.texts(), self.quantity != Quantity::Noise);
        let points: Vec<(f64, Quantiles)> =
            self.points.iter().map(|point| (point.place.shown().0, point.ser)).collect();
        let ser = |limit: &Limit| match limit.threshold {
            Threshold::Ser(most) => Some(most),
            _ => None,
        };
        let thresholds: Vec<f64> = self.limits.iter().filter_map(ser).collect();
        let stem = folder.join(format!("link-{name}"));
        let plots = lapa_report::plot::plot_sweep(label, log, &points, &thresholds, &stem)?;
        output::print(format, &self.points, || self.text(&plots))
    }

    fn text(&self, plots: &[PathBuf; 2]) -> String {
        let varied = self.quantity.texts().header;
        let titles: Vec<String> =
            self.limits.iter().map(|limit| format!(">{}", limit.title)).collect();
        let mut header = vec![varied, ">SER (median)", ">min", ">max", ">SINR (dB, median)"];
        header.extend(titles.iter().map(String::as_str));
        let cells = |point: &Point| {
            let mut cells = vec![
                point.place.shown().1,
                rate(point.ser_median),
                rate(point.ser_min),
                rate(point.ser_max),
                format!("{:.2}", point.sinr_db_median),
            ];
            cells.extend(point.counts.iter().map(usize::to_string));
            cells
        };
        let rows: Vec<Vec<String>> = self.points.iter().map(cells).collect();
        format!(
            "{}last columns: number of devices that may transmit at each threshold\nplots: {}\n",
            table(&header, &rows),
            paths(plots)
        )
    }
}
