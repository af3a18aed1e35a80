//! Canaries, and how they come among the devices' records.

use lapa::data::{Dataset, Values};
use lapa::partition::Partition;
use lapa::seed::{Purpose, stream};
use lapa_privacy::Adjacency;
use rand::RngExt;
use rand::seq::index;

use crate::scale::is_image;
use crate::{AuditError, Effort, Options, Scale, Subject};

/// Dark pixels of a canary per white one: two canaries have little in common.
const WHITE: u32 = 4;
/// A device has this many canaries or more, where its records leave room: they are scored by what
/// they do not have in common.
const TOGETHER: usize = 20;
/// Records of a device per canary, at least: canaries replace records.
const SHARE: usize = 4;

/// Numbers of the random streams of canaries, in place of the round. 0 to 2 are the mechanism's.
const IMAGES: u64 = 3;
const PLACES: u64 = 4;
const COINS: u64 = 5;
pub(super) const OTHERS: u64 = 6;

/// A record of the attacker's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Canary {
    /// Its index in the training set.
    pub sample: u32,
    /// Device whose data may hold it.
    pub device: u32,
    /// True if the device holds it, by a fair coin.
    pub present: bool,
}

/// Data with canaries in it.
pub(crate) struct Planted {
    /// The training set, with all canaries at its end.
    pub data: Dataset,
    /// Partition of the records, with the present canaries.
    pub partition: Partition,
    /// Declared numbers of records, the same as without canaries.
    pub sizes: Vec<u32>,
    /// All canaries, present or not.
    pub canaries: Vec<Canary>,
}

/// Mask of the darker half of the pixels, by the base station's own images. Records hardly use
/// these pixels. Of vectors, all values: none is dark.
fn dark(data: &Dataset) -> Vec<bool> {
    let pixels = data.test.shape.len();
    if !is_image(data.test.shape) {
        return vec![true; pixels];
    }
    let ink = match &data.test.values {
        Values::Bytes(bytes) | Values::Normalized(bytes, _) => sums(bytes, pixels),
        Values::Floats(floats) => sums(floats, pixels),
        Values::Halves(halves) => sums(halves, pixels),
    };
    let mut order: Vec<usize> = (0..pixels).collect();
    order.sort_by(|&a, &b| ink[a].total_cmp(&ink[b]));
    let mut dark = vec![false; pixels];
    order[..pixels.div_ceil(2)].iter().for_each(|&pixel| dark[pixel] = true);
    dark
}

/// Sum of each value over samples of `len` values.
fn sums<T: Copy + Into<f64>>(values: &[T], len: usize) -> Vec<f64> {
    let mut sums = vec![0.0; len];
    for sample in values.chunks_exact(len) {
        sums.iter_mut().zip(sample).for_each(|(sum, &value)| *sum += value.into());
    }
    sums
}

/// Samples that are bright at the dots and dark elsewhere: at the largest and the least values of the
/// base station's own data.
fn drawn(dots: &[bool], data: &Dataset) -> Values {
    match &data.test.values {
        Values::Bytes(_) => {
            dots.iter().map(|&dot| u8::MAX * u8::from(dot)).collect::<Vec<_>>().into()
        }
        Values::Halves(halves) => {
            let largest = |a: &_, b: &_| if b > a { *b } else { *a };
            let dark = Default::default();
            let brightest = halves.iter().fold(dark, |a, b| largest(&a, b));
            let value = |&dot: &bool| if dot { brightest } else { dark };
            dots.iter().map(value).collect::<Vec<_>>().into()
        }
        Values::Normalized(_, tables) => {
            let bytes: Vec<u8> = dots.iter().map(|&dot| u8::MAX * u8::from(dot)).collect();
            Values::Normalized(bytes.into(), tables.clone())
        }
        Values::Floats(_) => {
            let units: Vec<f32> = dots.iter().map(|&dot| f32::from(u8::from(dot))).collect();
            let mut values = Vec::new();
            Scale::of(&data.test).iter().for_each(|scale| scale.input(&units, &mut values));
            values.into()
        }
    }
}

/// Canaries, at most.
pub(crate) fn most_canaries(effort: Effort) -> usize {
    match effort {
        Effort::Quick => 400,
        Effort::Full => 2000,
    }
}

/// As many canaries as the effort allows, spread over the devices. A canary takes the place of a
/// record; where it is absent that place is empty, or if records are replaced, as it was.
pub(crate) fn plant(subject: &Subject, options: &Options) -> Result<Planted, AuditError> {
    let (experiment, mut data) = (&subject.experiment, subject.data.clone());
    let classes = data.classes;
    let mut partition = experiment.deal(&mut data).map_err(lapa::error::FederationError::from)?;
    let sizes: Vec<u32> =
        partition.devices.iter().map(|device| device.samples.len() as u32).collect();
    let most = most_canaries(options.effort);
    let each = usize::div_ceil(most, sizes.len().max(1)).max(TOGETHER);
    let replaced = experiment.adjacency() == Adjacency::ReplaceOne;
    let (mut canaries, mut dots) = (Vec::new(), Vec::new());
    let dark = dark(&data);
    for (device, held) in (0u32..).zip(&mut partition.devices) {
        let left = usize::saturating_sub(most, canaries.len());
        let count = each.min(held.samples.len() / SHARE).min(left);
        let mut places = stream(options.seed, Purpose::Audit, PLACES, device.into());
        let mut dropped: Vec<bool> = vec![false; held.samples.len()];
        let mut added = Vec::new();
        for place in index::sample(&mut places, held.samples.len(), count) {
            let sample = data.train.labels.len() as u32;
            let mut rng = stream(options.seed, Purpose::Audit, IMAGES, sample.into());
            dots.extend(dark.iter().map(|&dark| rng.random_range(0..WHITE) == 0 && dark));
            data.train.labels.push(rng.random_range(0..classes as u32) as u8);
            let mut coin = stream(options.seed, Purpose::Audit, COINS, sample.into());
            let present = coin.random();
            dropped[place] = present || !replaced;
            if present {
                added.push(sample);
            }
            canaries.push(Canary { sample, device, present });
        }
        let mut keep = dropped.iter().map(|&dropped| !dropped);
        held.samples.retain(|_| keep.next().unwrap_or(true));
        held.samples.extend(added);
        held.label_counts.fill(0);
        for &sample in &held.samples {
            held.label_counts[usize::from(data.train.labels[sample as usize])] += 1;
        }
    }
    data.train.values = data.train.values.joined(&drawn(&dots, &data));
    Ok(Planted { data, partition, sizes, canaries })
}

