//! Candidate records of the attack, and the partition that follows from the coins.

use lapa::config::Experiment;
use lapa::data::{Dataset, Split};
use lapa::error::FederationError;
use lapa::partition::{DeviceData, Partition};
use lapa::seed::{Purpose, Stream, stream};
use lapa_privacy::Adjacency;
use rand::RngExt;
use rand::seq::SliceRandom;

/// Numbers of the attacker's streams of `Purpose::Membership`, in place of a round.
const CHOICE: u64 = 0;
const TARGET_COINS: u64 = 1;
const SHADOW_COINS: u64 = 2;

/// Of a device's records, at most this share are candidates where a coin drops them: what is left
/// is still about the data that the run was configured for.
const DROPPED_SHARE: f64 = 0.5;

/// A place on a device whose content a coin decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// The device.
    device: usize,
    /// Index among its records.
    place: usize,
    /// The record that the place holds if the coin shows heads.
    record: u32,
    /// The content otherwise: a record of the same label, or nothing.
    other: Option<u32>,
}

/// The records in question.
///
/// Two runs that differ in one coin are neighbors in the sense of the experiment's adjacency:
/// under zero-out and add-remove tails drops the record, under replace-one it puts another one of
/// the same label in its place.
pub(super) struct Candidates {
    slots: Vec<Slot>,
    /// The subject's data, which records are indices of; behind its training set, the test images.
    pub data: Dataset,
    /// Partition if all coins show heads: the subject's own.
    heads: Partition,
    /// True if tails puts another record in the place, rather than none.
    pub swaps: bool,
}

impl Candidates {
    /// At most `most` of the records that the experiment's devices hold, drawn by `seed`.
    pub fn new(
        experiment: &Experiment,
        data: &Dataset,
        most: usize,
        seed: u64,
    ) -> Result<Self, FederationError> {
        let mut data = data.clone();
        let heads = experiment.deal(&mut data)?;
        let swaps = experiment.adjacency() == Adjacency::ReplaceOne;
        let data = Dataset { train: joined(&data.train, &data.test), ..data };
        let mut rng = draws(seed, CHOICE, 0);
        let mut slots = Vec::new();
        for (device, held) in heads.devices.iter().enumerate() {
            let mut places: Vec<usize> = (0..held.samples.len()).collect();
            places.shuffle(&mut rng);
            if !swaps {
                places.truncate((DROPPED_SHARE * held.samples.len() as f64) as usize);
            }
            let slot = |place| Slot { device, place, record: held.samples[place], other: None };
            slots.extend(places.into_iter().map(slot));
        }
        slots.shuffle(&mut rng);
        if swaps {
            slots = with_others(slots, &data, &heads, &mut rng);
        }
        slots.truncate(most);
        Ok(Self { slots, data, heads, swaps })
    }

    /// Coins.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// All records whose membership a coin decides: those of heads in the order of the slots, then
    /// those of tails.
    pub fn records(&self) -> Vec<u32> {
        let heads = self.slots.iter().map(|slot| slot.record);
        heads.chain(self.slots.iter().filter_map(|slot| slot.other)).collect()
    }

    /// Memberships of [`Candidates::records`].
    pub fn members(&self, coins: &[bool]) -> Vec<bool> {
        let mut members = coins.to_vec();
        if self.swaps {
            members.extend(coins.iter().map(|heads| !heads));
        }
        members
    }

    /// Partition for these coins.
    pub fn partition(&self, coins: &[bool]) -> Partition {
        let mut held: Vec<Vec<Option<u32>>> = self
            .heads
            .devices
            .iter()
            .map(|device| device.samples.iter().copied().map(Some).collect())
            .collect();
        for (slot, _) in self.slots.iter().zip(coins).filter(|(_, heads)| !**heads) {
            held[slot.device][slot.place] = slot.other;
        }
        let devices = held.into_iter().zip(&self.heads.devices).map(|(held, device)| {
            let samples: Vec<u32> = held.into_iter().flatten().collect();
            let mut label_counts = vec![0; device.label_counts.len()];
            for &sample in &samples {
                label_counts[usize::from(self.data.train.labels[sample as usize])] += 1;
            }
            DeviceData { samples, label_counts, iid: device.iid }
        });
        Partition { devices: devices.collect() }
    }

    /// The numbers of records that the devices declare, whatever the coins.
    pub fn sizes(&self) -> Vec<u32> {
        self.heads.devices.iter().map(|device| device.samples.len() as u32).collect()
    }

    /// The coins of the model that is attacked: fair and independent.
    pub fn target_coins(&self, seed: u64) -> Vec<bool> {
        let mut rng = draws(seed, TARGET_COINS, 0);
        (0..self.len()).map(|_| rng.random()).collect()
    }

    /// The coins of each shadow model. Each is fair; over the shadows, each slot shows heads in
    /// half of them (in one more or fewer than tails, if their number is odd), as Carlini et al.
    /// have it.
    pub fn shadow_coins(&self, shadows: usize, seed: u64) -> Vec<Vec<bool>> {
        let by_slot: Vec<Vec<bool>> = (0..self.len() as u64)
            .map(|slot| {
                let mut rng = draws(seed, SHADOW_COINS, slot);
                let first: bool = rng.random();
                let mut order: Vec<usize> = (0..shadows).collect();
                order.shuffle(&mut rng);
                let mut coins = vec![first; shadows];
                order.into_iter().step_by(2).for_each(|shadow| coins[shadow] = !first);
                coins
            })
            .collect();
        (0..shadows).map(|shadow| by_slot.iter().map(|coins| coins[shadow]).collect()).collect()
    }
}

/// The attacker's stream for a purpose.
pub(super) fn draws(seed: u64, what: u64, which: u64) -> Stream {
    stream(seed, Purpose::Membership, what, which)
}

/// Gives each slot another record of its label, which nobody holds. Slots are dropped when no such
/// record is left.
fn with_others(slots: Vec<Slot>, data: &Dataset, heads: &Partition, rng: &mut Stream) -> Vec<Slot> {
    let mut held = vec![false; data.train.len()];
    heads.devices.iter().flat_map(|d| &d.samples).for_each(|&s| held[s as usize] = true);
    let mut spare: Vec<Vec<u32>> = vec![Vec::new(); data.classes];
    for (record, &label) in (0..).zip(&data.train.labels).filter(|(r, _)| !held[*r as usize]) {
        spare[usize::from(label)].push(record);
    }
    spare.iter_mut().for_each(|records| records.shuffle(rng));
    slots
        .into_iter()
        .filter_map(|slot| {
            let label = usize::from(data.train.labels[slot.record as usize]);
            Some(Slot { other: Some(spare[label].pop()?), ..slot })
        })
        .collect()
}

/// Both splits, one after the other.
fn joined(first: &Split, second: &Split) -> Split {
    let labels = [first.labels.as_slice(), second.labels.as_slice()].concat();
    Split { values: first.values.joined(&second.values), labels, shape: first.shape }
}
