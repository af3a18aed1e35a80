//! The largest learning rate that still learns, by heterogeneity (after Theorem 1): claim 9.

use lapa_report::plot::Figure;

use super::chapter::{Chapter, accuracy_table, against, alone};
use super::curve::{Base, base};
use super::{Comparison, Curve, Seen, Verdict, difference};

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

/// log₂ of the rate with the best accuracy, seed by seed.
fn best_rates(seen: &Seen, iid: u32) -> Option<Vec<f64>> {
    let all = RATES.map(|rate| seen.accuracies(&curve(iid, rate)));
    let all = all.into_iter().collect::<Option<Vec<_>>>()?;
    let best = |seed: usize| {
        let by_accuracy = |a: &usize, b: &usize| all[*a][seed].total_cmp(&all[*b][seed]);
        (0..RATES.len()).max_by(by_accuracy).map(|at| RATES[at].log2())
    };
    (0..seen.settings.seeds as usize).map(best).collect()
}

pub fn curves() -> Vec<Curve> {
    let over_rates = |iid| RATES.map(|rate| curve(iid, rate));
    MIXES.into_iter().flat_map(over_rates).collect()
}

pub fn chapter(seen: &Seen) -> Chapter {
    let figure = Figure::new("", "Learning rate", "Test accuracy");
    let lines = |iid| RATES.map(|rate| (rate, curve(iid, rate)));
    let figure = MIXES
        .into_iter()
        .filter_map(|iid| against(seen, &curve(iid, 1.0).name, lines(iid)))
        .fold(figure.percent().log_x(), Figure::line);
    let rows = MIXES.map(|iid| {
        let curves = RATES.map(|rate| curve(iid, rate));
        (curves[0].name.clone(), curves.to_vec())
    });
    Chapter::new(
        "Learning rate and heterogeneity",
        "Plain gradients on MNIST without momentum and noise, with FedAvg weights, for several \
         learning rates. The paper's convergence condition requires a smaller rate the more the \
         devices differ.",
    )
    .picture(
        "learning-rate",
        "At which rate does each curve peak, and up to which rate does it still learn?",
        alone("Accuracy against learning rate", figure),
    )
    .table(accuracy_table(seen, "Devices", RATES.map(|r| format!("λ = {r}")), rows))
}

pub fn judge(seen: &Seen) -> Vec<Verdict> {
    let [all, some, none] = MIXES.map(|iid| best_rates(seen, iid));
    let octaves = |what: &str, ours| {
        let what = format!("best learning rate, {what}");
        Comparison::new(what, "octaves", super::Test::Positive, None, ours)
    };
    let comparisons = vec![
        octaves("15 + 0 over 5 + 10", difference(all.clone(), some.clone())),
        octaves("5 + 10 over 0 + 15", difference(some, none.clone())),
        octaves("15 + 0 over 0 + 15", difference(all, none)),
    ];
    let statement = "The more the devices' data differ, the smaller the learning rate must be";
    vec![Verdict::new("9", statement, comparisons)]
}
