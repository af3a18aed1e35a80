//! Run folders from elsewhere: linked, damaged, read-only, or left by a killed process.

use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;

const CONFIG: &str = "\
data.name = 'synthetic'
model.name = 'logistic'
run = { rounds = 3, seed = 3 }
partition.mix = { iid = 2, non_iid = 1, iid_samples = 60, non_iid_samples = 60 }
privacy.epsilon = 8
";

/// A finished run in `r`.
fn finished() -> TempDir {
    let place = TempDir::new().unwrap();
    fs::write(place.path().join("small.toml"), CONFIG).unwrap();
    lapa(place.path()).args(["run", "small.toml", "--out", "r", "--quiet"]).assert().success();
    place
}

const AUDIT: [&str; 4] = ["--attack", "ledger", "--quiet", "--format=json"];

#[test]
fn no_command_follows_a_link_in_a_run_folder() {
    let place = finished();
    let (folder, run) = (place.path(), place.path().join("r"));
    let (victim, elsewhere) = (folder.join("victim"), folder.join("elsewhere"));
    fs::write(&victim, "precious").unwrap();
    fs::create_dir(&elsewhere).unwrap();
    let files =
        [".lock", "metrics.jsonl", "report.html", "checkpoint.safetensors", "ledger.db-wal"];
    let folders = ["plots", "tensorboard", "audit"];
    let links = files.map(|name| (name, &victim)).into_iter();
    for (name, target) in links.chain(folders.map(|name| (name, &elsewhere))) {
        let (path, aside) = (run.join(name), folder.join("aside"));
        let there = fs::rename(&path, &aside).is_ok();
        symlink(target, &path).unwrap();
        for arguments in [
            ["run", "--resume", "r", "--quiet"].as_slice(),
            &["report", "r", "--tensorboard"],
            &[&["audit", "r"][..], &AUDIT].concat(),
        ] {
            let error = failure(lapa(folder).args(arguments), 1);
            assert!(error.contains(&format!("r/{name} is a symbolic link")), "{error}");
        }
        fs::remove_file(&path).unwrap();
        if there {
            fs::rename(&aside, &path).unwrap();
        }
    }
    // Names of temporary files of earlier versions.
    symlink(&victim, run.join("report.html.tmp")).unwrap();
    symlink(&victim, run.join("summary.json.tmp")).unwrap();
    lapa(folder).args(["report", "r"]).assert().success();
    lapa(folder).args(["run", "--resume", "r", "--quiet"]).assert().success();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(names(&elsewhere), [""; 0]);
}

#[test]
fn an_audit_s_own_folder_may_hold_no_link_either() {
    let place = finished();
    let folder = place.path();
    fs::create_dir(folder.join("elsewhere")).unwrap();
    fs::create_dir(folder.join("r/audit")).unwrap();
    symlink(folder.join("elsewhere"), folder.join("r/audit/plots")).unwrap();
    let mut command = lapa(folder);
    command.args(["audit", "r", "--attack", "membership", "--quiet"]);
    let error = failure(&mut command, 1);
    assert!(error.contains("r/audit/plots: it is a symbolic link"), "{error}");
    assert_eq!(names(&folder.join("elsewhere")), [""; 0]);
}

#[test]
fn a_finished_run_is_read_where_nothing_can_be_written() {
    let place = finished();
    let (folder, run) = (place.path(), place.path().join("r"));
    fs::remove_file(run.join(".lock")).unwrap();
    let before = names(&run);
    let mode = |mode| fs::set_permissions(&run, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o500);
    lapa(folder).args(["report", "r", "--out", "page.html"]).assert().success();
    lapa(folder).args(["audit", "r", "--out", "a"]).args(AUDIT).assert().success();
    // Whoever runs this as root could have written.
    assert_eq!(names(&run), before);
    mode(0o700);
}

