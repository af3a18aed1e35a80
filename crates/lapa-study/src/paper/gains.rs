//! The PID-like error as printed, and the gains with which it trains (Section III-B).

use super::allocators::Allocator;
use lapa_report::plot::{Figure, Panels, Series};

use super::chapter::{Chapter, Drawing, convergence_figure};
use super::curve::{Base, base};
use super::{Curve, Evidence};

const BASE: Base = base!("paper/privacy.toml");

fn relative() -> Curve {
    let mut curve = Allocator::Lapa.curve(BASE).with("privacy.lapa.error=relative");
    curve.name = "relative change, K = 0.1".into();
    curve
}

/// K_p = K_s of the printed norm: the first is its default.
const GAINS: [f64; 4] = [0.003, 0.01, 0.03, 0.1];

fn printed(gain: f64) -> Curve {
    let mut curve = Allocator::Lapa
        .curve(BASE)
        .with(format!("privacy.lapa.proportional={gain}"))
        .with(format!("privacy.lapa.integral={gain}"));
    curve.name = format!("as printed, K = {gain}");
    curve
}

pub fn curves() -> Vec<Curve> {
    std::iter::once(relative()).chain(GAINS.map(printed)).collect()
}

pub fn chapter(evidence: &Evidence) -> Chapter {
    let curves = curves();
    let noise = Figure::new("Required noise", "Round", "Standard deviation").log_y();
    let noise = curves
        .iter()
        .filter_map(|curve| {
            let points = evidence
                .first(curve)?
                .rounds
                .iter()
                .filter_map(|round| Some((f64::from(round.round), round.sigma_required?)));
            Some(Series::new(&curve.name, points))
        })
        .fold(noise, Figure::line);
    let accuracy = convergence_figure(evidence, "Accuracy", &curves);
    Chapter::new(
        "The PID-like error as printed",
        "The paper prints the norm of the change of the global gradient, and no gains; our own form \
         is the relative change. Noise increases the printed error, a larger error decreases the budget, \
         and a smaller budget needs more noise. With small gains this settles; with K·σ_g·√(2q) above \
         about 0.37, σ_g the noise on the global gradient, it does not.",
    )
    .picture(
        "as-printed",
        "With which gains does the printed norm train? (Noise: median over the devices, first seed.)",
        Drawing::Panels(Panels::new("LAPA as printed").columns(2).panel(noise).panel(accuracy)),
    )
}
