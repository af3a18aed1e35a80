//! The verdict on a transcript.

use lapa::config::{Clip, Update};
use lapa_privacy::{Adjacency, Sampling};
use lapa_report::page::Table;
use serde_json::Value;

use super::{Checks, Worst};
use crate::epsilon_bound::normal_cdf;
use crate::{Attack, Exhibit, Finding, Options, Repeated, Statement, Verdict};

/// Families of tests that share the level.
const FAMILIES: f64 = 4.0;
/// Disagreements that are shown.
const SHOWN: usize = 5;

/// Transcript against ledger, for a repeated run.
pub fn run(repeated: &Repeated, statement: &Statement, options: &Options) -> Finding {
    let finding = Finding::new(Attack::Ledger, statement, options.confidence);
    judge(finding, &repeated.checks, rate(repeated), &repeated.disagreements)
}

/// Sampling rate of canaries, from their contributions to the transcript.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    /// Configured rate.
    declared: f64,
    /// Measured rate.
    measured: f64,
    /// One-sided p-value of so high a rate.
    p_value: f64,
}

fn judge(mut finding: Finding, checks: &Checks, rate: Option<Rate>, records: &[String]) -> Finding {
    let level = (1.0 - finding.confidence) / FAMILIES;
    let mut table = Table::new(
        "Smallest p-value of each test over all rounds and devices.",
        &["test", ">tests", ">p-value, corrected", "place"],
    );
    let mut wrong: Vec<String> = records.iter().take(SHOWN).cloned().collect();
    if records.len() > SHOWN {
        wrong.push(format!("{} more like these", records.len() - SHOWN));
    }
    let mut add = |name: &str, tests: u64, p_value: f64, place: String| {
        let p = probability(p_value);
        if tests > 0 && p_value <= level {
            wrong.push(format!("{name} ({place}, p {p})"));
        }
        table.row([name.into(), tests.to_string(), p, place]);
    };
    for (name, key, worst) in [
        ("less noise than declared", "p_noise", checks.noise),
        ("same noise on two devices", "p_devices", checks.devices),
        ("same noise in two rounds", "p_rounds", checks.rounds),
    ] {
        add(name, worst.tests, worst.corrected(), words(&worst));
        finding = finding.figure(key, worst.corrected());
    }
    if let Some(Rate { declared, measured, p_value }) = rate {
        let place = format!("measured rate {measured:.4}, declared {declared}");
        add("batches larger than declared", 1, p_value, place);
        finding = finding.figure("sampling_rate", measured).figure("p_sampling_rate", p_value);
    }
    let (verdict, reason) = if wrong.is_empty() {
        let reason =
            "The transcript does not contradict the ledger. This does not prove the ledger.";
        (Verdict::NotRefuted, reason.into())
    } else {
        (Verdict::Refuted, format!("The transcript contradicts the ledger: {}.", wrong.join("; ")))
    };
    let updates = checks.heard.len();
    let text = format!(
        "{updates} updates were received; any without a recorded release is listed. Too little noise, \
         or noise that is used twice, leaves more values near 0 than the declared noise can, whatever \
         the gradients are."
    );
    Finding { verdict, reason, ..finding }
        .figure("updates", updates as u64)
        .figure("disagreements", Value::from(records.len() as u64))
        .show(Exhibit::Text(text))
        .show(Exhibit::Table(table))
}

/// E⟨r, g′⟩·b̄/⟨g, g′⟩ of present canaries, less that of absent ones, is the rate at which records are
/// in a batch, since coins are independent of everything else; Welch's test, normal for the
/// hundreds that there are. What a canary teaches the model pulls the others' gradients against it,
/// so that the rate is rather underestimated. `None` if canaries add to the sum of a batch in
/// another way, or are too few.
fn rate(repeated: &Repeated) -> Option<Rate> {
    let learn = &repeated.experiment.learn;
    let declared = match learn.sampling.declared(learn.batch_fraction) {
        Sampling::Poisson { rate } => rate,
        Sampling::Full => 1.0,
        Sampling::Fixed => return None,
    };
    let replaced = repeated.experiment.adjacency() == Adjacency::ReplaceOne;
    if learn.clip != Clip::Sample
        || learn.update != Update::Gradient
        || replaced
        || repeated.unprotected
    {
        return None;
    }
    let moments = |present: bool| {
        let canaries = repeated.scorer.canaries.iter().zip(&repeated.scorer.sums);
        let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0f64);
        for (canary, sums) in canaries.filter(|(canary, _)| canary.present == present) {
            if sums.own > 0.0 {
                let public = repeated.public_samples[canary.device as usize];
                let denominator = learn.sampling.denominator(learn.batch_fraction, public);
                let weighted = denominator * sums.along / sums.own;
                (n, sum, squares) = (n + 1.0, sum + weighted, squares + weighted * weighted);
            }
        }
        let mean = sum / n;
        (n, mean, (squares / n - mean * mean) / (n - 1.0))
    };
    let ((n, present, a), (m, absent, b)) = (moments(true), moments(false));
    if n < 30.0 || m < 30.0 {
        return None;
    }
    let measured = present - absent;
    let p_value = normal_cdf(-(measured - declared) / (a + b).sqrt());
    Some(Rate { declared, measured, p_value })
}

fn words(worst: &Worst) -> String {
    match (worst.tests, worst.place) {
        (0, _) => "no test".into(),
        _ if worst.p_value == 1.0 => "–".into(),
        (_, (round, a, b)) if a == b => format!("round {round}, device {a}"),
        (_, (round, a, b)) => format!("round {round}, devices {a} and {b}"),
    }
}

fn probability(p: f64) -> String {
    if p < 1e-3 { format!("{p:.1e}") } else { format!("{p:.3}") }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use lapa::config::{Experiment, Override};

    use super::*;
    use crate::{Effort, Subject};

    fn repeated() -> (Repeated, Options) {
        let changes = [
            "data.name=synthetic",
            "partition.scheme=iid",
            "partition.iid.devices=2",
            "model.name=logistic",
            "run.rounds=8",
            "learn.batch_fraction=0.25",
            "privacy.epsilon=20",
        ];
        let changes = changes.map(|change| Override::parse(change).unwrap());
        let experiment = Experiment::from_toml("", "test", &changes).unwrap();
        let options = Options::new(0.99, Effort::Quick, 1).unwrap();
        let subject = Subject::new(experiment, lapa::data::digits(1000, 100)).unwrap();
        let quiet = &mut |_: crate::Progress<'_>| ControlFlow::Continue(());
        (crate::repeat(&subject, &options, quiet).unwrap(), options)
    }

    /// α = 0.01 for all checks together.
    #[test]
    fn batches_larger_than_declared_are_seen_by_canaries() {
        let (mut repeated, options) = repeated();
        let statement = repeated.statement;
        let honest = run(&repeated, &statement, &options);
        assert_eq!(honest.verdict, Verdict::NotRefuted, "{honest:#?}");
        let measured = honest.figures["sampling_rate"].as_f64().unwrap();
        assert!((measured - 0.25).abs() < 0.1, "{measured}");
        // The same transcript under a declaration of a fifth of the rate, divided as before.
        repeated.experiment.learn.batch_fraction = 0.05;
        repeated.public_samples.iter_mut().for_each(|samples| *samples *= 5);
        let wrong = run(&repeated, &statement, &options);
        assert_eq!(wrong.verdict, Verdict::Refuted, "{wrong:#?}");
        assert!(wrong.reason.contains("batches larger"), "{}", wrong.reason);
    }
}
