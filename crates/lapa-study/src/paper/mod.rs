//! The paper's evaluation: its figures, and what became of its claims.
//!
//! Every figure is a file: which cells it needs, how it is drawn, which claims it judges.

mod aggregation;
mod allocators;
mod chapter;
mod complexity;
pub mod curve;
mod heterogeneity;
mod layout;
mod learning_rate;
mod mechanism;
mod noise_control;
mod noise_levels;
mod overhead;
mod runaway;
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
pub(crate) use write::{write_json, write_pages};

use crate::cell::{Cell, Finished};
use crate::store::Results;

/// The data sets of the paper: as configured, as written.
pub(crate) const DATA: [(&str, &str); 2] = [("mnist", "MNIST"), ("fashion-mnist", "Fashion-MNIST")];

/// A figure of the paper.
pub trait PaperFigure: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// The curves whose cells it needs.
    fn curves(&self) -> Vec<Curve>;

    /// What it adds to the report.
    fn chapter(&self, seen: &Seen) -> Chapter;

    /// The claims it judges.
    fn judge(&self, seen: &Seen) -> Vec<Verdict>;
}

/// All figures, in the paper's order.
pub fn figures() -> [&'static dyn PaperFigure; 12] {
    [
        &workflow::Workflow,
        &mechanism::Mechanism,
        &layout::Layout,
        &aggregation::Aggregation,
        &noise_levels::NoiseLevels,
        &heterogeneity::Heterogeneity,
        &noise_control::NoiseControl,
        &total_power::TotalPower,
        &complexity::ComplexityFigure,
        &overhead::Overhead,
        &learning_rate::LearningRate,
        &runaway::Runaway,
    ]
}

/// The cells of some figures, in their order; the same cell may come twice.
pub fn cells(figures: &[&dyn PaperFigure], settings: Settings) -> Result<Vec<Cell>, ConfigError> {
    let mut cells = Vec::new();
    for figure in figures {
        for curve in figure.curves() {
            cells.extend(curve.cells(settings)?);
        }
    }
    Ok(cells)
}

/// What became of the claims of some figures; of all claims if those are all figures.
pub fn verdicts(figures: &[&dyn PaperFigure], seen: &Seen) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = figures.iter().flat_map(|figure| figure.judge(seen)).collect();
    if figures.len() == self::figures().len() {
        let statement = "The risk of privacy leakage falls about exponentially over the rounds (not \
                         tested here; see `lapa audit --attack inversion`)";
        verdicts.push(Verdict::new("8", statement, Vec::new()));
    }
    verdicts.sort_by(|a, b| a.claim.cmp(&b.claim));
    verdicts
}

/// What the cells left.
pub struct Seen<'a> {
    /// How much was run.
    pub settings: Settings,
    /// The results.
    pub results: &'a Results,
    /// Times of DDPG, where they were measured.
    pub complexity: Option<Complexity>,
}

impl Seen<'_> {
    /// What the cells of a curve left, seed by seed; none if any is missing.
    pub fn finished(&self, curve: &Curve) -> Option<Vec<&Finished>> {
        self.results.all(&curve.cells(self.settings).ok()?)
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
