//! Cost of sending over links, relative to a round.

use std::hint::black_box;

use lapa::config::Experiment;
use lapa::model::network;
use lapa::radio::{Link, Links};
use lapa::seed::{Purpose, stream};
use lapa_privacy::sampler::add_gaussian;
use lapa_wireless::ser::Modulation;
use lapa_wireless::uplink::{Analog, Digital, Quantizer};

use super::{Bench, federation, median, median_ratio, turns};
use crate::commands::overrides;
use crate::failure::Failure;

/// Standard deviation of an update's coordinates, and the scale that they are sent with.
const SIGMA: f64 = 1e-2;
/// Bits of a coordinate, and the range that they span: four standard deviations.
const BITS: u32 = 8;
const RANGE: f64 = 4.0 * SIGMA;

fn experiment(flags: &[&str]) -> Result<Experiment, Failure> {
    let flags = overrides(&flags.iter().map(|&flag| flag.to_owned()).collect::<Vec<_>>())?;
    Ok(Experiment::from_toml("", "bench", &flags)?)
}

fn links(experiment: &Experiment) -> Result<Vec<Link>, Failure> {
    let devices: Vec<u32> = (0..experiment.partition.scheme.devices()).collect();
    Ok(Links::new(experiment.setting())?.draw(1, &devices)?)
}

/// The updates of the default devices over their links, as shares of a default round, all on one
/// thread; and the links of very many devices.
pub fn measure(bench: &mut Bench<'_>) -> Result<(), Failure> {
    shares(bench)?;
    tables(bench)
}

fn shares(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let data = bench.data;
    let experiment = experiment(&[])?;
    let links = links(&experiment)?;
    let network = network(&experiment.model, data.train.shape, data.classes)?;
    let mut update = vec![0f32; network.parameter_count()];
    add_gaussian(&mut update, SIGMA, &mut stream(0, Purpose::Noise, 1, 0))?;
    let quantizer = Quantizer::new(BITS, RANGE)?;
    let analog = links.iter().map(|link| Analog::new(SIGMA, link.sinr));
    let analog: Vec<Analog> = analog.collect::<Result<_, _>>()?;
    let digital = links.iter().map(|link| Digital::new(quantizer, Modulation::Qpsk, link.sinr));
    let digital: Vec<Digital> = digital.collect::<Result<_, _>>()?;
    let mut one = federation(data, 1)?;
    let mut failed = None;
    // Sending changes what is sent, so each turn has a copy; its time counts as well.
    let [mut amplitudes, mut levels] = [update.clone(), update.clone()];
    let rng = |device| stream(0, Purpose::Channel, 1, device);
    let [analog, digital, round] = turns(
        bench.budget,
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
        return Err(error.into());
    }
    bench.add("analog_share", median_ratio(&analog, &round));
    bench.add("digital_share", median_ratio(&digital, &round));
    Ok(())
}

/// Positions, channels and links of 100,000 devices, by what the receiver does.
fn tables(bench: &mut Bench<'_>) -> Result<(), Failure> {
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
    let runs: [&mut dyn FnMut(); 3] =
        [&mut || run(&perfect), &mut || run(&matched), &mut || run(&mmse)];
    for (name, times) in ["", "_matched", "_mmse"].into_iter().zip(turns(bench.budget, runs)) {
        bench.add(format!("link_table_100k{name}_seconds"), median(times));
    }
    Ok(())
}
