//! The schemes `dirichlet`, `shards` and `iid`.

use super::sizes::{draw, fitting_share, total, valid};
use super::{PartitionError, Plan, required};
use crate::config::PartitionSpec;
use crate::seed::Stream;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, multi::Dirichlet};

/// How often `dirichlet` draws anew when a device stays empty.
const DRAWS: u32 = 1000;
/// Empty devices, of all draws so far and per draw, from which `dirichlet` gives up early. With m of
/// them expected, about e^−m of the draws leave none; where m < 30, so many as this are not seen.
/// So a thousand draws would have found no plan: the chance is below 10⁻⁹.
const HOPELESS: usize = 600;
const HOPELESS_PER_DRAW: usize = 60;

/// For each label, shares over the devices drawn from a symmetric Dirichlet distribution
/// (Hsu, Qi and Brown, "Measuring the effects of non-identical data distribution for federated
/// visual classification", 2019). Uses the whole training set.
pub(super) fn dirichlet(
    spec: &PartitionSpec,
    supply: &[u32],
    rng: &mut Stream,
) -> Result<Plan, PartitionError> {
    let concentration = required(spec.concentration, "dirichlet", "concentration")?;
    let devices = spec.devices as usize;
    if devices == 1 {
        return Ok(vec![supply.to_vec()]);
    }
    let shares = Dirichlet::new(&vec![concentration; devices])
        .map_err(|_| PartitionError::Concentration(concentration))?;
    let (mut draws, mut empty) = (0, 0);
    while draws < DRAWS {
        let columns: Vec<_> = supply.iter().map(|&n| cut(n, &shares.sample(rng))).collect();
        let is_empty = |device: &usize| columns.iter().all(|column| column[*device] == 0);
        draws += 1;
        match (0..devices).filter(is_empty).count() {
            0 => {
                let counts = |device| columns.iter().map(|column| column[device]).collect();
                return Ok((0..devices).map(counts).collect());
            }
            found => empty += found,
        }
        if empty >= HOPELESS && empty >= HOPELESS_PER_DRAW * draws as usize {
            break;
        }
    }
    let samples = total(supply);
    Err(PartitionError::EmptyDevice { concentration, devices: spec.devices, samples, draws })
}

/// Cuts `n` samples at the running sums of the shares: nothing is lost to rounding.
fn cut(n: u32, shares: &[f64]) -> Vec<u32> {
    let (mut sum, mut start) = (0.0, 0);
    let mut parts: Vec<u32> = shares
        .iter()
        .map(|share| {
            sum += share;
            // Shares of extreme concentrations may be NaN; such a part is empty.
            let end = ((sum * f64::from(n)).round() as u32).clamp(start, n);
            end - std::mem::replace(&mut start, end)
        })
        .collect();
    if let Some(last) = parts.last_mut() {
        *last += n - start;
    }
    parts
}

/// The label-sorted training set cut into equal shards, `spec.shards` of them dealt at random to
/// each device (McMahan et al., "Communication-efficient learning of deep networks from
/// decentralized data", 2017). Uses the whole training set.
pub(super) fn shards(
    spec: &PartitionSpec,
    supply: &[u32],
    rng: &mut Stream,
) -> Result<Plan, PartitionError> {
    let per_device = required(spec.shards, "shards", "shards")?;
    let shards = u64::from(spec.devices) * u64::from(per_device);
    let samples = total(supply);
    if shards == 0 || shards > samples {
        return Err(PartitionError::Shards { devices: spec.devices, per_device, samples });
    }
    let mut order: Vec<u64> = (0..shards).collect();
    order.shuffle(rng);
    let sorted = labels(supply);
    let bound = |shard: u64| (shard * samples / shards) as usize;
    let deal = |hand: &[u64]| {
        let held = hand.iter().flat_map(|&shard| &sorted[bound(shard)..bound(shard + 1)]);
        count(held, supply.len())
    };
    Ok(order.chunks(per_device as usize).map(deal).collect())
}

/// A shuffled training set cut into equal parts, or into parts of `spec.iid_samples`.
pub(super) fn iid(
    spec: &PartitionSpec,
    supply: &[u32],
    rng: &mut Stream,
) -> Result<Plan, PartitionError> {
    let (samples, devices) = (total(supply), u64::from(spec.devices));
    let sizes: Vec<usize> = match spec.iid_samples {
        None => {
            let bound = |device: u64| device * samples / devices;
            (0..devices).map(|device| (bound(device + 1) - bound(device)) as usize).collect()
        }
        Some(range) => {
            let range = valid("iid_samples", range)?;
            let sizes = draw(&vec![range; spec.devices as usize], samples, rng)?;
            let keep = fitting_share(&sizes, samples);
            sizes.iter().map(|size| size.shrunk(keep).drawn as usize).collect()
        }
    };
    let mut shuffled = labels(supply);
    shuffled.shuffle(rng);
    let mut rest = shuffled.as_slice();
    let deal = |size| {
        let held;
        (held, rest) = rest.split_at(size);
        count(held, supply.len())
    };
    Ok(sizes.into_iter().map(deal).collect())
}

/// The label of every sample, sorted.
fn labels(supply: &[u32]) -> Vec<usize> {
    let run = |(label, &n): (usize, &u32)| std::iter::repeat_n(label, n as usize);
    supply.iter().enumerate().flat_map(run).collect()
}

fn count<'a>(labels: impl IntoIterator<Item = &'a usize>, classes: usize) -> Vec<u32> {
    let mut counts = vec![0; classes];
    labels.into_iter().for_each(|&label| counts[label] += 1);
    counts
}
