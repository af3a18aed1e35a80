//! Claims of the paper as contrasts between methods.

use lapa::files::checksum;

use super::{Curve, Settings, curve};
use crate::cell::Finished;

/// Version of all measures and tests: raised with each change, so that earlier verdicts do not stay.
const MEASURES: &[u8] = b"1";

/// A claim of the paper, or a part of one that can be tested by itself.
pub struct Claim {
    /// Its number in docs/reproduction.md, with a letter for a part.
    pub id: &'static str,
    /// The claim in the paper's words.
    pub statement: &'static str,
    /// The differences that it says are positive.
    pub contrasts: Vec<Contrast>,
}

impl Claim {
    /// A claim by its contrasts.
    pub fn new(id: &'static str, statement: &'static str, contrasts: Vec<Contrast>) -> Self {
        Self { id, statement, contrasts }
    }

    /// Checksum of the measures and of the names of its cells; `None` for a quick look.
    pub fn checksum(&self, settings: Settings) -> Option<String> {
        let curves = self.contrasts.iter().flat_map(|contrast| contrast.curves.clone());
        let cells = curve::cells(curves, settings).ok().filter(|_| !settings.quick)?;
        let names = cells.iter().map(|cell| cell.id().as_bytes());
        Some(checksum(std::iter::once(MEASURES).chain(names)))
    }
}

/// Something of the cells of some curves, seed by seed.
type Measure = Box<dyn Fn(&[Vec<&Finished>]) -> Vec<f64>>;

/// A difference that a claim says is positive.
pub struct Contrast {
    /// The two sides.
    pub what: String,
    /// The unit of all its numbers.
    pub unit: &'static str,
    /// The paper's number, if it gives one.
    pub paper: Option<f64>,
    /// Slack: the claim holds for a difference above minus this.
    pub margin: f64,
    /// True if the claim is about every run: one seed against it contradicts it, and there is no test.
    pub exact: bool,
    /// The curves whose cells it needs.
    pub curves: Vec<Curve>,
    /// The difference of each seed, by the cells of each curve.
    pub measure: Measure,
}

impl Contrast {
    /// A contrast between the cells of some curves.
    pub fn new(
        what: impl Into<String>,
        unit: &'static str,
        curves: Vec<Curve>,
        measure: impl Fn(&[Vec<&Finished>]) -> Vec<f64> + 'static,
    ) -> Self {
        let (what, measure) = (what.into(), Box::new(measure));
        Self { what, unit, paper: None, margin: 0.0, exact: false, curves, measure }
    }

    /// The gain in final accuracy of one method over another, in points.
    pub fn gain(what: impl Into<String>, over: &Curve, of: &Curve) -> Self {
        Self::of_each(what, "points", [of, over], percent)
    }

    /// A difference of something of each cell, the first curve's minus the second's.
    pub fn of_each(
        what: impl Into<String>,
        unit: &'static str,
        [of, over]: [&Curve; 2],
        value: fn(&Finished) -> f64,
    ) -> Self {
        Self::new(what, unit, vec![of.clone(), over.clone()], move |cells| {
            let differences = cells[0].iter().zip(&cells[1]);
            differences.map(|(of, over)| value(of) - value(over)).collect()
        })
    }

    /// The paper's number.
    pub fn paper(self, paper: f64) -> Self {
        Self { paper: Some(paper), ..self }
    }

    /// The claim is about every run, not about their mean.
    pub fn exact(self) -> Self {
        Self { exact: true, ..self }
    }

    /// Slack of the claim.
    pub fn margin(self, margin: f64) -> Self {
        Self { margin, ..self }
    }
}

/// Final accuracy in percent.
pub fn percent(finished: &Finished) -> f64 {
    100.0 * finished.accuracy()
}
