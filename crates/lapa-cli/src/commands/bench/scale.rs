//! Many devices: seconds and memory from fifteen to a million.

use serde_json::Value;

use super::{Bench, short_run};
use crate::failure::Failure;

/// Registered devices, those of a round, and rounds.
const SIZES: [(u32, u32, u32); 7] = [
    (15, 15, 300),
    (100, 100, 50),
    (1_000, 1_000, 10),
    (10_000, 1_000, 10),
    (100_000, 1_000, 10),
    (1_000_000, 1_000, 10),
    (100_000, 10_000, 2),
];

/// Samples of a device.
const SAMPLES: u32 = 50;

/// Private runs of an mlp over an analog link: devices of 50 samples, certified, uniform.
pub(super) fn measure(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let data = String::from(bench.data.name.clone());
    let mut first = None;
    for (registered, participants, rounds) in SIZES {
        let participation = f64::from(participants) / f64::from(registered);
        let changes = [
            format!("data.name={data}"),
            format!("run.rounds={rounds}"),
            format!("run.evaluate_every={rounds}"),
            format!("run.checkpoint_every={rounds}"),
            format!("run.threads={}", bench.threads),
            format!("run.participation={participation}"),
            "model.name=mlp".into(),
            "partition.scheme=virtual".into(),
            format!("partition.virtual.devices={registered}"),
            format!("partition.virtual.samples={SAMPLES}"),
        ];
        let start = lapa::clock::now();
        let summary = short_run(&changes)?;
        let whole = start.elapsed().as_secs_f64();
        let seconds = summary["seconds"].as_f64().unwrap_or(f64::NAN);
        let round = seconds / f64::from(rounds);
        let name = |what| format!("scale_{registered}_{participants}_{what}");
        bench.add(name("start_and_end_s"), whole - seconds);
        bench.add(name("round_s"), round);
        bench.add(name("peak_memory_mb"), summary["peak_memory_mb"].clone());
        // A round of fifteen, scaled to as many devices.
        let one = *first.get_or_insert(round / f64::from(participants));
        bench
            .add(name("round_over_that_of_15"), Value::from(round / f64::from(participants) / one));
    }
    Ok(())
}
