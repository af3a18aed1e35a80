//! Choices of power: pilots and agents that are damaged or broken off.

use super::*;

const POWER: &str = "\
data.name = 'idx:digits'
run = { rounds = 4, evaluate_every = 4, seed = 3, threads = 1 }
partition.mix = { iid = 2, non_iid = 3, iid_samples = [20, 40], non_iid_samples = [20, 40] }
model.name = 'logistic'
privacy = { epsilon = 8, channel_trust = 1, budget_fraction = 0.5 }
learn.sampling = 'fixed'
radio.noise_power_w = 1e-12
transmit = { uplink = 'analog', access = 'orthogonal' }
control = { noise = 'top-up', pilot = 'private', cma-es.evaluations = 100, ddpg = { episodes = 2, steps = 20 } }
";

/// A folder with power.toml, whose pilot is charged.
fn power_place() -> TempDir {
    let place = place();
    fs::write(place.path().join("power.toml"), POWER).unwrap();
    place
}

const CHOOSE: [&str; 5] = ["power", "power.toml", "--quiet", "--only", "equal,ddpg"];

#[test]
fn a_damaged_pilot_or_agent_is_refused_or_used() {
    let folder = power_place();
    let place = folder.path();
    let whole = survives(place, &[&CHOOSE[..], &["--out", "whole"]].concat(), "the whole choice");
    assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
    let damaged: Vec<PathBuf> = files(&place.join("whole"))
        .into_iter()
        .filter(|path| {
            path.starts_with(place.join("whole/pilot")) || path.ends_with("agent.safetensors")
        })
        .collect();
    for case in cases(12, 320) {
        let mut dice = Dice::new(10, case);
        let path = &damaged[dice.below(damaged.len())];
        let bytes = fs::read(path).unwrap();
        fs::write(path, mutate::bytes(&bytes, &mut dice)).unwrap();
        let again =
            ["--pilot", "whole/pilot", "--agent", "whole/agent.safetensors", "--out", "again"];
        let name = format!("pilot {case}, {}", path.display());
        survives(place, &[&CHOOSE[..], &again].concat(), &name);
        fs::write(path, bytes).unwrap();
        let _ = fs::remove_dir_all(place.join("again"));
    }
}

/// The same command goes on with a pilot that was killed, and charges nothing twice.
#[test]
fn a_killed_choice_of_powers_goes_on() {
    let whole = power_place();
    let choose = [&CHOOSE[..], &["--out", "power"]].concat();
    let begun = lapa::clock::now();
    survives(whole.path(), &choose, "the whole choice");
    let time = begun.elapsed();
    let spent = provable(whole.path(), "power/ledger.db", "the whole choice").unwrap();
    for case in cases(1, 12) {
        let hit = power_place();
        let mut dice = Dice::new(11, case);
        for _ in 0..2 {
            kills::kill_after(hit.path(), &choose, time.mul_f64(dice.below(900) as f64 / 1000.0));
        }
        let name = format!("choice {case}");
        if !hit.path().join("power/power.json").exists() {
            let output = survives(hit.path(), &choose, &name);
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        }
        assert_eq!(provable(hit.path(), "power/ledger.db", &name).unwrap(), spent, "{name}");
    }
}
