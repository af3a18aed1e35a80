//! The best learning rate, and the largest stable one, by heterogeneity (after Theorem 1): claim 9.

use lapa_report::plot::Figure;

use super::chapter::{Chapter, accuracy_table, against, alone};
use super::claim::{Claim, Contrast};
use super::curve::{Base, base};
use super::{Curve, Evidence, Scope};
use crate::cell::Finished;

const BASE: Base = base!("paper/learning-rate.toml");

/// Learning rates, a factor of 2 apart.
const RATES: [f64; 6] = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6];

/// IID devices of 15: the fewer, the more the devices differ.
const MIXES: [u32; 3] = [15, 5, 0];

fn curve(iid: u32, rate: f64) -> Curve {
    Curve::new(format!("{iid} IID + {} non-IID", 15 - iid), BASE)
        .with(format!("partition.mix.iid={iid}"))
        .with(format!("partition.mix.non_iid={}", 15 - iid))
        .with(format!("learn.learning_rate={rate}"))
}

/// Something of a seed's cells, one for each rate, in octaves.
type Octaves = fn(&[&Finished]) -> f64;

/// log₂ of the rate with the best accuracy.
fn best(rates: &[&Finished]) -> f64 {
    let by_accuracy = |a: &usize, b: &usize| rates[*a].accuracy().total_cmp(&rates[*b].accuracy());
    (0..rates.len()).max_by(by_accuracy).map_or(f64::NAN, |at| RATES[at].log2())
}

/// log₂ of the largest rate with which the run keeps a finite loss and learns: an accuracy of at least
/// a half at its end. One octave below the least if none does.
fn limit(rates: &[&Finished]) -> f64 {
    let is_stable =
        |finished: &&Finished| finished.diverged.is_none() && finished.accuracy() >= 0.5;
    rates.iter().rposition(is_stable).map_or(RATES[0].log2() - 1.0, |at| RATES[at].log2())
}

/// Octaves between the rates of two mixes.
fn contrast(what: &str, [of, over]: [u32; 2], octaves: Octaves) -> Contrast {
    let what = format!("{what}, {of} + {} over {over} + {}", 15 - of, 15 - over);
    let curves = [of, over].map(|iid| RATES.map(|rate| curve(iid, rate)));
    Contrast::new(what, "octaves", curves.concat(), move |cells| {
        let (of, over) = cells.split_at(RATES.len());
        let rate = |cells: &[Vec<&Finished>], seed: usize| {
            octaves(&cells.iter().map(|rate| rate[seed]).collect::<Vec<_>>())
        };
        (0..cells[0].len()).map(|seed| rate(of, seed) - rate(over, seed)).collect()
    })
}

pub fn curves() -> Vec<Curve> {
    let over_rates = |iid| RATES.map(|rate| curve(iid, rate));
    MIXES.into_iter().flat_map(over_rates).collect()
}

pub fn chapter(evidence: &Evidence) -> Chapter {
    let figure = Figure::new("", "Learning rate", "Test accuracy");
    let lines = |iid| RATES.map(|rate| (rate, curve(iid, rate)));
    let figure = MIXES
        .into_iter()
        .filter_map(|iid| against(evidence, &curve(iid, 1.0).name, lines(iid)))
        .fold(figure.percent().log_x(), Figure::line);
    let rows = MIXES.map(|iid| {
        let curves = RATES.map(|rate| curve(iid, rate));
        (curves[0].name.clone(), curves.to_vec())
    });
    Chapter::new(
        "Learning rate and heterogeneity",
        "Plain gradients on MNIST without momentum and noise, with FedAvg weights, for several \
         learning rates. The paper's convergence condition requires a smaller rate the more the \
         devices differ. Rates end at 1.6: where both mixes still learn there, their limits count as \
         equal.",
    )
    .picture(
        "learning-rate",
        "At which rate does each curve peak, and up to which rate does it still learn?",
        alone("Accuracy against learning rate", figure),
    )
    .table(accuracy_table(evidence, "Devices", RATES.map(|r| format!("λ = {r}")), rows))
}

pub fn claims(_: Scope) -> Vec<Claim> {
    let all = |what, octaves| -> Vec<Contrast> {
        [[15, 5], [15, 0]].into_iter().map(|mixes| contrast(what, mixes, octaves)).collect()
    };
    vec![
        Claim::new(
            "9a",
            "The more the devices' data differ, the smaller is the best learning rate",
            all("best learning rate", best),
        ),
        Claim::new(
            "9b",
            "The more the devices' data differ, the smaller is the largest stable learning rate",
            all("largest stable learning rate", limit),
        ),
    ]
}
