//! (μ/μ_w, λ)-CMA-ES of any function.

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use super::covariance::Covariance;

/// A run goes on while its least value falls by this share. Next to a jump it falls in ever smaller
/// steps, and a start elsewhere gains more.
const GAIN: f64 = 1e-3;
/// The same for the last runs, which look for the digits.
const LAST_GAIN: f64 = 1e-9;
/// Their first step, over that of the first run; 1 in `LAST_SHARE` of all evaluations is theirs.
const LAST_STEP: f64 = 0.1;
const LAST_SHARE: u64 = 8;

/// Minimum of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Minimum {
    /// The point.
    pub at: Vec<f64>,
    /// The function there.
    pub value: f64,
    /// Number of evaluations.
    pub evaluations: u64,
}

/// Start of a run of CMA-ES.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The first mean.
    pub at: Vec<f64>,
    /// The first standard deviation of each variable.
    pub step: f64,
}

/// Minimizes `f` from `start`: CMA-ES after Hansen (2016, arXiv:1604.00772) with positive weights,
/// with a diagonal covariance where there are many variables. A search that stagnates starts anew
/// where `restart` says, with a fifth more of a population (IPOP, Auger & Hansen 2005, which
/// doubles it: jumps take many runs). The last eighth of the evaluations goes from the best point,
/// with small steps. NaN counts as ∞. The start is evaluated first.
pub fn minimize<E, R: Rng>(
    f: &mut dyn FnMut(&[f64]) -> Result<f64, E>,
    start: &Start,
    restart: &mut dyn FnMut(&mut R) -> Start,
    evaluations: u64,
    rng: &mut R,
) -> Result<Minimum, E> {
    let value = f(&start.at)?;
    let mut best = Minimum { at: start.at.clone(), value: or_infinity(value), evaluations: 1 };
    let first_population = 4 + (3.0 * (start.at.len() as f64).ln()) as usize;
    let mut population = first_population;
    let mut from = start.clone();
    let last = evaluations - evaluations / LAST_SHARE;
    while best.evaluations < last {
        descend(f, &from, population, GAIN, last, rng, &mut best)?;
        population += population.div_ceil(5);
        from = restart(rng);
    }
    while best.evaluations < evaluations {
        let from = Start { at: best.at.clone(), step: LAST_STEP * start.step };
        descend(f, &from, first_population, LAST_GAIN, evaluations, rng, &mut best)?;
    }
    Ok(best)
}

/// One run, until it stagnates or `best` counts as many evaluations as allowed.
fn descend<E>(
    f: &mut dyn FnMut(&[f64]) -> Result<f64, E>,
    start: &Start,
    population: usize,
    gain: f64,
    evaluations: u64,
    rng: &mut impl Rng,
    best: &mut Minimum,
) -> Result<(), E> {
    let mut state = State::new(&start.at, start.step, population);
    let mut z = vec![0.0; start.at.len()];
    loop {
        let mut offspring = Vec::with_capacity(population);
        for _ in 0..population {
            if best.evaluations >= evaluations {
                return Ok(());
            }
            z.fill_with(|| rng.sample(StandardNormal));
            let mut direction = vec![0.0; z.len()];
            state.covariance.shape(&z, &mut direction);
            let at: Vec<f64> =
                state.mean.iter().zip(&direction).map(|(mean, y)| mean + state.step * y).collect();
            let value = or_infinity(f(&at)?);
            best.evaluations += 1;
            if value < best.value {
                (best.at, best.value) = (at, value);
            }
            offspring.push((value, direction));
        }
        offspring.sort_by(|a, b| a.0.total_cmp(&b.0));
        state.update(&offspring);
        if state.stagnates(offspring[0].0, start.step, gain) {
            return Ok(());
        }
    }
}

fn or_infinity(value: f64) -> f64 {
    if value.is_nan() { f64::INFINITY } else { value }
}

/// Mean, step size and covariance, with their paths. Names and defaults as in Hansen (2016), Table 1
/// and Figure 6.
struct State {
    mean: Vec<f64>,
    /// σ
    step: f64,
    covariance: Covariance,
    /// w_i, of the better half.
    weights: Vec<f64>,
    /// μ_eff
    mass: f64,
    /// c_σ, d_σ, c_c, c_1, c_μ
    rates: Rates,
    /// p_σ
    step_path: Vec<f64>,
    /// p_c
    path: Vec<f64>,
    generation: i32,
    /// Generations from one eigendecomposition to the next.
    refresh_every: i32,
    /// The least value of this run, up to small gains, and the generation it is of.
    least: f64,
    least_at: i32,
    /// Generations without a lower value that are taken for the end.
    patience: i32,
}

struct Rates {
    step_path: f64,
    damping: f64,
    path: f64,
    rank_one: f64,
    rank_mu: f64,
}

