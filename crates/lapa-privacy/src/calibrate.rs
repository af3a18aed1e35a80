//! The least noise that meets a target.

use crate::accountant::{Accountant, Gdp, gdp};
use crate::budget::Budget;
use crate::error::{AccountError, check_mechanism};
use crate::event::{Adjacency, Mechanism};
use crate::range::count;

/// Noise multipliers that are tried.
const SMALLEST: f64 = 1e-30;
const LARGEST: f64 = 1e30;
/// Relative tolerance, and the tolerance that suffices after `LONG` steps.
const CLOSE: f64 = 1e-9;
const CLOSE_ENOUGH: f64 = 1e-6;
const LONG: u32 = 12;

/// The smallest noise multiplier for which `releases` releases like `template` meet `target` by the
/// accountant that `new` makes. What is returned was itself accounted: ε never exceeds the target,
/// and 10⁻⁶ less noise would miss it, or 10⁻⁹ less where that is known after a dozen steps.
///
/// `template` gives everything but the noise.
pub fn noise_multiplier<A: Accountant>(
    target: Budget,
    template: Mechanism,
    releases: u32,
    new: impl Fn() -> A,
) -> Result<f64, AccountError> {
    count("releases", releases)?;
    let epsilon = |noise_multiplier| {
        let mut accountant = new();
        accountant.compose(&template.with_noise(noise_multiplier), releases)?;
        accountant.epsilon(target.delta())
    };
    let mu = gdp::mu(target.epsilon(), target.delta())?;
    let each = mu * mu / f64::from(releases);
    least_noise(template, each, target.epsilon(), &epsilon)?.ok_or_else(|| out_of_reach(target))
}

/// The smallest noise multiplier for `releases` Gaussian releases without sampling: √T/μ(ε, δ),
/// exact by [`Gdp`] (Balle & Wang 2018, Algorithm 1).
pub fn gaussian_noise_multiplier(budget: Budget, releases: u32) -> Result<f64, AccountError> {
    count("releases", releases)?;
    let mu = gdp::mu(budget.epsilon(), budget.delta())?;
    let exact = f64::from(releases).sqrt() / mu;
    let enough = |noise_multiplier| {
        let mut gdp = Gdp::new();
        gdp.compose(&Mechanism::Gaussian { noise_multiplier }, releases)?;
        Ok(gdp.epsilon(budget.delta())? <= budget.epsilon())
    };
    raise(exact, &enough)?.ok_or_else(|| out_of_reach(budget))
}

fn out_of_reach(target: Budget) -> AccountError {
    let (epsilon, delta) = (target.epsilon(), target.delta());
    AccountError::OutOfReach { epsilon, delta, largest: LARGEST }
}

/// `exact`, raised by as few units of the last place as make it `enough`.
pub(crate) fn raise(
    exact: f64,
    enough: &dyn Fn(f64) -> Result<bool, AccountError>,
) -> Result<Option<f64>, AccountError> {
    for step in 0..52 {
        let noise_multiplier = exact * (1.0 + f64::EPSILON * f64::from(step).exp2());
        if !(SMALLEST..=LARGEST).contains(&noise_multiplier) {
            return Ok(None);
        }
        if enough(noise_multiplier)? {
            return Ok(Some(noise_multiplier));
        }
    }
    Ok(None)
}

/// The smallest noise multiplier with `cost` ≤ `limit`, where `cost` falls as noise grows; `None`
/// if there is none. `mu_squared` is what a release like `template` may cost in μ², roughly.
///
/// Brackets from a first guess, then closes in by the ITP method (Oliveira & Takahashi 2020,
/// "An enhancement of the bisection method average performance preserving minmax optimality") on
/// the logarithms of noise and cost: about ten evaluations where the cost is smooth, and one more
/// than bisection needs where it is not.
pub(crate) fn least_noise(
    template: Mechanism,
    mu_squared: f64,
    limit: f64,
    cost: &dyn Fn(f64) -> Result<f64, AccountError>,
) -> Result<Option<f64>, AccountError> {
    check_mechanism(&template.with_noise(1.0))?;
    if template == Mechanism::NonPrivate {
        return Ok(None);
    }
    let at = |x: f64| {
        let cost = cost(x.exp())?;
        Ok((cost <= limit, (cost / limit).ln()))
    };
    let first = first_guess(template, mu_squared).clamp(SMALLEST, LARGEST).ln();
    match bracket(first, &at)? {
        Bracket::Between(low, high) => Ok(Some(close_in(low, high, &at)?.exp())),
        Bracket::Any(x) => Ok(Some(x.exp())),
        Bracket::None => Ok(None),
    }
}

