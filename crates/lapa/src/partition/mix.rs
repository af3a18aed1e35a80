//! The scheme `mix`: IID devices next to devices with few labels.
//!
//! The sizes may well add up to the whole training set, so a free choice of labels can run into a
//! dead end. The plan therefore goes in three steps: the IID devices take their equal shares; each
//! non-IID device chooses labels that still have room; and the Dirichlet split of each device is
//! fitted to what its labels have left. A plan that leaves a device below its minimum is drawn
//! anew, later ones with smaller sizes.

use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::few_labels::few_labels;
use super::range::{OneOrPair, pair};
use super::sizes::{Size, draw, fitting_share, middle, total, valid};
use super::{MOST_DEVICES, PartitionError, PartitionScheme, Plan};
use crate::seed::Stream;

/// Share of the training set left over when the drawn sizes exceed it, so that the rest fits.
const SLACK: f64 = 0.02;
/// Plans drawn before giving up.
const ATTEMPTS: u32 = 200;
/// Plans drawn before the sizes shrink further.
const FULL_SIZE_ATTEMPTS: u32 = 50;

/// IID devices next to devices with few labels: the paper's scheme. IID devices come first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(description = "Parameters of scheme mix.")]
pub struct Mix {
    /// Devices that hold all labels equally.
    #[schemars(range(max = MOST_DEVICES))]
    pub iid: u32,
    /// Devices that hold only a few labels.
    #[schemars(range(max = MOST_DEVICES))]
    pub non_iid: u32,
    /// Labels of a non-IID device.
    #[serde(deserialize_with = "pair")]
    #[schemars(with = "OneOrPair")]
    pub labels: [u32; 2],
    /// Samples of an IID device.
    #[serde(deserialize_with = "pair")]
    #[schemars(with = "OneOrPair")]
    pub iid_samples: [u32; 2],
    /// Samples of a non-IID device.
    #[serde(deserialize_with = "pair")]
    #[schemars(with = "OneOrPair")]
    pub non_iid_samples: [u32; 2],
}

impl Default for Mix {
    /// The paper's Section V-A.
    fn default() -> Self {
        let samples = [3000, 5000];
        Self { iid: 5, non_iid: 10, labels: [1, 2], iid_samples: samples, non_iid_samples: samples }
    }
}

impl PartitionScheme for Mix {
    fn devices(&self) -> u32 {
        self.iid.saturating_add(self.non_iid)
    }

