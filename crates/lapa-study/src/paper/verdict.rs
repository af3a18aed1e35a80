//! Verdicts on the paper's claims.
//!
//! Claims are directional, and so are the tests: Student's t on paired differences, one-sided at 5 %,
//! corrected by Holm over the comparisons of a claim.

use serde::{Deserialize, Serialize};

use super::Evidence;
use super::claim::{Claim, Contrast};
use crate::statistics::{Estimate, LEVEL, detectable, holm, p_above_zero};

/// A claim under one reading, and what we saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Its number in docs/reproduction.md.
    pub claim: String,
    /// The claim in the paper's words.
    pub statement: String,
    /// The reading.
    pub reading: String,
    /// Number of seeds.
    pub seeds: u32,
    /// Checksum of the names of the cells behind it; `None` for a quick look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<String>,
    /// In a word.
    pub standing: Standing,
    /// The mean over the comparisons, seed by seed, with the p-values of both directions.
    pub combined: Option<Tested>,
    /// The comparisons behind the verdict.
    pub comparisons: Vec<Comparison>,
}

/// A claim under one reading, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// The mean over the comparisons is shown, and each has the paper's sign.
    Holds,
    /// Some comparison, or the mean, is shown, but not all have the paper's sign, or not surely.
    InPart,
    /// Nothing is sure.
    Undecided,
    /// Some comparison, or the mean, is contradicted, and none is shown.
    DoesNotHold,
    /// Too few seeds, or cells are missing.
    NotTested,
}

impl Standing {
    /// For readers.
    pub fn text(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::InPart => "in part",
            Self::Undecided => "undecided",
            Self::DoesNotHold => "does not hold",
            Self::NotTested => "not tested",
        }
    }
}

/// What a comparison shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// It has the paper's sign, surely.
    Shown,
    /// It has the paper's sign, which may be chance.
    Consistent,
    /// It has the other sign, which may be chance.
    Undecided,
    /// There is no difference with any seed.
    Same,
    /// It has the other sign, surely.
    Contradicted,
    /// Too few seeds, or cells are missing.
    NotTested,
}

impl Finding {
    /// All but the last, from good to bad.
    pub const TESTED: [Self; 5] =
        [Self::Shown, Self::Consistent, Self::Same, Self::Undecided, Self::Contradicted];

    /// For readers.
    pub fn text(self) -> &'static str {
        match self {
            Self::Shown => "shown",
            Self::Consistent => "consistent",
            Self::Undecided => "undecided",
            Self::Same => "no difference",
            Self::Contradicted => "contradicted",
            Self::NotTested => "not tested",
        }
    }

    pub(super) fn from_test(tested: Option<Tested>) -> Self {
        match tested {
            None => Self::NotTested,
            Some(tested) if tested.same => Self::Same,
            Some(tested) if tested.p < LEVEL => Self::Shown,
            Some(tested) if tested.p_against < LEVEL => Self::Contradicted,
            Some(tested) if tested.above => Self::Consistent,
            Some(_) => Self::Undecided,
        }
    }
}

/// A mean that was tested in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tested {
    /// True if the mean has the paper's sign.
    pub above: bool,
    /// True if no seed makes a difference.
    pub same: bool,
    /// One-sided p-value for the claim.
    pub p: f64,
    /// One-sided p-value against it.
    pub p_against: f64,
}

impl Tested {
    fn from_values(values: &[f64]) -> Option<Self> {
        let against: Vec<f64> = values.iter().map(|value| -value).collect();
        Some(Self {
            above: values.iter().sum::<f64>() > 0.0,
            same: values.iter().all(|value| *value == 0.0),
            p: p_above_zero(values)?,
            p_against: p_above_zero(&against)?,
        })
    }

    /// Every value has to be above 0: no chance is left either way.
    fn of_every(values: &[f64]) -> Option<Self> {
        let above = values.iter().all(|value| *value > 0.0);
        let [p, p_against] = if above { [0.0, 1.0] } else { [1.0, 0.0] };
        (values.len() > 1).then_some(Self { above, same: false, p, p_against })
    }
}

/// One difference that a claim is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The two sides of the comparison.
    pub what: String,
    /// The unit of all its numbers.
    pub unit: String,
    /// The paper's number, if it gives one.
    pub paper: Option<f64>,
    /// Slack: the claim holds for a difference above minus this.
    pub margin: f64,
    /// True if the claim is about every run, so that nothing is tested.
    pub exact: bool,
    /// The difference of each seed; `None` if a cell is missing or has no such number.
    pub values: Option<Vec<f64>>,
    /// Their mean, with its two-sided 95 % interval.
    pub ours: Option<Estimate>,
    /// p-values after Holm's correction over the comparisons of the claim.
    pub tested: Option<Tested>,
    /// What it shows.
    #[serde(rename = "word")]
    pub finding: Finding,
    /// The smallest true difference, less the slack, that this design would have shown with a power
    /// of 80 %.
    pub detectable: Option<f64>,
    /// True if the paper's number lies in our interval.
    pub paper_in_interval: Option<bool>,
}

