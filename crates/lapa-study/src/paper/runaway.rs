//! The PID-like error as printed, which runs away.

use super::allocators::Allocator;
use lapa_report::plot::{Figure, Panels, Series};

use super::chapter::{Chapter, Drawing, convergence_figure};
use super::curve::{Base, base};
use super::{Curve, Seen};

const BASE: Base = base!("paper/privacy.toml");

fn relative() -> Curve {
    Allocator::Lapa.curve(BASE, 0.2)
}

fn printed() -> Curve {
    let mut curve = relative().with("privacy.lapa.error=raw");
    curve.name = "LAPA as printed".into();
    curve
}

pub fn curves() -> Vec<Curve> {
    vec![relative(), printed()]
}

pub fn chapter(seen: &Seen) -> Chapter {
    let curves = curves();
    let noise = Figure::new("Required noise", "Round", "Standard deviation").log_y();
    let noise = curves
        .iter()
        .filter_map(|curve| {
            let points = seen
                .first(curve)?
                .rounds
                .iter()
                .filter_map(|round| Some((f64::from(round.round), round.sigma_required?)));
            Some(Series::new(&curve.name, points))
        })
        .fold(noise, Figure::line);
    let accuracy = convergence_figure(seen, "Accuracy", &curves);
    Chapter::new(
        "The PID-like error as printed",
        "All other figures use the relative change of the global gradient; the paper prints its \
         norm. The reason is a feedback loop: noise increases the printed error, a larger error \
         decreases the budget, and a smaller budget needs more noise.",
    )
    .picture(
        "as-printed",
        "In the first rounds the noise of the printed form (median over the devices, seed 0) \
         diverges.",
        Drawing::Panels(Panels::new("LAPA as printed").columns(2).panel(noise).panel(accuracy)),
    )
}
