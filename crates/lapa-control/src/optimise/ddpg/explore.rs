//! Exploration: an action, changed at random.

use lapa::seed::Stream;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// Standard deviation of the noise on an action in [−1, 1], first and last.
const DEVIATION: (f64, f64) = (0.3, 0.01);
/// Coordinates that change, on the average: a tenth of all, or this many where that is more.
const SHARE: f64 = 0.1;
const LEAST: f64 = 1.5;
/// Share of them that are drawn anew instead of moved.
const ANEW: f64 = 0.3;

/// Moves some coordinates by Gaussian noise, within [−1, 1], and draws others anew. At least one
/// changes. `done` is how much of the search is over: the noise shrinks geometrically.
pub(super) fn explore(action: &mut [f32], done: f64, rng: &mut Stream) {
    let (first, last) = DEVIATION;
    let deviation = (first * (last / first).powf(done)) as f32;
    let share = SHARE.max(LEAST / action.len() as f64);
    let sure = rng.random_range(0..action.len());
    for (index, a) in action.iter_mut().enumerate() {
        if index != sure && rng.random::<f64>() >= share {
            continue;
        }
        *a = match rng.random::<f64>() < ANEW {
            true => 2.0 * rng.random::<f32>() - 1.0,
            false => {
                let noise: f32 = StandardNormal.sample(rng);
                (*a + deviation * noise).clamp(-1.0, 1.0)
            }
        };
    }
}