/// Logarithm of a noise multiplier, and ln(cost/limit) there.
type Point = (f64, f64);

/// True if there is enough noise at ln z, and ln(cost/limit) there.
type Evaluate<'a> = &'a dyn Fn(f64) -> Result<(bool, f64), AccountError>;

/// Place of the least noise.
enum Bracket {
    /// Above the first point, which has too little noise, up to the second, which has enough.
    Between(Point, Point),
    /// Even the smallest noise multiplier is enough; the last one tried.
    Any(f64),
    /// No noise is enough.
    None,
}

/// Brackets the least noise from a first guess, with growing steps.
fn bracket(first: f64, at: Evaluate<'_>) -> Result<Bracket, AccountError> {
    let (enough, gap) = at(first)?;
    let (mut low, mut high) = ((first, gap), (first, gap));
    let mut step = if enough { -0.01 } else { 0.01 };
    loop {
        let x = if enough { high.0 } else { low.0 } + step;
        if x < SMALLEST.ln() {
            return Ok(Bracket::Any(high.0));
        }
        if x > LARGEST.ln() {
            return Ok(Bracket::None);
        }
        let (enough_here, gap) = at(x)?;
        *(if enough_here { &mut high } else { &mut low }) = (x, gap);
        if enough_here != enough {
            return Ok(Bracket::Between(low, high));
        }
        step = (2.0 * step).clamp(-1.5, 1.5);
    }
}

/// The ITP method between a point with too little noise and one with enough.
fn close_in(mut low: Point, mut high: Point, at: Evaluate<'_>) -> Result<f64, AccountError> {
    let first_width = high.0 - low.0;
    // Twice the half-width at which ITP may stop, halved by each step it is allowed.
    let mut radius = CLOSE * (first_width / CLOSE).log2().ceil().exp2();
    let mut steps = 0;
    loop {
        let width = high.0 - low.0;
        let middle = low.0 + width / 2.0;
        if width <= CLOSE || (steps >= LONG && width <= CLOSE_ENOUGH) {
            return Ok(high.0);
        }
        let secant = low.0 + width * low.1 / (low.1 - high.1);
        let x = if secant > low.0 && secant < high.0 {
            let toward = (middle - secant).signum();
            let nudge = (0.2 * width * width / first_width).max(CLOSE / 4.0);
            let truncated =
                if nudge <= (middle - secant).abs() { secant + toward * nudge } else { middle };
            let reach = (radius - width / 2.0).max(0.0);
            truncated.clamp(middle - reach, middle + reach)
        } else {
            middle
        };
        radius /= 2.0;
        steps += 1;
        let (enough, gap) = at(x)?;
        *(if enough { &mut high } else { &mut low }) = (x, gap);
    }
}

