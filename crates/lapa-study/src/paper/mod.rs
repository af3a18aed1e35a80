//! The paper's evaluation: its figures, and what became of its claims.
//!
//! Every figure is a file: which cells it needs, how it is drawn, which claims it judges.

mod aggregation;
mod allocators;
mod chapter;
mod complexity;
pub mod curve;
mod gains;
mod heterogeneity;
mod layout;
mod learning_rate;
mod mechanism;
mod noise_control;
mod noise_levels;
mod overhead;
mod total_power;
mod verdict;
mod workflow;
mod write;

use lapa::config::ConfigError;

pub use chapter::{Chapter, Drawing, Picture};
pub(crate) use chapter::{band, shown, shown_gain};
pub use complexity::{Complexity, measure as measure_complexity};
pub use curve::{Base, Curve, Settings};
pub use verdict::{Comparison, Test, Verdict, Word};
pub use write::write_all;
pub(crate) use write::{figures_folder, write_json, write_pages};

use crate::cell::{Cell, Finished};
use crate::store::Results;

/// The data sets of the paper: as configured, as written.
pub(crate) const DATA: [(&str, &str); 2] = [("mnist", "MNIST"), ("fashion-mnist", "Fashion-MNIST")];

/// A figure of the paper.
#[derive(Clone, Copy)]
pub struct PaperFigure {
    /// Its name on the command line.
    pub name: &'static str,
    /// The curves whose cells it needs.
    curves: fn() -> Vec<Curve>,
    /// Its chapter of the report.
    chapter: fn(&Seen) -> Chapter,
    /// The claims it judges.
    judge: fn(&Seen) -> Vec<Verdict>,
}

const fn figure(
    name: &'static str,
    curves: fn() -> Vec<Curve>,
    chapter: fn(&Seen) -> Chapter,
    judge: fn(&Seen) -> Vec<Verdict>,
) -> PaperFigure {
    PaperFigure { name, curves, chapter, judge }
}

fn no_claim(_: &Seen) -> Vec<Verdict> {
    Vec::new()
}

/// All figures, in the paper's order.
pub const FIGURES: [PaperFigure; 12] = [
    figure("workflow", overhead::curves, workflow::chapter, no_claim),
    figure("mechanism", mechanism::curves, mechanism::chapter, no_claim),
    figure("layout", Vec::new, layout::chapter, no_claim),
    figure("aggregation", aggregation::curves, aggregation::chapter, aggregation::judge),
    figure("noise-levels", noise_levels::curves, noise_levels::chapter, noise_levels::judge),
    figure("heterogeneity", heterogeneity::curves, heterogeneity::chapter, heterogeneity::judge),
    figure("noise-control", noise_control::curves, noise_control::chapter, noise_control::judge),
    figure("total-power", total_power::curves, total_power::chapter, total_power::judge),
    figure("complexity", Vec::new, complexity::chapter, no_claim),
    figure("overhead", overhead::curves, overhead::chapter, overhead::judge),
    figure("learning-rate", learning_rate::curves, learning_rate::chapter, learning_rate::judge),
    figure("as-printed", gains::curves, gains::chapter, no_claim),
];

/// The cells of some figures, in their order; the same cell may come twice.
pub fn cells(figures: &[PaperFigure], settings: Settings) -> Result<Vec<Cell>, ConfigError> {
    curve::cells(figures.iter().flat_map(|figure| (figure.curves)()), settings)
}

/// Verdicts on the claims of some figures; on all claims if those are all figures.
pub fn verdicts(figures: &[PaperFigure], seen: &Seen) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> =
        figures.iter().flat_map(|figure| (figure.judge)(seen)).collect();
    if figures.len() == FIGURES.len() {
        let statement = "The risk of privacy leakage falls about exponentially over the rounds (not \
                         tested here; see `lapa audit --attack inversion`)";
        verdicts.push(Verdict::new("8", statement, Vec::new()));
    }
    verdicts.sort_by(|a, b| a.claim.cmp(&b.claim));
    verdicts
}

/// Results of the cells.
pub struct Seen<'a> {
    /// Seeds and rounds that were run.
    pub settings: Settings,
    /// The results.
    pub results: &'a Results,
    /// Times of DDPG, where they were measured.
    pub complexity: Option<Complexity>,
}

impl Seen<'_> {
    /// Results of the cells of a curve, seed by seed; none if any is missing.
    pub fn finished(&self, curve: &Curve) -> Option<Vec<&Finished>> {
        self.results.all(&curve.cells(self.settings).ok()?)
    }

    /// Result of a curve with the first seed.
    pub fn first(&self, curve: &Curve) -> Option<&Finished> {
        self.finished(curve)?.first().copied()
    }

    /// The largest value over the cells of a curve.
    pub fn most(&self, curve: &Curve, value: impl Fn(&Finished) -> f64) -> Option<f64> {
        self.each(curve, value)?.into_iter().reduce(f64::max)
    }

    /// Something of each cell of a curve.
    pub fn each(&self, curve: &Curve, value: impl Fn(&Finished) -> f64) -> Option<Vec<f64>> {
        Some(self.finished(curve)?.into_iter().map(value).collect())
    }

    /// Final accuracies in percent.
    pub fn accuracies(&self, curve: &Curve) -> Option<Vec<f64>> {
        self.each(curve, |finished| 100.0 * finished.accuracy())
    }

    /// Differences of final accuracies in points, seed by seed.
    pub fn gains(&self, over: &Curve, of: &Curve) -> Option<Vec<f64>> {
        difference(self.accuracies(of), self.accuracies(over))
    }
}

/// `a - b`, seed by seed.
pub(crate) fn difference(a: Option<Vec<f64>>, b: Option<Vec<f64>>) -> Option<Vec<f64>> {
    Some(a?.iter().zip(b?).map(|(a, b)| a - b).collect())
}
