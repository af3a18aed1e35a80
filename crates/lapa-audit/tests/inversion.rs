//! Images and labels out of gradients.

#[path = "../../lapa-report/tests/support/pages.rs"]
mod pages;

use std::ops::ControlFlow;
use std::sync::Arc;

use lapa::config::{Experiment, Norm, Override};
use lapa::data::{DataName, Dataset, Split, digits};
use lapa::model::{Layer, Network, Shape, cnn, logistic, mlp};
use lapa::seed::{Purpose, Stream, stream};
use lapa_audit::inversion::labels::{LabelReader, hits};
use lapa_audit::inversion::matching::{Distance, Matcher, Observation};
use lapa_audit::inversion::quality::Quality;
use lapa_audit::inversion::search::Search;
use lapa_audit::inversion::{self, first_layer};
use lapa_audit::{
    Attack, AuditError, Effort, Exhibit, Finding, Options, Scale, Statement, Subject, Verdict,
};
use lapa_report::page::Page;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

const SHAPE: Shape = Shape::new(1, 28, 28);

fn network(layers: &[Layer]) -> (Arc<Network>, Vec<f32>) {
    let network = Network::new(SHAPE, layers).unwrap();
    let parameters = network.initial_parameters(&mut stream(0, Purpose::ModelInit, 0, 0));
    (Arc::new(network), parameters)
}

fn image(data: &Dataset, i: usize) -> Vec<f32> {
    data.train.input(i)
}

fn gradient(network: &Arc<Network>, parameters: &[f32], images: &[f32], labels: &[u8]) -> Vec<f32> {
    let seen = Observation { parameters, gradient: &[], labels, clip_norm: None };
    Matcher::new(network.clone(), None).gradient(&seen, images).to_vec()
}

/// The gradient of a fully connected first layer is the image.
#[test]
fn a_fully_connected_first_layer_gives_the_image_away() {
    let data = digits(6, 1);
    for layers in [mlp(10), logistic(10)] {
        let (network, parameters) = network(&layers);
        for i in 0..6 {
            let image = image(&data, i);
            let seen = gradient(&network, &parameters, &image, &[data.train.labels[i]]);
            let found = first_layer::image(&network, &seen).unwrap();
            let quality = Quality::of(&found, &image, SHAPE);
            assert!(quality.psnr > 100.0, "{quality:?}");
        }
    }
    let (network, parameters) = network(&cnn(Norm::None, 10));
    assert!(first_layer::image(&network, &parameters).is_none());
}

/// A twin in double precision: 6 → 5 tanh → 3, its gradient by hand, distances by the book.
mod twin {
    pub const SIZES: [usize; 3] = [6, 5, 3];

    pub fn gradient(p: &[f64], x: &[f64], label: usize) -> Vec<f64> {
        let [n, h, c] = SIZES;
        let (w1, rest) = p.split_at(n * h);
        let (b1, rest) = rest.split_at(h);
        let (w2, b2) = rest.split_at(h * c);
        let row = |w: &[f64], r: usize, x: &[f64]| -> f64 {
            w[r * x.len()..][..x.len()].iter().zip(x).map(|(w, x)| w * x).sum()
        };
        let a: Vec<f64> = (0..h).map(|r| (row(w1, r, x) + b1[r]).tanh()).collect();
        let e: Vec<f64> = (0..c).map(|r| (row(w2, r, &a) + b2[r]).exp()).collect();
        let sum: f64 = e.iter().sum();
        let d: Vec<f64> = (0..c).map(|r| e[r] / sum - f64::from(u8::from(r == label))).collect();
        let back: Vec<f64> = (0..h)
            .map(|j| (0..c).map(|r| d[r] * w2[r * h + j]).sum::<f64>() * (1.0 - a[j] * a[j]))
            .collect();
        let outer = |d: &[f64], x: &[f64]| -> Vec<f64> {
            d.iter().flat_map(|d| x.iter().map(move |x| d * x)).collect()
        };
        [outer(&back, x), back.clone(), outer(&d, &a), d].concat()
    }

    pub fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    /// From units to floats from −0.5 to 1.5 in one row and from 0.2 to 0.6 in the other.
    pub fn input(units: &[f64]) -> Vec<f64> {
        let of = |(i, &x): (usize, &f64)| if i < 3 { 2.0 * x - 0.5 } else { 0.4 * x + 0.2 };
        units.iter().enumerate().map(of).collect()
    }
}

/// The same units, by samples at both ends.
fn units() -> Scale {
    let ends = [[0.0; 6], [1.0; 6]].map(|units| twin::input(&units));
    let values: Vec<f32> = ends.concat().into_iter().map(|end| end as f32).collect();
    let own = Split { values: values.into(), labels: vec![0, 1], shape: Shape::new(1, 1, 6) };
    Scale::of(&own).unwrap()
}

