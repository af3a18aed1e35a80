//! Final accuracy against the initial noise (Section V-C, first figure): claim 3.

use super::allocators::Allocator;
use lapa_report::plot::Figure;

use super::chapter::{Chapter, accuracy_table, against, alone};
use super::curve::{Base, base};
use super::{Comparison, Curve, Seen, Test, Verdict};

const BASE: Base = base!("paper/privacy.toml");

/// Standard deviations of the noise in round 1.
const SIGMAS: [f64; 5] = [0.05, 0.1, 0.2, 0.3, 0.5];

/// Largest difference that is "nearly equivalent", in points. The paper gives no number.
const NEARLY: f64 = 1.0;

pub fn curves() -> Vec<Curve> {
    let private = |sigma| Allocator::PRIVATE.map(|allocator| allocator.curve(BASE, sigma));
    let mut curves = vec![Allocator::None.curve(BASE, 0.0)];
    curves.extend(SIGMAS.into_iter().flat_map(private));
    curves
}

pub fn chapter(seen: &Seen) -> Chapter {
    let figure = Figure::new("", "Initial noise σ₀ (round 1)", "Test accuracy");
    let figure = Allocator::ALL
        .into_iter()
        .filter_map(|allocator| {
            let points = SIGMAS.map(|sigma| (sigma, allocator.curve(BASE, sigma)));
            against(seen, allocator.name(), points)
        })
        .fold(figure.percent(), Figure::line);
    let columns = SIGMAS.map(|sigma| format!("σ₀ = {sigma}"));
    let rows = Allocator::ALL.map(|allocator| {
        let curves = SIGMAS.map(|sigma| allocator.curve(BASE, sigma));
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
    .table(accuracy_table(seen, "Method", columns, rows))
}

pub fn judge(seen: &Seen) -> Vec<Verdict> {
    let none = Allocator::None.curve(BASE, 0.0);
    let mut comparisons = Vec::new();
    for sigma in SIGMAS {
        let [lapa, arb, uniform] = Allocator::PRIVATE.map(|a| a.curve(BASE, sigma));
        let what = |text: &str| format!("σ₀ = {sigma}: {text}");
        let gains = |over, of| seen.gains(over, of);
        comparisons.extend([
            Comparison::positive(what("LAPA over ARB"), None, gains(&arb, &lapa)),
            Comparison::positive(what("ARB over uniform"), None, gains(&uniform, &arb)),
            Comparison::new(
                what("no DP over LAPA, within one point"),
                "points",
                Test::Within(NEARLY),
                None,
                gains(&lapa, &none),
            ),
        ]);
    }
    let statement = "LAPA beats ARB and ARB beats uniform DP at each initial noise level, and \
                     LAPA is nearly as good as no DP";
    vec![Verdict::new("3", statement, comparisons)]
}
