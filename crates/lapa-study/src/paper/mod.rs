//! The paper's evaluation: its figures, and what became of its claims.
//!
//! Every figure is a file: which cells it needs, how it is drawn, which claims it judges.

mod ablation;
mod aggregation;
mod allocators;
mod beda;
mod chapter;
pub mod claim;
mod complexity;
pub mod curve;
mod gains;
mod heterogeneity;
mod judged;
mod layout;
mod learning_rate;
mod map;
mod noise_control;
mod noise_levels;
mod noise_over_rounds;
mod overhead;
pub mod reading;
mod total_power;
mod verdict;
mod workflow;
mod write;

use lapa::config::ConfigError;

pub use chapter::{Chapter, Drawing, Picture};
pub(crate) use chapter::{band, shown, shown_gain};
pub use claim::{Claim, Contrast};
pub use complexity::{Complexity, measure as measure_complexity};
pub use curve::{Base, Curve, FIRST_SEED, MAP_SEEDS, Settings};
pub use reading::Reading;
pub use verdict::{Comparison, Finding, Standing, Tested, Verdict};
pub use write::write_all;
pub(crate) use write::{figures_folder, write_json, write_pages};

use crate::cell::{Cell, Finished};
use crate::store::Results;

/// The data sets of the paper: as configured, as written.
pub(crate) const DATA: [(&str, &str); 2] = [("mnist", "MNIST"), ("fashion-mnist", "Fashion-MNIST")];

/// Conditions under which claims are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of the figures.
    Figure,
    /// A few of them on MNIST, under each reading: the map.
    Map,
}

impl Scope {
    /// The data sets.
    fn data(self) -> &'static [(&'static str, &'static str)] {
        self.choose(&DATA, &DATA[..1])
    }

    fn choose<'a, T>(self, figure: &'a [T], map: &'a [T]) -> &'a [T] {
        match self {
            Self::Figure => figure,
            Self::Map => map,
        }
    }
}

/// A figure of the paper.
#[derive(Clone, Copy)]
pub struct PaperFigure {
    /// Its name on the command line.
    pub name: &'static str,
    /// The curves that it draws.
    curves: fn() -> Vec<Curve>,
    /// Its chapter of the report.
    chapter: fn(&Evidence) -> Chapter,
    /// The claims about it.
    claims: fn(Scope) -> Vec<Claim>,
}

const fn figure(
    name: &'static str,
    curves: fn() -> Vec<Curve>,
    chapter: fn(&Evidence) -> Chapter,
    claims: fn(Scope) -> Vec<Claim>,
) -> PaperFigure {
    PaperFigure { name, curves, chapter, claims }
}

fn no_claim(_: Scope) -> Vec<Claim> {
    Vec::new()
}

/// All figures, in the paper's order.
pub const FIGURES: [PaperFigure; 14] = [
    figure("workflow", overhead::curves, workflow::chapter, no_claim),
    figure("mechanism", noise_over_rounds::curves, noise_over_rounds::chapter, no_claim),
    figure("layout", Vec::new, layout::chapter, no_claim),
    figure("aggregation", aggregation::curves, aggregation::chapter, aggregation::claims),
    figure("beda", beda::curves, beda::chapter, beda::claims),
    figure("noise-levels", noise_levels::curves, noise_levels::chapter, noise_levels::claims),
    figure("heterogeneity", heterogeneity::curves, heterogeneity::chapter, heterogeneity::claims),
    figure("ablation", ablation::curves, ablation::chapter, ablation::claims),
    figure("noise-control", noise_control::curves, noise_control::chapter, noise_control::claims),
    figure("total-power", total_power::curves, total_power::chapter, total_power::claims),
    figure("complexity", Vec::new, complexity::chapter, no_claim),
    figure("overhead", overhead::curves, overhead::chapter, overhead::claims),
    figure("learning-rate", learning_rate::curves, learning_rate::chapter, learning_rate::claims),
    figure("as-printed", gains::curves, gains::chapter, no_claim),
];

/// Part of a reproduction: figures to draw, claims to judge, readings to judge them under.
pub struct Selection {
    /// Figures, in the paper's order.
    pub figures: Vec<PaperFigure>,
    /// Names of claims; a number stands for all its parts. All claims of the figures if empty.
    pub claims: Vec<String>,
    /// Readings, the main one first.
    pub readings: Vec<&'static Reading>,
}

impl Selection {
    /// The chosen claims of the figures, in their order.
    pub fn claims(&self, scope: Scope) -> Vec<Claim> {
        let chosen = |claim: &Claim| {
            self.claims.is_empty()
                || self.claims.iter().any(|name| reading::is_part(claim.id, name))
        };
        let claims = self.figures.iter().flat_map(|figure| (figure.claims)(scope));
        claims.filter(chosen).collect()
    }

    /// All cells, those of the figures first; the same cell may come twice.
    pub fn cells(&self, settings: Settings) -> Result<Vec<Cell>, ConfigError> {
        let mut curves: Vec<Curve> =
            self.figures.iter().flat_map(|figure| (figure.curves)()).collect();
        let of_claims = |claims: Vec<Claim>| {
            claims.into_iter().flat_map(|claim| claim.contrasts).flat_map(|c| c.curves)
        };
        curves.extend(of_claims(self.claims(Scope::Figure)));
        let mut cells = curve::cells(curves, settings)?;
        for reading in self.readings.iter().filter(|reading| !reading.is_main()) {
            let mut claims = self.claims(Scope::Map);
            claims.retain(|claim| reading.bears_on(claim.id));
            cells.extend(curve::cells(of_claims(claims), settings.under(reading))?);
        }
        Ok(cells)
    }

    /// Verdicts on the claims under the main reading, in the conditions of the figures.
    pub fn verdicts(&self, evidence: &Evidence) -> Vec<Verdict> {
        let claims = self.claims(Scope::Figure);
        claims.iter().map(|claim| Verdict::new(claim, evidence)).collect()
    }

    /// Verdicts on each claim under each reading that bears on it, in the conditions of the map.
    pub fn map(&self, evidence: &Evidence) -> Vec<Vec<Verdict>> {
        let under = |claim: &Claim| {
            let readings = self.readings.iter().filter(|reading| reading.bears_on(claim.id));
            readings.map(|reading| Verdict::new(claim, &evidence.under(reading))).collect()
        };
        self.claims(Scope::Map).iter().map(under).collect()
    }
}

/// The names of all claims.
pub fn claim_names() -> Vec<&'static str> {
    let claims = FIGURES.iter().flat_map(|figure| (figure.claims)(Scope::Map));
    claims.map(|claim| claim.id).collect()
}

/// The figures with claims that one of these names means.
pub fn figures_of(names: &[String]) -> Vec<PaperFigure> {
    let is_named = |claim: &Claim| names.iter().any(|name| reading::is_part(claim.id, name));
    let wanted = |figure: &PaperFigure| (figure.claims)(Scope::Map).iter().any(is_named);
    FIGURES.into_iter().filter(wanted).collect()
}

/// Evidence for and against the claims: results of the cells.
pub struct Evidence<'a> {
    /// Seeds and rounds that were run.
    pub settings: Settings,
    /// The results.
    pub results: &'a Results,
    /// Times of DDPG, where they were measured.
    pub complexity: Option<Complexity>,
}

impl Evidence<'_> {
    /// The same results, under a reading.
    pub fn under(&self, reading: &'static Reading) -> Evidence<'_> {
        Evidence { settings: self.settings.under(reading), results: self.results, complexity: None }
    }

    /// Results of the cells of a curve, seed by seed; `None` if any is missing.
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