/// The derivative that the search follows, against central differences of the distance itself in
/// double precision.
#[test]
fn the_mixed_second_derivative_agrees_with_a_twin_in_double_precision() {
    let [n, h, c] = twin::SIZES;
    let layers = [Layer::Linear { outputs: h }, Layer::Tanh, Layer::Linear { outputs: c }];
    let network = Arc::new(Network::new(Shape::new(1, 2, n / 2), &layers).unwrap());
    let mut rng = stream(5, Purpose::ModelInit, 0, 0);
    let parameters: Vec<f32> =
        network.initial_parameters(&mut rng).iter().map(|p| 2.0 * p).collect();
    let uniform = |rng: &mut Stream| -> Vec<f32> { (0..n).map(|_| rng.random()).collect() };
    let wide = |values: &[f32]| -> Vec<f64> { values.iter().map(|&v| f64::from(v)).collect() };
    for case in 0..24 {
        let (guess, truth) = (uniform(&mut rng), uniform(&mut rng));
        let label = case % c;
        let scaled = case >= 12;
        let input = |units: &[f64]| if scaled { twin::input(units) } else { units.to_vec() };
        let target = twin::gradient(&wide(&parameters), &input(&wide(&truth)), label);
        let received: Vec<f32> = target.iter().map(|&t| t as f32).collect();
        let clip_norm = (case % 2 == 1).then_some(0.3f32);
        let distance = [Distance::Squared, Distance::Cosine][case / 2 % 2];
        let value = |x: &[f64]| {
            let mut g = twin::gradient(&wide(&parameters), &input(x), label);
            let norm = twin::dot(&g, &g).sqrt();
            let factor = clip_norm.map_or(1.0, |clip| (f64::from(clip) / norm).min(1.0));
            g.iter_mut().for_each(|g| *g *= factor);
            let (gg, gt, tt) =
                (twin::dot(&g, &g), twin::dot(&g, &target), twin::dot(&target, &target));
            match distance {
                Distance::Squared => (gg - 2.0 * gt + tt) / tt,
                Distance::Cosine => 1.0 - gt / (gg * tt).sqrt(),
            }
        };
        let labels = [label as u8];
        let seen = Observation {
            parameters: &parameters,
            gradient: &received,
            labels: &labels,
            clip_norm,
        };
        let mut descent = vec![0.0; n];
        let units = scaled.then(|| Arc::new(units()));
        let mut matcher = Matcher::new(network.clone(), units);
        let ours = matcher.distance(&seen, distance, &guess, &mut descent);
        let at = wide(&guess);
        assert!((ours - value(&at)).abs() < 1e-4 * (1.0 + ours), "{ours} {}", value(&at));
        let slope = |i: usize| {
            let moved = |by: f64| {
                let mut x = at.clone();
                x[i] += by;
                value(&x)
            };
            (moved(1e-5) - moved(-1e-5)) / 2e-5
        };
        let expected: Vec<f64> = (0..n).map(slope).collect();
        let largest = expected.iter().map(|e| e.abs()).fold(1e-3, f64::max);
        for (ours, expected) in descent.iter().zip(&expected) {
            let error = (f64::from(*ours) - expected).abs();
            assert!(error < 1e-2 * largest, "{case}: {descent:?} {expected:?}");
        }
    }
}

fn reader(network: &Arc<Network>, parameters: &[f32], data: &Dataset) -> LabelReader {
    let gradients: Vec<(Vec<f32>, u8)> = (0..data.test.len())
        .map(|i| {
            let pixels = data.test.input(i);
            let label = data.test.labels[i];
            (gradient(network, parameters, &pixels, &[label]), label)
        })
        .collect();
    LabelReader::new(network, gradients.iter().map(|(g, label)| (g.as_slice(), *label))).unwrap()
}

#[test]
fn labels_are_read_from_the_last_layer() {
    let data = digits(40, 100);
    for layers in [cnn(Norm::Group, 10), cnn(Norm::None, 10), mlp(10), logistic(10)] {
        let (network, parameters) = network(&layers);
        let reader = reader(&network, &parameters, &data);
        let images: Vec<Vec<f32>> = (0..40).map(|i| image(&data, i)).collect();
        for (image, &label) in images.iter().zip(&data.train.labels) {
            let seen = gradient(&network, &parameters, image, &[label]);
            assert_eq!(reader.single(&seen), label);
        }
        let mut right = 0;
        for (images, labels) in images.chunks(4).zip(data.train.labels.chunks(4)) {
            let seen = gradient(&network, &parameters, &images.concat(), labels);
            right += hits(&reader.batch(&seen, 4), labels);
        }
        assert!(right >= 36, "{right} of 40");
    }
}

#[test]
fn hits_count_each_label_once() {
    assert_eq!(hits(&[1, 1, 2], &[1, 2, 2]), 2);
    assert_eq!(hits(&[], &[1]), 0);
}

