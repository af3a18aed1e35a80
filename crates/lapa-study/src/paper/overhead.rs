//! Traffic beside gradients (the workflow's caption): claim 6.

use super::chapter::Chapter;
use super::curve::{Base, base};
use super::{Comparison, Curve, Seen, Test, Verdict};
use crate::cell::Finished;
use crate::report::Table;

const BASE: Base = base!("paper/privacy.toml");

/// Parameters of the paper's network, of 4 bytes each.
pub(super) const PARAMETERS: u64 = 21_880;

/// LAPA with the file's noise: the run whose bytes are counted.
pub(super) fn curve() -> Curve {
    super::allocators::Allocator::Lapa.curve(BASE, 0.2)
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
    pub fn of(finished: &Finished) -> Self {
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

pub fn chapter(seen: &Seen) -> Chapter {
    let headers = ["Content", "Direction", ">total bytes", ">fraction of the uplink"];
    let caption = "One run of LAPA on MNIST, all rounds and devices.";
    let mut table = Table::new(caption, &headers);
    if let Some(finished) = seen.first(&curve()) {
        let bytes = Bytes::of(finished);
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

pub fn judge(seen: &Seen) -> Vec<Verdict> {
    let ours = seen.each(&curve(), |finished| Bytes::of(finished).histograms as f64);
    let what = "uplink bytes that are not gradients: label histograms, once";
    let comparison = Comparison::new(what, "bytes", Test::Within(0.0), Some(0.0), ours);
    let statement = "Nothing but gradients is sent";
    vec![Verdict::new("6", statement, vec![comparison])]
}
