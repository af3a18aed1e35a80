//! Images and tables of one's own, out of gradients.

use std::ops::ControlFlow;

use lapa::config::{Experiment, Override};
use lapa::data::{Dataset, Split, Values, digits};
use lapa::model::Shape;
use lapa::seed::{Purpose, Stream, stream};
use lapa_audit::{Effort, Exhibit, Finding, Options, Statement, Subject, Verdict, inversion};
use rand::RngExt;

/// The inversion and what it says of leakage, with certified noise.
fn audit(data: Dataset, changes: &[&str]) -> Vec<Finding> {
    let text = "
        data.name = 'synthetic'
        run = { rounds = 6, seed = 3, threads = 0 }
        privacy.epsilon = 8
        partition = { scheme = 'iid', iid = { devices = 4, samples = 60 } }
    ";
    let changes: Vec<_> = changes.iter().map(|change| Override::parse(change).unwrap()).collect();
    let experiment = Experiment::from_toml(text, "test", &changes).unwrap();
    let options = Options::new(0.95, Effort::Quick, 0).unwrap();
    let statement = Statement { epsilon_claimed_total: 8.0, epsilon_provable: 8.0, delta: 1e-5 };
    let subject = Subject::new(experiment, data).unwrap();
    inversion::run(&subject, &statement, &options, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Two splits of samples of `shape`, of which `value` is drawn by sample, class and place.
fn drawn(shape: Shape, value: impl Fn(&mut Stream, usize, usize) -> f32) -> [Split; 2] {
    [300, 100].map(|count| {
        let mut rng = stream(count as u64, Purpose::SyntheticData, 0, 0);
        let labels: Vec<u8> = (0..count).map(|i| (i % 10) as u8).collect();
        let mut values = Vec::with_capacity(count * shape.len());
        for &label in &labels {
            values.extend((0..shape.len()).map(|at| value(&mut rng, label.into(), at)));
        }
        Split { values: values.into(), labels, shape }
    })
}

fn dataset([train, test]: [Split; 2]) -> Dataset {
    Dataset { train, test, ..digits(1, 1) }
}

/// Columns of a table far outside of [0, 1] are found as they are, in units of their own, and nobody
/// draws a picture of them.
#[test]
fn a_table_is_read_in_its_own_units_and_not_drawn() {
    let column = |at: usize, unit: f32| [60.0 * unit - 20.0, unit, 1e-3 * unit - 7.0][at % 3];
    let table = drawn(Shape::new(1, 1, 12), |rng, class, at| {
        column(at, 0.5 * rng.random::<f32>() + 0.05 * ((class * (at + 1)) % 10) as f32)
    });
    for model in ["logistic", "mlp"] {
        let model = format!("model.name = '{model}'");
        let data = dataset(table.clone());
        let findings = audit(data, &[&model]);
        let [inversion, leakage] = &findings[..] else { panic!("two findings") };
        let first = &inversion.figures["cases"][0];
        assert_eq!((&first["noise"], &first["from_20_db"]), (&"none".into(), &6.into()), "{first}");
        assert_eq!(inversion.verdict, Verdict::NotRefuted, "{}", inversion.reason);
        assert!(leakage.reason.contains("trivial"), "{}", leakage.reason);
        let mut words = String::new();
        for exhibit in &inversion.exhibits {
            match exhibit {
                Exhibit::Text(text) => words += text,
                Exhibit::Table(_) => {}
                Exhibit::Drawing { name, .. } => panic!("a picture {name} of no image"),
            }
        }
        assert!(words.contains("vectors, not images") && words.contains("each column"), "{words}");
    }
}

/// Color is searched for and drawn in color, in bytes, in bytes that are centered, and in floats.
#[test]
fn color_is_drawn_in_color() {
    let shape = Shape::new(3, 16, 16);
    let unit = |rng: &mut Stream, class: usize, at: usize| {
        let (channel, row) = (at / 256, at % 256 / 16);
        let bright = (channel == class % 3) == (row < 8 + class / 2);
        if bright { 0.8 } else { 0.1 + 0.1 * rng.random::<f32>() }
    };
    let floats = drawn(shape, |rng, class, at| 4.0 * unit(rng, class, at) - 2.0);
    let bytes = drawn(shape, |rng, class, at| (255.0 * unit(rng, class, at)).round());
    let bytes = bytes.map(|split| {
        let Values::Floats(floats) = &split.values else { panic!("floats") };
        let values: Vec<u8> = floats.iter().map(|&value| value as u8).collect();
        Split { values: values.into(), ..split }
    });
    let centered = bytes.clone().map(|split| {
        let table = |mean: f32| std::array::from_fn(|byte| (byte as f32 / 255.0 - mean) / 0.25);
        let tables: Vec<[f32; 256]> = [0.5, 0.4, 0.3].map(table).into();
        let bytes = split.values.bytes().unwrap().to_vec();
        Split { values: Values::Normalized(bytes.into(), tables.into()), ..split }
    });
    for (data, model, psnr) in [
        (bytes.clone(), "logistic", 90.0),
        (centered, "logistic", 90.0),
        (floats, "logistic", 90.0),
        (bytes, "cnn", 0.0),
    ] {
        let model = format!("model.name = '{model}'");
        let findings = audit(dataset(data), &["run.rounds = 2", &model]);
        let first = &findings[0].figures["cases"][0];
        assert!(first["psnr"].as_f64().unwrap() > psnr, "{first}");
        let drawing = findings[0].exhibits.iter().find_map(|exhibit| match exhibit {
            Exhibit::Drawing { svg, .. } => Some(svg),
            _ => None,
        });
        let svg = drawing.unwrap();
        // Dark in two channels, bright in one.
        let is_color = |fill: &str| {
            let channels = [1, 3, 5].map(|at| u8::from_str_radix(&fill[at..at + 2], 16).unwrap());
            channels.iter().max().unwrap() - channels.iter().min().unwrap() > 100
        };
        let fills = svg.split("fill=\"").skip(1).map(|rest| &rest[..7]);
        let fills = fills.filter(|fill| fill.starts_with('#'));
        assert!(fills.filter(|fill| is_color(fill)).count() > 10, "{model}");
    }
}
