//! Features in place of pixels: the recipe of docs/guide.md, the cache, refusals.

use tempfile::TempDir;

use super::*;

/// Images of 12×12 with bars, level or upright by their class, in the format IDX.
fn write_bars(folder: &Path, train: u32, test: u32) {
    fs::create_dir(folder).unwrap();
    for (name, count) in [("train", train), ("t10k", test)] {
        let pixel = |i: u32, row: u32, col: u32| {
            let (across, phase) = (if i.is_multiple_of(2) { row } else { col }, i / 2 % 4);
            let noise = (i * 31 + row * 17 + col * 7) % 60;
            (noise + if (across + phase) % 4 < 2 { 190 } else { 0 }) as u8
        };
        let image = |i| (0..144).map(move |at| pixel(i, at / 12, at % 12));
        let head =
            |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<_>>();
        let images = (0..count).flat_map(image).collect::<Vec<u8>>();
        let images = [head(&[0x0803, count, 12, 12]), images].concat();
        let labels = [head(&[0x0801, count]), (0..count).map(|i| (i % 2) as u8).collect()].concat();
        fs::write(folder.join(format!("{name}-images-idx3-ubyte")), images).unwrap();
        fs::write(folder.join(format!("{name}-labels-idx1-ubyte")), labels).unwrap();
    }
}

const CONFIG: &str = "\
run = { rounds = 12, seed = 1 }
data.name = 'idx:bars'
model = { name = 'logistic', features = 'scattering' }
learn = { batch_fraction = 0.2, clip_norm = 0.1, learning_rate = 20 }
partition = { scheme = 'iid', iid = { devices = 3 } }
privacy.epsilon = 8
";

/// A folder with the configuration and as many images.
fn place(train: u32) -> TempDir {
    let place = TempDir::new().unwrap();
    write_bars(&place.path().join("bars"), train, 100);
    fs::write(place.path().join("features.toml"), CONFIG).unwrap();
    place
}

fn accuracy(run: &Path) -> f64 {
    let summary: Value =
        serde_json::from_str(&fs::read_to_string(run.join("summary.json")).unwrap()).unwrap();
    summary["accuracy"].as_f64().unwrap()
}

/// Features are computed once, shown while they are, and change no result when they come from the cache.
#[test]
fn features_train_from_a_file_and_are_cached() {
    let place = place(2000);
    let run = |out: &str, more: &[&str]| {
        let mut command = lapa_alone(place.path());
        command.args(["run", "features.toml", "--out", out]).args(more);
        stderr(command.assert().success())
    };
    let first = run("a", &[]);
    assert!(first.contains("scattering 2000/2000  samples"), "{first}");
    assert!(accuracy(&place.path().join("a")) > 0.9);
    let cache = place.path().join("empty/features");
    let files = names(&cache);
    assert_eq!(files.len(), 2, "{files:?}");
    assert!(files.iter().all(|name| name.starts_with("scattering-") && name.ends_with(".f16")));
    let second = run("b", &["-c", "run.threads=1"]);
    assert!(!second.contains("scattering"), "{second}");
    let results = |name: &str| results(&place.path().join(name));
    assert!(results("a") == results("b"));
    // A damaged file is told and replaced.
    let mut bytes = fs::read(cache.join(&files[0])).unwrap();
    bytes[200] ^= 1;
    fs::write(cache.join(&files[0]), bytes).unwrap();
    let third = run("c", &["-c", "run.threads=2"]);
    assert!(third.contains("rejected: its first line is not that of its content"), "{third}");
    assert!(results("a") == results("c"));
    // Without features the bars are no linear matter.
    run(
        "hog",
        &["-c", "model.features=hog", "-c", "model.name=mlp", "-c", "learn.learning_rate=5"],
    );
    assert!(accuracy(&place.path().join("hog")) > 0.9);
    let resolved = fs::read_to_string(place.path().join("a/config.resolved.toml")).unwrap();
    assert!(resolved.contains("features = \"scattering\"") && !resolved.contains("feature_norm"));
}