/// 1/μ, and on a Poisson sample 1/√ln(1 + μ²/q²): many such releases tend to μ² = q²(e^{1/z²} − 1)
/// each (Bu, Dong, Long & Su 2020, "Deep learning with Gaussian differential privacy"). Only a place
/// to start from.
fn first_guess(template: Mechanism, mu_squared: f64) -> f64 {
    match template {
        Mechanism::PoissonGaussian { rate, adjacency, .. } => {
            let moves = if adjacency == Adjacency::ReplaceOne { 2.0 } else { 1.0 };
            moves / (mu_squared / rate / rate).ln_1p().sqrt()
        }
        _ => 1.0 / mu_squared.sqrt(),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::accountant::{Naive, Rdp};

    /// Published: σ/Δ at δ = 1e-5, classic and exact.
    #[test]
    fn golden_noise() {
        for (epsilon, classic, exact) in [(0.1, 48.4, 30.7), (1.0, 4.84, 3.73), (8.0, 0.606, 0.600)]
        {
            let budget = Budget::new(epsilon, 1e-5).unwrap();
            let template = Mechanism::Gaussian { noise_multiplier: 1.0 };
            let naive = noise_multiplier(budget, template, 1, Naive::new).unwrap();
            let gdp = noise_multiplier(budget, template, 1, Gdp::new).unwrap();
            let closed = gaussian_noise_multiplier(budget, 1).unwrap();
            assert!((naive / classic - 1.0).abs() < 2e-3, "{naive} ≠ {classic}");
            assert!((closed / exact - 1.0).abs() < 2e-3, "{closed} ≠ {exact}");
            assert!((gdp / closed - 1.0).abs() < 2e-9, "{gdp} ≠ {closed}");
        }
    }

    /// RDP on Poisson samples, the inverse of ε at z = 1, q = 0.1, T = 100 (published: 7.90); and
    /// the number of evaluations stays small.
    #[test]
    fn poisson_noise_in_few_evaluations() {
        let template = Mechanism::poisson(0.1, 1.0, Adjacency::ZeroOut);
        let mut rdp = Rdp::default();
        rdp.compose(&template, 100).unwrap();
        let budget = Budget::new(rdp.epsilon(1e-5).unwrap(), 1e-5).unwrap();
        assert!((budget.epsilon() - 7.90).abs() < 0.01);
        let evaluations = Cell::new(0);
        let new = || {
            evaluations.set(evaluations.get() + 1);
            Rdp::default()
        };
        let z = noise_multiplier(budget, template, 100, new).unwrap();
        assert!((z - 1.0).abs() < 1e-6, "{z}");
        assert!(evaluations.get() <= 25, "{}", evaluations.get());
    }

    /// A cost that jumps: closing in still takes no more than bisection, and the safe side is
    /// returned.
    #[test]
    fn a_cost_with_a_jump_is_met_from_the_safe_side() {
        let template = Mechanism::Gaussian { noise_multiplier: 1.0 };
        for border in [1e-20, 0.3, 1.0, 123.456, 1e20] {
            let evaluations = Cell::new(0);
            let cost = |z: f64| {
                evaluations.set(evaluations.get() + 1);
                Ok(if z < border { f64::INFINITY } else { 0.0 })
            };
            let z = least_noise(template, 1.0, 1.0, &cost).unwrap().unwrap();
            assert!(z >= border && z <= border * (1.0 + 2e-6), "{z} ≠ {border}");
            assert!(evaluations.get() < 100, "{}", evaluations.get());
        }
        assert_eq!(least_noise(template, 1.0, 1.0, &|_| Ok(2.0)).unwrap(), None);
    }

    #[test]
    fn what_cannot_be_met_is_refused() {
        let budget = Budget::new(1.0, 1e-5).unwrap();
        let refuse = |template, releases| {
            noise_multiplier(budget, template, releases, Gdp::new).unwrap_err().to_string()
        };
        let gaussian = Mechanism::Gaussian { noise_multiplier: 1.0 };
        assert_eq!(refuse(gaussian, 0), "releases = 0: expected at least 1");
        assert!(refuse(Mechanism::NonPrivate, 1).contains("no noise multiplier up to 1e30"));
        let rate = Mechanism::PoissonGaussian {
            rate: f64::NAN,
            noise_multiplier: 1.0,
            adjacency: Adjacency::ZeroOut,
        };
        assert!(refuse(rate, 1).starts_with("sampling rate = NaN"));
        assert!(refuse(Mechanism::DiscreteGaussian { noise_multiplier: 1.0 }, 1).contains("gdp"));
    }
}
