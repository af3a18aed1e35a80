//! Convergence under mixes of IID and non-IID devices (Section V-C, second figure): claims 4
//! and 4b.

use super::allocators::Allocator;
use lapa_report::plot::Panels;

use super::chapter::{Chapter, Drawing, accuracy_table, convergence_figure};
use super::curve::{Base, base};
use super::{Comparison, Curve, DATA, Seen, Verdict, difference};

const BASE: Base = base!("paper/privacy.toml");

/// IID devices of 15. The paper's label says 0 + 15 where its text is about 15 + 0: both are here.
const MIXES: [u32; 6] = [3, 5, 7, 9, 0, 15];
const DEVICES: u32 = 15;

/// Noise of the first round: where the allocators differ, and all still learn.
const SIGMA: f64 = 0.2;

fn mix(iid: u32) -> String {
    format!("{iid} + {}", DEVICES - iid)
}

fn curve(allocator: Allocator, data: &str, iid: u32) -> Curve {
    allocator
        .curve(BASE, SIGMA)
        .with(format!("data.name={data}"))
        .with(format!("partition.mix.iid={iid}"))
        .with(format!("partition.mix.non_iid={}", DEVICES - iid))
}

fn all(data: &str, iid: u32) -> [Curve; 4] {
    Allocator::ALL.map(|allocator| curve(allocator, data, iid))
}

pub fn curves() -> Vec<Curve> {
    DATA.into_iter()
        .flat_map(|(data, _)| MIXES.into_iter().flat_map(|iid| all(data, iid)))
        .collect()
}

pub fn chapter(seen: &Seen) -> Chapter {
    let mut panels = Panels::new("Convergence by mix of devices").columns(MIXES.len()).share_y();
    let [mnist, fashion] = DATA.map(|(data, name)| {
        let rows = Allocator::ALL.map(|allocator| {
            let curves = MIXES.map(|iid| curve(allocator, data, iid));
            (allocator.name().to_owned(), curves.to_vec())
        });
        accuracy_table(seen, name, MIXES.map(mix), rows)
    });
    for (data, name) in DATA {
        for iid in MIXES {
            let title = format!("{name}, {}", mix(iid));
            panels = panels.panel(convergence_figure(seen, &title, &all(data, iid)));
        }
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
    .table(mnist)
    .table(fashion)
}

pub fn judge(seen: &Seen) -> Vec<Verdict> {
    let (mut mixes, mut all_iid) = (Vec::new(), Vec::new());
    for (data, name) in DATA {
        for iid in MIXES {
            let [_, lapa, arb, uniform] = all(data, iid);
            for other in [uniform, arb] {
                let what = format!("{name}, {}: LAPA over {}", mix(iid), other.name);
                mixes.push(Comparison::positive(what, None, seen.gains(&other, &lapa)));
            }
        }
        let [none, lapa, ..] = all(data, DEVICES);
        let gap = |iid| {
            let [none, lapa, ..] = all(data, iid);
            seen.gains(&lapa, &none)
        };
        let what = format!("{name}: gap to no DP at 3 + 12 minus the gap at 9 + 6");
        mixes.push(Comparison::positive(what, None, difference(gap(3), gap(9))));

        let mean = |curve| seen.each(curve, |finished| 100.0 * finished.mean_accuracy());
        let what = format!("{name}, 15 + 0: LAPA over no DP, mean accuracy of all evaluations");
        all_iid.push(Comparison::positive(what, None, difference(mean(&lapa), mean(&none))));
        let what = format!("{name}, 15 + 0: no DP over LAPA, final accuracy");
        all_iid.push(Comparison::positive(what, None, seen.gains(&lapa, &none)));
    }
    let statement = "LAPA beats uniform DP and ARB at every mix, and approaches no DP as the \
                     fraction of IID devices grows";
    let faster = "With all devices IID, LAPA converges slightly faster than no DP and ends \
                  slightly below it";
    vec![Verdict::new("4", statement, mixes), Verdict::new("4b", faster, all_iid)]
}