    fn devices_key(&self) -> &'static str {
        "`partition.mix.iid` + `partition.mix.non_iid`"
    }

    fn check(&self) -> Result<(), PartitionError> {
        let Self { iid, non_iid, .. } = *self;
        if !(1..=MOST_DEVICES).contains(&self.devices()) {
            return Err(PartitionError::Mix { iid, non_iid });
        }
        valid("mix.labels", self.labels)?;
        valid("mix.iid_samples", self.iid_samples)?;
        valid("mix.non_iid_samples", self.non_iid_samples).map(drop)
    }

    fn sizes_mut(&mut self) -> Vec<(&'static str, &mut [u32; 2])> {
        vec![
            ("mix.iid_samples", &mut self.iid_samples),
            ("mix.non_iid_samples", &mut self.non_iid_samples),
        ]
    }

    fn largest_samples(&self) -> Option<u32> {
        Some(self.iid_samples[1].max(self.non_iid_samples[1]))
    }

    fn middle_samples(&self) -> Option<u32> {
        let (iid, non_iid) = (middle(self.iid_samples), middle(self.non_iid_samples));
        let sum = f64::from(self.iid) * iid + f64::from(self.non_iid) * non_iid;
        Some((sum / f64::from(self.devices())).round().max(1.0) as u32)
    }

    fn is_iid(&self, device: u32) -> Option<bool> {
        Some(device < self.iid)
    }

    fn plan(&self, supply: &[u32], rng: &mut Stream) -> Result<Plan, PartitionError> {
        self.check()?;
        let Self { iid, non_iid, labels, iid_samples, non_iid_samples } = *self;
        if labels[1] as usize > supply.len() {
            let classes = supply.len();
            return Err(PartitionError::MoreLabelsThanClasses { labels: labels[1], classes });
        }
        if labels[0] > non_iid_samples[0] {
            let samples = non_iid_samples[0];
            return Err(PartitionError::MoreLabelsThanSamples { labels: labels[0], samples });
        }

        let mut ranges = vec![iid_samples; iid as usize];
        ranges.resize(self.devices() as usize, non_iid_samples);
        let samples = total(supply);
        let sizes = draw(&ranges, samples, rng)?;
        let slack = if non_iid > 0 { SLACK } else { 0.0 };
        let fitting = fitting_share(&sizes, (samples as f64 * (1.0 - slack)) as u64);
        for attempt in 0..ATTEMPTS {
            let late = attempt.saturating_sub(FULL_SIZE_ATTEMPTS - 1);
            let keep = fitting * (1.0 - f64::from(late) / f64::from(ATTEMPTS - FULL_SIZE_ATTEMPTS));
            let sizes: Vec<Size> = sizes.iter().map(|size| size.shrunk(keep)).collect();
            let (equal, few) = sizes.split_at(iid as usize);
            let mut left = supply.to_vec();
            let mut plan = equal_shares(equal, &mut left, rng);
            if let Some(rest) = few_labels(few, labels, &left, iid == 0, rng) {
                plan.extend(rest);
                return Ok(plan);
            }
        }
        let mut left = supply.to_vec();
        let smallest: Vec<Size> = sizes.iter().map(|size| size.shrunk(0.0)).collect();
        equal_shares(&smallest[..iid as usize], &mut left, rng);
        Err(PartitionError::LabelsDoNotFit {
            devices: non_iid,
            iid,
            min_samples: non_iid_samples[0],
            max_labels: labels[1],
            classes: supply.len(),
            fewest: left.iter().copied().min().unwrap_or_default(),
            most: left.iter().copied().max().unwrap_or_default(),
        })
    }
}

/// Gives each device the same share of every label, as far as the labels last, and takes them from
/// `left`. The sizes must not add up to more than is left.
fn equal_shares(sizes: &[Size], left: &mut [u32], rng: &mut Stream) -> Plan {
    let wanted: u64 = sizes.iter().map(|size| u64::from(size.drawn)).sum();
    // Every label gives `level` samples; those that have fewer give all, the others more.
    let mut ascending = left.to_vec();
    ascending.sort_unstable();
    let mut level = 0.0;
    let mut missing = wanted as f64;
    for (rank, &supply) in ascending.iter().enumerate() {
        level = missing / (ascending.len() - rank) as f64;
        if f64::from(supply) >= level {
            break;
        }
        missing -= f64::from(supply);
    }
    let quota: Vec<f64> = left.iter().map(|&supply| f64::from(supply).min(level)).collect();

    let part = |quota: &f64, size: &Size| (quota * f64::from(size.drawn) / wanted as f64) as u32;
    let mut plan: Plan =
        sizes.iter().map(|size| quota.iter().map(|quota| part(quota, size)).collect()).collect();
    for counts in &plan {
        left.iter_mut().zip(counts).for_each(|(left, count)| *left -= count);
    }
    let mut order: Vec<usize> = (0..left.len()).collect();
    for (counts, size) in plan.iter_mut().zip(sizes) {
        // The rest after rounding down: one sample each of random labels.
        let mut rest = size.drawn - counts.iter().sum::<u32>();
        order.shuffle(rng);
        for &label in order.iter().cycle() {
            if rest == 0 {
                break;
            }
            if left[label] > 0 {
                left[label] -= 1;
                counts[label] += 1;
                rest -= 1;
            }
        }
    }
    plan
}
