//! `[control]`: defaults, what flags take with them, and refusals.

use super::{flags_refuse, read, refuses, with_flags};
use crate::config::*;
use crate::optimize::ddpg::DdpgVariant;
use crate::optimize::{CmaEs, DdpgConfig, Optimizers, PowerChoice};

/// A configuration in which channel noise counts; three lines.
const TRUSTED: &str = "privacy = { epsilon = 8, channel_trust = 0.5 }\n\
                       transmit = { uplink = \"analog\", access = \"orthogonal\" }\n\
                       partition.mix = { iid = 1, non_iid = 3 }\n";

/// The same on the paper's basis; four lines.
fn paper() -> String {
    format!("profile = \"paper\"\n{TRUSTED}")
}

fn control(text: &str) -> Control {
    read(text).unwrap().control
}

#[test]
fn an_empty_file_leaves_noise_and_powers_alone() {
    let expected = Control {
        noise: NoiseControl::Always,
        power: PowerChoice::File,
        total_power_w: 15.0 * 0.075,
        least_power_w: 0.01 * (15.0 * 0.075),
        pilot: Pilot::Synthetic,
        pilots: 1,
        evaluation: EvaluationChoice::Trace,
        bound: BoundForm::Corrected,
        smoothness: 45.0,
        convexity: 0.3,
        dissimilarity: 1.0,
        optimizers: Optimizers {
            cma_es: CmaEs { evaluations: 40_000 },
            ddpg: DdpgConfig {
                variant: DdpgVariant::Tuned,
                episodes: 200,
                steps: 200,
                hidden: 64,
                batch: 64,
                discount: 0.0,
                soft_update: 0.005,
                actor_rate: 1e-3,
                critic_rate: 1e-3,
            },
        },
    };
    for text in ["", "profile = \"paper\"", "privacy.epsilon = 8", TRUSTED] {
        let Control { total_power_w, least_power_w, .. } = expected.clone();
        let devices = if text == TRUSTED { 4.0 / 15.0 } else { 1.0 };
        let found = control(text);
        assert!((found.total_power_w / devices - total_power_w).abs() < 1e-12, "{text}");
        assert!((found.least_power_w / devices - least_power_w).abs() < 1e-12, "{text}");
        assert_eq!(Control { total_power_w, least_power_w, ..found }, expected, "{text}");
    }
}

#[test]
fn defaults_follow_noise_pilot_and_powers() {
    let switch = |rule| NoiseControl::Switch(SwitchConfig { rule });
    for base in [TRUSTED, &paper()] {
        let found = control(&format!("{base}control.noise = \"switch\""));
        assert_eq!(found.noise, switch(SwitchRule::PerDevice), "the sum must be asked for");
    }
    let sum = control(&format!("{}[control]\nnoise = \"switch\"\nswitch.rule = \"sum\"", paper()));
    assert_eq!((sum.noise, sum.noise.goes_by_sum()), (switch(SwitchRule::Sum), true));
    let top_up = control(&format!("{TRUSTED}control.noise = \"top-up\""));
    assert_eq!(top_up.noise, NoiseControl::TopUp);
    let private = |budget_fraction| Pilot::Private(PrivatePilot { budget_fraction });
    assert_eq!(control("control.pilot = \"private\"").pilot, private(0.1));
    let fraction = "control = { pilot = \"private\", private.budget_fraction = 0.3 }";
    assert_eq!(control(fraction).pilot, private(0.3));
}

#[test]
fn the_total_power_is_what_all_devices_send_with() {
    let four = "partition.mix = { iid = 1, non_iid = 3 }\n";
    let total = |text: &str| {
        let control = control(&format!("{four}{text}"));
        (control.total_power_w, control.least_power_w)
    };
    let near = |(total, least): (f64, f64), expected: f64| {
        assert!((total / expected - 1.0).abs() < 1e-12, "{total} instead of {expected}");
        assert!((least / (0.01 * expected) - 1.0).abs() < 1e-12, "{least}");
    };
    near(total(""), 4.0 * 0.075);
    near(total("transmit.max_power_w = 5"), 4.0 * 0.075);
    near(total("transmit = { max_power_w = 0.01, power_w = 0 }"), 4.0 * 0.01);
    near(total("control.total_power_w = 0.8"), 0.8);
    assert_eq!(total("control = { total_power_w = 0.8, least_power_w = 0 }"), (0.8, 0.0));
    assert_eq!(total("control = { total_power_w = 0.8, least_power_w = 0.8 }"), (0.8, 0.8));

    let power = |text: &str| read(&format!("{four}{text}")).unwrap().transmit.power_w;
    for choice in ["equal", "full"] {
        let with = |text: &str| power(&format!("control.power = \"{choice}\"\n{text}"));
        assert_eq!(with(""), Powers::All(0.075));
        assert_eq!(with("control.total_power_w = 0.8"), Powers::All(0.2));
        // No more than each may send with, and the default of power_w is no matter.
        assert_eq!(with("control.total_power_w = 8"), Powers::All(0.3));
        assert_eq!(with("transmit.max_power_w = 0.01"), Powers::All(0.01));
        // A value that follows anyway may be given, too: a file written in full has it.
        assert_eq!(with("transmit.power_w = 0.075"), Powers::All(0.075));
    }
    let given = "control.total_power_w = 0.8\ntransmit.power_w = [0, 0.3, 0.3, 0.3]";
    assert_eq!(power(given), Powers::Each(vec![0.0, 0.3, 0.3, 0.3]), "file: as it says");
}