/// Reconstructions of some images, one by one.
fn invert(
    norm: Norm,
    data: &Dataset,
    images: std::ops::Range<usize>,
    sigma: f64,
    search: Search,
) -> Vec<Quality> {
    let (network, parameters) = network(&match norm {
        // Batch norm of one image.
        Norm::Batch => cnn(Norm::Group, 10)
            .into_iter()
            .map(|layer| match layer {
                Layer::GroupNorm { .. } => Layer::GroupNorm { groups: 20 },
                other => other,
            })
            .collect(),
        norm => cnn(norm, 10),
    });
    images
        .into_par_iter()
        .map(|i| {
            let (image, labels) = (image(data, i), [data.train.labels[i]]);
            let mut seen = gradient(&network, &parameters, &image, &labels);
            let mut rng = stream(1, Purpose::Inversion, 0, i as u64);
            for g in &mut seen {
                let noise: f64 = StandardNormal.sample(&mut rng);
                *g += (sigma * noise) as f32;
            }
            let seen = Observation {
                parameters: &parameters,
                gradient: &seen,
                labels: &labels,
                clip_norm: None,
            };
            let mut matcher = Matcher::new(network.clone(), None);
            let found = search.run(&mut matcher, &seen, SHAPE, &mut rng);
            Quality::of(&found.images, &image, SHAPE)
        })
        .collect()
}

#[test]
fn a_digit_is_found_without_noise_and_not_with_it() {
    let data = digits(2, 1);
    let search = Search { distance: Distance::Cosine, steps: 500, starts: 1 };
    let clear = invert(Norm::None, &data, 0..2, 0.0, search);
    assert!(clear.iter().all(|quality| quality.psnr > 17.0), "{clear:?}");
    let noisy = invert(Norm::None, &data, 0..2, 1.0, search);
    assert!(noisy.iter().all(|quality| quality.ssim < 0.2), "{noisy:?}");
}

fn subject(data: Dataset, changes: &[&str]) -> Subject {
    let text = "
        data.name = 'synthetic'
        run = { rounds = 6, seed = 3, threads = 1 }
        model.name = 'logistic'
        partition.mix = { iid = 2, non_iid = 2, iid_samples = [60, 120], non_iid_samples = [60, 120] }
    ";
    let changes: Vec<_> = changes.iter().map(|change| Override::parse(change).unwrap()).collect();
    Subject::new(Experiment::from_toml(text, "test", &changes).unwrap(), data).unwrap()
}

const STATEMENT: Statement =
    Statement { epsilon_claimed_total: 8.0, epsilon_provable: 8.0, delta: 1e-5 };

fn audit(subject: &Subject, effort: Effort) -> Vec<Finding> {
    let options = Options::new(0.95, effort, 0).unwrap();
    inversion::run(subject, &STATEMENT, &options, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn json(findings: &[Finding]) -> String {
    serde_json::to_string_pretty(findings).unwrap()
}

#[test]
fn an_audit_is_the_same_on_any_number_of_threads_and_makes_a_page() {
    let subject = subject(digits(600, 100), &["privacy.epsilon = 8"]);
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| audit(&subject, Effort::Quick))
    };
    let findings = on(1);
    assert_eq!(json(&findings), json(&on(3)));
    let [inversion, leakage] = &findings[..] else { panic!("two findings") };
    assert_eq!(inversion.attack, Attack::Inversion);
    assert_eq!(inversion.verdict, Verdict::NotRefuted, "{}", inversion.reason);
    let case = |noise: &str| {
        let cases = inversion.figures["cases"].as_array().unwrap();
        cases.iter().find(|case| case["noise"] == noise).unwrap().clone()
    };
    assert!(case("none")["psnr"].as_f64().unwrap() > 100.0);
    assert_eq!(case("none")["labels"], 1.0);
    for noise in ["uniform", "lapa"] {
        let error = case(noise)["mse"].as_f64().unwrap();
        assert!(error > case(noise)["class_mean_mse"].as_f64().unwrap(), "{noise}");
    }
    // A fully connected first layer gives everything away in every round.
    assert_eq!(leakage.attack, Attack::Leakage);
    assert_eq!(leakage.verdict, Verdict::NotConfirmed, "{}", leakage.reason);
    assert!(leakage.reason.contains("trivial"), "{}", leakage.reason);

    let mut page = Page::new("Audit");
    for exhibit in findings.iter().flat_map(|finding| &finding.exhibits) {
        match exhibit {
            Exhibit::Text(text) => page.paragraph(text),
            Exhibit::Table(table) => page.table(table.clone()),
            Exhibit::Drawing { svg, caption, .. } => {
                let images = svg.matches("crispEdges").count().max(1);
                assert!(svg.len() < 15_000 * images, "{} bytes", svg.len());
                page.figure(svg, caption)
            }
        };
    }
    assert_eq!(pages::check(&page.finish()), Ok(()));
}