#[test]
fn attacks_on_pixels_say_what_they_cannot_do_and_others_go_on() {
    let place = place(300);
    let mut command = lapa_alone(place.path());
    command.args(["audit", "features.toml", "--attack", "mechanism,canary,ledger,inversion"]);
    command.args(["--quiet", "--format", "json", "--out", "audit"]);
    let findings = stdout_json(command.args(["-c", "run.rounds=4"]));
    let findings = findings.as_array().unwrap();
    for finding in findings {
        let (attack, verdict) = (&finding["attack"], &finding["verdict"]);
        if attack == "inversion" || attack == "leakage" {
            let reason = finding["reason"].as_str().unwrap();
            assert_eq!(verdict, "not-judged");
            assert!(reason.contains("features = \"scattering\"") && reason.contains("pixels"));
        } else {
            assert_eq!(verdict, "not-refuted", "{finding}");
        }
    }
    let attacks: Vec<_> = findings.iter().map(|finding| finding["attack"].clone()).collect();
    assert!(attacks.contains(&"inversion".into()) && attacks.len() >= 4, "{attacks:?}");
}

/// The loss is strongly convex, by public numbers: nothing is left outside the theorem.
#[test]
fn the_bound_of_a_linear_model_on_features_is_a_guarantee() {
    let place = place(300);
    let plain = [
        "privacy.epsilon=50",
        "learn.sampling=full",
        "learn.batch_fraction=1",
        "learn.momentum=0",
        "learn.clip_norm=2.1",
        "learn.learning_rate=0.8",
        "learn.weight_decay=0.02",
    ];
    let bound = |changes: &[&str]| {
        let mut command = lapa_alone(place.path());
        command.args(["bound", "features.toml", "--format", "json", "--quiet"]);
        command.args(changes.iter().flat_map(|change| ["-c", change]));
        stdout_json(&mut command)
    };
    let report = bound(&plain);
    assert_eq!(report["warnings"], serde_json::json!([]), "{report}");
    let known = &report["known"];
    let number = |value: &Value| value.as_f64().unwrap();
    assert_eq!(number(&known["convexity"]), 0.02);
    // No estimate on a path contradicts the constants.
    assert!(number(&report["estimated"]["smoothness"]) <= number(&known["smoothness"]));
    assert!(number(&report["estimated"]["convexity"]) >= 0.02);
    let full = &report["corrected_full_gradients"];
    let (l, mu, rate) = (number(&known["smoothness"]), 0.02, 0.8);
    let contraction = 1.0 + mu * l * rate * rate - 2.0 * rate * mu;
    assert!((number(&full["contraction"]) - contraction).abs() < 1e-12, "{full}");
    assert_eq!(
        (&full["measured_below"], &full["learning_rate_holds"]),
        (&true.into(), &true.into())
    );
    // Short gradients or no decay leave the theorem.
    for (change, part) in
        [("learn.clip_norm=2", "clip_norm"), ("learn.weight_decay=0", "weight_decay")]
    {
        let report = bound(&[&plain[..], &[change]].concat());
        let warnings = report["warnings"].as_array().unwrap();
        assert!(
            warnings.len() == 1 && warnings[0].as_str().unwrap().contains(part),
            "{warnings:?}"
        );
    }
}

#[test]
fn what_has_no_features_is_refused_before_it_trains() {
    let place = place(30);
    let table = (0..40).map(|i| format!("{},{},{}\n", i % 7, i % 2, i % 5)).collect::<String>();
    fs::write(place.path().join("table.csv"), format!("x,label,y\n{table}")).unwrap();
    let text = |change: &str| {
        let mut command = lapa_alone(place.path());
        failure(command.args(["run", "features.toml", "--quiet", "-c", change]), 2)
    };
    let table = text("data.name=csv:table.csv");
    assert!(table.contains("model.features = \"scattering\": samples of"), "{table}");
    let word = text("model.features=sift");
    assert!(word.contains("model.features") && word.contains("hog"), "{word}");
    let digits = text("model.start=digits");
    assert!(digits.contains("model.start"), "{digits}");
}
