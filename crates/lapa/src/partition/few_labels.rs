//! The non-IID devices of a `mix`: each holds a few labels, split by a Dirichlet distribution.

use super::Plan;
use super::sizes::Size;
use crate::seed::Stream;
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, multi::Dirichlet};
use std::cmp::Reverse;

/// Concentration of a device's split among its labels.
const CONCENTRATION: f64 = 5.0;
/// Alternations between device sizes and label supply when the splits are fitted.
const SWEEPS: u32 = 200;

/// A device while its plan is made.
struct Draft {
    size: Size,
    /// Number of labels that it shall hold.
    count: usize,
    labels: Vec<usize>,
    /// Samples of each of these labels beyond the first one, which each label has for sure.
    amounts: Vec<f64>,
}

/// Plans devices with `fewest` to `most` labels each, or finds that the labels chosen do not do.
/// With `cover`, labels that nobody holds yet are preferred.
pub(super) fn few_labels(
    sizes: &[Size],
    [fewest, most]: [u32; 2],
    supply: &[u32],
    cover: bool,
    rng: &mut Stream,
) -> Option<Plan> {
    let draft = |size: &Size| Draft {
        size: *size,
        count: rng.random_range(fewest..=most.min(size.drawn)) as usize,
        labels: Vec::new(),
        amounts: Vec::new(),
    };
    let mut drafts: Vec<Draft> = sizes.iter().map(draft).collect();
    choose_labels(&mut drafts, most as usize, supply, cover, rng);
    for draft in &mut drafts {
        let shares = shares(draft.labels.len(), rng);
        let beyond = draft.size.drawn as usize - draft.labels.len();
        draft.amounts = shares.iter().map(|share| share * beyond as f64).collect();
    }
    fit(&mut drafts, supply)?;
    drafts.iter().map(|draft| round(draft, supply.len())).collect()
}

/// Chooses labels at random among those with room for an equal part of the device. The largest
/// parts choose first, since they are the hardest to place; where too few labels have room, a
/// device takes more labels, up to `most`, and then those with the most left.
fn choose_labels(drafts: &mut [Draft], most: usize, supply: &[u32], cover: bool, rng: &mut Stream) {
    let mut room: Vec<f64> = supply.iter().map(|&n| f64::from(n)).collect();
    let mut held = vec![false; supply.len()];
    let mut by_part: Vec<&mut Draft> = drafts.iter_mut().collect();
    by_part.sort_by_key(|draft| Reverse(draft.size.drawn as usize / draft.count));
    for draft in by_part {
        let size = f64::from(draft.size.drawn);
        let most = most.min(draft.size.drawn as usize);
        let mut order: Vec<usize> = (0..room.len()).collect();
        order.shuffle(rng);
        order.sort_by(|&a, &b| room[b].total_cmp(&room[a]));
        while draft.count < most
            && order[..draft.count].iter().map(|&l| room[l]).sum::<f64>() < size
        {
            draft.count += 1;
        }
        let part = size / draft.count as f64;
        let roomy = order.iter().filter(|&&label| room[label] >= part).count();
        if roomy >= draft.count {
            order.truncate(roomy);
            order.shuffle(rng);
            if cover {
                order.sort_by_key(|&label| held[label]);
            }
        }
        order.truncate(draft.count);
        for &label in &order {
            room[label] -= part;
            held[label] = true;
        }
        draft.labels = order;
    }
}

/// Shares of a device's labels.
fn shares(labels: usize, rng: &mut Stream) -> Vec<f64> {
    match Dirichlet::new(&vec![CONCENTRATION; labels]) {
        Ok(dirichlet) => dirichlet.sample(rng),
        // One label: there is nothing to split.
        Err(_) => vec![1.0; labels],
    }
}

/// Scales the splits until no label gives more than it has. Devices that share a scarce label move
/// to their other labels; where these are scarce too, devices shrink.
///
/// Alternating scaling of rows and columns converges to the feasible table nearest to the given
/// one in relative entropy, if there is one (Csiszár, "I-divergence geometry of probability
/// distributions and minimization problems", 1975).
fn fit(drafts: &mut [Draft], supply: &[u32]) -> Option<()> {
    // The first sample of each label is set aside, and one more for rounding where there are
    // several labels.
    let mut capacity: Vec<f64> = supply.iter().map(|&n| f64::from(n)).collect();
    for draft in drafts.iter() {
        for &label in &draft.labels {
            capacity[label] -= if draft.labels.len() > 1 { 2.0 } else { 1.0 };
        }
    }
    if capacity.iter().any(|&capacity| capacity < 0.0) {
        return None;
    }
    for sweep in 1.. {
        let mut load = vec![0.0; capacity.len()];
        for draft in drafts.iter() {
            draft.labels.iter().zip(&draft.amounts).for_each(|(&label, n)| load[label] += n);
        }
        if load.iter().zip(&capacity).all(|(load, capacity)| *load <= capacity + 1e-6) {
            break;
        }
        for draft in drafts.iter_mut() {
            for (&label, amount) in draft.labels.iter().zip(&mut draft.amounts) {
                *amount *= (capacity[label] / load[label]).min(1.0);
            }
            let wanted = f64::from(draft.size.drawn) - draft.labels.len() as f64;
            let sum: f64 = draft.amounts.iter().sum();
            if sweep < SWEEPS && sum > 0.0 {
                draft.amounts.iter_mut().for_each(|amount| *amount *= wanted / sum);
            }
        }
    }
    Some(())
}

/// Whole numbers of samples per label, or nothing if they fall short of the device's minimum.
fn round(draft: &Draft, classes: usize) -> Option<Vec<u32>> {
    // Scaling leaves errors far below this.
    let floor = |amount: f64| (amount + 1e-5) as u32;
    let mut rest = floor(draft.amounts.iter().sum());
    let mut counts = vec![0; classes];
    for (&label, &amount) in draft.labels.iter().zip(&draft.amounts) {
        counts[label] = 1 + floor(amount);
        rest = rest.saturating_sub(floor(amount));
    }
    draft.labels.iter().take(rest as usize).for_each(|&label| counts[label] += 1);
    (counts.iter().sum::<u32>() >= draft.size.min).then_some(counts)
}