#[cfg(test)]
mod tests {
    use lapa::config::{Experiment, Override};
    use lapa::data::DataName;

    use super::*;

    fn planted(adjacency: &str, seed: u64) -> Planted {
        let data = lapa::data::load(&DataName::Synthetic, &mut |_| {}).unwrap();
        let adjacency = format!("privacy.adjacency={adjacency}");
        let changes =
            ["data.name=synthetic", "privacy.epsilon=1", "partition.scheme=iid", &adjacency];
        let changes = changes.map(|change| Override::parse(change).unwrap());
        let experiment = Experiment::from_toml("", "test", &changes).unwrap();
        let options = Options::new(0.95, Effort::Quick, seed).unwrap();
        plant(&Subject::new(experiment, data).unwrap(), &options).unwrap()
    }

    /// In the data or not by a coin, on one device each; α = 10⁻⁶ for the share of heads.
    #[test]
    fn canaries_are_planted_by_coins() {
        for (adjacency, replaced) in [("zero-out", false), ("replace-one", true)] {
            let Planted { data, partition, sizes, canaries } = planted(adjacency, 1);
            assert_eq!(canaries.len(), 400);
            let heads = canaries.iter().filter(|canary| canary.present).count() as f64;
            let n = canaries.len() as f64;
            assert!((heads - n / 2.0).abs() < 4.9 * n.sqrt() / 2.0, "{heads} of {n}");
            for canary in &canaries {
                let holds =
                    |device: &lapa::partition::DeviceData| device.samples.contains(&canary.sample);
                let holders: Vec<usize> = (0..partition.devices.len())
                    .filter(|&k| holds(&partition.devices[k]))
                    .collect();
                let expected = if canary.present { vec![canary.device as usize] } else { vec![] };
                assert_eq!(holders, expected);
            }
            for (k, (device, &size)) in partition.devices.iter().zip(&sizes).enumerate() {
                let absent =
                    canaries.iter().filter(|c| c.device as usize == k && !c.present).count();
                let missing = if replaced { 0 } else { absent };
                assert_eq!(device.samples.len() + missing, size as usize);
                assert!(device.samples.is_sorted());
                let counted: u32 = device.label_counts.iter().sum();
                assert_eq!(counted as usize, device.samples.len());
            }
            assert_eq!(data.train.values.len(), data.train.labels.len() * 784);
        }
    }

    /// Each column of a table is at one of its ends, whatever its range.
    #[test]
    fn canaries_of_a_table_stay_in_its_columns() {
        let shape = lapa::model::Shape::new(1, 1, 2);
        let split = |rows: u8| lapa::data::Split {
            values: (0..rows).flat_map(|i| [f32::from(i) - 900.0, 3.0]).collect::<Vec<_>>().into(),
            labels: (0..rows).map(|i| i % 10).collect(),
            shape,
        };
        let data = Dataset { train: split(200), test: split(50), ..lapa::data::digits(1, 1) };
        let changes =
            ["partition.scheme=iid", "partition.iid.devices=2", "partition.iid.samples=90"];
        let changes = changes.map(|change| Override::parse(change).unwrap());
        let text = "data.name = 'synthetic'\nmodel.name = 'logistic'\nprivacy.epsilon = 1";
        let experiment = Experiment::from_toml(text, "test", &changes).unwrap();
        let options = Options::new(0.95, Effort::Quick, 1).unwrap();
        let planted = plant(&Subject::new(experiment, data).unwrap(), &options).unwrap();
        let Values::Floats(floats) = &planted.data.train.values else { panic!("floats") };
        let canaries = &floats[400..];
        assert_eq!(canaries.len(), 2 * planted.canaries.len());
        let ends =
            |at: usize, value| canaries.iter().skip(at).step_by(2).filter(|&&v| v == value).count();
        let (low, high, all) = (ends(0, -900.0), ends(0, -851.0), planted.canaries.len());
        assert!(low + high == all && low > high && high > 0, "{low} {high} of {all}");
        assert_eq!(ends(1, 3.0) + ends(1, 4.0), all);
    }

    #[test]
    fn another_seed_throws_other_coins() {
        let coins =
            |seed| planted("zero-out", seed).canaries.iter().map(|c| c.present).collect::<Vec<_>>();
        assert_eq!(coins(1), coins(1));
        assert_ne!(coins(1), coins(2));
    }
}
