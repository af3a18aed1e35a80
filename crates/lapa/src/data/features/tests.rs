use std::fs;

use serde::Deserialize;

use super::*;
use crate::data::{Data, DataName, Values};

/// A case of `tests/vectors/features.json`; the README beside it has the formula of the images.
#[derive(Deserialize)]
struct Case {
    start: u32,
    input: [usize; 3],
    output: [usize; 3],
    data: Vec<f32>,
}

fn unit(n: u32) -> f32 {
    let mut h = n.wrapping_mul(2_654_435_761);
    h = (h ^ (h >> 15)).wrapping_mul(2_246_822_519);
    h ^= h >> 13;
    (h >> 12) as f32 / (1 << 20) as f32
}

fn shape([channels, rows, cols]: [usize; 3]) -> Shape {
    Shape::new(channels, rows, cols)
}

/// The largest difference between features of images and their vectors.
fn largest_error<E: Extract>(key: &str, new: fn(Shape) -> Result<E>) -> f32 {
    let text = include_str!("../../../tests/vectors/features.json");
    let mut vectors: serde_json::Value = serde_json::from_str(text).unwrap();
    let cases: Vec<Case> = serde_json::from_value(vectors[key].take()).unwrap();
    assert_eq!(cases.len(), 2);
    let errors = cases.iter().flat_map(|case| {
        let extract = new(shape(case.input)).unwrap();
        assert_eq!(extract.output(), shape(case.output));
        let len = shape(case.input).len() as u32;
        let image: Vec<f32> = (case.start..case.start + len).map(unit).collect();
        let mut features = vec![f32::NAN; case.data.len()];
        // Working memory of the image before must not show.
        for image in [&vec![1.0; image.len()], &image] {
            extract.extract(image, &mut extract.scratch(), &mut features);
        }
        features.into_iter().zip(&case.data).map(|(ours, theirs)| (ours - theirs).abs())
    });
    errors.fold(0.0, f32::max)
}

#[test]
fn scattering_is_that_of_kymatio() {
    let error = largest_error("scattering", scattering::Scattering::new);
    assert!(error < 1e-5, "{error}");
}

#[test]
fn histograms_are_those_of_scikit_image() {
    let error = largest_error("hog", hog::Hog::new);
    assert!(error < 1e-5, "{error}");
}

#[test]
fn the_angle_of_a_gradient_is_that_of_the_arc_tangent() {
    let hog = hog::Hog::new(Shape::new(1, 8, 8)).unwrap();
    for degrees in (-1795..1800).step_by(10).map(|tenths| f64::from(tenths) / 10.0) {
        let (sin, cos) = degrees.to_radians().sin_cos();
        let expected = (degrees.rem_euclid(180.0) / 20.0) as usize;
        assert_eq!(hog.angle([3.0 * sin as f32, 3.0 * cos as f32]), expected, "{degrees}");
    }
}

#[test]
fn group_norm_and_unit_norm_are_their_definitions() {
    let mut features: Vec<f32> = (0..12).map(|n| 7.0 * unit(n)).collect();
    features[4..8].fill(2.5);
    let first = features[..4].to_vec();
    normalize::groups(&mut features, 3);
    let mean = first.iter().sum::<f32>() / 4.0;
    let variance = first.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 4.0;
    for (normal, x) in features.iter().zip(&first) {
        assert!((normal - (x - mean) / (variance + 1e-5).sqrt()).abs() < 1e-5);
    }
    assert_eq!(features[4..8], [0.0; 4]);
    normalize::unit(&mut features);
    assert!((features.iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-6);
    let mut zero = [0.0; 4];
    normalize::unit(&mut zero);
    assert_eq!(zero, [0.0; 4]);
    let mut large = [f32::INFINITY, -1e9, f32::NAN, 1.0];
    normalize::bound(&mut large);
    assert_eq!(large, [65504.0, -65504.0, 0.0, 1.0]);
}

/// The processor's conversions are the portable ones, for every half and around each.
#[test]
fn halves_are_converted_alike_on_every_processor() {
    let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    let mut floats = vec![0.0; halves.len()];
    halves.convert_to_f32_slice(&mut floats);
    for (half, float) in halves.iter().zip(&floats) {
        assert_eq!(float.is_nan(), half.is_nan());
        assert!(half.is_nan() || half.to_f32_const().to_bits() == float.to_bits(), "{half:?}");
    }
    for step in [-4097, -4096, -1, 1, 4095, 4096, 4097] {
        let near = |x: &f32| f32::from_bits(x.to_bits().wrapping_add_signed(step));
        let near: Vec<f32> = floats.iter().map(near).filter(|x| !x.is_nan()).collect();
        let mut found = vec![f16::ZERO; near.len()];
        found.convert_from_f32_slice(&near);
        for (x, half) in near.iter().zip(found) {
            assert_eq!(half.to_bits(), f16::from_f32_const(*x).to_bits(), "{x}");
        }
    }
}

const MAPS: [FeatureMap; 3] = [
    FeatureMap { features: Features::Scattering, norm: FeatureNorm::GroupUnit },
    FeatureMap { features: Features::Scattering, norm: FeatureNorm::Unit },
    FeatureMap { features: Features::Hog, norm: FeatureNorm::None },
];

#[test]
fn threads_change_no_bit() {
    let digits = crate::data::digits(40, 1).train;
    for map in MAPS {
        let of = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| map.of(&digits, &mut |_| {}).unwrap())
        };
        assert_eq!(of(1), of(3));
    }
}

