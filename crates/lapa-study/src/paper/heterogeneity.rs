//! Convergence under mixes of IID and non-IID devices (Section V-C, second figure): claim 4.

use super::allocators::Allocator;
use lapa_report::plot::Panels;

use super::chapter::{Chapter, Drawing, accuracy_table, convergence_figure, gains_figure};
use super::claim::{Claim, Contrast, percent};
use super::curve::{Base, base};
use super::{Curve, DATA, Evidence, Scope};
use crate::cell::Finished;

const BASE: Base = base!("paper/privacy.toml");

/// IID devices of 15. The paper's label says 0 + 15 where its text is about 15 + 0: both are here.
const MIXES: [u32; 6] = [3, 5, 7, 9, 0, 15];
/// Those of the map of readings.
const MAP_MIXES: [u32; 4] = [3, 9, 0, 15];
const DEVICES: u32 = 15;

/// Noise of the first round: where the allocators differ, and all still learn.
const SIGMA: f64 = 0.2;

fn mix(iid: u32) -> String {
    format!("{iid} + {}", DEVICES - iid)
}

fn curve(allocator: Allocator, data: &str, iid: u32) -> Curve {
    let curve = allocator
        .curve(BASE)
        .with(format!("data.name={data}"))
        .with(format!("partition.mix.iid={iid}"))
        .with(format!("partition.mix.non_iid={}", DEVICES - iid));
    // Claim 4d is about all rounds of these.
    if iid == DEVICES { curve.over_rounds() } else { curve }
}

fn all(data: &str, iid: u32) -> [Curve; 4] {
    Allocator::ALL.map(|allocator| curve(allocator, data, iid))
}

pub fn curves() -> Vec<Curve> {
    DATA.into_iter()
        .flat_map(|(data, _)| MIXES.into_iter().flat_map(|iid| all(data, iid)))
        .collect()
}

pub fn chapter(evidence: &Evidence) -> Chapter {
    let mut panels = Panels::new("Convergence by mix of devices").columns(MIXES.len()).share_y();
    let [mnist, fashion] = DATA.map(|(data, name)| {
        let rows = Allocator::ALL.map(|allocator| {
            let curves = MIXES.map(|iid| curve(allocator, data, iid));
            (allocator.name().to_owned(), curves.to_vec())
        });
        accuracy_table(evidence, name, MIXES.map(mix), rows)
    });
    for (data, name) in DATA {
        for iid in MIXES {
            let title = format!("{name}, {}", mix(iid));
            panels = panels.panel(convergence_figure(evidence, &title, &all(data, iid)));
        }
    }
    let mut gains = Panels::new("Gains over rounds").columns(MAP_MIXES.len()).share_y();
    for iid in MAP_MIXES {
        let [_, lapa, arb, uniform] = all(DATA[0].0, iid);
        gains = gains.panel(gains_figure(evidence, &mix(iid), &uniform, &[lapa, arb]));
    }
    Chapter::new(
        "Convergence for mixes of IID and non-IID devices",
        format!(
            "The same four methods with σ₀ = {SIGMA}, for six mixes of 15 devices (IID + \
             non-IID). The last column of the paper's figure is labeled 0 + 15, but its text says \
             15 + 0: both are shown."
        ),
    )
    .picture(
        "heterogeneity",
        "How does the gap between LAPA and no DP change from left to right, and in the last \
         column, where all devices are IID?",
        Drawing::Panels(panels),
    )
    .picture(
        "heterogeneity-gains",
        "MNIST, gains over uniform DP: when does LAPA pull ahead?",
        Drawing::Panels(gains),
    )
    .table(mnist)
    .table(fashion)
}

/// Decline of LAPA's gap to no DP for each five IID devices more: −5 times the slope of the gap by
/// least squares over the mixes with IID devices.
fn closing_gap(name: &str, data: &str, mixes: &[u32]) -> Contrast {
    let iid: Vec<f64> = mixes.iter().filter(|iid| **iid > 0).map(|iid| f64::from(*iid)).collect();
    let gap = |iid: f64| {
        let [none, lapa, ..] = all(data, iid as u32);
        [none, lapa]
    };
    let curves = iid.iter().flat_map(|iid| gap(*iid)).collect();
    let what = format!("{name}: decline of the gap to no DP for each five IID devices more");
    Contrast::new(what, "points", curves, move |cells| {
        let mean = iid.iter().sum::<f64>() / iid.len() as f64;
        let squares: f64 = iid.iter().map(|iid| (iid - mean).powi(2)).sum();
        let decline = |seed: usize| {
            let gap =
                |mix: usize| percent(cells[2 * mix][seed]) - percent(cells[2 * mix + 1][seed]);
            let products = iid.iter().enumerate().map(|(mix, iid)| (iid - mean) * gap(mix));
            -5.0 * products.sum::<f64>() / squares
        };
        (0..cells[0].len()).map(decline).collect()
    })
}

/// Mean accuracy of the first half of the evaluations, in percent.
fn early(finished: &Finished) -> f64 {
    let accuracies: Vec<f64> = finished.evaluations().map(|(_, accuracy)| accuracy).collect();
    let half = &accuracies[..accuracies.len().div_ceil(2)];
    100.0 * half.iter().sum::<f64>() / half.len() as f64
}

/// Largest loss that is "slight", in points. The paper gives no number.
const SLIGHTLY: f64 = 1.0;

pub fn claims(scope: Scope) -> Vec<Claim> {
    let mut claims = [
        Claim::new("4a", "LAPA beats uniform DP at every mix of devices", Vec::new()),
        Claim::new("4b", "LAPA beats ARB at every mix of devices", Vec::new()),
        Claim::new("4c", "LAPA approaches no DP as the share of IID devices grows", Vec::new()),
        Claim::new(
            "4d",
            "With all devices IID, LAPA converges faster than no DP at first",
            Vec::new(),
        ),
        Claim::new("4e", "With all devices IID, LAPA ends slightly below no DP", Vec::new()),
    ];
    for &(data, name) in scope.data() {
        let [over_uniform, over_arb, closing, faster, below] = &mut claims;
        for &iid in scope.choose(&MIXES[..], &MAP_MIXES) {
            let [_, lapa, arb, uniform] = all(data, iid);
            let gain = |over: &Curve, other: &str| {
                Contrast::gain(format!("{name}, {}: LAPA over {other}", mix(iid)), over, &lapa)
            };
            over_uniform.contrasts.push(gain(&uniform, "uniform"));
            over_arb.contrasts.push(gain(&arb, "ARB"));
        }
        let mixes = scope.choose(&MIXES[..], &MAP_MIXES);
        closing.contrasts.push(closing_gap(name, data, mixes));
        let [none, lapa, ..] = all(data, DEVICES);
        let what = format!("{name}, 15 + 0: LAPA over no DP, mean accuracy of the first half");
        faster.contrasts.push(Contrast::of_each(what, "points", [&lapa, &none], early));
        let what = format!("{name}, 15 + 0: no DP over LAPA, final accuracy");
        below.contrasts.push(Contrast::gain(what, &lapa, &none));
        let what = format!("{name}, 15 + 0: LAPA over no DP, at most a point behind");
        below.contrasts.push(Contrast::gain(what, &none, &lapa).margin(SLIGHTLY));
    }
    claims.into()
}
