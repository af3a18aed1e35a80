//! Accuracy against total power (Section IV-B): claim 7.

use lapa_report::plot::{Figure, Panels, Series};

use super::chapter::{Chapter, Drawing, accuracy_table, against, band};
use super::noise_control::{BASE, Switch};
use super::{Comparison, Curve, Seen, Verdict};
use crate::cell::Finished;

/// Total powers in watts, a factor of 4 apart; the third is that of the other figures.
const POWERS_W: [f64; 6] = [0.000_703_125, 0.002_812_5, 0.01125, 0.045, 0.18, 0.72];

fn curve(switch: Switch, power_w: f64) -> Curve {
    let curve = Curve::new(switch.name(), BASE).with(format!("control.total_power_w={power_w}"));
    switch.apply(curve)
}

pub fn curves() -> Vec<Curve> {
    let over_powers = |switch| POWERS_W.map(|power_w| curve(switch, power_w));
    Switch::ALL.into_iter().flat_map(over_powers).collect()
}

pub fn chapter(seen: &Seen) -> Chapter {
    let label = "Total power (W)";
    let accuracy = Figure::new("Accuracy", label, "Test accuracy").percent().log_x();
    let bound = Figure::new("Noise terms of the bound", label, "J").log_x().log_y();
    let lines = |switch: Switch| POWERS_W.map(|power_w| (power_w, curve(switch, power_w)));
    let accuracy = Switch::ALL
        .into_iter()
        .filter_map(|switch| against(seen, switch.name(), lines(switch)))
        .fold(accuracy, Figure::line);
    let objective = |(x, curve)| {
        let own = |run: &Finished| run.objective.map_or(f64::NAN, |objective| objective.own);
        let values = seen.each(&curve, own);
        Some(band(x, &values?))
    };
    let bound = Switch::ALL.into_iter().fold(bound, |figure, switch| {
        let points = lines(switch).into_iter().filter_map(objective);
        figure.line(Series::with_band(switch.name(), points))
    });
    let columns = POWERS_W.map(|power_w| format!("{} mW", (1e4 * power_w).round() / 10.0));
    let rows = Switch::ALL.map(|switch| {
        let curves = POWERS_W.map(|power_w| curve(switch, power_w));
        (switch.name().to_owned(), curves.to_vec())
    });
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
    .table(accuracy_table(seen, "Switch", columns, rows))
}

pub fn judge(seen: &Seen) -> Vec<Verdict> {
    let mut comparisons = Vec::new();
    for switch in Switch::ALL {
        let [least, between @ .., most] = POWERS_W.map(|power_w| curve(switch, power_w));
        // The best on the average of the powers in between: chosen in favor of the claim.
        let mean = |curve: &Curve| {
            let all = seen.accuracies(curve)?;
            Some(all.iter().sum::<f64>() / all.len() as f64)
        };
        let best = between
            .iter()
            .filter_map(|curve| Some((mean(curve)?, curve)))
            .max_by(|(a, _), (b, _)| a.total_cmp(b))
            .map(|(_, curve)| curve);
        let gains = |over: &Curve| seen.gains(over, best?);
        let what = |text: &str| format!("{}: best intermediate power over {text}", switch.name());
        comparisons.extend([
            Comparison::positive(what("the lowest"), None, gains(&least)),
            Comparison::positive(what("the highest"), None, gains(&most)),
        ]);
    }
    let statement =
        "Transmit power has an intermediate optimum: too much hurts, and so does too little";
    vec![Verdict::new("7", statement, comparisons)]
}
