//! ε for σ, or σ for ε.

use lapa_privacy::accountant::{ACCOUNTANTS, Accountant, Advanced, Naive, Named, composed};
use lapa_privacy::{AccountError, Adjacency, Mechanism};
use serde_json::{Map, Value, json};

use crate::failure::{CommandResult, Failure};
use crate::output::{self, Column, Format, or_dash};

/// What is asked: ε for σ, or σ for ε.
pub struct Query {
    pub sigma: Option<f64>,
    pub target_epsilon: Option<f64>,
    pub rounds: u32,
    pub rate: Option<f64>,
    pub adjacency: Adjacency,
    pub delta: f64,
    pub format: Format,
}

/// Answer of one accountant.
struct Answer {
    key: &'static str,
    about: &'static str,
    value: Option<f64>,
    note: Option<String>,
}

pub fn execute(query: &Query) -> CommandResult {
    let mut answers = Vec::new();
    for accountant in ACCOUNTANTS {
        let Named { name: key, about, new } = accountant;
        let result = match (query.sigma, query.target_epsilon) {
            (Some(sigma), _) => {
                composed(new(), [(query.mechanism(sigma), query.rounds)], query.delta)
            }
            (None, Some(target)) => {
                let target = (target, query.delta);
                accountant.sigma(target, query.mechanism(1.0), query.rounds)
            }
            (None, None) => return Err(Failure::usage("--sigma or --target-epsilon is required")),
        };
        let (value, note) = match result {
            Ok(value) => (Some(value), query.remark(key, value)),
            Err(AccountError::Unsupported { .. }) => (None, None),
            Err(error) => (None, Some(error.to_string())),
        };
        answers.push(Answer { key, about, value, note });
    }
    let value = as_json(query, &answers);
    output::print(query.format, &value, || as_text(query, &answers))
}

impl Query {
    /// Noise of so many sensitivities.
    fn mechanism(&self, sigma: f64) -> Mechanism {
        Mechanism::gaussian(self.rate, sigma, self.adjacency)
    }

    /// Limits of the paper's sums.
    fn remark(&self, key: &str, value: f64) -> Option<String> {
        let mechanism = self.mechanism(self.sigma.unwrap_or(value));
        let (mut naive, mut advanced) = (Naive::new(), Advanced::new());
        naive.compose(&mechanism, self.rounds).ok()?;
        advanced.compose(&mechanism, self.rounds).ok()?;
        let total = match key {
            "naive" => naive.total_delta(self.delta),
            "advanced" => advanced.total_delta(self.delta),
            _ => return None,
        };
        let mut note = format!("total δ = {total:.3e}");
        if total >= 1.0 {
            note += ", so no guarantee";
        }
        if !naive.in_range(self.delta) {
            note += "; outside the theorem, which needs ε < 1 per round";
        }
        Some(note)
    }
}

fn as_json(query: &Query, answers: &[Answer]) -> Value {
    let mut object = Map::new();
    for answer in answers {
        let value = match answer.value {
            Some(f64::INFINITY) => json!("inf"),
            value => json!(value),
        };
        object.insert(answer.key.into(), value);
    }
    let notes: Map<String, Value> = answers
        .iter()
        .filter_map(|answer| Some((answer.key.to_owned(), json!(answer.note.as_ref()?))))
        .collect();
    let quantity = if query.sigma.is_some() { "epsilon" } else { "sigma" };
    for (key, value) in [
        ("quantity", json!(quantity)),
        ("sigma", json!(query.sigma)),
        ("target_epsilon", json!(query.target_epsilon)),
        ("rounds", json!(query.rounds)),
        ("sampling_rate", json!(query.rate)),
        ("adjacency", json!(query.adjacency)),
        ("delta", json!(query.delta)),
        ("notes", json!(notes)),
    ] {
        object.insert(key.into(), value);
    }
    Value::Object(object)
}

fn as_text(query: &Query, answers: &[Answer]) -> String {
    let sampling = match query.rate {
        None => "no sampling".into(),
        Some(rate) => format!("Poisson sampling at rate {rate}, {} adjacency", query.adjacency),
    };
    let given = match (query.sigma, query.target_epsilon) {
        (Some(sigma), _) => format!("σ = {sigma} sensitivities"),
        (_, target) => format!("target ε = {}", target.unwrap_or_default()),
    };
    let columns: [Column<Answer>; 3] = [
        ("accountant", |answer| answer.key.into()),
        (if query.sigma.is_some() { ">ε" } else { ">σ" }, |answer| or_dash(answer.value)),
        ("method", |answer| match &answer.note {
            Some(note) => format!("{} ({note})", answer.about),
            None => answer.about.into(),
        }),
    ];
    format!(
        "{given}, {} rounds, δ = {:e}, {sampling}\n\n{}",
        query.rounds,
        query.delta,
        output::columns(answers, &columns),
    )
}
