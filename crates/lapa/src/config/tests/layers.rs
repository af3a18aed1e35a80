//! Lists of layers: read, written, refused.

use super::*;
use crate::model::{Layer, layers};

const LAYERS: &str = "model = { name = 'layers', layers = [
    { type = 'conv', channels = 4, kernel = 3, padding = 1 },
    { type = 'residual', layers = [{ type = 'relu' }, { type = 'conv', channels = 4, kernel = 1 }] },
    { type = 'max-pool' },
    { type = 'linear' },
] }
";

#[test]
fn layers_are_read_and_written() {
    let experiment = read(LAYERS).unwrap();
    assert_eq!(experiment.model.norm, Norm::None);
    let conv = |kernel, padding| Layer::Conv {
        channels: 4,
        kernel,
        stride: 1,
        padding,
        standardized: false,
    };
    let expected = [
        conv(3, 1),
        Layer::Residual { layers: vec![Layer::Relu, conv(1, 0)] },
        Layer::max_pool(2),
        Layer::Linear { outputs: 7 },
    ];
    assert_eq!(layers(&experiment.model, 7), expected);
    let written = experiment.to_toml();
    assert_eq!(read(&written).unwrap(), experiment, "{written}");
    assert!(!read("").unwrap().to_toml().contains("layers"));
    let text = template(LAYERS).unwrap();
    assert_eq!(read(&text).unwrap(), experiment, "{text}");
}

#[test]
fn mistakes_in_layers_are_named_with_their_place() {
    let refused = |from: &str, to: &str| {
        let text = LAYERS.replace(from, to);
        assert_ne!(text, LAYERS);
        read(&text).unwrap_err().to_string()
    };
    for (from, to, parts) in [
        (
            "'max-pool'",
            "'max-poll'",
            ["`model.layers.2.type` = 'max-poll'", "did you mean \"max-pool\"?"],
        ),
        ("'relu'", "'rely'", ["`model.layers.1.layers.0.type`", "\"relu\""]),
        ("kernel = 3", "kernel = 0", ["`model.layers.0.kernel` = 0", "from 1 to 65536"]),
        (
            "kernel = 3",
            "kernal = 3",
            ["unknown key `model.layers.0.kernal`", "did you mean `kernel`?"],
        ),
        ("{ type = 'max-pool' }", "'max-pool'", ["`model.layers.2` = 'max-pool'", "a table"]),
        ("kernel = 3, ", "", ["`model.layers.0` is a table", "kernel"]),
        (
            "name = 'layers'",
            "name = 'mlp'",
            ["does not go with `model.layers`", "remove the layers"],
        ),
        ("'max-pool'", "'batch-norm'", ["a batch-norm in `model.layers`", "one sample's"]),
    ] {
        let text = refused(from, to);
        parts.iter().for_each(|part| assert!(text.contains(part), "{part}: {text}"));
    }
    let text = read("model.name = 'layers'").unwrap_err().to_string();
    assert!(text.contains("needs `model.layers`"), "{text}");
    // In a flag, whose text is shown.
    let flag = Override::parse("model.layers=[{ type = 'relu', size = 3 }]").unwrap();
    let error = Experiment::from_toml("model.name = 'layers'", "lapa.toml", &[flag]).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("unknown key `model.layers.0.size`") && !text.contains("lapa.toml"),
        "{text}"
    );
}
