//! Bounds that a right sampler passes except with probability α.

/// The chance that one right sampler fails one test. Seeds are fixed: a test that passed once
/// passes always, except where another library's noise cannot be seeded.
pub(crate) const ALPHA: f64 = 1e-6;

/// |N(0, 1)| is above this with probability less than [`ALPHA`].
pub(crate) const NORMAL_LIMIT: f64 = 4.9;

/// Bounds that χ² of `degrees` leaves, to either side, with probability at most [`ALPHA`] each (Laurent
/// and Massart 2000, Lemma 1).
pub(crate) fn chi_square_interval(degrees: f64) -> (f64, f64) {
    let x = -ALPHA.ln();
    let spread = 2.0 * (degrees * x).sqrt();
    (degrees - spread, degrees + spread + 2.0 * x)
}

/// Pearson's χ² of counts against probabilities. Neighboring cells are joined until each expects
/// 20, where the statistic is close to χ²; what is outside of all cells belongs to the first.
pub(crate) fn assert_distribution(counts: &[u64], outside: u64, probabilities: &[f64]) {
    assert_eq!(counts.len(), probabilities.len());
    let draws = (counts.iter().sum::<u64>() + outside) as f64;
    let rest = (1.0 - probabilities.iter().sum::<f64>()).max(0.0);
    let inside = counts.iter().zip(probabilities).map(|(&n, p)| (n as f64, p * draws));
    let cells = [(outside as f64, rest * draws)].into_iter().chain(inside);
    let cells = joined(cells, |(_, expected)| expected >= 20.0);
    assert_chi_square(cells.iter().map(|(n, e)| (n - e).powi(2) / e));
}

/// χ² of two samples of the same size in the same cells, joined until each holds 40.
pub(crate) fn assert_same_distribution(ours: &[u64], theirs: &[u64]) {
    assert_eq!((ours.len(), ours.iter().sum::<u64>()), (theirs.len(), theirs.iter().sum()));
    let cells = ours.iter().zip(theirs).map(|(&a, &b)| (a as f64, b as f64));
    let cells = joined(cells, |(a, b)| a + b >= 40.0);
    assert_chi_square(cells.iter().map(|(a, b)| (a - b).powi(2) / (a + b)));
}

/// Neighbors together until they are full; what remains goes to the last.
fn joined(
    cells: impl Iterator<Item = (f64, f64)>,
    full: impl Fn((f64, f64)) -> bool,
) -> Vec<(f64, f64)> {
    let mut joined: Vec<(f64, f64)> = Vec::new();
    let mut open = (0.0, 0.0);
    for cell in cells {
        open = (open.0 + cell.0, open.1 + cell.1);
        if full(open) {
            joined.push(std::mem::take(&mut open));
        }
    }
    if let Some(last) = joined.last_mut() {
        *last = (last.0 + open.0, last.1 + open.1);
    }
    joined
}

fn assert_chi_square(terms: impl ExactSizeIterator<Item = f64>) {
    let cells = terms.len();
    assert!(cells > 1, "a test of one cell tests nothing");
    let statistic: f64 = terms.sum();
    let (_, most) = chi_square_interval((cells - 1) as f64);
    assert!(statistic <= most, "χ² is {statistic}, above {most} for {cells} cells");
}

/// Checks a count of `draws` coins against their probability.
pub(crate) fn assert_coin(count: u64, draws: u64, probability: f64) {
    let deviation = (draws as f64 * probability * (1.0 - probability)).sqrt();
    let error = count as f64 - draws as f64 * probability;
    assert!(error.abs() <= NORMAL_LIMIT * deviation, "{count} of {draws}, p = {probability}");
}

/// The largest distance of the empirical distribution to `cdf` (Kolmogorov–Smirnov), bounded by the
/// Dvoretzky–Kiefer–Wolfowitz inequality with Massart's constant.
pub(crate) fn assert_cdf(mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = sample
        .iter()
        .enumerate()
        .map(|(i, &x)| (cdf(x) - i as f64 / n).abs().max((cdf(x) - (i + 1) as f64 / n).abs()))
        .fold(0.0, f64::max);
    let most = ((2.0 / ALPHA).ln() / (2.0 * n)).sqrt();
    assert!(distance <= most, "the empirical distribution is off by {distance}, above {most}");
}