#[test]
fn every_model_is_audited_and_an_audit_can_be_stopped() {
    let data = digits(600, 100);
    let short = ["run.rounds = 2", "run.threads = 0"];
    let with = |changes: &[&str]| subject(data.clone(), &[&short[..], changes].concat());
    for (changes, single_only) in
        [(&["model.name = 'mlp'"][..], false), (&["profile = 'paper'", "model.name = 'cnn'"], true)]
    {
        let findings = audit(&with(changes), Effort::Quick);
        assert_eq!(findings[0].figures["single_images_only"], single_only);
        assert_eq!(findings[0].verdict, Verdict::NotJudged);
        assert_eq!(findings[1].verdict, Verdict::NotJudged, "two rounds make no trend");
        let labels = findings[0].figures["cases"][0]["labels"].as_f64().unwrap();
        assert_eq!(labels, 1.0);
    }
    let options = Options::new(0.95, Effort::Quick, 0).unwrap();
    let stopped = inversion::run(&with(&[]), &STATEMENT, &options, &mut |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(AuditError::Cancelled(_))));
}

/// MNIST for long tests; says why not.
fn mnist() -> Option<Dataset> {
    if std::env::var_os("LAPA_TEST_LONG").is_none() {
        eprintln!("skipped: takes minutes; set LAPA_TEST_LONG");
        return None;
    }
    let data = lapa::data::load(&DataName::Mnist, &mut |_| {});
    data.map_err(|error| eprintln!("skipped: {error}")).ok()
}

/// Features are no pixels: neither attack is made, and each says so.
#[test]
fn features_are_not_taken_for_pixels() {
    let findings = audit(&subject(digits(1500, 100), &["model.features = 'hog'"]), Effort::Quick);
    for (finding, attack) in findings.iter().zip([Attack::Inversion, Attack::Leakage]) {
        assert_eq!((finding.attack, finding.verdict), (attack, Verdict::NotJudged));
        assert!(finding.reason.contains("model.features = \"hog\""), "{}", finding.reason);
    }
}

/// Twenty images of MNIST at the initial model, without noise.
#[test]
fn most_of_twenty_images_are_found() {
    let Some(data) = mnist() else { return };
    let search = Search { distance: Distance::Cosine, steps: 1000, starts: 3 };
    for (norm, least) in [(Norm::None, 15), (Norm::Group, 11), (Norm::Batch, 0)] {
        let found = invert(norm, &data, 0..20, 0.0, search);
        let mean = found.iter().map(|quality| quality.psnr).sum::<f64>() / 20.0;
        let from_20_db = found.iter().filter(|quality| quality.psnr >= 20.0).count();
        let each: Vec<String> = found.iter().map(|q| format!("{:.1}", q.psnr)).collect();
        eprintln!("{norm:?}: mean {mean:.1} dB, {from_20_db} of 20 from 20 dB: {}", each.join(" "));
        assert!(from_20_db >= least, "{norm:?}");
    }
}

/// Proven and claimed ε, on MNIST.
#[test]
fn certified_noise_hides_images_of_mnist() {
    let Some(data) = mnist() else { return };
    let whole =
        ["data.name = 'mnist'", "run.rounds = 150", "run.threads = 0", "model.name = 'cnn'"];
    let sizes = [
        "partition.mix.iid = 5",
        "partition.mix.non_iid = 10",
        "partition.mix.iid_samples = [3000, 5000]",
        "partition.mix.non_iid_samples = [3000, 5000]",
    ];
    let findings = audit(
        &subject(data, &[&whole[..], &sizes, &["privacy.epsilon = 8"]].concat()),
        Effort::Quick,
    );
    eprintln!("{}", json(&findings));
    assert_eq!(findings[0].verdict, Verdict::NotRefuted);
}

/// The paper's claim 8 on MNIST: the risk of leakage over the rounds, without noise and with LAPA's.
#[test]
fn the_risk_of_leakage_on_mnist() {
    let Some(data) = mnist() else { return };
    let whole = [
        "profile = 'paper'",
        "data.name = 'mnist'",
        "run.rounds = 150",
        "run.threads = 0",
        "model.name = 'cnn'",
        "model.norm = 'none'",
        "partition.mix.iid = 5",
        "partition.mix.non_iid = 10",
        "partition.mix.iid_samples = [3000, 5000]",
        "partition.mix.non_iid_samples = [3000, 5000]",
    ];
    for changes in [&[][..], &["privacy.initial_sigma = 0.1"]] {
        let findings = audit(&subject(data.clone(), &[&whole[..], changes].concat()), Effort::Full);
        eprintln!("{changes:?}\n{}", json(&findings));
    }
}