#[test]
fn report_and_audit_refuse_an_edited_folder() {
    let place = finished();
    let (folder, run) = (place.path(), place.path().join("r"));
    let refuse = |name: &str, from: &str, to: &str, words: &str| {
        let path = run.join(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from} in {text}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        for arguments in [vec!["report", "r"], [&["audit", "r"][..], &AUDIT].concat()] {
            let error = failure(lapa(folder).args(&arguments), 1);
            assert!(error.contains(name) && error.contains(words), "{error}");
        }
        fs::write(&path, text).unwrap();
    };
    let config = "config.resolved.toml";
    refuse(config, "epsilon = 8", "epsilon = 800", "was changed since the run began");
    refuse("summary.json", "\"accuracy\": 0", "\"accuracy\": 7", "but metrics.jsonl says 0");
    assert!(!run.join("report.html").exists() && !run.join("audit").exists());
}

const PRIVATE_PILOT: &str = r#"
profile = "certified"
run = { rounds = 4, evaluate_every = 4, threads = 1 }
data.name = "synthetic"
partition.mix = { iid = 2, non_iid = 1, iid_samples = 90, non_iid_samples = 90 }
model.name = "logistic"
privacy = { epsilon = 8, channel_trust = 1, allocator = "uniform" }
radio.noise_power_w = 1e-12
transmit = { uplink = "analog", access = "orthogonal" }
control = { noise = "top-up", pilot = "private", private.budget_fraction = 0.2 }
"#;

/// Releases on a ledger.
fn releases(folder: &Path, ledger: &str) -> usize {
    let answer = stdout_json(lapa(folder).args(["account", "--ledger", ledger, "--format=json"]));
    let devices = answer["devices"].as_array().unwrap();
    devices.iter().map(|device| device["releases"].as_u64().unwrap() as usize).sum()
}

#[test]
fn a_pilot_that_was_killed_goes_on_and_is_charged_once() {
    let place = TempDir::new().unwrap();
    let folder = place.path();
    fs::write(folder.join("p.toml"), PRIVATE_PILOT).unwrap();
    let power = |more: &[&str]| {
        let mut command = lapa(folder);
        command.args(["power", "p.toml", "--only", "equal,full", "--quiet"]).args(more);
        command
    };
    power(&["--out", "x"]).assert().success();
    let charged = releases(folder, "x/ledger.db");
    assert_eq!(charged, 3 * 4);
    // Finished: another folder, and the pilot that is there.
    let error = failure(&mut power(&["--out", "x"]), 2);
    assert!(
        error.contains("choose another folder") && error.contains("--pilot x/pilot"),
        "{error}"
    );
    assert!(!error.contains("remove"), "{error}");
    power(&["--out", "y", "--pilot", "x/pilot"]).assert().success();
    // As a kill leaves it: with the pilot and the ledger, after the pilot and within it.
    for lost in [&["power.json"][..], &["power.json", "pilot/summary.json"]] {
        for name in names(&folder.join("x")).iter().filter(|name| !name.starts_with("ledger")) {
            if name != "pilot" {
                fs::remove_file(folder.join("x").join(name)).unwrap();
            }
        }
        lost[1..].iter().for_each(|name| fs::remove_file(folder.join("x").join(name)).unwrap());
        power(&["--out", "x"]).assert().success();
        assert_eq!(releases(folder, "x/ledger.db"), charged);
        assert!(folder.join("x/power.json").is_file());
    }
}

#[test]
fn a_choice_of_powers_that_fails_leaves_no_folder() {
    let place = TempDir::new().unwrap();
    let folder = place.path();
    fs::write(folder.join("p.toml"), PRIVATE_PILOT).unwrap();
    let out = ["--out", "x", "--only", "equal", "--quiet"];
    lapa(folder).args(["power", "p.toml"]).args(out).assert().success();
    let mut other = lapa(folder);
    other.args(["power", "p.toml", "--seed", "9", "--pilot", "x/pilot", "--out", "z", "--quiet"]);
    let error = failure(&mut other, 2);
    assert!(error.contains("pilot run of another experiment"), "{error}");
    assert!(!folder.join("z").exists());
}
