//! `lapa link`: what lies between each device and the base station.

mod sweep;
mod table;

use clap::Args;
use lapa::config::{Aggregate, Experiment};
use lapa::radio::{Link, LinkError, Links, Threshold};
use serde_json::{Map, Value};

use crate::failure::CommandResult;
use crate::output::{Formatted, PlotFolder};
use crate::progress::{Mode, patiently};

/// Show the radio link of each device: distance, path loss, SINR, symbol error rate
///
/// Positions and channels depend on the configuration and its seed only; no data set is read.
/// Prints a table and draws a map of the devices (link.svg, link.png). The links are those of a
/// round in which all devices transmit, whatever run.participation says. [radio] and [transmit] define them; [aggregate] defines
/// which devices may transmit.
///
///   region        rectangle of radio.regions in which the device lies, counted from 1
///   path loss     loss from distance, wavelength and antenna gains, without fading
///   ‖h‖²          channel gain over all antennas, with fading
///   SNR           received power over the noise of one antenna, after the matched filter
///   SINR          the same with interference from the devices that are decoded later
///   SER           symbol error rate of transmit.modulation at that SINR
///   ≤0.1 …        ✓ if the device may transmit with this aggregate.ser_threshold
///   energy        energy of sending one update, for images of 28 × 28 and 10 classes
///
/// --sweep varies one quantity for all devices and plots the symbol error rate against it, with
/// positions and fading unchanged: link-power, link-noise or link-antennas, as SVG and PNG.
///
/// Examples:
///   lapa link
///   lapa link my.toml -c transmit.perfect_sic=false -c transmit.receiver=mmse --format json
///   lapa link -c radio.path_loss_exponent=3.5 --sweep power --out plots
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    #[command(flatten)]
    source: super::Source,
    #[command(flatten)]
    plots: PlotFolder,
    #[command(flatten)]
    formatted: Formatted,
    /// Round whose fading is shown; see radio.redraw_every.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    round: u32,
    /// Vary this quantity instead of listing the devices.
    #[arg(long, value_name = "QUANTITY", value_enum, conflicts_with = "all")]
    sweep: Option<sweep::Quantity>,
    /// List all devices; else, of more than 60 (1,000 as JSON), those with the largest and the smallest
    /// SINR, and quantiles.
    #[arg(long)]
    all: bool,
}

pub fn execute(arguments: Arguments) -> CommandResult {
    let experiment = arguments.source.experiment()?;
    let Arguments {
        plots: PlotFolder { out }, formatted: Formatted { format }, round, all, ..
    } = arguments;
    let (mode, what) = (Mode::choose(false), "computing the links");
    if let Some(quantity) = arguments.sweep {
        let sweep = patiently(mode, what, || sweep::Sweep::new(&experiment, round, quantity))?;
        super::create_folder(&out)?;
        return sweep.show(&out, format);
    }
    let table = patiently(mode, what, || table::Table::new(&experiment, round, all))?;
    super::create_folder(&out)?;
    table.show(&out, format)
}

/// The links of all devices in a round, whatever part of them a run asks.
fn links(experiment: &Experiment, round: u32) -> Result<(Links, Vec<Link>), LinkError> {
    let mut links = Links::new(experiment.setting())?;
    let devices: Vec<u32> = (0..experiment.partition.scheme.devices()).collect();
    let list = links.draw(round, &devices)?;
    Ok((links, list))
}

/// Thresholds that are always shown.
const SER_THRESHOLDS: [f64; 3] = [1e-1, 1e-2, 1e-3];

/// A threshold and how it is called.
struct Limit {
    threshold: Threshold,
    /// In JSON, where only symbol error rates are keys.
    key: Option<String>,
    /// In tables.
    title: String,
}

impl Limit {
    fn new(threshold: Threshold) -> Option<Self> {
        let (key, title) = match threshold {
            Threshold::None => return None,
            Threshold::Ser(most) => (Some(most.to_string()), format!("≤{most}")),
            Threshold::SinrDb(least) => (None, format!("≥{least}dB")),
        };
        Some(Self { threshold, key, title })
    }

    fn passes(&self, link: &Link) -> bool {
        link.passes(&self.threshold)
    }
}

/// The usual thresholds, and the configured one if it is another.
fn limits(aggregate: &Aggregate) -> Vec<Limit> {
    let usual = SER_THRESHOLDS.map(Threshold::Ser);
    let own = Some(aggregate.threshold).filter(|own| !usual.contains(own));
    usual.into_iter().chain(own).filter_map(Limit::new).collect()
}

/// A value for each threshold, by its key.
fn by_limit<V: Into<Value>>(limits: &[Limit], value: impl Fn(&Limit) -> V) -> Map<String, Value> {
    limits.iter().filter_map(|limit| Some((limit.key.clone()?, value(limit).into()))).collect()
}

/// A rate in a table.
fn rate(ser: f64) -> String {
    if ser == 0.0 { "0".into() } else { format!("{ser:.2e}") }
}