/// The labels of the events of loading, and the data set.
fn load(map: FeatureMap, folder: &Path) -> (Vec<String>, Dataset) {
    let mut events = Vec::new();
    let features = crate::data::digits(30, 12).with_features_in(map, Some(folder), &mut |event| {
        events.push(match event {
            FetchEvent::Features { done, of, .. } => format!("{done} of {of}"),
            FetchEvent::Rejected { reason, .. } => reason,
            other => panic!("{other:?}"),
        });
    });
    (events, features.unwrap())
}

#[test]
fn features_are_computed_once_and_verified() {
    let place = tempfile::tempdir().unwrap();
    let folder = &place.path().join("features");
    for map in MAPS {
        let (events, first) = load(map, folder);
        assert_eq!(events, ["30 of 30", "12 of 12"]);
        let (events, again) = load(map, folder);
        assert_eq!(events, [""; 0]);
        assert_eq!((&again.train, &again.test), (&first.train, &first.test));
        assert_eq!(first.train.labels, crate::data::digits(30, 12).train.labels);
        // Another map of the same data set is none of it, and the same one changes nothing.
        let same = first.clone().with_features(map, &mut |_| panic!()).unwrap();
        assert_eq!(same.train, first.train);
    }
    assert_eq!(fs::read_dir(folder).unwrap().count(), 2 * MAPS.len());
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&path, &bytes).unwrap();
    }
    let whole = load(MAPS[0], &place.path().join("other")).1;
    let (events, features) = load(MAPS[0], folder);
    let damage = "its first line is not that of its content";
    assert_eq!(events, [damage, "30 of 30", damage, "12 of 12"]);
    assert_eq!((&features.train, &features.test), (&whole.train, &whole.test));
    assert_eq!(load(MAPS[0], folder).0, [""; 0]);
}

#[test]
fn a_cut_file_is_computed_again() {
    let place = tempfile::tempdir().unwrap();
    load(MAPS[2], place.path());
    for path in fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path()) {
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    }
    let (events, _) = load(MAPS[2], place.path());
    assert!(events[0].contains("bytes; expected"), "{events:?}");
    assert_eq!(events.len(), 4);
}

#[test]
fn what_has_no_features_is_refused_with_its_numbers() {
    let table =
        Split { values: vec![0.0f32; 12].into(), labels: vec![0; 2], shape: Shape::new(1, 1, 6) };
    for (map, word) in [(MAPS[0], "scattering"), (MAPS[2], "hog")] {
        let error = map.of(&table, &mut |_| {}).unwrap_err().to_string();
        let expected =
            format!("model.features = \"{word}\": samples of 1×6; expected images of 8×8 or more");
        assert_eq!(error, expected);
    }
    let large = Split {
        values: Values::from(Vec::<u8>::new()),
        labels: vec![0; 2_000_000],
        shape: Shape::new(1, 28, 28),
    };
    let error = MAPS[0].of(&large, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("2000000 samples of 81×7×7 features need 15876000000 bytes"), "{error}");
    let data = Data::named(DataName::Synthetic);
    assert_eq!(Inputs::from(data).features, FeatureMap::default());
    let digits = crate::data::digits(3, 1).with_features_in(MAPS[2], None, &mut |_| {}).unwrap();
    let error = digits.with_features_in(MAPS[0], None, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("the data set has features already (hog)"), "{error}");
}
