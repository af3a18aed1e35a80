//! Finding of an attack, with the claims that it was compared with.

use std::fmt;

use lapa::budget::round_up;
use lapa::config::word_of;
use lapa::observe::number;
use lapa_report::page::Table;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Statement, at_least};

/// A kind of attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attack {
    /// Neighboring inputs of one device, many draws, the optimal test.
    Mechanism,
    /// Canaries in one run, scored by the transcript.
    Canary,
    /// Membership of a record in the training data, inferred from losses.
    Membership,
    /// Images reconstructed from gradients.
    Inversion,
    /// The paper's statement that the risk of leakage falls over the rounds.
    Leakage,
    /// Comparison of the received values with the ledger.
    Ledger,
}

impl Attack {
    /// All of them, in the order in which they are made.
    pub const ALL: [Self; 6] = [
        Self::Mechanism,
        Self::Canary,
        Self::Ledger,
        Self::Membership,
        Self::Inversion,
        Self::Leakage,
    ];

    /// True if it attacks a figure of the run. Leakage is about a sentence of the paper, which no
    /// run says of itself.
    pub fn is_about_the_run(self) -> bool {
        self != Self::Leakage
    }
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&word_of(self))
    }
}

/// Verdict of an attack on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The observations contradict the claim, at the stated confidence.
    Refuted,
    /// No observation contradicts the claim. This is no proof.
    NotRefuted,
    /// The attack does not apply here, or is not about ε.
    NotJudged,
    /// The figures agree with a sentence of the paper.
    Confirmed,
    /// The figures disagree with a sentence of the paper, at the stated confidence.
    NotConfirmed,
}

impl Verdict {
    /// For readers.
    pub fn text(self) -> &'static str {
        match self {
            Self::Refuted => "refuted",
            Self::NotRefuted => "not refuted",
            Self::NotJudged => "not judged",
            Self::Confirmed => "paper's statement confirmed for this run",
            Self::NotConfirmed => "paper's statement not confirmed",
        }
    }
}

/// A part of the page about an attack.
#[derive(Clone, Debug)]
pub enum Exhibit {
    /// A paragraph.
    Text(String),
    /// A table.
    Table(Table),
    /// A drawing: the text of an SVG file, and what it shows.
    Drawing {
        /// Name of the file, without ending.
        name: String,
        /// The drawing.
        svg: String,
        /// Caption below it.
        caption: String,
    },
}

/// Finding of one attack.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The attack.
    pub attack: Attack,
    /// Lower bound on ε with `confidence`, whatever the mechanism, rounded down. `None` for an attack
    /// that bounds no ε.
    #[serde(with = "number::optional")]
    pub epsilon_lower: Option<f64>,
    /// The same for a mechanism whose privacy is that of a Gaussian: sharper, and it refutes only
    /// claims that say so. `None` without such a bound.
    #[serde(with = "number::optional")]
    pub epsilon_lower_gdp: Option<f64>,
    /// Confidence of the bounds and of the verdict.
    pub confidence: f64,
    /// The paper's sum over all devices of the run; `None` for an attack that is not about the run.
    #[serde(with = "number::optional")]
    pub epsilon_claimed_total: Option<f64>,
    /// Provable ε of the worst device; `None` for an attack that is not about the run.
    #[serde(with = "number::optional")]
    pub epsilon_provable: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// Reason of the verdict, in a sentence.
    pub reason: String,
    /// The attack's own figures.
    #[serde(flatten)]
    pub figures: Map<String, Value>,
    /// Texts, tables and drawings for the page.
    #[serde(skip)]
    pub exhibits: Vec<Exhibit>,
}

impl Finding {
    /// A finding of an attack that has bounded nothing yet.
    pub fn new(attack: Attack, statement: &Statement, confidence: f64) -> Self {
        let said = |epsilon: f64| attack.is_about_the_run().then_some(epsilon);
        Self {
            attack,
            epsilon_lower: None,
            epsilon_lower_gdp: None,
            confidence,
            epsilon_claimed_total: said(statement.epsilon_claimed_total),
            epsilon_provable: said(statement.epsilon_provable),
            verdict: Verdict::NotJudged,
            reason: String::new(),
            figures: Map::new(),
            exhibits: Vec::new(),
        }
    }

    /// Judges lower bounds on ε against both figures: a bound above one of them refutes it.
    pub fn judge(mut self, epsilon_lower: f64, epsilon_lower_gdp: Option<f64>) -> Self {
        let lower = epsilon_lower.max(epsilon_lower_gdp.unwrap_or(0.0));
        let mut wrong = Vec::new();
        for (epsilon, what) in [
            (self.epsilon_claimed_total, "the paper's sum over all devices, ε"),
            (self.epsilon_provable, "the proven ε"),
        ] {
            if let Some(epsilon) = epsilon.filter(|&epsilon| lower > epsilon) {
                let (said, seen) = (round_up(epsilon), at_least(Some(lower)));
                wrong.push(format!("{what} = {said} (measured: at least {seen})"));
            }
        }
        (self.verdict, self.reason) = if wrong.is_empty() {
            let reason = "No attack exceeded the stated ε. This does not prove it.";
            (Verdict::NotRefuted, reason.into())
        } else {
            (Verdict::Refuted, format!("This refutes {}.", wrong.join(" and ")))
        };
        (self.epsilon_lower, self.epsilon_lower_gdp) = (Some(epsilon_lower), epsilon_lower_gdp);
        self
    }

    /// Adds a figure of the attack's own.
    pub fn figure(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.figures.insert(name.into(), value.into());
        self
    }

    /// Adds something to see.
    pub fn show(mut self, exhibit: Exhibit) -> Self {
        self.exhibits.push(exhibit);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding() -> Finding {
        let statement =
            Statement { epsilon_claimed_total: 2.0, epsilon_provable: 8.0, delta: 1e-5 };
        Finding::new(Attack::Canary, &statement, 0.95)
    }

    #[test]
    fn a_bound_refutes_what_is_below_it_and_proves_nothing_else() {
        assert_eq!(finding().judge(1.9, None).verdict, Verdict::NotRefuted);
        let claim = finding().judge(1.0, Some(2.5));
        assert_eq!(claim.verdict, Verdict::Refuted);
        assert!(claim.reason.contains("paper's sum") && !claim.reason.contains("proven"));
        let both = finding().judge(9.0, None);
        assert!(both.reason.contains("paper's sum") && both.reason.contains("proven"));
    }

    #[test]
    fn figures_stand_beside_the_common_fields_in_json() {
        let json = serde_json::to_value(finding().figure("auc", 0.5).judge(1.0, None)).unwrap();
        assert_eq!(json["attack"], "canary");
        assert_eq!(json["auc"], 0.5);
        assert_eq!(json["verdict"], "not-refuted");
        assert!(json["epsilon_lower_gdp"].is_null());
    }
}
