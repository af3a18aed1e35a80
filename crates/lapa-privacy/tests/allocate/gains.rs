//! Directions of schedule and split, and gains under noise that feeds back.

use super::*;

/// While the error falls the text's budget falls and the formula's rises, and the text's spends all.
#[test]
fn directions_of_the_schedule() {
    let errors = [1.5, 1.0, 0.8, 0.5, 0.5, 0.2, 0.1, 0.0];
    let rounds = errors.len() as u32 + 1;
    let budgets = |schedule: Schedule| {
        let mut budgets = Vec::new();
        for (round, error) in (1..).zip(errors) {
            let spent = budgets.iter().sum();
            budgets.push(schedule.round_budget(9.0, spent, error, rounds, round));
        }
        budgets
    };
    let [formula, text] = [Schedule::Formula, Schedule::Text].map(budgets);
    assert!(formula.is_sorted(), "{formula:?}");
    assert!(text.iter().rev().is_sorted() && text[0] > 2.0 * text[7], "{text:?}");
    // Round 1 spends the first 9/9.
    assert!((text.iter().sum::<f64>() - 8.0).abs() < 1e-12, "{text:?}");
    for schedule in [Schedule::Formula, Schedule::Text] {
        assert_eq!(schedule.part(0.0, 4.0), 0.25);
    }
}

/// The text's f is the formula's in the opposite order of angles.
#[test]
fn directions_of_the_split() {
    let angles: Vec<f64> = (0..=20).map(|i| PI * f64::from(i) / 20.0).collect();
    let by = |split: Split| angles.iter().map(move |&angle| split.contribution(angle, 2.0));
    assert!(by(Split::Formula).rev().is_sorted() && by(Split::Text).is_sorted());
    for (text, formula) in by(Split::Text).zip(by(Split::Formula).rev()) {
        assert!((text - formula).abs() < 1e-12);
    }
}

/// Round budgets, as parts of ε^T/T, when the noise of each round follows from its costs: four
/// devices, 1000 coordinates, gradients of norm 1, noise 0.05 at the uniform cost.
fn budgets_under_feedback(config: LapaConfig) -> Vec<f64> {
    let (rounds, devices) = (30, 4u32);
    let uniform = 8.0 / f64::from(rounds * devices);
    let mut lapa = Lapa::paper(8.0, rounds, devices, config).unwrap();
    let mut rng = rng(7);
    let asks: Vec<Ask> = (0..devices).map(|device| ask(device, 0.0)).collect();
    let mut budgets = Vec::new();
    for round in 1..=rounds {
        let decision = lapa.allocate(round, &asks);
        budgets.push(decision.round_budget.unwrap() / (8.0 / f64::from(rounds)));
        if budgets.last() < Some(&1e-6) {
            break;
        }
        let sent: Vec<Sent> = (0..devices)
            .zip(&decision.by_device)
            .map(|(device, cost)| {
                let sigma = FEEDBACK_SIGMA * uniform / cost;
                let signal = 1.0 / f64::sqrt(FEEDBACK_Q.into());
                let gradient =
                    (0..FEEDBACK_Q).map(|_| (signal + sigma * normal(&mut rng)) as f32).collect();
                Sent { device, weight: 0.25, gradient, sigma }
            })
            .collect();
        with_transcript(round, &sent, |transcript| lapa.observe(transcript, &mut rng));
    }
    budgets
}

const FEEDBACK_SIGMA: f64 = 0.05;
const FEEDBACK_Q: u32 = 1000;

#[test]
fn errors_relative_to_the_norms_keep_a_budget() {
    for error in [PidError::Relative, PidError::Debiased] {
        let budgets = budgets_under_feedback(LapaConfig { error, ..PAPER });
        assert!(budgets.len() == 30 && budgets.iter().all(|&part| part > 0.4), "{budgets:?}");
    }
}

/// K_p·σ_g·√(2q) ≤ 1/e: at three quarters of the bound of the raw norm e stays below its fixed point
/// 1 and all rounds have a budget, at one and a half times the bound nothing is left.
#[test]
fn the_raw_norm_runs_away_beyond_the_bound_of_its_gains() {
    // Four weights of 1/4 leave half the noise.
    let noise = 0.5 * FEEDBACK_SIGMA * (2.0 * f64::from(FEEDBACK_Q)).sqrt();
    let budgets = |part: f64| {
        let proportional = part * (-1f64).exp() / noise;
        budgets_under_feedback(LapaConfig {
            proportional,
            integral: 0.0,
            error: PidError::Raw,
            ..PAPER
        })
    };
    let below = budgets(0.75);
    assert!(below.len() == 30 && below.iter().all(|&part| part > (-1f64).exp()), "{below:?}");
    let above = budgets(1.5);
    assert!(above.last() < Some(&1e-6), "{above:?}");
}
