//! `cargo xtask bench-peers --ddpg`: our DDPG and that of stable-baselines3, measured in turns.

use std::process::ExitCode;

use serde_json::json;

use crate::bench_peers::{Format, Worker, number, our_figures, pinned_core};
use crate::table::{self, Row};
use crate::{TaskResult, peers_env, process};

/// Width of the hidden layers and batch, and our figure.
const CASES: [(&str, &str, &str); 2] = [
    ("DDPG, 64 × 64, batch 64", "64 64", "ddpg_64_steps_per_s"),
    ("DDPG, 256 × 256, batch 256", "256 256", "ddpg_256_steps_per_s"),
];

/// Runs the comparison and prints it: steps per second on one core, each an action, a step of a
/// trivial environment and an update.
pub fn run(pairs: u32, seconds: f64, format: Format) -> TaskResult {
    let python = peers_env::python("ddpg.txt")?;
    let lapa = process::build_lapa(true)?;
    let core = pinned_core();
    let mut worker = Worker::start(&python, "ddpg.py", &[], core)?;
    let about = worker.ask("about")?;
    let mut rows = CASES.map(|(name, ..)| Row { name, pairs: Vec::new() });
    let length = seconds.to_string();
    let arguments = ["--only", "control", "--seconds", &length];
    // Once for the caches of both sides.
    for (_, sizes, _) in CASES {
        worker.ask(&format!("steps {sizes} {seconds}"))?;
    }
    for pair in 0..pairs {
        eprintln!("pair {} of {pairs}", pair + 1);
        let ours = our_figures(&lapa, &arguments, core)?;
        for ((_, sizes, ours_named), row) in CASES.iter().zip(&mut rows) {
            let theirs = worker.ask(&format!("steps {sizes} {seconds}"))?;
            row.pairs.push((number(&ours, ours_named)?, number(&theirs, "steps_per_s")?));
        }
    }

    let version = |name: &str| about[name].as_str().unwrap_or("?").to_owned();
    let (peer, torch) = (version("stable_baselines3"), version("torch"));
    let title = format!("stable-baselines3 {peer}, PyTorch {torch}, {pairs} pairs, one core");
    let conditions = json!({
        "stable_baselines3": about["stable_baselines3"], "torch": about["torch"],
        "pairs": pairs, "seconds": seconds, "core": core,
    });
    table::print(format, &title, &rows, conditions);
    Ok(ExitCode::SUCCESS)
}
