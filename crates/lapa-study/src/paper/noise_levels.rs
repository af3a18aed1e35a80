//! Final accuracy against the initial noise (Section V-C, first figure): claims 3 and 15.

use super::allocators::Allocator;
use lapa_report::plot::Figure;

use super::chapter::{Chapter, accuracy_table, against, alone};
use super::claim::{Claim, Contrast};
use super::curve::{Base, base};
use super::{Curve, Evidence, Scope};
use crate::cell::Finished;

const BASE: Base = base!("paper/privacy.toml");

/// Standard deviations of the noise in round 1.
const SIGMAS: [f64; 5] = [0.05, 0.1, 0.2, 0.3, 0.5];
/// Those of the map of readings.
const MAP_SIGMAS: [f64; 3] = [0.05, 0.2, 0.5];

/// Largest difference that is "nearly equivalent", in points. The paper gives no number.
const NEARLY: f64 = 1.0;

pub fn curves() -> Vec<Curve> {
    let private = |sigma| Allocator::PRIVATE.map(|allocator| allocator.with_noise(BASE, sigma));
    let mut curves = vec![Allocator::None.curve(BASE)];
    curves.extend(SIGMAS.into_iter().flat_map(private));
    curves
}

pub fn chapter(evidence: &Evidence) -> Chapter {
    let figure = Figure::new("", "Initial noise σ₀ (round 1)", "Test accuracy");
    let figure = Allocator::ALL
        .into_iter()
        .filter_map(|allocator| {
            let points = SIGMAS.map(|sigma| (sigma, allocator.with_noise(BASE, sigma)));
            against(evidence, allocator.name(), points)
        })
        .fold(figure.percent(), Figure::line);
    let columns = SIGMAS.map(|sigma| format!("σ₀ = {sigma}"));
    let rows = Allocator::ALL.map(|allocator| {
        let curves = SIGMAS.map(|sigma| allocator.with_noise(BASE, sigma));
        (allocator.name().to_owned(), curves.to_vec())
    });
    Chapter::new(
        "Accuracy against initial noise",
        "Four budget allocators over ideal links. All methods with noise start with the same noise \
         in round 1. By the paper's formula they then have the same budget; by the proven ε they \
         do not.",
    )
    .picture(
        "noise-levels",
        "At which noise does each curve fall below no DP, and what is the order of the three \
         methods at large noise?",
        alone("Accuracy against initial noise, MNIST", figure),
    )
    .table(accuracy_table(evidence, "Method", columns, rows))
}

pub fn claims(scope: Scope) -> Vec<Claim> {
    let none = Allocator::None.curve(BASE);
    let of = |what: &str, pair: fn(&[Curve; 4]) -> [&Curve; 2], margin: f64| -> Vec<Contrast> {
        let contrast = |sigma: &f64| {
            let [lapa, arb, uniform] = Allocator::PRIVATE.map(|a| a.with_noise(BASE, *sigma));
            let curves = [none.clone(), lapa, arb, uniform];
            let [of, over] = pair(&curves);
            Contrast::gain(format!("σ₀ = {sigma}: {what}"), over, of).margin(margin)
        };
        scope.choose(&SIGMAS[..], &MAP_SIGMAS).iter().map(contrast).collect()
    };
    let kept = |sigma: &f64| {
        let lapa = Allocator::Lapa.with_noise(BASE, *sigma);
        let what = format!("σ₀ = {sigma}: claimed over proven ε of the worst device");
        Contrast::new(what, "nats", vec![lapa], |cells| {
            cells[0].iter().map(claimed_over_proven).collect()
        })
        .exact()
    };
    vec![
        Claim::new(
            "3a",
            "LAPA beats ARB at each initial noise level",
            of("LAPA over ARB", |[_, lapa, arb, _]| [lapa, arb], 0.0),
        ),
        Claim::new(
            "3b",
            "ARB beats uniform DP at each initial noise level",
            of("ARB over uniform", |[.., arb, uniform]| [arb, uniform], 0.0),
        ),
        Claim::new(
            "3c",
            "LAPA is nearly as good as no DP (at most a point behind)",
            of("LAPA over no DP", |[none, lapa, ..]| [lapa, none], NEARLY),
        ),
        Claim::new(
            "3d",
            "LAPA beats uniform DP at each initial noise level",
            of("LAPA over uniform", |[_, lapa, _, uniform]| [lapa, uniform], 0.0),
        ),
        Claim::new(
            "15",
            "LAPA keeps its budget: the noise of every run proves the ε that its formula reports",
            scope.choose(&SIGMAS[..], &MAP_SIGMAS).iter().map(kept).collect(),
        ),
    ]
}

/// ln of the ε that the paper's formula reports for a device over the proven one, both for the worst
/// device: below 0, the formula promises too much. Where nothing is proven, the least that there is.
fn claimed_over_proven(run: &&Finished) -> f64 {
    let privacy = &run.summary.privacy;
    (privacy.epsilon_claimed_worst / privacy.epsilon_provable).max(f64::MIN_POSITIVE).ln()
}
