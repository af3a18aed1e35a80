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
use crate::output::table;

/// A choice in one line.
pub fn sentence(choice: &Choice) -> String {
    format!(
        "{}: J is {:.3} times that of full power, T_th {}, total power {:.4} W; worst device ε {}, \
         {} without channel noise{}",
        choice.optimizer.name(),
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

/// The table and what follows from it.
pub fn table_of(
    choices: &[Choice],
    experiment: &Experiment,
    best: Option<&Choice>,
    out: &Path,
) -> String {
    let header = [
        "method",
        ">J/full",
        ">T_th",
        ">shortfall",
        ">Σp² W",
        ">ε",
        ">ε κ=0",
        ">evaluations",
        ">seconds",
    ];
    let rows: Vec<Vec<String>> = choices
        .iter()
        .map(|choice| {
            vec![
                choice.optimizer.name().into(),
                format!("{:.4}", choice.objective_relative),
                rounds(&choice.switching_round),
                round_up(choice.worst_under_noising),
                format!("{:.4}", choice.total_power_w),
                figure(choice.epsilon),
                figure(choice.epsilon_without_channel),
                choice.evaluations.to_string(),
                format!("{:.2}", choice.seconds),
            ]
        })
        .collect();
    let mut text = format!(
        "\n{}T_th (of {} rounds): min/median/max over the devices. ε at δ = {:e}, \
         privacy.channel_trust = {}.\n",
        table(&header, &rows),
        experiment.run.rounds,
        experiment.delta(),
        experiment.channel_trust(),
    );
    if let Some(policy) = choices.iter().find_map(|choice| choice.policy_relative) {
        text += &format!(
            "DDPG: the table shows the best action tried; the final policy alone reaches J/full \
             {policy:.4}.\n"
        );
    }
    if let Some(best) = best {
        let gain = 100.0 * (1.0 - best.objective_relative);
        text += &if gain >= 0.05 {
            format!(
                "{} lowers the noise terms of the bound by {gain:.1} % compared with full power.\n",
                best.optimizer.name()
            )
        } else {
            format!(
                "No method beats full power by more than 0.05 %; chosen: {}.\n",
                best.optimizer.name()
            )
        };
        if best.worst_under_noising > 1.0 {
            text += "Some devices have less noise than privacy requires: the sum rule allows that. Use \
                     control.switch.rule = \"per-device\" or control.noise = \"top-up\" to avoid \
                     it.\n";
        }
        text += &format!(
            "Results: {0}. Next: lapa run {0}/powers.toml (the powers of {1})\n",
            out.display(),
            best.optimizer.name()
        );
    }
    text
}

/// Curves begin below this, so that a search's first tries do not set the scale.
const MOST_SHOWN: f64 = 10.0;

/// Writes power.json and the plots.
pub fn write(choices: &[Choice], out: &Path) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(choices).map_err(Failure::failed)? + "\n";
    write_text(&out.join("power.json"), &text)?;
    let most = choices.iter().map(|choice| choice.evaluations).max().unwrap_or(1) as f64;
    let mut curves =
        Figure::new("Transmit power optimization", "Evaluations", "J relative to full power");
    let mut powers = Figure::new("Transmit power by device", "Device", "Power (W)");
    for choice in choices {
        let name = choice.optimizer.name();
        let mut points: Vec<(f64, f64)> = choice
            .curve
            .iter()
            .map(|&(evaluations, best)| (evaluations as f64, best))
            .filter(|(_, best)| *best <= MOST_SHOWN)
            .collect();
        // What is known at once is a level to beat.
        if let [(_, level)] = points[..] {
            points = vec![(1.0, level), (most, level)];
        }
        curves = curves.line(Series::new(name, points));
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