impl Comparison {
    fn new(contrast: &Contrast, evidence: &Evidence, of: usize) -> Self {
        let cells = contrast.curves.iter().map(|curve| evidence.finished(curve));
        let cells: Option<Vec<_>> = cells.collect();
        let values = cells.map(|cells| (contrast.measure)(&cells));
        let values = values.filter(|values| values.iter().all(|value| value.is_finite()));
        let ours = Estimate::of_each(values.clone());
        let shifted = values.as_ref().map(|values| shifted(values, contrast.margin));
        let test = if contrast.exact { Tested::of_every } else { Tested::from_values };
        let paper_in_interval =
            ours.zip(contrast.paper).and_then(|(ours, paper)| ours.holds(paper));
        Self {
            what: contrast.what.clone(),
            unit: contrast.unit.into(),
            paper: contrast.paper,
            margin: contrast.margin,
            exact: contrast.exact,
            ours,
            tested: shifted.as_deref().and_then(test),
            finding: Finding::NotTested,
            detectable: shifted
                .filter(|_| !contrast.exact)
                .and_then(|values| detectable(&values, LEVEL / of as f64)),
            paper_in_interval,
            values,
        }
    }

    /// Number of seeds with the paper's sign, and of all.
    pub fn seeds_for_it(&self) -> Option<[usize; 2]> {
        let values = self.shifted()?;
        Some([values.iter().filter(|value| **value > 0.0).count(), values.len()])
    }

    /// The difference of each seed with the slack, by which it is tested.
    fn shifted(&self) -> Option<Vec<f64>> {
        Some(shifted(self.values.as_ref()?, self.margin))
    }
}

fn shifted(values: &[f64], margin: f64) -> Vec<f64> {
    values.iter().map(|value| value + margin).collect()
}

/// Replaces the p-values of comparisons by those after Holm's correction, for each direction.
fn correct(comparisons: &mut [Comparison]) {
    let column = |p: fn(&Tested) -> f64| {
        holm(&comparisons.iter().filter_map(|c| c.tested.as_ref().map(p)).collect::<Vec<_>>())
    };
    let corrected = column(|tested| tested.p).into_iter().zip(column(|tested| tested.p_against));
    let tested = comparisons.iter_mut().filter_map(|comparison| comparison.tested.as_mut());
    for (tested, (p, p_against)) in tested.zip(corrected.collect::<Vec<_>>()) {
        (tested.p, tested.p_against) = (p, p_against);
    }
}

/// The mean over the comparisons, seed by seed. Seeds are independent, and the comparisons of one are
/// not. If the claim is about every run, all of them together.
fn combined(comparisons: &[Comparison]) -> Option<Tested> {
    let each: Vec<Vec<f64>> = comparisons.iter().map(Comparison::shifted).collect::<Option<_>>()?;
    let seeds = each.first()?.len();
    if comparisons.iter().any(|comparison| comparison.exact) {
        return Tested::of_every(&each.concat());
    }
    let mean =
        |seed: usize| each.iter().map(|values| values[seed]).sum::<f64>() / each.len() as f64;
    Tested::from_values(&(0..seeds).map(mean).collect::<Vec<_>>())
}

impl Verdict {
    /// The verdict on a claim by what was seen under one reading.
    pub fn new(claim: &Claim, evidence: &Evidence) -> Self {
        let of = claim.contrasts.len().max(1);
        let mut comparisons: Vec<Comparison> = claim
            .contrasts
            .iter()
            .map(|contrast| Comparison::new(contrast, evidence, of))
            .collect();
        correct(&mut comparisons);
        for comparison in &mut comparisons {
            comparison.finding = Finding::from_test(comparison.tested);
        }
        let combined = combined(&comparisons);
        Self {
            claim: claim.id.into(),
            statement: claim.statement.into(),
            reading: evidence.settings.reading.name.clone(),
            seeds: evidence.settings.number_of_seeds(),
            cells: claim.checksum(evidence.settings),
            standing: standing(&comparisons, combined),
            combined,
            comparisons,
        }
    }

    /// Number of comparisons with this finding.
    pub fn count(&self, finding: Finding) -> usize {
        self.comparisons.iter().filter(|comparison| comparison.finding == finding).count()
    }

    /// Numbers of comparisons by finding, as `2 shown, 1 undecided`.
    pub fn counts(&self) -> String {
        let counts = Finding::TESTED.into_iter().chain([Finding::NotTested]);
        let counts = counts.map(|finding| (self.count(finding), finding.text()));
        let counts = counts.filter(|(count, _)| *count > 0);
        counts.map(|(count, text)| format!("{count} {text}")).collect::<Vec<_>>().join(", ")
    }
}

