//! The paper's risk of privacy leakage over the rounds, judged like a claim.
//!
//! "In the early stages of training, devices face a higher risk of privacy leakage, while this risk
//! decreases rapidly as training converges, following an approximately exponential trend." The
//! paper defines no risk. Here it is what an attacker sees: the structural similarity of an image
//! and its reconstruction from its gradient, without noise, on average over images.

use lapa_report::plot::{Figure, Series};

use crate::inversion::student::Line;
use crate::{Attack, AuditError, Exhibit, Finding, Options, Statement, Verdict};

/// Risks below this count as this: their logarithm is taken.
const LEAST: f64 = 1e-3;
/// With less than this at all rounds the attack sees nothing that could become less.
const VISIBLE: f64 = 0.2;
/// Share of the variance of the logarithms that the exponential must explain.
const EXPLAINED: f64 = 0.5;
/// The claim is that the risk falls rapidly: to this share or less over all the rounds.
const RAPID: f64 = 0.5;

/// Structural similarities of all images by round, without noise and with the run's own.
pub(crate) struct Risks {
    /// True if single images follow from their gradients by arithmetic, for every model.
    pub exact: bool,
    pub without: Vec<(u32, Vec<f64>)>,
    /// Empty where there is no noise.
    pub with: Vec<(u32, Vec<f64>)>,
}

/// The finding.
pub(crate) fn finding(
    statement: &Statement,
    options: &Options,
    risks: &Risks,
    quick: bool,
) -> Result<Finding, AuditError> {
    let without = Trend::of(&risks.without, options.confidence);
    let with = Trend::of(&risks.with, options.confidence);
    let (verdict, reason) = verdict(&without, risks.exact, options.confidence);
    let risk = "mean structural similarity (SSIM) of images and their reconstructions, no noise";
    let finding = Finding::new(Attack::Leakage, statement, options.confidence);
    let mut finding = Finding { verdict, reason, ..finding }
        .figure("risk", risk)
        .figure("rounds", without.rounds.clone())
        .figure("risks", without.risks.clone())
        .figure("slope", without.line.map(|line| line.slope))
        .figure("slope_interval", without.line.map(|line| line.interval))
        .figure("r_squared", without.line.map(|line| line.r_squared))
        .figure("residuals", without.residuals())
        .show(Exhibit::Text(text(&without, quick)));
    if !with.risks.is_empty() {
        finding = finding.figure("risks_with_noise", with.risks.clone());
    }
    if without.rounds.is_empty() {
        Ok(finding)
    } else {
        Ok(finding.show(drawing(&without, &with)?))
    }
}

/// Risks by round, and the exponential through them.
struct Trend {
    rounds: Vec<f64>,
    risks: Vec<f64>,
    /// ln(risk) against the round; `None` for fewer than three rounds.
    line: Option<Line>,
}

impl Trend {
    fn of(similarities: &[(u32, Vec<f64>)], confidence: f64) -> Self {
        let rounds: Vec<f64> = similarities.iter().map(|(round, _)| f64::from(*round)).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let risks: Vec<f64> =
            similarities.iter().map(|(_, values)| mean(values).max(LEAST)).collect();
        let logarithms: Vec<f64> = risks.iter().map(|risk| risk.ln()).collect();
        let line = Line::fit(&rounds, &logarithms, confidence);
        Self { rounds, risks, line }
    }

    /// Number of rounds between the first and the last.
    fn span(&self) -> Option<f64> {
        Some(self.rounds.last()? - self.rounds.first()?)
    }

    /// ln(risk) less the line.
    fn residuals(&self) -> Vec<f64> {
        let Some(line) = self.line else { return Vec::new() };
        let points = self.rounds.iter().zip(&self.risks);
        points.map(|(round, risk)| risk.ln() - line.intercept - line.slope * round).collect()
    }
}

/// Not confirmed where the risk does not fall as the paper says: even the lower end of the slope's
/// interval leaves more than [`RAPID`] of it. An interval that is neither below 0 nor as clear as
/// that tells nothing.
fn verdict(trend: &Trend, exact: bool, confidence: f64) -> (Verdict, String) {
    let (Some(line), Some(span)) = (trend.line, trend.span()) else {
        let reason = "A trend needs models of at least three rounds.";
        return (Verdict::NotJudged, reason.into());
    };
    if trend.risks.iter().all(|&risk| risk < VISIBLE) {
        let reason = format!(
            "The attack recovers almost nothing in any round (risk below {VISIBLE}), so it cannot \
             measure a decrease."
        );
        return (Verdict::NotJudged, reason);
    }
    if exact {
        let reason = "This is trivial: the first layer is fully connected, so the gradient of an image \
                      contains the image itself, whatever the model. The risk is 1 by construction \
                      in every round and says nothing about training.";
        // Rounding alone takes less away.
        let silent = trend.risks.iter().any(|&risk| risk < 0.99);
        let but = " Where it is below 1, some gradients were zero: the model was certain of these \
                   records, and a gradient of zero tells nothing.";
        return (Verdict::NotConfirmed, reason.to_owned() + if silent { but } else { "" });
    }
    let [low, high] = line.interval;
    let figures = format!(
        "the slope of ln(risk) is {:.5} per round, {:.0} % interval [{low:.5}, {high:.5}], and the \
         exponential explains {:.0} % of the variance",
        line.slope,
        100.0 * confidence,
        100.0 * line.r_squared.max(0.0),
    );
    let (verdict, words) = if low * span > RAPID.ln() {
        (Verdict::NotConfirmed, "The risk of leakage does not fall by half over these rounds")
    } else if high >= 0.0 {
        (Verdict::NotJudged, "The data do not show whether the risk of leakage falls")
    } else if line.r_squared < EXPLAINED {
        (Verdict::NotJudged, "The risk of leakage falls, but not exponentially")
    } else {
        (Verdict::Confirmed, "The risk of leakage falls as the paper states")
    };
    (verdict, format!("{words}: {figures}."))
}

