//! Configurations: what is wrong with one, and the files that start and describe one.

use std::fs;

use tempfile::TempDir;

use super::*;

/// The message about a configuration that must be refused.
fn refusal(text: &str, flags: &[&str]) -> String {
    let place = TempDir::new().unwrap();
    fs::write(place.path().join("my.toml"), text).unwrap();
    let run = failure(lapa(place.path()).args(["run", "my.toml"]).args(flags), 2);
    let check = failure(lapa(place.path()).args(["config", "check", "my.toml"]).args(flags), 2);
    assert_eq!(run, check);
    assert_eq!(names(place.path()), ["my.toml"]);
    run
}

fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[test]
fn mistakes_are_named_with_file_line_and_remedy() {
    let text = refusal("[run]\nrounds = 3\n[learn]\nlerning_rate = 0.1\n", &[]);
    assert_says(&text, &["my.toml:4:1", "unknown key `learn.lerning_rate`", "`learning_rate`?"]);
    let text = refusal("[run]\nrounds = \"many\"\n", &[]);
    assert_says(&text, &["my.toml:2:10", "`run.rounds` = \"many\""]);
    let text = refusal("[run]\nparticipation = 1.5\n", &[]);
    assert_says(&text, &["my.toml:2:17", "`run.participation` = 1.5"]);
    let text = refusal("[run\n", &[]);
    assert_says(&text, &["my.toml:1:"]);
    let text = refusal("", &["-c", "model.nrom=group"]);
    assert_says(&text, &["-c model.nrom=group", "did you mean `norm`?"]);
    let text = refusal("", &["-c", "run.rounds"]);
    assert_says(&text, &["-c run.rounds", "no `=`", "section.key=value"]);
    let text = refusal("data.name = \"mnits\"\n", &[]);
    assert_says(&text, &["my.toml:1:13", "did you mean \"mnist\"?"]);
}

/// Unknown keys and values first; where there are none of them, contradictions.
#[test]
fn all_mistakes_are_shown_at_once() {
    let text = refusal("[run]\nrounds = 0\n[learn]\nlr = 1\n", &["-c", "privacy.pid_window=3"]);
    assert_says(
        &text,
        &[
            "-c privacy.pid_window=3: `privacy.pid_window` is now `privacy.lapa.window`",
            "my.toml:2:10: `run.rounds` = 0",
            "did you mean `learn.learning_rate`?",
        ],
    );
    let text = refusal("data.classes = 3\ntransmit.power_w = 9\n", &[]);
    assert_says(&text, &["my.toml:1:16", "my.toml:2:20", "above `transmit.max_power_w` = 0.3"]);
}

#[test]
fn batch_norm_with_per_sample_clipping_is_refused() {
    let text = refusal("[model]\nnorm = \"batch\"\n[learn]\nclip = \"sample\"\n", &[]);
    assert_says(&text, &["my.toml:2:8", "batch norm", "use group norm (model.norm = \"group\")"]);
}

#[test]
fn a_missing_file_is_named() {
    let place = TempDir::new().unwrap();
    for command in [&["run", "none.toml"][..], &["config", "check", "none.toml"]] {
        let text = failure(lapa(place.path()).args(command), 2);
        assert_says(&text, &["cannot read none.toml"]);
    }
    assert_eq!(names(place.path()), [""; 0]);
}

#[test]
fn init_writes_a_file_that_check_accepts() {
    let place = TempDir::new().unwrap();
    let file = place.path().join("lapa.toml");
    stdout(lapa(place.path()).arg("init").assert());
    let template = fs::read_to_string(&file).unwrap();
    let checked = stdout(lapa(place.path()).args(["config", "check", "lapa.toml"]).assert());
    assert_says(&checked, &["lapa.toml: valid", "rounds = 150", "epsilon = 8"]);
    let mut command = lapa(place.path());
    command.args(["config", "check", "lapa.toml", "-c", "run.rounds=7", "--format", "json"]);
    assert_eq!(stdout_json(&mut command)["run"]["rounds"], 7);

    fs::write(&file, "mine").unwrap();
    let text = failure(lapa(place.path()).arg("init"), 2);
    assert_says(&text, &["lapa.toml already exists", "--force"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    stdout(lapa(place.path()).args(["init", "--force"]).assert());
    assert_eq!(fs::read_to_string(&file).unwrap(), template);
    assert_eq!(stdout(lapa(place.path()).args(["init", "-"]).assert()), template);
    failure(lapa(place.path()).args(["init", "no/such/folder.toml"]), 2);
}

/// `lapa init` and `lapa run FILE` are `lapa run`: the same experiment, whatever flags change of it,
/// and the same results to the bit.
#[test]
fn init_writes_the_quickstart() {
    let place = TempDir::new().unwrap();
    stdout(lapa(place.path()).arg("init").assert());
    fs::write(place.path().join("quickstart.toml"), lapa_cli::QUICKSTART).unwrap();
    for flags in [
        &[][..],
        &["-c", "profile=paper"],
        &["-c", "partition.scheme=iid"],
        &["-c", "data.name=fashion-mnist"],
        &["-c", "privacy=none"],
        &["-c", "transmit.uplink=digital"],
    ] {
        let resolved = |file: &str| {
            let mut command = lapa(place.path());
            command.args(["config", "check", file, "--format", "json"]).args(flags);
            stdout_json(&mut command)
        };
        assert_eq!(resolved("lapa.toml"), resolved("quickstart.toml"), "{flags:?}");
    }
    let small = ["data.name=synthetic", "run.rounds=1", "model.name=logistic"];
    let sizes = ["partition.mix.iid_samples=90", "partition.mix.non_iid_samples=60"];
    let run = |file: &[&str], out: &str| {
        let mut command = lapa(place.path());
        command.arg("run").args(file).args(["--quiet", "--out", out]);
        command.args(small.iter().chain(&sizes).flat_map(|change| ["-c", change]));
        command.assert().success();
        let resolved = fs::read_to_string(place.path().join(out).join("config.resolved.toml"));
        (resolved.unwrap(), results(&place.path().join(out)))
    };
    assert_eq!(run(&["lapa.toml"], "file"), run(&[], "none"));
}