impl State {
    fn new(start: &[f64], step: f64, population: usize) -> Self {
        let (n, lambda) = (start.len() as f64, population as f64);
        let raw: Vec<f64> =
            (1..=population / 2).map(|i| ((lambda + 1.0) / 2.0).ln() - (i as f64).ln()).collect();
        let sum: f64 = raw.iter().sum();
        let weights: Vec<f64> = raw.iter().map(|w| w / sum).collect();
        let mass = weights.iter().map(|w| w * w).sum::<f64>().recip();
        let covariance = Covariance::identity(start.len());
        let step_path = (mass + 2.0) / (n + mass + 5.0);
        let rank_one = (covariance.relative_rate() * 2.0 / ((n + 1.3).powi(2) + mass)).min(1.0);
        let rank_mu = covariance.relative_rate() * 2.0 * (mass - 2.0 + 1.0 / mass)
            / ((n + 2.0).powi(2) + mass);
        let rates = Rates {
            step_path,
            damping: 1.0 + 2.0 * (((mass - 1.0) / (n + 1.0)).sqrt() - 1.0).max(0.0) + step_path,
            path: (4.0 + mass / n) / (n + 4.0 + 2.0 * mass / n),
            rank_one,
            rank_mu: rank_mu.min(1.0 - rank_one),
        };
        // The covariance changes little in 1/(10n(c_1 + c_μ)) generations.
        let refresh_every = (0.1 / (n * (rank_one + rates.rank_mu))).floor().clamp(1.0, 1e6);
        Self {
            mean: start.to_vec(),
            step,
            covariance,
            weights,
            mass,
            rates,
            step_path: vec![0.0; start.len()],
            path: vec![0.0; start.len()],
            generation: 0,
            refresh_every: refresh_every as i32,
            least: f64::INFINITY,
            least_at: 0,
            patience: 10 + (30.0 * n / lambda).ceil() as i32,
        }
    }

    /// Learns from a generation, best first.
    fn update(&mut self, offspring: &[(f64, Vec<f64>)]) {
        self.generation += 1;
        let (n, rates) = (self.mean.len() as f64, &self.rates);
        let mut drift = vec![0.0; self.mean.len()];
        for (weight, (_, y)) in self.weights.iter().zip(offspring) {
            drift.iter_mut().zip(y).for_each(|(drift, y)| *drift += weight * y);
        }
        self.mean.iter_mut().zip(&drift).for_each(|(mean, drift)| *mean += self.step * drift);

        follow(&mut self.step_path, rates.step_path, self.mass, &self.covariance.whiten(&drift));
        let norm = self.step_path.iter().map(|p| p * p).sum::<f64>().sqrt();
        // E‖N(0, I)‖
        let expected = n.sqrt() * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n));
        let warm = (1.0 - (1.0 - rates.step_path).powi(2 * self.generation)).sqrt();
        let steady = norm / warm < (1.4 + 2.0 / (n + 1.0)) * expected;
        // While steps grow fast the path stands still.
        let still = vec![0.0; drift.len()];
        follow(&mut self.path, rates.path, self.mass, if steady { &drift } else { &still });

        let lost = if steady { 0.0 } else { rates.path * (2.0 - rates.path) };
        self.covariance.scale(1.0 - rates.rank_one * (1.0 - lost) - rates.rank_mu);
        self.covariance.add(rates.rank_one, &self.path);
        for (weight, (_, y)) in self.weights.iter().zip(offspring) {
            self.covariance.add(rates.rank_mu * weight, y);
        }
        self.step *= (rates.step_path / rates.damping * (norm / expected - 1.0)).min(1.0).exp();
        if self.generation % self.refresh_every == 0 {
            self.covariance.refresh();
        }
    }

    /// True if going on gains nothing: values fall no more, steps have no digits left, or rounding
    /// has ruined the covariance.
    fn stagnates(&mut self, best: f64, first_step: f64, gain: f64) -> bool {
        if best < self.least - gain * self.least.abs() || self.least == f64::INFINITY {
            (self.least, self.least_at) = (best, self.generation);
        }
        let reach = self.step * self.covariance.largest();
        let alive = reach > 1e-12 * first_step && self.covariance.condition() < 1e14;
        self.generation - self.least_at >= self.patience || !alive || !reach.is_finite()
    }
}

/// p ← (1 − c)·p + √(c(2 − c)μ_eff)·drift
fn follow(path: &mut [f64], rate: f64, mass: f64, drift: &[f64]) {
    let factor = (rate * (2.0 - rate) * mass).sqrt();
    for (path, drift) in path.iter_mut().zip(drift) {
        *path = (1.0 - rate) * *path + factor * drift;
    }
}
