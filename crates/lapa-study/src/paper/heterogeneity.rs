//! Convergence under mixes of IID and non-IID devices (Section V-C, second figure): claim 4.

use super::allocators::Allocator;
use lapa_report::plot::Panels;

use super::chapter::{Chapter, Drawing, accuracy_table, convergence_figure, gains_figure};
use super::claim::{Claim, Contrast, percent};
use super::curve::{Base, base};
use super::{Curve, DATA, Evidence, Scope};

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

/// The gap of LAPA to no DP at 3 + 12, less that at 9 + 6.
fn closing_gap(name: &str, data: &str) -> Contrast {
    let gap = |iid| {
        let [none, lapa, ..] = all(data, iid);
        [none, lapa]
    };
    let what = format!("{name}: gap to no DP at 3 + 12 minus the gap at 9 + 6");
    Contrast::new(what, "points", [gap(3), gap(9)].concat(), |cells| {
        let of = |curve: usize, seed: usize| percent(cells[curve][seed]);
        let gap = |none, seed| of(none, seed) - of(none + 1, seed);
        (0..cells[0].len()).map(|seed| gap(0, seed) - gap(2, seed)).collect()
    })
}

pub fn claims(scope: Scope) -> Vec<Claim> {
    let mut claims = [
        Claim::new("4a", "LAPA beats uniform DP at every mix of devices", Vec::new()),
        Claim::new("4b", "LAPA beats ARB at every mix of devices", Vec::new()),
        Claim::new("4c", "LAPA approaches no DP as the share of IID devices grows", Vec::new()),
        Claim::new("4d", "With all devices IID, LAPA converges faster than no DP", Vec::new()),
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
        closing.contrasts.push(closing_gap(name, data));
        let [none, lapa, ..] = all(data, DEVICES);
        let what = format!("{name}, 15 + 0: LAPA over no DP, mean accuracy of all evaluations");
        let mean = |finished: &crate::cell::Finished| 100.0 * finished.mean_accuracy();
        faster.contrasts.push(Contrast::of_each(what, "points", [&lapa, &none], mean));
        let what = format!("{name}, 15 + 0: no DP over LAPA, final accuracy");
        below.contrasts.push(Contrast::gain(what, &lapa, &none));
    }
    claims.into()
}
