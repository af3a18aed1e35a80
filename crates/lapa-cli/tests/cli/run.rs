//! `lapa run`: the folder it leaves, its flags, its refusals.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use super::*;

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_run_leaves_a_complete_folder() {
    let place = TempDir::new().unwrap();
    write_small(place.path());
    let printed = stdout(lapa(place.path()).args(["run", "small.toml"]).assert());
    assert!(printed.contains("accuracy") && printed.contains("runs/small-1"), "{printed}");
    for words in ["\nWorst class ", "most often taken for ", "\nWorst device ", "on its own labels"]
    {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    let folder = place.path().join("runs/small-1");
    assert_eq!(
        names(&folder),
        [
            ".lock",
            "checkpoint.safetensors",
            "config.resolved.toml",
            "ledger.db",
            "manifest.json",
            "metrics.jsonl",
            "metrics.parquet",
            "model.safetensors",
            "plots",
            "summary.json",
        ]
    );
    let plots = folder.join("plots");
    let expected = ["accuracy", "classes", "confusion", "devices", "loss"];
    let files = expected.iter().flat_map(|name| [format!("{name}.png"), format!("{name}.svg")]);
    assert_eq!(names(&plots), files.collect::<Vec<_>>());
    for plot in expected {
        let png = fs::read(plots.join(plot).with_extension("png")).unwrap();
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        let svg = fs::read_to_string(plots.join(plot).with_extension("svg")).unwrap();
        assert!(svg.contains("<svg") && svg.trim_end().ends_with("</svg>"));
    }
    let parquet = fs::read(folder.join("metrics.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));

    let manifest = json(&folder.join("manifest.json"));
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(manifest["seed"], 3);
    assert_eq!(manifest["data"]["name"], "synthetic");
    let files = manifest["data"]["files"].as_array().unwrap();
    assert_eq!(files.len(), 4);
    assert!(files.iter().all(|file| file["sha256"].as_str().unwrap().len() == 64));
    assert!(manifest["threads"].as_u64().unwrap() >= 1);
    assert_eq!(keys(&manifest["machine"]), ["os", "arch", "cores"]);

    let summary = json(&folder.join("summary.json"));
    assert_eq!((&summary["rounds"], &summary["devices"]), (&4.into(), &5.into()));
    assert!((0.0..=1.0).contains(&summary["accuracy"].as_f64().unwrap()));
    assert!(summary["loss"].as_f64().unwrap() > 0.0);
    assert!(summary["seconds"].as_f64().unwrap() > 0.0);

    let check = ["config", "check", "runs/small-1/config.resolved.toml"];
    lapa(place.path()).args(check).assert().success();
    metrics_have_the_documented_keys(&folder, &summary);
    model_holds_every_parameter(&folder, &manifest);
}

fn metrics_have_the_documented_keys(folder: &Path, summary: &Value) {
    let text = fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4);
    for (line, round) in lines.iter().zip(1..) {
        let fields = [
            "round",
            "accuracy",
            "loss",
            "pid_error",
            "epsilon_round",
            "noise_mode",
            "under_noised",
            "under_noising",
            "seconds",
            "outages",
            "airtime_s",
            "energy_j",
            "uplink_bytes",
            "downlink_bytes",
            "devices",
        ];
        assert_eq!(keys(line), fields);
        assert_eq!(line["round"], round);
        assert_eq!(line["accuracy"].is_null(), round % 2 == 1);
        assert_eq!(line["devices"].as_array().unwrap().len(), 5);
        for (device, number) in line["devices"].as_array().unwrap().iter().zip(0..) {
            let fields = [
                "device",
                "samples",
                "weight",
                "epsilon",
                "sigma_artificial",
                "sigma_required",
                "spent_claimed",
                "spent_provable",
                "angle",
                "sinr_db",
                "ser",
                "selected",
                "sigma_channel",
                "gradient_norm",
                "clipped",
            ];
            assert_eq!(keys(device), fields);
            assert_eq!(device["device"], number);
        }
    }
    assert_eq!(lines[3]["accuracy"], summary["accuracy"]);
    assert_eq!(lines[3]["loss"], summary["loss"]);
}

/// Reads the header of the file as the format's description says: length, then JSON.
fn model_holds_every_parameter(folder: &Path, manifest: &Value) {
    let bytes = fs::read(folder.join("model.safetensors")).unwrap();
    let (length, rest) = bytes.split_first_chunk().unwrap();
    let length = u64::from_le_bytes(*length) as usize;
    let header: Value = serde_json::from_slice(&rest[..length]).unwrap();
    let tensors = header.as_object().unwrap();
    let size = |tensor: &Value| -> u64 {
        tensor["shape"].as_array().unwrap().iter().map(|side| side.as_u64().unwrap()).product()
    };
    let total: u64 = tensors.values().map(size).sum();
    assert_eq!(total * 4, (rest.len() - length) as u64);
    // Batch norm adds a mean and a variance for each of its scales and shifts.
    assert_eq!(total, manifest["parameters"].as_u64().unwrap() + 40);
}

#[test]
fn flags_change_what_runs_and_how_it_is_told() {
    let place = TempDir::new().unwrap();
    write_small(place.path());
    let run = |arguments: &[&str], out: &str| {
        let mut command = lapa(place.path());
        command.args(["run", "small.toml", "--out", out]).args(arguments);
        command.assert().success().get_output().clone()
    };
    let quiet = run(&["--quiet", "--format", "json", "-c", "run.rounds=2", "--seed", "9"], "a");
    assert_eq!(one_line(&quiet.stderr), "");
    let result: Value = serde_json::from_slice(&quiet.stdout).unwrap();
    assert_eq!((&result["rounds"], &result["folder"]), (&2.into(), &"a".into()));
    for key in ["accuracy", "loss", "seconds", "devices"] {
        assert!(result[key].is_number(), "{key}");
    }
    assert_eq!(json(&place.path().join("a/manifest.json"))["seed"], 9);

    let told = run(&["-c", "run.rounds=2", "-c", "run.seed=9", "--threads", "3"], "b");
    assert!(one_line(&told.stderr).contains("round 2/2"));
    let resolved = fs::read_to_string(place.path().join("b/config.resolved.toml")).unwrap();
    assert!(resolved.contains("threads = 3") && resolved.contains("rounds = 2"), "{resolved}");
    assert_eq!(results(&place.path().join("a")), results(&place.path().join("b")));
    run(&["-c", "run.rounds=2"], "c");
    assert_ne!(results(&place.path().join("a")), results(&place.path().join("c")));
}

#[test]
fn folders_that_do_not_fit_are_refused() {
    let place = TempDir::new().unwrap();
    write_small(place.path());
    let taken = place.path().join("taken");
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("mine.txt"), "precious").unwrap();
    let run = |arguments: &[&str]| failure(lapa(place.path()).arg("run").args(arguments), 2);
    let text = run(&["small.toml", "--out", "taken"]);
    assert!(text.contains("taken exists already and is not empty"), "{text}");
    assert!(!text.contains("--resume"), "{text}");
    let text = run(&["--resume", "taken"]);
    assert!(text.contains("taken is not the folder of a run"), "{text}");
    let text = run(&["--resume", "nowhere"]);
    assert!(text.contains("nowhere is not the folder of a run"), "{text}");
    for more in [&["small.toml"][..], &["-c", "run.rounds=9"], &["--seed", "1"], &["--out", "x"]] {
        let text = run(&[&["--resume", "taken"], more].concat());
        assert!(text.contains("cannot be used with"), "{text}");
    }
    let text = run(&["--resume", "taken", "--threads", "5000"]);
    assert!(text.contains("5000") && text.contains("1024"), "{text}");
    assert_eq!(names(&taken), ["mine.txt"]);

    fs::create_dir(place.path().join("empty")).unwrap();
    lapa(place.path()).args(["run", "small.toml", "--quiet", "--out", "empty"]).assert().success();
    let text = run(&["small.toml", "--out", "empty"]);
    assert!(text.contains("go on with --resume empty"), "{text}");
}

#[test]
fn divergence_is_told_with_what_to_do() {
    let place = TempDir::new().unwrap();
    write_small(place.path());
    let mut command = lapa(place.path());
    command.args(["run", "small.toml", "--out", "d", "-c", "learn.learning_rate=1e38"]);
    let text = failure(&mut command, 1);
    assert!(text.contains("diverged") && text.contains("lower learn.learning_rate"), "{text}");
    assert!(place.path().join("d/metrics.jsonl").exists());
}

#[test]
fn bench_prints_its_figures() {
    let place = TempDir::new().unwrap();
    let mut command = lapa_alone(place.path());
    command.args(["bench", "--only", "gradient", "--seconds", "0.05", "--format", "json"]);
    let figures = stdout_json(&mut command);
    let expected = [
        "data",
        "gradient_batch_norm_samples_per_s",
        "gradient_group_norm_samples_per_s",
        "gradient_per_sample_samples_per_s",
        "evaluation_samples_per_s",
        "per_sample_cost",
        "gemm_gflops",
        "gemm_share",
    ];
    assert_eq!(keys(&figures), expected);
    assert!(expected[1..].iter().all(|key| figures[key].as_f64().unwrap() > 0.0));
    let text = failure(lapa(place.path()).args(["bench", "--seconds", "0"]), 2);
    assert!(text.contains("--seconds"), "{text}");
    let text = failure(lapa(place.path()).args(["bench", "--only", "nothing"]), 2);
    assert!(text.contains("gradient, models, round, links, control, process"), "{text}");
}