#[test]
fn noise_that_does_not_count_stands_in_for_none() {
    for noise in ["switch", "top-up"] {
        let refusal = format!(
            "`control.noise` = \"{noise}\" needs `privacy.channel_trust` above 0: else no noise of \
             the channel may be counted\n  help: set privacy.channel_trust (1 counts all of it), \
             or control.noise = \"always\""
        );
        for air in ["", "transmit = { uplink = \"analog\", access = \"orthogonal\" }\n"] {
            let line = 2 + air.lines().count();
            refuses(
                &format!("privacy.epsilon = 8\n{air}control.noise = \"{noise}\""),
                &format!("lapa.toml:{line}:17: {refusal}"),
            );
        }
        let flag = format!("control.noise={noise}");
        flags_refuse("", &[&flag], &format!("-c {flag}: {refusal}"));
        // The flag, not the file, is what does not fit.
        let text = format!("{TRUSTED}control.noise = \"{noise}\"");
        let error = with_flags(&text, &["privacy.channel_trust=0"]).unwrap_err().to_string();
        assert_eq!(error, format!("-c privacy.channel_trust=0: {refusal}"));
    }
}

#[test]
fn a_sum_over_devices_is_refused_where_something_is_to_be_proved() {
    refuses(
        &format!("{TRUSTED}control = {{ noise = \"switch\", switch.rule = \"sum\" }}"),
        "lapa.toml:4:45: `control.switch.rule` = \"sum\" does not go with `privacy.basis` = \
         \"certified\": a sum over devices protects none of them\n  help: use control.switch.rule \
         = \"per-device\", or privacy.basis = \"paper\"",
    );
    for rule in ["sum", "sum-latched"] {
        let switch = format!("control = {{ noise = \"switch\", switch.rule = \"{rule}\" }}");
        assert!(read(&format!("{}{switch}", paper())).is_ok());
        let error = read(&format!("{TRUSTED}{switch}")).unwrap_err().to_string();
        assert!(error.contains(&format!("`control.switch.rule` = \"{rule}\"")), "{error}");
    }
}

#[test]
fn powers_that_leave_no_choice_are_refused() {
    let four = "partition.mix = { iid = 1, non_iid = 3 }\n";
    refuses(
        &format!("{four}control = {{ total_power_w = 0.2, least_power_w = 0.25 }}"),
        "lapa.toml:2:50: `control.least_power_w` = 0.25 is above `control.total_power_w` = 0.2: \
         expected from 0 to 0.2\n  help: lower least_power_w, or raise total_power_w",
    );
    refuses(
        &format!("{four}control = {{ total_power_w = 9, least_power_w = 2 }}"),
        "lapa.toml:2:48: `control.least_power_w` = 2 is more than 4 devices with at most \
         `transmit.max_power_w` = 0.3 can send with, which is 1.2\n  help: lower \
         control.total_power_w and least_power_w, or raise transmit.max_power_w",
    );
    // The default of least_power_w follows total_power_w, which then is what is too large.
    refuses(
        &format!("{four}control.total_power_w = 200"),
        "lapa.toml:2:25: `control.least_power_w` = 2 is more than 4 devices with at most \
         `transmit.max_power_w` = 0.3 can send with, which is 1.2\n  help: lower \
         control.total_power_w and least_power_w, or raise transmit.max_power_w",
    );
}

