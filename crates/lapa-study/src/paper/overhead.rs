//! Traffic beside gradients (the workflow's caption), and LAPA's arithmetic: claims 6 and 12.

use super::chapter::Chapter;
use super::claim::{Claim, Contrast};
use super::curve::{Base, base};
use super::{Curve, Evidence, Scope};
use crate::cell::Finished;
use crate::report::Table;

const BASE: Base = base!("paper/privacy.toml");

/// Parameters of the paper's network, of 4 bytes each.
pub(super) const PARAMETERS: u64 = 21_880;

/// LAPA with the file's noise: the run whose bytes are counted.
pub(super) fn curve() -> Curve {
    super::allocators::Allocator::Lapa.curve(BASE)
}

/// Bytes of a run, by what they are.
pub(super) struct Bytes {
    /// From devices: gradients.
    pub gradients: u64,
    /// From devices: all else, which is label histograms, once.
    pub histograms: u64,
    /// To devices: the global model.
    pub models: u64,
}

impl Bytes {
    pub fn from_run(finished: &Finished) -> Self {
        let uploads: u64 = finished.rounds.iter().map(|round| u64::from(round.sent)).sum();
        let gradients = 4 * PARAMETERS * uploads;
        Self {
            gradients,
            histograms: finished.summary.uplink_bytes - gradients,
            models: finished.summary.downlink_bytes,
        }
    }
}

pub fn curves() -> Vec<Curve> {
    vec![curve()]
}

pub fn chapter(evidence: &Evidence) -> Chapter {
    let headers = ["Content", "Direction", ">total bytes", ">fraction of the uplink"];
    let caption = "One run of LAPA on MNIST, all rounds and devices.";
    let mut table = Table::new(caption, &headers);
    if let Some(finished) = evidence.first(&curve()) {
        let bytes = Bytes::from_run(finished);
        let uplink = bytes.gradients + bytes.histograms;
        let share = |part: u64| format!("{:.3} %", 100.0 * part as f64 / uplink as f64);
        for (what, way, part, share) in [
            ("gradients", "up", bytes.gradients, share(bytes.gradients)),
            ("label histograms, once", "up", bytes.histograms, share(bytes.histograms)),
            ("global model", "down", bytes.models, String::new()),
        ] {
            table.row([what.to_owned(), way.into(), part.to_string(), share]);
        }
    }
    Chapter::new(
        "Communication overhead",
        "The paper states that its workflow sends nothing but gradients. Wasserstein weights need \
         the label histograms of the devices once. The running statistics of batch norm are not \
         sent: the base station computes them on public images. The base station allocates \
         budgets from values that it receives anyway.",
    )
    .table(table)
}

/// LAPA with FedAvg weights, which read no labels.
fn alone() -> Curve {
    curve().with("aggregate.rule=fedavg")
}

/// Multiply-adds of a gradient for one sample: the network's dense layers, forward and back.
const PER_SAMPLE: f64 = 1_297_500.0;

/// Part of a round's multiply-adds that LAPA takes, in percent: three inner products for each device's
/// angle, and the differences of a window of global gradients.
fn lapa_percent(finished: &Finished, window: f64, samples: f64) -> f64 {
    let products = 3.0 * f64::from(finished.summary.devices) + window;
    100.0 * products * PARAMETERS as f64 / (samples * PER_SAMPLE)
}

pub fn claims(_: Scope) -> Vec<Claim> {
    let beside = |who: &str, curve: Curve| {
        let what = format!("{who}: one byte, less those on the uplink that are no gradients");
        Contrast::new(what, "bytes", vec![curve], |cells| {
            let beside = |run: &&Finished| 1.0 - Bytes::from_run(run).histograms as f64;
            cells[0].iter().map(beside).collect()
        })
        .exact()
    };
    vec![
        Claim::new(
            "6a",
            "LAPA needs nothing but gradients on the uplink",
            vec![beside("LAPA with FedAvg weights", alone())],
        ),
        Claim::new(
            "6b",
            "The whole workflow needs nothing but gradients on the uplink",
            vec![beside("LAPA with Wasserstein weights", curve())],
        ),
        Claim::new(
            "12",
            "LAPA is lightweight: less than a percent of the training's arithmetic",
            vec![
                Contrast::new(
                    "one percent, less LAPA's part of the multiply-adds of all devices in a round",
                    "percent",
                    vec![curve()],
                    |cells| {
                        // A tenth of all images in a batch; m = 5.
                        let left = |run: &&Finished| 1.0 - lapa_percent(run, 5.0, 6_000.0);
                        cells[0].iter().map(left).collect()
                    },
                )
                .exact(),
            ],
        ),
    ]
}
