//! The PID-like error as printed, which runs away.

use super::allocators::Allocator;
use lapa_report::plot::{Figure, Panels, Series};

use super::chapter::{Chapter, Drawing, Picture, convergence_figure};
use super::curve::{Base, base};
use super::{Curve, PaperFigure, Seen, Verdict};

const BASE: Base = base!("paper/privacy.toml");

/// Noise with the printed error beside noise with the relative one.
pub struct Runaway;

fn relative() -> Curve {
    Allocator::Lapa.curve(BASE, 0.2)
}

fn printed() -> Curve {
    let mut curve = relative().with("privacy.lapa.error=raw");
    curve.name = "LAPA as printed".into();
    curve
}

impl PaperFigure for Runaway {
    fn name(&self) -> &'static str {
        "as-printed"
    }

    fn curves(&self) -> Vec<Curve> {
        vec![relative(), printed()]
    }

    fn chapter(&self, seen: &Seen) -> Chapter {
        let curves = [relative(), printed()];
        let noise = Figure::new("Required noise", "Round", "Standard deviation").log_y();
        let noise = curves
            .iter()
            .filter_map(|curve| {
                let cells = seen.finished(curve)?;
                let rounds = cells.first()?.rounds.iter();
                let points = rounds
                    .filter_map(|round| Some((f64::from(round.round), round.sigma_required?)));
                Some(Series::new(&curve.name, points))
            })
            .fold(noise, Figure::line);
        let accuracy = convergence_figure(seen, "Accuracy", &curves);
        Chapter {
            title: "The PID-like error as printed".into(),
            text: "All other figures use the relative change of the global gradient; the paper \
                   prints its norm. The reason is a feedback loop: noise increases the printed \
                   error, a larger error decreases the budget, and a smaller budget needs more \
                   noise."
                .into(),
            pictures: vec![Picture {
                name: "as-printed".into(),
                caption:
                    "In the first rounds the noise of the printed form (median over the devices, \
                          seed 0) diverges."
                        .into(),
                drawing: Drawing::Panels(
                    Panels::new("LAPA as printed").columns(2).panel(noise).panel(accuracy),
                ),
            }],
            tables: Vec::new(),
        }
    }

    fn judge(&self, _: &Seen) -> Vec<Verdict> {
        Vec::new()
    }
}
