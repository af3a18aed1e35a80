//! Accuracy against total power (Section IV-B): claim 7.

use lapa_report::plot::{Figure, Panels, Series};

use super::chapter::{Chapter, Drawing, accuracy_table, against, band};
use super::claim::{Claim, Contrast, percent};
use super::noise_control::BASE;
use super::{Curve, Evidence, Scope};
use crate::cell::Finished;

/// Total powers in watts, a factor of 4 apart; the fourth is that of the other figures.
const POWERS_W: [f64; 6] = [0.006_25, 0.025, 0.1, 0.4, 1.6, 6.4];

fn curve(power_w: f64) -> Curve {
    let curve = Curve::new("LAPA", BASE).with("control.power=equal");
    curve.with(format!("control.total_power_w={power_w}"))
}

pub fn curves() -> Vec<Curve> {
    POWERS_W.map(curve).to_vec()
}

/// J by the rounds of a run.
fn objective(finished: &Finished) -> f64 {
    finished.objective.map_or(f64::NAN, |objective| objective.own)
}

pub fn chapter(evidence: &Evidence) -> Chapter {
    let label = "Total power (W)";
    let accuracy = Figure::new("Accuracy", label, "Test accuracy").percent().log_x();
    let bound = Figure::new("Noise terms of the bound", label, "J").log_x().log_y();
    let lines = POWERS_W.map(|power_w| (power_w, curve(power_w)));
    let accuracy =
        against(evidence, "LAPA", lines.clone()).into_iter().fold(accuracy, Figure::line);
    let points = lines
        .into_iter()
        .filter_map(|(x, curve)| Some(band(x, &evidence.each(&curve, objective)?)));
    let bound = bound.line(Series::with_band("LAPA", points));
    let columns = POWERS_W.map(|power_w| format!("{} mW", (1e4 * power_w).round() / 10.0));
    let rows = [("LAPA".to_owned(), curves())];
    Chapter::new(
        "Optimal total power",
        "LAPA on MNIST with equal power on every device, for total powers a factor of 4 apart. The \
         paper argues that too much power requires more artificial noise, and that too little \
         buries the update in noise.",
    )
    .picture(
        "total-power",
        "Is there a maximum of accuracy and a minimum of the bound between the two ends?",
        Drawing::Panels(Panels::new("Total power").columns(2).panel(accuracy).panel(bound)),
    )
    .table(accuracy_table(evidence, "Method", columns, rows))
}

/// By how much the best power between the ends beats an end, seed by seed. For each seed the best is
/// that of the mean over the other seeds, so that no seed is judged by its own choice.
fn best_between(cells: &[Vec<&Finished>], end: usize, value: fn(&Finished) -> f64) -> Vec<f64> {
    let between = &cells[1..cells.len() - 1];
    let judged = |seed: usize| {
        let others = |runs: &Vec<&Finished>| {
            let others = runs.iter().enumerate().filter(|(other, _)| *other != seed);
            others.map(|(_, run)| value(run)).sum::<f64>()
        };
        let best = between.iter().max_by(|a, b| others(a).total_cmp(&others(b)));
        value(best.unwrap_or(&cells[end])[seed]) - value(cells[end][seed])
    };
    (0..cells[end].len()).map(judged).collect()
}

pub fn claims(_: Scope) -> Vec<Claim> {
    let over = |what: &str, unit, end, value: fn(&Finished) -> f64| {
        let what = format!("best intermediate power over the {what}");
        Contrast::new(what, unit, curves(), move |cells| best_between(cells, end, value))
    };
    let most = POWERS_W.len() - 1;
    let less_noise = |run: &Finished| -objective(run).ln();
    vec![
        Claim::new(
            "7a",
            "Too little transmit power hurts",
            vec![over("lowest", "points", 0, percent)],
        ),
        Claim::new(
            "7b",
            "Too much transmit power hurts",
            vec![over("highest", "points", most, percent)],
        ),
        Claim::new(
            "7c",
            "Too much transmit power makes the noise terms of the bound worse",
            vec![over("highest, by the bound", "−ln J", most, less_noise)],
        ),
    ]
}
