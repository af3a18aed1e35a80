//! Parts of LAPA by themselves: its split over devices, and its schedule over rounds.

use lapa_report::plot::Panels;

use super::allocators::Allocator;
use super::chapter::{Chapter, Drawing, accuracy_table, convergence_figure};
use super::claim::{Claim, Contrast};
use super::curve::{Base, base};
use super::{Curve, Evidence, Scope};

const BASE: Base = base!("paper/privacy.toml");
const SIGMA: f64 = 0.2;
/// IID devices of 15.
const MIXES: [u32; 3] = [5, 0, 15];

/// Uniform DP, the two parts, both, and the split that is optimal for the noise in the bound.
fn parts(iid: u32) -> [Curve; 5] {
    let named = |name: &str, curve: Curve| Curve { name: name.into(), ..curve };
    let lapa = || Allocator::Lapa.curve(BASE);
    let silent =
        |curve: Curve| curve.with("privacy.lapa.proportional=0").with("privacy.lapa.integral=0");
    let optimal = Curve::new("optimal split", BASE).with("privacy.allocator=optimal-split");
    [
        named("uniform", Allocator::Uniform.curve(BASE)),
        named("split alone", silent(lapa())),
        named("schedule alone", lapa().with("privacy.lapa.split=equal")),
        named("both: LAPA", lapa()),
        optimal,
    ]
    .map(|curve| {
        curve
            .with(format!("partition.mix.iid={iid}"))
            .with(format!("partition.mix.non_iid={}", 15 - iid))
    })
}

fn mix(iid: u32) -> String {
    format!("{iid} + {}", 15 - iid)
}

pub fn curves() -> Vec<Curve> {
    MIXES.into_iter().flat_map(parts).collect()
}

pub fn chapter(evidence: &Evidence) -> Chapter {
    let panels =
        MIXES.into_iter().fold(Panels::new("Parts of LAPA").columns(3).share_y(), |panels, iid| {
            panels.panel(convergence_figure(evidence, &mix(iid), &parts(iid)))
        });
    let rows = (0..5).map(|part| {
        let curves = MIXES.map(|iid| parts(iid)[part].clone());
        (curves[0].name.clone(), curves.to_vec())
    });
    Chapter::new(
        "Ablation of LAPA",
        format!(
            "LAPA has two parts: a schedule over rounds (eqs. (10) to (12)) and a split over devices \
             (eqs. (13) to (16)). Each alone, both, and the split that makes the noise in the bound \
             least, on MNIST with σ₀ = {SIGMA} over ideal links, for three mixes of devices (IID + \
             non-IID)."
        ),
    )
    .picture("ablation", "Which part makes the gain?", Drawing::Panels(panels))
    .table(accuracy_table(evidence, "Part", MIXES.map(mix), rows))
}

pub fn claims(scope: Scope) -> Vec<Claim> {
    let of = |what: &str, [of, over]: [usize; 2]| -> Vec<Contrast> {
        let contrast = |iid: &u32| {
            let parts = parts(*iid);
            Contrast::gain(format!("{}: {what}", mix(*iid)), &parts[over], &parts[of])
        };
        scope.choose(&MIXES[..], &MIXES[..1]).iter().map(contrast).collect()
    };
    type Pair<'a> = (&'a str, [usize; 2]);
    let both = |a: Pair, b: Pair| of(a.0, a.1).into_iter().chain(of(b.0, b.1)).collect();
    vec![
        Claim::new(
            "14a",
            "LAPA's split over devices helps (ours, not the paper's)",
            both(("split alone over uniform", [1, 0]), ("both over schedule alone", [3, 2])),
        ),
        Claim::new(
            "14b",
            "LAPA's schedule over rounds helps (ours, not the paper's)",
            both(("schedule alone over uniform", [2, 0]), ("both over split alone", [3, 1])),
        ),
        Claim::new(
            "14c",
            "The split that makes the noise in the bound least beats LAPA (ours, not the paper's)",
            of("optimal split over LAPA", [4, 3]),
        ),
    ]
}
