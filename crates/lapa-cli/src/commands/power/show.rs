//! The table, the files and the plots of `lapa power`.

use std::io::Write;
use std::path::Path;

use lapa::atomic::write_atomically;
use lapa::budget::round_up;
use lapa::config::Experiment;
use lapa::run::SwitchingRound;
use lapa_control::phases::Choice;
use lapa_report::plot::{Figure, Series};

use crate::failure::Failure;
use crate::output::{Column, columns};

/// A choice in one line.
pub fn sentence(choice: &Choice) -> String {
    let instead = choice.instead_of.map_or(String::new(), |method| {
        let place = if choice.rehearsed.is_some() { "in a rehearsal" } else { "on the pilots" };
        format!("the powers of {method} are worse than equal power {place}: ")
    });
    format!(
        "{instead}{}: J is {:.3} times that of full power, T_th {}, total power {:.4} W; worst device ε {}, \
         {} without channel noise{}",
        choice.optimizer,
        choice.objective_relative,
        rounds(&choice.switching_round),
        choice.total_power_w,
        figure(choice.epsilon),
        figure(choice.epsilon_without_channel),
        if choice.worst_under_noising > 1.0 {
            format!("; noise shortfall up to {}", round_up(choice.worst_under_noising))
        } else {
            String::new()
        }
    )
}

/// A privacy figure, or that there is none.
fn figure(epsilon: Option<f64>) -> String {
    epsilon.map_or("unknown".into(), round_up)
}

/// Least, median and most; or the one of all.
fn rounds(switching_round: &SwitchingRound) -> String {
    match (switching_round, switching_round.spread()) {
        (SwitchingRound::All(round), _) => round.to_string(),
        (_, Some([least, median, most])) => format!("{least}/{median}/{most}"),
        (_, None) => "–".into(),
    }
}

/// Columns of the table.
const COLUMNS: [Column<Choice>; 9] = [
    ("method", |choice| choice.optimizer.to_string()),
    (">J/full", |choice| format!("{:.4}", choice.objective_relative)),
    (">T_th", |choice| rounds(&choice.switching_round)),
    (">shortfall", |choice| round_up(choice.worst_under_noising)),
    (">Σp² W", |choice| format!("{:.4}", choice.total_power_w)),
    (">ε", |choice| figure(choice.epsilon)),
    (">ε κ=0", |choice| figure(choice.epsilon_without_channel)),
    (">evaluations", |choice| choice.evaluations.to_string()),
    (">seconds", |choice| format!("{:.2}", choice.seconds)),
];

/// The table and what follows from it.
pub fn text(
    choices: &[Choice],
    experiment: &Experiment,
    best: Option<&Choice>,
    out: &Path,
) -> String {
    let mut text = format!(
        "\n{}T_th (of {} rounds): min/median/max over the devices. ε at δ = {:e}, \
         privacy.channel_trust = {}.\n",
        columns(choices, &COLUMNS),
        experiment.run.rounds,
        experiment.delta(),
        experiment.channel_trust(),
    );
    let worse = |choice: &Choice| choice.policy_relative.filter(|j| *j > choice.objective_relative);
    if let Some(policy) = choices.iter().find_map(worse) {
        text += &format!(
            "DDPG: the table shows the best action tried; the final policy alone reaches J/full \
             {policy:.4}.\n"
        );
    }
    text + &best.map_or(String::new(), |best| conclusion(best, out))
}

/// Gain and shortfall of the best choice, and the next command.
fn conclusion(best: &Choice, out: &Path) -> String {
    let (name, gain) = (best.optimizer, 100.0 * (1.0 - best.objective_relative));
    let mut text = if gain >= 0.05 {
        format!(
            "{name} lowers the noise terms of the bound by {gain:.1} % compared with full power.\n"
        )
    } else {
        format!("No method beats full power by more than 0.05 %; chosen: {name}.\n")
    };
    if best.worst_under_noising > 1.0 {
        text += "Some devices have less noise than privacy requires: the sum rule allows that. Use \
                 control.switch.rule = \"per-device\" or control.noise = \"top-up\" to avoid it.\n";
    }
    let out = out.display();
    text + &format!("Results: {out}. Next: lapa run {out}/powers.toml (the powers of {name})\n")
}

/// Curves begin below this, so that a search's first tries do not set the scale.
const MOST_SHOWN: f64 = 10.0;

/// Writes power.json and the plots.
pub fn write(choices: &[Choice], out: &Path) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(choices)? + "\n";
    write_text(&out.join("power.json"), &text)?;
    let most = choices.iter().map(|choice| choice.evaluations).max().unwrap_or(1) as f64;
    let mut curves =
        Figure::new("Transmit power optimization", "Evaluations", "J relative to full power");
    let mut powers = Figure::new("Transmit power by device", "Device", "Power (W)");
    for choice in choices {
        let name = choice.optimizer.to_string();
        let mut points: Vec<(f64, f64)> = choice
            .curve
            .iter()
            .map(|&(evaluations, best)| (evaluations as f64, best))
            .filter(|(_, best)| *best <= MOST_SHOWN)
            .collect();
        // A result that is known at once is a level to beat.
        if let [(_, level)] = points[..] {
            points = vec![(1.0, level), (most, level)];
        }
        curves = curves.line(Series::new(name.clone(), points));
        let points = choice.powers_w.iter().enumerate();
        let points = points.map(|(device, &power)| (device as f64, power));
        powers = powers.line(Series::new(name, points));
    }
    curves.log_x().log_y().save(&out.join("curves"))?;
    powers.log_y().save(&out.join("powers"))?;
    Ok(())
}

/// Writes a file, all of it or nothing.
pub fn write_text(path: &Path, text: &str) -> Result<(), Failure> {
    write_atomically(path, |file| file.write_all(text.as_bytes())).map_err(
        |error: std::io::Error| Failure::usage(format!("cannot write {}: {error}", path.display())),
    )
}
