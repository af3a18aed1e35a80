//! The paper's risk of privacy leakage over the rounds, judged like a claim.
//!
//! "In the early stages of training, devices face a higher risk of privacy leakage, while this risk
//! decreases rapidly as training converges, following an approximately exponential trend." The
//! paper defines no risk. Here it is what an attacker sees: the structural similarity of an image
//! and its reconstruction from its gradient, without noise, on average over images.

use lapa::plot::{Figure, Series};
use serde_json::{Value, json};

use crate::inversion::student::Line;
use crate::{Attack, AuditError, Exhibit, Finding, Options, Statement, Verdict};

/// Risks below this count as this: their logarithm is taken.
const LEAST: f64 = 1e-3;
/// With less than this at all rounds the attack sees nothing that could become less.
const VISIBLE: f64 = 0.2;
/// Share of the variance of the logarithms that the exponential must explain.
const EXPLAINED: f64 = 0.5;

/// Structural similarities of all images by round, without noise and with the run's own.
pub(crate) struct Risks {
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
    let mut finding = Finding::new(Attack::Leakage, statement, options.confidence);
    let without = Trend::of(&risks.without, options.confidence);
    let with = Trend::of(&risks.with, options.confidence);
    (finding.verdict, finding.reason) = verdict(&without, options.confidence);
    let mut finding = finding
        .figure("risk", "mean structural similarity of images and their reconstructions, no noise")
        .figure("rounds", without.rounds.clone())
        .figure("risks", without.risks.clone());
    for (name, value) in without.figures() {
        finding = finding.figure(name, value);
    }
    if !with.risks.is_empty() {
        finding = finding.figure("with_noise", with.figures().into_iter().collect::<Value>());
        finding = finding.figure("risks_with_noise", with.risks.clone());
    }
    finding = finding.show(Exhibit::Text(text(&without, quick)));
    match without.rounds.is_empty() {
        true => Ok(finding),
        false => Ok(finding.show(drawing(&without, &with)?)),
    }
}

/// Risks by round, and the exponential through them.
struct Trend {
    rounds: Vec<f64>,
    risks: Vec<f64>,
    /// ln(risk) against the round; none with fewer than three rounds.
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

    fn figures(&self) -> Vec<(&'static str, Value)> {
        let line = self.line.as_ref();
        vec![
            ("slope", line.map_or(Value::Null, |line| json!(line.slope))),
            ("slope_interval", line.map_or(Value::Null, |line| json!(line.interval))),
            ("r_squared", line.map_or(Value::Null, |line| json!(line.r_squared))),
            ("residuals", json!(self.residuals())),
        ]
    }

    /// ln(risk) less the line.
    fn residuals(&self) -> Vec<f64> {
        let Some(line) = self.line else { return Vec::new() };
        let points = self.rounds.iter().zip(&self.risks);
        points.map(|(round, risk)| risk.ln() - line.intercept - line.slope * round).collect()
    }
}

/// Refuted where the risk rises: the whole interval of the slope is above 0. Where it reaches across
/// 0 nobody can say.
fn verdict(trend: &Trend, confidence: f64) -> (Verdict, String) {
    let Some(line) = trend.line else {
        let reason = "A trend needs the models of at least three rounds.";
        return (Verdict::NotJudged, reason.into());
    };
    if trend.risks.iter().all(|&risk| risk < VISIBLE) {
        let reason = format!(
            "The attack sees next to nothing in any round (risks below {VISIBLE}), so that it cannot \
             tell whether there is less to see later."
        );
        return (Verdict::NotJudged, reason);
    }
    let [low, high] = line.interval;
    let figures = format!(
        "the slope of ln(risk) is {:.5} per round, {:.0} % interval [{low:.5}, {high:.5}], and the \
         exponential explains {:.0} % of the variance",
        line.slope,
        100.0 * confidence,
        100.0 * line.r_squared.max(0.0),
    );
    let (verdict, words) = match (low > 0.0, high < 0.0, line.r_squared >= EXPLAINED) {
        (true, ..) => (Verdict::Refuted, "rises over these rounds"),
        (_, true, true) => (Verdict::NotRefuted, "falls over these rounds as claimed"),
        (_, true, false) => (Verdict::NotJudged, "falls, but hardly exponentially"),
        (_, false, _) => (Verdict::NotJudged, "cannot be shown to fall or to rise"),
    };
    (verdict, format!("The risk of leakage {words}: {figures}."))
}

fn text(trend: &Trend, quick: bool) -> String {
    let mut text = String::from(
        "The paper says that the risk of leakage is high early and falls about exponentially as \
         training converges. It defines no risk; here it is the mean structural similarity of images \
         and their reconstructions from single gradients without noise, at models along the run. The \
         claim counts as refuted where the slope of the logarithm over the rounds is above 0 with its \
         whole interval, and as reproduced where it is below and the exponential explains at least \
         half of the variance. This is no statement about ε.",
    );
    if let (true, Some(last)) = (quick, trend.rounds.last()) {
        text += &format!(" A quick look: only the first {} rounds were repeated.", last + 1.0);
    }
    text
}

fn drawing(without: &Trend, with: &Trend) -> Result<Exhibit, AuditError> {
    let points = |trend: &Trend| -> Vec<(f64, f64)> {
        trend.rounds.iter().copied().zip(trend.risks.iter().copied()).collect()
    };
    let mut figure =
        Figure::new("Risk of leakage", "Rounds before", "Structural similarity").log_y();
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
                  and the exponential that fits best."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(risk: impl Fn(f64) -> f64) -> Verdict {
        let risks: Vec<(u32, Vec<f64>)> =
            (0..6).map(|i| (20 * i, vec![risk(20.0 * f64::from(i))])).collect();
        verdict(&Trend::of(&risks, 0.95), 0.95).0
    }

    #[test]
    fn falling_rising_and_wavering_risks_are_told_apart() {
        assert_eq!(judged(|round| 0.9 * (-0.02 * round).exp()), Verdict::NotRefuted);
        assert_eq!(judged(|round| 0.3 * (0.01 * round).exp()), Verdict::Refuted);
        assert_eq!(judged(|round| 0.5 + 0.2 * (0.1 * round).cos()), Verdict::NotJudged);
        assert_eq!(judged(|_| 0.01), Verdict::NotJudged);
    }
}