fn text(trend: &Trend, quick: bool) -> String {
    let mut text = String::from(
        "The paper states that the risk of leakage is high early and falls about exponentially as \
         training converges, but defines no risk. Here the risk is the mean structural similarity of \
         images and their reconstructions from single gradients without noise, at several rounds. The \
         statement counts as not confirmed if the confidence interval of the slope of ln(risk) rules \
         out that the risk falls by half. A stronger attack may find more: a low risk here proves \
         nothing. None of this bounds ε.",
    );
    if let (true, Some(last)) = (quick, trend.rounds.last()) {
        text += &format!(" Quick audit: only the first {} rounds were repeated.", last + 1.0);
    }
    text
}

fn drawing(without: &Trend, with: &Trend) -> Result<Exhibit, AuditError> {
    let points = |trend: &Trend| -> Vec<(f64, f64)> {
        trend.rounds.iter().copied().zip(trend.risks.iter().copied()).collect()
    };
    let mut figure = Figure::new("Leakage risk", "Round", "Structural similarity").log_y();
    figure = figure.line(Series::new("without noise", points(without)));
    if !with.risks.is_empty() {
        figure = figure.line(Series::new("with the run's noise", points(with)));
    }
    if let Some(line) = without.line {
        let fitted = without.rounds.iter().map(|&x| (x, (line.intercept + line.slope * x).exp()));
        figure = figure.line(Series::new("exponential", fitted).dashed());
    }
    Ok(Exhibit::Drawing {
        name: "leakage".into(),
        svg: figure.svg("leakage")?,
        caption: "Mean structural similarity of images and their reconstructions over the rounds, \
                  with the best exponential fit."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(risk: impl Fn(f64) -> f64) -> Verdict {
        let rounds = (0..8).map(|i| 10 * i);
        let similarities: Vec<(u32, Vec<f64>)> =
            rounds.map(|round| (round, vec![risk(f64::from(round)); 3])).collect();
        verdict(&Trend::of(&similarities, 0.95), false, 0.95).0
    }

    #[test]
    fn only_what_is_clear_is_judged() {
        let wiggle = |x: f64| 0.05 * (7.0 * x).sin();
        assert_eq!(judged(|x| 0.9 * (-0.03 * x + wiggle(x)).exp()), Verdict::Confirmed);
        assert_eq!(judged(|_| 1.0), Verdict::NotConfirmed);
        assert_eq!(judged(|x| 0.6 + wiggle(x)), Verdict::NotConfirmed);
        assert_eq!(judged(|x| 0.4 * (0.005 * x).exp()), Verdict::NotConfirmed);
        // Up and down by much: neither a decay nor its absence.
        assert_eq!(judged(|x| 0.5 + 0.45 * (0.3 * x).sin()), Verdict::NotJudged);
        // Nothing to see from the start.
        assert_eq!(judged(|x| 0.05 + 0.01 * wiggle(x)), Verdict::NotJudged);
        let two = [(0, vec![1.0]), (9, vec![0.1])];
        assert_eq!(verdict(&Trend::of(&two, 0.95), false, 0.95).0, Verdict::NotJudged);
    }

    /// A risk of 1 by arithmetic, whatever is trained: no slope is held against
    /// the paper.
    #[test]
    fn a_risk_by_construction_is_said_to_be_one() {
        let similarities: Vec<(u32, Vec<f64>)> = (0..8).map(|i| (10 * i, vec![1.0; 3])).collect();
        let (verdict, reason) = verdict(&Trend::of(&similarities, 0.95), true, 0.95);
        assert_eq!(verdict, Verdict::NotConfirmed);
        assert!(reason.contains("trivial") && reason.contains("by construction"), "{reason}");
        assert!(!reason.contains("slope") && !reason.contains("zero"), "{reason}");
        let some: Vec<(u32, Vec<f64>)> = (0..8).map(|i| (10 * i, vec![1.0, 0.4])).collect();
        let (_, reason) = super::verdict(&Trend::of(&some, 0.95), true, 0.95);
        assert!(reason.contains("Where it is below 1"), "{reason}");
    }

    #[test]
    fn similarities_below_zero_have_a_logarithm() {
        let trend = Trend::of(&[(0, vec![0.5]), (1, vec![-0.2]), (2, vec![0.5])], 0.95);
        assert_eq!(trend.risks, [0.5, LEAST, 0.5]);
        assert!(trend.line.is_some());
    }
}
