//! The table, the files and the plots of `lapa power`.

use std::path::Path;

use lapa::config::Experiment;
use lapa::plot::{Figure, Series};
use lapa::privatize::round_up;
use lapa::run::SwitchingRound;
use lapa_control::staged::Choice;

use crate::failure::Failure;
use crate::output::table;

/// A choice in one line.
pub fn sentence(choice: &Choice) -> String {
    format!(
        "{}: J {:.3} of full power's, T_th {}, total {:.4} W; worst device ε {}, {} if no channel \
         noise is counted{}",
        choice.optimizer.name(),
        choice.objective_relative,
        rounds(&choice.switching_round),
        choice.total_power_w,
        figure(choice.epsilon),
        figure(choice.epsilon_without_channel),
        match choice.worst_under_noising > 1.0 {
            true => format!("; under-noised by up to {}", round_up(choice.worst_under_noising)),
            false => String::new(),
        }
    )
}

/// A privacy figure, or that there is none.
fn figure(epsilon: Option<f64>) -> String {
    epsilon.map_or("unknown".into(), round_up)
}

/// Least, median and most.
fn rounds(switching_round: &SwitchingRound) -> String {
    let each = match switching_round {
        SwitchingRound::All(round) => return round.to_string(),
        SwitchingRound::Each(each) => each,
    };
    let mut rounds: Vec<u32> = each.iter().flatten().copied().collect();
    rounds.sort_unstable();
    match (rounds.first(), rounds.get(rounds.len() / 2), rounds.last()) {
        (Some(least), Some(median), Some(most)) => format!("{least}/{median}/{most}"),
        _ => "–".into(),
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
        "optimizer",
        ">J/full",
        ">T_th",
        ">under",
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
        "\n{}T_th of {} rounds: least/median/most over the devices. ε at δ {:e}, \
         privacy.channel_trust {}.\n",
        table(&header, &rows),
        experiment.run.rounds,
        experiment.privacy.delta,
        experiment.privacy.channel_trust,
    );
    if let Some(policy) = choices.iter().find_map(|choice| choice.policy_relative) {
        text += &format!(
            "ddpg: what its actor alone proposes at the end has J/full {policy:.4}; in the table is \
             the best that it tried.\n"
        );
    }
    if let Some(best) = best {
        let gain = 100.0 * (1.0 - best.objective_relative);
        text += &match gain >= 0.05 {
            true => format!(
                "{} lowers the noise in the bound by {gain:.1} % against full power.\n",
                best.optimizer.name()
            ),
            false => format!(
                "Nothing is better than full power by more than 0.05 %; chosen: {}.\n",
                best.optimizer.name()
            ),
        };
        if best.worst_under_noising > 1.0 {
            text += "It leaves devices with less noise than privacy asks for: the sum rule allows \
                     that. Use control.switch_rule = \"per-device\" or control.noise = \
                     \"top-up\".\n";
        }
        text += &format!(
            "powers of {1}: {0}/powers.toml (lapa run {0}/powers.toml); all else is in {0}\n",
            out.display(),
            best.optimizer.name()
        );
    }
    text
}

/// Writes power.json and the plots.
pub fn write(choices: &[Choice], out: &Path) -> Result<(), Failure> {
    let path = out.join("power.json");
    let text = serde_json::to_string_pretty(choices).map_err(Failure::failed)? + "\n";
    std::fs::write(&path, text)
        .map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))?;
    let mut curves = Figure::new("Choice of powers", "Evaluations", "J over that of full power");
    for choice in choices {
        let points: Vec<(f64, f64)> = choice
            .curve
            .iter()
            .map(|&(evaluations, best)| (evaluations as f64, best))
            .filter(|(evaluations, best)| *evaluations > 0.0 && best.is_finite())
            .collect();
        match points.as_slice() {
            [] => {}
            // What is known at once is a level to beat.
            [(_, level)] => curves = curves.level(choice.optimizer.name(), *level),
            _ => curves = curves.line(Series::new(choice.optimizer.name(), points)),
        }
    }
    let drawn = choices.iter().any(|choice| choice.curve.len() > 1);
    if drawn {
        curves.log_x().save(&out.join("curves"))?;
    }
    let mut powers = Figure::new("Power of each device", "Device", "Power (W)").log_y();
    for choice in choices {
        let points = choice.powers_w.iter().enumerate();
        let points = points.map(|(device, &power)| (device as f64, power));
        let points: Vec<(f64, f64)> = points.filter(|(_, power)| *power > 0.0).collect();
        powers = powers.line(Series::new(choice.optimizer.name(), points));
    }
    powers.save(&out.join("powers"))?;
    Ok(())
}