#[test]
fn powers_are_set_by_one_key() {
    for (power, given) in [
        ("equal", "0.1"),
        ("full", "[0.075, 0.075, 0.075, 0.075]"),
        ("closed-form", "0.1"),
        ("cma-es", "0.1"),
        ("ddpg", "0.1"),
    ] {
        let text = format!(
            "partition.mix = {{ iid = 1, non_iid = 3 }}\n[transmit]\nuplink = \"analog\"\npower_w = \
             {given}\n[control]\npower = \"{power}\"\n[privacy]\nepsilon = 8\n"
        );
        let refusal = format!(
            "`transmit.power_w` and `control.power` = \"{power}\" both set the powers\n  help: \
             remove transmit.power_w, or set control.power = \"file\""
        );
        refuses(&text, &format!("lapa.toml:4:11: {refusal}"));
        // Of file and flag the flag wins, of two flags none.
        let choice = format!("control.power={power}");
        let chosen = with_flags(&text, &[&choice]).unwrap();
        assert_eq!(chosen.transmit.power_w, Powers::All(0.075), "{power}");
        let by_hand = with_flags(&text, &["transmit.power_w=0.2"]).unwrap();
        assert_eq!(by_hand.transmit.power_w, Powers::All(0.2));
        assert_eq!(by_hand.control.power, PowerChoice::File);
        let flags = [&*choice, "transmit.power_w=0.2"];
        let error = with_flags(&text, &flags).unwrap_err().to_string();
        assert_eq!(error, format!("-c transmit.power_w=0.2: {refusal}"));
    }
    let text = "partition.mix = { iid = 1, non_iid = 3 }\ntransmit.power_w = 0.2\n";
    let file = with_flags(text, &["control.power=file"]).unwrap();
    assert_eq!(file.transmit.power_w, Powers::All(0.2), "file: the file's");
}

#[test]
fn a_pilot_that_cannot_be_paid_for_is_refused() {
    refuses(
        "control = { pilot = \"private\", evaluation = \"live\" }",
        "lapa.toml:1:45: `control.evaluation` = \"live\" does not go with `control.pilot` = \
         \"private\": every evaluation would release updates of the devices' records\n  help: use \
         control.pilot = \"synthetic\", or evaluation = \"trace\"",
    );
    assert!(read("control.evaluation = \"live\"").is_ok());
    refuses(
        "privacy.initial_sigma = 2\ncontrol.pilot = \"private\"",
        "lapa.toml:1:25: `privacy.initial_sigma` sets the budget by the noise of the run alone, \
         which leaves nothing for `control.pilot` = \"private\"\n  help: use privacy.epsilon, or \
         control.pilot = \"synthetic\"",
    );
    assert!(read("privacy.epsilon = 2\ncontrol.pilot = \"private\"").is_ok());
    refuses(
        "privacy.epsilon = 2\ncontrol = { pilot = \"private\", pilots = 3 }",
        "lapa.toml:2:41: `control.pilots` = 3 does not go with `control.pilot` = \"private\" and \
         `privacy.basis` = \"certified\": every pilot would spend the devices' budgets\n  help: use \
         control.pilots = 1, or control.pilot = \"synthetic\"",
    );
    // Basis paper enforces no budget that they could break.
    let paper = "profile = \"paper\"\nprivacy.initial_sigma = 2\n";
    assert!(read(&format!("{paper}control = {{ pilot = \"private\", pilots = 3 }}")).is_ok());
    refuses(
        "privacy = { epsilon = 2, adjacency = \"replace-one\" }\ncontrol.pilot = \"private\"",
        "lapa.toml:2:17: `control.pilot` = \"private\" does not go with `privacy.adjacency` = \
         \"replace-one\" and poisson batches, which can be costed only as a plan of equal \
         releases\n  help: use adjacency = \"zero-out\", or control.pilot = \"synthetic\"",
    );
}

#[test]
fn a_fraction_of_the_budget_needs_a_budget_that_divides() {
    let found = read("privacy = { epsilon = 2, budget_fraction = 0.3 }").unwrap();
    assert_eq!(found.privacy.unwrap().budget_fraction, 0.3);
    let paper = "privacy = { basis = \"paper\", budget_fraction = 0.3 }\nlearn.clip = \"device\"";
    let error = read(paper).unwrap_err().to_string();
    assert!(error.contains("belongs to `privacy.basis` = \"certified\""), "{error}");
    let plan = "privacy = { epsilon = 2, adjacency = \"replace-one\", budget_fraction = 0.3 }";
    let error = read(plan).unwrap_err().to_string();
    assert!(error.contains("only as a plan of equal releases"), "{error}");
}

#[test]
fn powers_are_optimized_only_where_they_matter() {
    for power in ["closed-form", "cma-es", "ddpg"] {
        for (uplink, word) in [
            ("", "ideal"),
            ("transmit.uplink = \"digital\"\n", "digital"),
            ("transmit = { uplink = \"signal\", signal.symbols = \"digital\" }\n", "signal"),
        ] {
            let line = 2 + uplink.lines().count();
            refuses(
                &format!("privacy.epsilon = 8\n{uplink}control.power = \"{power}\""),
                &format!(
                    "lapa.toml:{line}:17: `control.power` = \"{power}\" fits powers to the \
                     receiver's noise on amplitudes, which `transmit.uplink` = \"{word}\" does not \
                     send\n  help: use transmit.uplink = \"analog\", or control.power = \"equal\""
                ),
            );
        }
        refuses(
            &format!("transmit.uplink = \"analog\"\ncontrol.power = \"{power}\""),
            &format!(
                "lapa.toml:2:17: `control.power` = \"{power}\" fits powers to the noise that \
                 privacy asks for, but there is none\n  help: set \
                 privacy.epsilon, or use control.power = \"equal\""
            ),
        );
        let good = format!("{TRUSTED}control.power = \"{power}\"");
        let found = read(&good).unwrap();
        assert!(found.control.needs_pilot());
        assert_eq!(found.transmit.power_w, Powers::All(0.075), "until they are chosen");
        read(&good.replace("analog", "signal")).unwrap();
    }
    for power in ["file", "equal", "full"] {
        let found = control(&format!("control.power = \"{power}\""));
        assert!(!found.needs_pilot());
    }
}

