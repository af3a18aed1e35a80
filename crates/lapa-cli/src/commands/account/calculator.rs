//! ε for σ, or σ for ε.

use lapa_privacy::accountant::{Accountant, Advanced, Gdp, Naive, Pld, Rdp, Zcdp};
use lapa_privacy::{AccountError, Adjacency, Budget, Mechanism, calibrate};
use serde_json::{Map, Value, json};

use crate::failure::{Failure, Outcome};
use crate::output::{self, Column, Format, or_dash};

pub struct Question {
    pub sigma: Option<f64>,
    pub target_epsilon: Option<f64>,
    pub rounds: u32,
    pub rate: Option<f64>,
    pub adjacency: Adjacency,
    pub delta: f64,
    pub format: Format,
}

type Maker = fn() -> Box<dyn Accountant>;

/// Every accountant, and what it is.
const ACCOUNTANTS: [(&str, Maker, &str); 6] = [
    ("naive", || Box::new(Naive::new()), "the paper's sum of ε (basic composition)"),
    ("advanced", || Box::new(Advanced::new()), "advanced composition of the same ε"),
    ("zcdp", || Box::new(Zcdp::new()), "zero-concentrated DP (zCDP)"),
    ("rdp", || Box::new(Rdp::default()), "Rényi DP, best order"),
    ("gdp", || Box::new(Gdp::new()), "Gaussian DP, exact"),
    ("pld", || Box::new(Pld::default()), "privacy loss distribution, certified upper bound"),
];

/// Answer of one accountant.
struct Answer {
    key: &'static str,
    about: &'static str,
    value: Option<f64>,
    note: Option<String>,
}

pub fn execute(question: &Question) -> Outcome {
    let unit = match question.rate {
        None => Mechanism::Gaussian { noise_multiplier: 1.0 },
        Some(rate) => Mechanism::poisson(rate, 1.0, question.adjacency),
    };
    // Replacing a record moves a full batch by twice what one record adds.
    let scale = unit.noise_multiplier();
    let mut answers = Vec::new();
    for (key, new, about) in ACCOUNTANTS {
        let result = match (question.sigma, question.target_epsilon) {
            (Some(sigma), _) => epsilon(question, unit.with_noise(sigma * scale), new),
            (None, Some(target)) => noise(question, unit, target, new).map(|z| z / scale),
            (None, None) => return Err(Failure::usage("--sigma or --target-epsilon is required")),
        };
        let (value, note) = match result {
            Ok(value) => (Some(value), remark(question, unit, scale, key, value)),
            Err(AccountError::Unsupported { .. }) => (None, None),
            Err(error) => (None, Some(error.to_string())),
        };
        answers.push(Answer { key, about, value, note });
    }
    let value = as_json(question, &answers);
    output::print(question.format, &value, || as_text(question, &answers))
}

fn epsilon(question: &Question, mechanism: Mechanism, new: Maker) -> Result<f64, AccountError> {
    let mut accountant = new();
    accountant.compose(&mechanism, question.rounds)?;
    accountant.epsilon(question.delta)
}

fn noise(
    question: &Question,
    unit: Mechanism,
    target: f64,
    new: Maker,
) -> Result<f64, AccountError> {
    // A typed refusal comes before any search.
    new().compose(&unit, 1)?;
    let budget = Budget::new(target, question.delta)?;
    calibrate::noise_multiplier(budget, unit, question.rounds, new)
}

/// Limits of the paper's sums.
fn remark(
    question: &Question,
    unit: Mechanism,
    scale: f64,
    key: &str,
    value: f64,
) -> Option<String> {
    let mechanism = unit.with_noise(scale * question.sigma.unwrap_or(value));
    let (mut naive, mut advanced) = (Naive::new(), Advanced::new());
    naive.compose(&mechanism, question.rounds).ok()?;
    advanced.compose(&mechanism, question.rounds).ok()?;
    let total = match key {
        "naive" => naive.total_delta(question.delta),
        "advanced" => advanced.total_delta(question.delta),
        _ => return None,
    };
    let mut note = format!("total δ = {total:.3e}");
    if total >= 1.0 {
        note += ", so no guarantee";
    }
    if !naive.in_range(question.delta) {
        note += "; outside the theorem, which needs ε < 1 per round";
    }
    Some(note)
}

fn as_json(question: &Question, answers: &[Answer]) -> Value {
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
    let quantity = if question.sigma.is_some() { "epsilon" } else { "sigma" };
    for (key, value) in [
        ("quantity", json!(quantity)),
        ("sigma", json!(question.sigma)),
        ("target_epsilon", json!(question.target_epsilon)),
        ("rounds", json!(question.rounds)),
        ("sampling_rate", json!(question.rate)),
        ("adjacency", json!(question.adjacency)),
        ("delta", json!(question.delta)),
        ("notes", json!(notes)),
    ] {
        object.insert(key.into(), value);
    }
    Value::Object(object)
}

fn as_text(question: &Question, answers: &[Answer]) -> String {
    let sampling = match question.rate {
        None => "no sampling".into(),
        Some(rate) => format!("Poisson sampling at rate {rate}, {} adjacency", question.adjacency),
    };
    let given = match (question.sigma, question.target_epsilon) {
        (Some(sigma), _) => format!("σ = {sigma} sensitivities"),
        (_, target) => format!("target ε = {}", target.unwrap_or_default()),
    };
    let columns: [Column<Answer>; 3] = [
        ("accountant", |answer| answer.key.into()),
        (if question.sigma.is_some() { ">ε" } else { ">σ" }, |answer| or_dash(answer.value)),
        ("method", |answer| match &answer.note {
            Some(note) => format!("{} ({note})", answer.about),
            None => answer.about.into(),
        }),
    ];
    format!(
        "{given}, {} rounds, δ = {:e}, {sampling}\n\n{}",
        question.rounds,
        question.delta,
        output::columns(answers, &columns),
    )
}
