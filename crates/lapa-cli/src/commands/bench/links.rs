//! What sending over links costs, beside a round.

use std::hint::black_box;
use std::time::Duration;

use lapa::config::{Experiment, Override};
use lapa::data::Dataset;
use lapa::model::network;
use lapa::radio::{Link, Links};
use lapa::seed::{Purpose, stream};
use lapa_privacy::mechanism::add_gaussian;
use lapa_wireless::ser::Modulation;
use lapa_wireless::uplink::{Analog, Digital, Quantizer};
use serde_json::{Map, Value, json};

use super::{federation, median, median_ratio, turns};
use crate::failure::Failure;

/// Standard deviation of an update's coordinates, and the scale that they are sent with.
const SIGMA: f64 = 1e-2;
/// Bits of a coordinate, and the range that they span: four standard deviations.
const BITS: u32 = 8;
const RANGE: f64 = 4.0 * SIGMA;

fn experiment(flags: &[&str]) -> Result<Experiment, Failure> {
    let flags = flags.iter().map(|flag| Override::parse(flag)).collect::<Result<Vec<_>, _>>()?;
    Ok(Experiment::from_toml("", "bench", &flags)?)
}

fn links(experiment: &Experiment) -> Result<Vec<Link>, Failure> {
    let devices: Vec<u32> = (0..experiment.partition.scheme.devices()).collect();
    Ok(Links::new(experiment)?.of(1, &devices)?)
}

/// The updates of the default devices over their links, as shares of a default round, all on one
/// thread; and the links of very many devices.
pub fn measure(
    data: &Dataset,
    budget: Duration,
    figures: &mut Map<String, Value>,
) -> Result<(), Failure> {
    shares(data, budget, figures)?;
    tables(budget, figures)
}

fn shares(
    data: &Dataset,
    budget: Duration,
    figures: &mut Map<String, Value>,
) -> Result<(), Failure> {
    let experiment = experiment(&[])?;
    let links = links(&experiment)?;
    let network = network(&experiment.model, data.train.rows, data.train.cols, data.classes)
        .map_err(Failure::failed)?;
    let mut update = vec![0f32; network.parameter_count()];
    add_gaussian(&mut update, SIGMA, &mut stream(0, Purpose::Noise, 1, 0))
        .map_err(Failure::failed)?;
    let quantizer = Quantizer::new(BITS, RANGE).map_err(Failure::failed)?;
    let sinrs = || links.iter().map(|link| link.sinr);
    let analog: Vec<Analog> = sinrs()
        .map(|sinr| Analog::new(SIGMA, sinr))
        .collect::<Result<_, _>>()
        .map_err(Failure::failed)?;
    let digital: Vec<Digital> = sinrs()
        .map(|sinr| Digital::new(quantizer, Modulation::Qpsk, sinr))
        .collect::<Result<_, _>>()
        .map_err(Failure::failed)?;
    let mut one = federation(data, 1)?;
    let mut failed = None;
    // Sending changes what is sent, so each turn has a copy; its time counts as well.
    let [mut amplitudes, mut levels] = [update.clone(), update.clone()];
    let rng = |device| stream(0, Purpose::Channel, 1, device);
    let [analog, digital, round] = turns(
        budget,
        [
            &mut || {
                for (uplink, device) in analog.iter().zip(0..) {
                    amplitudes.copy_from_slice(&update);
                    uplink.transmit(&mut amplitudes, &mut rng(device));
                    black_box(&amplitudes);
                }
            },
            &mut || {
                for (uplink, device) in digital.iter().zip(0..) {
                    levels.copy_from_slice(&update);
                    uplink.transmit(&mut levels, &mut rng(device));
                    black_box(&levels);
                }
            },
            &mut || {
                if let Err(error) = one.next_round() {
                    failed = Some(error);
                }
            },
        ],
    );
    if let Some(error) = failed {
        return Err(Failure::failed(error));
    }
    figures.insert("analog_share".into(), json!(median_ratio(&analog, &round)));
    figures.insert("digital_share".into(), json!(median_ratio(&digital, &round)));
    Ok(())
}

/// Positions, channels and links of 100,000 devices, by what the receiver does.
fn tables(budget: Duration, figures: &mut Map<String, Value>) -> Result<(), Failure> {
    let many = ["partition.scheme=iid", "partition.iid.devices=100000"];
    let with = |flags: &[&str]| experiment(&[&many, flags].concat());
    let imperfect = "transmit.perfect_sic=false";
    let [perfect, matched, mmse] = [
        with(&[])?,
        with(&[imperfect, "transmit.receiver=matched"])?,
        with(&[imperfect, "transmit.receiver=mmse"])?,
    ];
    // A first time that may fail; after it, the same again cannot.
    for experiment in [&perfect, &matched, &mmse] {
        links(experiment)?;
    }
    let run = |experiment: &Experiment| {
        let _ = black_box(links(experiment));
    };
    let times = turns(budget, [&mut || run(&perfect), &mut || run(&matched), &mut || run(&mmse)]);
    let names = ["", "_matched", "_mmse"];
    for (name, times) in names.into_iter().zip(times) {
        figures.insert(format!("link_table_100k{name}_seconds"), json!(median(times)));
    }
    Ok(())
}