/// `config.resolved.toml` reads back as the experiment that it was written for.
#[test]
fn written_controls_read_back_the_same() {
    for keys in [
        "noise = \"switch\"",
        "noise = \"switch\"\nswitch.rule = \"sum\"",
        "noise = \"top-up\"\npower = \"full\"\ntotal_power_w = 0.7",
        "noise = \"top-up\"\npower = \"equal\"\nleast_power_w = 0",
        "noise = \"switch\"\npower = \"ddpg\"\n[control.ddpg]\nepisodes = 7\nsteps = 3\nhidden = 5\n\
         batch = 2\ndiscount = 0\nsoft_update = 1\nactor_rate = 0.3\ncritic_rate = 1",
        "power = \"cma-es\"\ncma-es.evaluations = 9\nevaluation = \"live\"\nbound = \"printed\"",
        "power = \"closed-form\"\nsmoothness = 3\n\
         convexity = 1e-3\ndissimilarity = 1",
    ] {
        let experiment = read(&format!("{}[control]\n{keys}", paper())).unwrap();
        let text = experiment.to_toml();
        assert_eq!(read(&text).unwrap(), experiment, "{text}");
        assert_eq!(read(&text).unwrap().to_toml(), text);
        assert_eq!(text.contains("control.switch"), keys.contains("switch\""), "{text}");
        assert_eq!(text.contains("control.private"), keys.contains("private"), "{text}");
        // With chosen powers in their place, a file of powers is complete.
        let chosen = with_flags(&text, &["transmit.power_w=[0.1, 0.2, 0.3, 0]"]).unwrap();
        assert_eq!(chosen.control.power, PowerChoice::File);
        assert_eq!(read(&chosen.to_toml()).unwrap(), chosen);
    }
}

/// Each printed form has one key, which the profile sets where the choice is made.
#[test]
fn the_printed_profile_sets_the_printed_forms() {
    let text = "
        profile = \"printed\"
        privacy = { initial_sigma = 0.2, channel_trust = 1 }
        transmit.uplink = \"analog\"
        aggregate.rule = \"wasserstein\"
        control.noise = \"switch\"
    ";
    let found = read(text).unwrap();
    assert_eq!((found.learn.momentum, found.learn.clip), (0.0, Clip::Device));
    let privacy = found.privacy.clone().unwrap();
    assert_eq!(privacy.basis, lapa_privacy::allocate::Basis::Paper);
    assert_eq!(privacy.noise, lapa_privacy::NoiseKind::ComplexGaussian);
    let file = found.to_toml();
    for line in [
        "error = \"raw\"",
        "metric = \"label-distance\"",
        "floor = 0.001",
        "renormalize = false",
        "sic_order = \"index\"",
        "variance = \"full\"",
        "scale = \"fixed\"",
        "rule = \"sum-latched\"",
        "bound = \"printed\"",
        "pilot = \"private\"",
        "variant = \"printed\"",
        "discount = 0.99",
        "soft_update = 0.001",
    ] {
        assert!(file.contains(line), "{line} in {file}");
    }
    assert_eq!(read(&file).unwrap(), found, "the resolved file is the same experiment");
    // What is given wins, and forms of other choices do not apply.
    let other = read("profile = \"printed\"\nlearn.momentum = 0.9\ntransmit.uplink = \"digital\"");
    assert_eq!(other.unwrap().learn.momentum, 0.9);
    // What proves nothing does not go where something is to be proved.
    let proved = "profile = \"printed\"\nlearn.clip = \"sample\"\nmodel.norm = \"group\"\n\
                  privacy = { basis = \"certified\", epsilon = 8 }";
    assert!(read(proved).is_ok());
    refuses(
        "privacy = { epsilon = 8, noise = \"complex-gaussian\" }",
        "lapa.toml:1:34: `privacy.noise` = \"complex-gaussian\" requires `privacy.basis` = \"paper\": \
         its real part carries half of the noise that a proof needs\n  help: use privacy.noise = \
         \"gaussian\", or privacy.basis = \"paper\"",
    );
}
