//! Models of one's own from a file, and what `lapa model show` says of them.

use std::fs;

use tempfile::TempDir;

use super::*;

/// The recipe of docs/guide.md, "Own models".
const OWN: &str = r#"
data.name = "idx:images"
partition = { scheme = "iid", iid = { devices = 4 } }
learn = { sampling = "full", learning_rate = 0.5 }
run = { rounds = 30, seed = 1, evaluate_every = 30 }

[model]
name = "layers"

[[model.layers]]
type = "conv"
channels = 8
kernel = 3
padding = 1
standardized = true

[[model.layers]]
type = "group-norm"
groups = 4

[[model.layers]]
type = "gelu"

[[model.layers]]
type = "residual"
layers = [
    { type = "conv", channels = 8, kernel = 3, stride = 2, padding = 1 },
    { type = "tanh" },
    { type = "conv", channels = 8, kernel = 3, padding = 1 },
]

[[model.layers]]
type = "global-average-pool"

[[model.layers]]
type = "linear"
"#;

/// Gray images of 8×8 in the binary IDX format: horizontal stripes, vertical ones, a checkerboard.
fn images(folder: &Path, split: &str, count: usize) {
    let mut seed = count as u32;
    let mut random = |below: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 16) % below
    };
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for i in 0..count {
        let (label, shift) = (i % 3, random(2) as usize);
        for cell in 0..64 {
            let (row, col) = (cell / 8, cell % 8);
            let place = [row, col, row + col][label] + shift;
            pixels.push((place % 2 * 150) as u8 + random(100) as u8);
        }
        labels.push(label as u8);
    }
    let header = |kind: u8, sides: &[u32]| -> Vec<u8> {
        let sides = sides.iter().flat_map(|side| side.to_be_bytes());
        [0, 0, 8, kind].into_iter().chain(sides).collect()
    };
    let n = count as u32;
    let all = [header(3, &[n, 8, 8]), pixels].concat();
    fs::write(folder.join(format!("{split}-images-idx3-ubyte")), all).unwrap();
    let all = [header(1, &[n]), labels].concat();
    fs::write(folder.join(format!("{split}-labels-idx1-ubyte")), all).unwrap();
}

#[test]
fn a_network_of_ones_own_trains_from_a_file_alone() {
    let place = TempDir::new().unwrap();
    let folder = place.path().join("images");
    fs::create_dir(&folder).unwrap();
    images(&folder, "train", 300);
    images(&folder, "t10k", 90);
    fs::write(place.path().join("own.toml"), OWN).unwrap();
    let mut run = lapa(place.path());
    let summary = stdout_json(run.args(["run", "own.toml", "--quiet", "--format", "json"]));
    let accuracy = summary["accuracy"].as_f64().unwrap();
    assert!(accuracy > 0.9, "{accuracy}");
    // Its resolved configuration makes the same model.
    let show = |what: &str| {
        stdout_json(lapa(place.path()).args(["model", "show", what, "--format", "json"]))
    };
    let shown = show("own.toml");
    assert_eq!(show(summary_file(&place).as_str()), shown);
    assert_eq!(shown["classes"], 3);
    let places: Vec<&str> =
        shown["layers"].as_array().unwrap().iter().map(|l| l["place"].as_str().unwrap()).collect();
    let expected = ["0", "1", "2", "3", "3.0", "3.1", "3.2", "3.shortcut.0", "4", "5"];
    assert_eq!(places, expected);
    // 9·8 + 8, 2·8, 9·64 + 8 twice, 64 + 8, and 8·3 + 3.
    assert_eq!(shown["parameters"], 80 + 16 + 2 * 584 + 72 + 27);
    assert_eq!(shown["multiply_adds"], 64 * 72 + 2 * 16 * 576 + 16 * 64 + 24);
}

/// The configuration in the only run's folder.
fn summary_file(place: &TempDir) -> String {
    let runs = fs::read_dir(place.path().join("runs")).unwrap();
    let run = runs.last().unwrap().unwrap().path();
    run.join("config.resolved.toml").to_str().unwrap().to_owned()
}

#[test]
fn models_are_shown() {
    let place = TempDir::new().unwrap();
    let show = |arguments: &[&str]| {
        let mut command = lapa(place.path());
        command.args(["model", "show"]).args(arguments);
        command
    };
    let text = stdout(show(&["resnet-8", "--shape", "3x32x32"]).assert());
    for part in [
        "resnet-8 for samples of 3×32×32",
        "5.shortcut.0",
        "conv 3×3, stride 2, padding 1",
        "78186 parameters",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = stdout(show(&[]).assert());
    assert!(text.contains("cnn for samples of 1×28×28") && text.contains("21880"), "{text}");
    // The convolutions of LeCun-like networks by hand: 24²·25·10, 8²·250·20, 320·50, 50·10.
    assert!(text.contains(&(144_000 + 320_000 + 16_000 + 500).to_string()), "{text}");
    let text = failure(&mut show(&["cnn", "--shape", "1x8x8"]), 2);
    let layer = "layer 3 (conv) does not fit its input 10 2 2";
    for part in [layer, "cnn needs images of 16 16 or more; use mlp"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = failure(&mut show(&["cnn", "--shape", "8x8"]), 2);
    assert!(text.contains("3x32x32"), "{text}");
    let text = failure(&mut show(&["missing.toml"]), 2);
    assert!(text.contains("missing.toml is no file, and no model"), "{text}");
    assert!(text.contains("`resnet-8`"), "{text}");
}
