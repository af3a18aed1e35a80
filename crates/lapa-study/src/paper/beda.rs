//! BEDA over noisy links: why it fails there, and a repair of ours.

use lapa_report::plot::{Figure, Panels, Series};

use super::chapter::{Chapter, Drawing, band, convergence_figure};
use super::claim::{Claim, Contrast};
use super::curve::{Base, base};
use super::{Curve, Evidence, Scope};

const BASE: Base = base!("paper/aggregation.toml");

/// FedAvg, BEDA, and BEDA with angles to the mean of the others.
fn rules() -> [Curve; 3] {
    let beda = Curve::new("BEDA", BASE).with("aggregate.rule=fedadp");
    let mut repaired = beda.clone().with("aggregate.fedadp.reference=leave-one-out");
    repaired.name = "BEDA, angles to the others (ours)".into();
    [Curve::new("FedAvg", BASE).with("aggregate.rule=fedavg"), beda, repaired]
}

pub fn curves() -> Vec<Curve> {
    rules().into()
}

/// Weight of the third of the devices with the worst links, over rounds and seeds.
fn weight(evidence: &Evidence, curve: &Curve) -> Option<Series> {
    let cells = evidence.finished(curve)?;
    let rounds = cells.iter().map(|cell| cell.rounds.len()).min()?;
    let points = (0..rounds).filter_map(|at| {
        let weights = cells.iter().map(|cell| cell.rounds[at].weight_of_worst);
        let weights: Vec<f64> = weights.collect::<Option<_>>()?;
        Some(band(f64::from(cells[0].rounds[at].round), &weights))
    });
    let points: Vec<_> = points.collect();
    (!points.is_empty()).then(|| Series::with_band(&curve.name, points))
}

pub fn chapter(evidence: &Evidence) -> Chapter {
    let rules = rules();
    let title = "Weight of the third with the worst links";
    let figure = Figure::new(title, "Round", "Sum of the weights").percent();
    let weights =
        rules.iter().filter_map(|curve| weight(evidence, curve)).fold(figure, Figure::line);
    let accuracy = convergence_figure(evidence, "Accuracy", &rules);
    Chapter::new(
        "BEDA over noisy links",
        "BEDA gives weight to devices whose gradients point where the mean points. Bit errors make an \
         update long, a long update turns the mean toward itself, and so the devices with the worst \
         links seem to agree best. Angles to the mean of the others, which is no part of the paper, \
         take that advantage away. MNIST, digital links, no selection.",
    )
    .picture(
        "beda",
        "How much weight does each rule give to the devices with the worst links?",
        Drawing::Panels(Panels::new("BEDA over noisy links").columns(2).panel(weights).panel(accuracy)),
    )
}

pub fn claims(_: Scope) -> Vec<Claim> {
    let [fedavg, beda, repaired] = rules();
    vec![Claim::new(
        "1d",
        "BEDA with angles to the other devices is better over noisy links (ours, not the paper's)",
        vec![
            Contrast::gain("angles to the others over BEDA", &beda, &repaired),
            Contrast::gain("angles to the others over FedAvg", &fedavg, &repaired),
        ],
    )]
}
