//! In which order the threads take the devices of a round.
//!
//! Threads take jobs from one queue. Largest first is a good order for many jobs, but 15 like
//! ones on two threads end 8 to 7. So the jobs are dealt out first, by size, such that all threads
//! end together; the queue holds them in the order in which the threads would begin them.
//! Only the time depends on this, never a result.

use std::cmp::Reverse;

/// Most jobs per thread for which dealing pays; with more, largest first is even enough.
const MOST_JOBS_PER_THREAD: usize = 32;

/// The order for jobs of these sizes.
pub(crate) fn order(sizes: &[usize], threads: usize) -> Vec<usize> {
    let mut largest_first: Vec<usize> = (0..sizes.len()).collect();
    largest_first.sort_by_key(|&job| Reverse(sizes[job]));
    if threads < 2 || sizes.len() > threads * MOST_JOBS_PER_THREAD {
        return largest_first;
    }
    let mut hands = vec![Vec::new(); threads];
    for job in largest_first {
        // Unwrap safety: there are at least two hands.
        hands.iter_mut().min_by_key(|hand| load(hand, sizes)).unwrap().push(job);
    }
    while improve(&mut hands, sizes) {}
    let mut begun = Vec::with_capacity(sizes.len());
    for hand in &mut hands {
        hand.sort_by_key(|&job| Reverse(sizes[job]));
        let mut start = 0;
        for &job in hand.iter() {
            begun.push((start, job));
            start += sizes[job];
        }
    }
    begun.sort_unstable();
    begun.into_iter().map(|(_, job)| job).collect()
}

fn load(hand: &[usize], sizes: &[usize]) -> usize {
    hand.iter().map(|&job| sizes[job]).sum()
}

/// Moves a job from the fullest to the emptiest hand, or swaps two, if that lowers the fuller of
/// the two most; says whether it did. Each step lowers the sum of squared loads, so it ends.
fn improve(hands: &mut [Vec<usize>], sizes: &[usize]) -> bool {
    let by_load = |&hand: &usize| load(&hands[hand], sizes);
    let (Some(full), Some(empty)) =
        ((0..hands.len()).max_by_key(by_load), (0..hands.len()).min_by_key(by_load))
    else {
        return false;
    };
    let gap = by_load(&full) - by_load(&empty);
    let mut best = (gap, None);
    for (i, &given) in hands[full].iter().enumerate() {
        let swaps = hands[empty].iter().enumerate().map(|(j, &taken)| (Some(j), sizes[taken]));
        for (j, taken) in swaps.chain([(None, 0)]) {
            let moved = sizes[given].saturating_sub(taken);
            let new_gap = gap.abs_diff(2 * moved);
            if moved > 0 && new_gap < best.0 {
                best = (new_gap, Some((i, j)));
            }
        }
    }
    let Some((i, j)) = best.1 else { return false };
    let given = hands[full].swap_remove(i);
    if let Some(j) = j {
        let taken = hands[empty].swap_remove(j);
        hands[full].push(taken);
    }
    hands[empty].push(given);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::{Purpose, stream};
    use rand::RngExt;

    /// End of the last of `threads` that take the jobs from a queue in this order.
    fn makespan(order: &[usize], sizes: &[usize], threads: usize) -> usize {
        let mut busy = vec![0; threads];
        for &job in order {
            *busy.iter_mut().min().unwrap() += sizes[job];
        }
        busy.into_iter().max().unwrap()
    }

    fn largest_first(sizes: &[usize]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|&job| Reverse(sizes[job]));
        order
    }

    #[test]
    fn fifteen_like_devices_keep_two_threads_busy() {
        let sizes = [456, 453, 450, 434, 409, 409, 408, 406, 388, 372, 365, 353, 316, 307, 300];
        let total: usize = sizes.iter().sum();
        assert_eq!(makespan(&largest_first(&sizes), &sizes, 2), 3062);
        assert!(makespan(&order(&sizes, 2), &sizes, 2) <= total.div_ceil(2) + 5);
    }

    #[test]
    fn every_job_once_and_never_later_than_largest_first() {
        let mut rng = stream(3, Purpose::Batch, 0, 0);
        for _ in 0..300 {
            let jobs = rng.random_range(0..40);
            let threads = rng.random_range(1..9);
            let sizes: Vec<usize> = (0..jobs).map(|_| rng.random_range(1..500)).collect();
            let order = order(&sizes, threads);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..jobs).collect::<Vec<_>>());
            if jobs > 0 {
                let plain = makespan(&largest_first(&sizes), &sizes, threads);
                // Jobs that begin at the same time may change hands; allow one job's difference.
                let slack = sizes.iter().max().unwrap() / 4;
                assert!(makespan(&order, &sizes, threads) <= plain + slack, "{sizes:?} {threads}");
            }
        }
    }
}