fn standing(comparisons: &[Comparison], combined: Option<Tested>) -> Standing {
    let mean = Finding::from_test(combined);
    let any = |wanted| mean == wanted || comparisons.iter().any(|c| c.finding == wanted);
    let is_for = |c: &Comparison| matches!(c.finding, Finding::Shown | Finding::Consistent);
    if mean == Finding::NotTested {
        Standing::NotTested
    } else if mean == Finding::Shown && comparisons.iter().all(is_for) {
        Standing::Holds
    } else if any(Finding::Shown) {
        Standing::InPart
    } else if any(Finding::Contradicted) {
        Standing::DoesNotHold
    } else {
        Standing::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(values: &[f64], margin: f64) -> Comparison {
        let contrast = Contrast::new("a - b", "points", Vec::new(), |_| Vec::new()).margin(margin);
        let shifted = shifted(values, margin);
        Comparison {
            what: contrast.what,
            unit: contrast.unit.into(),
            paper: None,
            margin,
            exact: false,
            values: Some(values.to_vec()),
            ours: Some(Estimate::of(values)),
            tested: Tested::from_values(&shifted),
            finding: Finding::NotTested,
            detectable: None,
            paper_in_interval: None,
        }
    }

    fn judged(values: &[&[f64]]) -> (Vec<Finding>, Standing) {
        let mut comparisons: Vec<_> = values.iter().map(|values| comparison(values, 0.0)).collect();
        correct(&mut comparisons);
        for comparison in &mut comparisons {
            comparison.finding = Finding::from_test(comparison.tested);
        }
        let findings = comparisons.iter().map(|comparison| comparison.finding).collect();
        (findings, standing(&comparisons, combined(&comparisons)))
    }

    const SURE: &[f64] = &[1.0, 1.1, 0.9];
    const UNSURE: &[f64] = &[-1.0, 1.0, 0.5];
    const CONTRARY: &[f64] = &[-1.0, -1.1, -0.9];

    #[test]
    fn a_finding_tells_sign_and_certainty() {
        assert_eq!(judged(&[SURE]), (vec![Finding::Shown], Standing::Holds));
        assert_eq!(judged(&[UNSURE]), (vec![Finding::Consistent], Standing::Undecided));
        assert_eq!(judged(&[&[1.0, -1.0, -0.5]]), (vec![Finding::Undecided], Standing::Undecided));
        assert_eq!(judged(&[CONTRARY]), (vec![Finding::Contradicted], Standing::DoesNotHold));
        // One seed has no interval.
        assert_eq!(judged(&[&[1.0]]), (vec![Finding::NotTested], Standing::NotTested));
        assert_eq!(judged(&[]), (vec![], Standing::NotTested));
    }

    #[test]
    fn no_difference_leans_to_no_side() {
        let none: &[f64] = &[0.0, 0.0, 0.0];
        assert_eq!(judged(&[none]), (vec![Finding::Same], Standing::Undecided));
        assert_eq!(judged(&[none, SURE]).1, Standing::InPart);
    }

    #[test]
    fn a_claim_about_every_run_falls_with_one() {
        let every = |values: &[f64]| Finding::from_test(Tested::of_every(values));
        assert_eq!(every(&[1.0, 0.1, 2.0]), Finding::Shown);
        // By a t-test of their mean p would be 0.03.
        assert_eq!(every(&[[1.0; 14].as_slice(), &[-4.0]].concat()), Finding::Contradicted);
        assert_eq!(every(&[1.0]), Finding::NotTested);
    }

    #[test]
    fn a_claim_stands_by_all_of_its_comparisons() {
        assert_eq!(judged(&[SURE, SURE]).1, Standing::Holds);
        assert_eq!(judged(&[SURE, CONTRARY]).1, Standing::InPart);
        // The mean is surely above 0, but one comparison has the other sign.
        assert_eq!(judged(&[SURE, SURE, &[-0.2, 0.1, 0.0]]).1, Standing::InPart);
        // The mean is surely below 0, but one comparison is shown.
        assert_eq!(judged(&[SURE, &[-9.0, -9.1, -8.9]]).1, Standing::InPart);
        assert_eq!(judged(&[UNSURE, CONTRARY]).1, Standing::DoesNotHold);
        assert_eq!(judged(&[UNSURE, UNSURE]).1, Standing::Undecided);
    }

    /// scipy: p = 0.0418 alone; three times that beside two others.
    #[test]
    fn many_comparisons_need_more() {
        let barely: &[f64] = &[1.0, 0.4, 1.3, 0.1];
        let unsure: &[f64] = &[-1.0, 1.0, 0.5, 0.2];
        assert_eq!(judged(&[barely]).0, [Finding::Shown]);
        assert_eq!(judged(&[barely, unsure, unsure]).0[0], Finding::Consistent);
    }

    #[test]
    fn slack_counts_for_the_claim() {
        let within = comparison(&[-0.4, -0.5, -0.6], 1.0);
        assert_eq!(Finding::from_test(within.tested), Finding::Shown);
        let beyond = comparison(&[-1.4, -1.5, -1.6], 1.0);
        assert_eq!(Finding::from_test(beyond.tested), Finding::Contradicted);
    }
}
