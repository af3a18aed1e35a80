//! Verdicts on the paper's claims.

use serde::{Deserialize, Serialize};

use crate::statistics::Estimate;

/// A claim of the paper and what we saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Its number in docs/reproduction.md.
    pub claim: String,
    /// The claim in the paper's words.
    pub statement: String,
    /// In a word.
    pub word: Word,
    /// The comparisons behind the verdict.
    pub comparisons: Vec<Comparison>,
}

/// A verdict in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// Every comparison has the paper's sign, sure at 95 %.
    Reproduced,
    /// Some have.
    InPart,
    /// None has.
    NotReproduced,
    /// Too few seeds, or cells are missing.
    NotJudged,
}

impl Word {
    /// For readers.
    pub fn text(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::InPart => "in part",
            Self::NotReproduced => "not reproduced",
            Self::NotJudged => "not judged",
        }
    }
}

/// One difference that a claim is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The two sides of the comparison.
    pub what: String,
    /// The unit of all its numbers.
    pub unit: String,
    /// Condition on our interval.
    pub test: Test,
    /// The paper's number, if it gives one.
    pub paper: Option<f64>,
    /// Ours over seeds; none where cells are missing.
    pub ours: Option<Estimate>,
    /// True if the condition is met; none without an interval.
    pub holds: Option<bool>,
    /// True if the paper's number lies in our interval.
    pub paper_in_interval: Option<bool>,
}

/// Condition on an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// All of it is above 0.
    Positive,
    /// All of it is within ± this.
    Within(f64),
}

impl Comparison {
    /// A difference in points of accuracy that the paper says is positive. `ours` are the values
    /// of each seed.
    pub fn positive(what: impl Into<String>, paper: Option<f64>, ours: Option<Vec<f64>>) -> Self {
        Self::new(what, "points", Test::Positive, paper, ours)
    }

    /// A comparison of any kind.
    pub fn new(
        what: impl Into<String>,
        unit: &str,
        test: Test,
        paper: Option<f64>,
        ours: Option<Vec<f64>>,
    ) -> Self {
        let ours = Estimate::of_each(ours);
        let holds = ours.and_then(|ours| {
            let [low, high] = ours.interval?;
            Some(match test {
                Test::Positive => low > 0.0,
                Test::Within(margin) => low >= -margin && high <= margin,
            })
        });
        let paper_in_interval = ours.zip(paper).and_then(|(ours, paper)| ours.holds(paper));
        Self { what: what.into(), unit: unit.into(), test, paper, ours, holds, paper_in_interval }
    }
}

impl Verdict {
    /// The word follows from the comparisons.
    pub fn new(claim: &str, statement: &str, comparisons: Vec<Comparison>) -> Self {
        let count = |holds| comparisons.iter().filter(|c| c.holds == holds).count();
        let word = match (count(Some(true)), count(Some(false)), count(None)) {
            (0, 0, _) | (_, _, 1..) => Word::NotJudged,
            (_, 0, 0) => Word::Reproduced,
            (0, _, 0) => Word::NotReproduced,
            _ => Word::InPart,
        };
        Self { claim: claim.into(), statement: statement.into(), word, comparisons }
    }

    /// Number of comparisons that hold, as `2 of 3`.
    pub fn holding(&self) -> String {
        let hold = self.comparisons.iter().filter(|c| c.holds == Some(true)).count();
        format!("{hold} of {}", self.comparisons.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(values: &[&[f64]]) -> Word {
        let comparison = |v: &&[f64]| Comparison::positive("a - b", None, Some(v.to_vec()));
        Verdict::new("1", "a is better", values.iter().map(comparison).collect()).word
    }

    #[test]
    fn a_word_needs_every_interval_on_the_papers_side() {
        let (sure, unsure, contrary) =
            (&[1.0, 1.1, 0.9][..], &[-1.0, 1.0, 0.5][..], &[-1.0, -1.1][..]);
        assert_eq!(word(&[sure, sure]), Word::Reproduced);
        assert_eq!(word(&[sure, unsure]), Word::InPart);
        assert_eq!(word(&[sure, contrary]), Word::InPart);
        assert_eq!(word(&[unsure, contrary]), Word::NotReproduced);
        // One seed has no interval.
        assert_eq!(word(&[sure, &[1.0]]), Word::NotJudged);
        assert_eq!(word(&[]), Word::NotJudged);
    }

    #[test]
    fn nearly_the_same_means_the_whole_interval() {
        let within = |values: &[f64]| {
            Comparison::new("a - b", "points", Test::Within(1.0), Some(0.0), Some(values.to_vec()))
        };
        assert_eq!(within(&[0.4, 0.5, 0.6]).holds, Some(true));
        assert_eq!(within(&[0.4, 0.5, 0.6]).paper_in_interval, Some(false));
        assert_eq!(within(&[0.0, 0.9, 1.8]).holds, Some(false));
        assert_eq!(within(&[0.4]).holds, None);
    }
}
