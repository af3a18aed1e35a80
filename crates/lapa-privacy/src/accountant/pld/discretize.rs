//! One privacy loss on a grid k·h, from above and from below.

use super::loss::{Pair, SingleLoss};
use super::{FRACTION_ERROR, MAX_CELLS};

/// Masses on the points (first + i)·h − shift.
#[derive(Clone, Debug)]
pub(super) struct GridPmf {
    /// Index of the first point.
    pub(super) first: i64,
    /// The mass of each point.
    pub(super) mass: Vec<f64>,
    /// Downward shift of the grid.
    pub(super) shift: f64,
}

/// Mass and excess of the losses between two neighboring boundaries.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    /// P's mass
    mass: f64,
    /// ∫ (1 − e^{v₀−L}) dP, with v₀ the cell's lower boundary: P's mass less e^{v₀} times Q's.
    excess: f64,
}

/// Standard deviations from a mean at which the normal density is 0 in floating point.
const GAP: f64 = 39.0;

/// Number of cells that are tested together for smoothness.
const BLOCK: i64 = 16;

/// A distribution that dominates the loss ("connect the dots": Doroshenko, Ghazi, Kamath, Kumar,
/// Manurangsi: Connect the Dots, 2022): the masses p and q that P and Q give to a cell are kept,
/// all on the cell's two ends. The loss above the support is left to the caller; what is below
/// moves up to the lowest cell.
///
/// `None` if that takes too many cells.
pub(super) fn pessimistic(loss: &SingleLoss, h: f64, reach: f64) -> Option<GridPmf> {
    let (first, cells) = cells(loss, h, 0.0, reach)?;
    let whole = -(-h).exp_m1();
    let mut mass = vec![0.0; cells.len() + 1];
    for (i, cell) in cells.iter().enumerate() {
        let upper = (cell.excess / whole * (1.0 + FRACTION_ERROR) + FRACTION_ERROR * cell.mass)
            .clamp(0.0, cell.mass);
        mass[i] += cell.mass - upper;
        mass[i + 1] += upper;
    }
    mass[1] += (-reach * reach / 2.0).exp() / 2.0;
    Some(GridPmf { first, mass, shift: 0.0 })
}

/// A distribution that the loss dominates. The cells are centered on the grid's points, and each is
/// merged into one outcome, of loss ln(p/q) (post-processing). That is almost on the grid, so the
/// whole grid is moved down a little, and mass that is still below its point goes to the next lower
/// one. Mass outside the support is dropped.
///
/// `None` if that takes too many cells.
pub(super) fn optimistic(loss: &SingleLoss, h: f64, reach: f64) -> Option<GridPmf> {
    let (first, cells) = cells(loss, h, -0.5, reach)?;
    // ln(p/q) less the center.
    let whole = -(-h).exp_m1();
    let off_center = |cell: &Cell| {
        let excess = (cell.excess / cell.mass - FRACTION_ERROR * whole).max(0.0);
        -(-excess).ln_1p() - h / 2.0
    };
    let lost = |shift: f64| -> f64 {
        let below = cells.iter().filter(|cell| cell.mass > 0.0 && off_center(cell) + shift < 0.0);
        shift + h * below.map(|cell| cell.mass).sum::<f64>()
    };
    let shifts = (1..24).map(|halvings| h * 0.5_f64.powi(halvings));
    let shift = shifts.min_by(|a, b| lost(*a).total_cmp(&lost(*b))).unwrap_or(h);
    let mut mass = vec![0.0; cells.len() + 1];
    for (i, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.mass > 0.0) {
        let fits = off_center(cell) + shift >= 0.0;
        mass[if fits { i + 1 } else { i }] += cell.mass;
    }
    Some(GridPmf { first: first - 1, mass, shift })
}

/// The cells ((k + offset)·h, (k + 1 + offset)·h] of the support, and the first k.
fn cells(loss: &SingleLoss, h: f64, offset: f64, reach: f64) -> Option<(i64, Vec<Cell>)> {
    let (low, high) = loss.support(reach);
    let index = |v: f64| (v / h - offset).floor();
    let (first, last) = (index(loss.at(low)), index(loss.at(high)));
    // Not below for NaN.
    if !(last - first < MAX_CELLS as f64 && first.abs().max(last.abs()) < 2.0_f64.powi(52)) {
        return None;
    }
    let (first, last) = (first as i64, last as i64);
    let boundary = |k: i64| (k as f64 + offset) * h;
    let x_at = |k: i64| match k {
        k if k <= first => low,
        k if k > last => high,
        k => loss.place(boundary(k)).x.clamp(low, high),
    };

    let rules = [2, 3, 5].map(|order| quadrature(order, h));
    let mut cells = Vec::with_capacity((last - first + 1) as usize);
    let mut k = first;
    while k <= last {
        let end = (k + BLOCK).min(last + 1);
        let inside = k > first && end <= last;
        let rough = if inside { roughness(loss, boundary(k), boundary(end)) } else { f64::MAX };
        let rule = match rough / BLOCK as f64 {
            r if r <= 1.0 / 1024.0 => Some(&rules[0]),
            r if r <= 1.0 / 64.0 => Some(&rules[1]),
            r if r <= 1.0 / 8.0 => Some(&rules[2]),
            _ => None,
        };
        match rule {
            Some(rule) => cells.extend((k..end).map(|k| over_loss(loss, boundary(k), rule))),
            None => {
                let mut left = x_at(k);
                for k in k..end {
                    let right = x_at(k + 1);
                    cells.push(over_x(loss, boundary(k), left, right));
                    left = right;
                }
            }
        }
        k = end;
    }
    Some((first, cells))
}

/// Variation of the density of the loss between two losses: the larger of the distance in
/// standard deviations and the logarithm of how the slope changes.
fn roughness(loss: &SingleLoss, v0: f64, v1: f64) -> f64 {
    // The replace pair's loss is flat around 0, with the same slope on both sides.
    if loss.pair == Pair::Replace && v0 < 0.0 && v1 > 0.0 {
        return f64::MAX;
    }
    let (low, high) = (loss.place(v0), loss.place(v1));
    let rough = (high.x - low.x).max((high.slope / low.slope).ln().abs());
    if rough.is_nan() { f64::MAX } else { rough }
}

/// Gauss–Legendre quadrature over a cell of width h, whose error is below
/// [`CELL_ERROR`](super::CELL_ERROR) for the roughness it is used at: distance from the cell's lower
/// boundary, weight, and 1 − e^{−distance} of each node.
fn quadrature(order: usize, h: f64) -> Vec<[f64; 3]> {
    let node = |(node, weight): &(f64, f64)| {
        let distance = h * (1.0 + node) / 2.0;
        [distance, weight * h / 2.0, -(-distance).exp_m1()]
    };
    legendre(order).iter().map(node).collect()
}

/// A cell by quadrature over the loss: nothing cancels, since 1 − e^{v₀−L} is the same in all cells.
fn over_loss(loss: &SingleLoss, v0: f64, rule: &[[f64; 3]]) -> Cell {
    let mut cell = Cell::default();
    for [distance, weight, excess] in rule {
        let place = loss.place(v0 + distance);
        let mass = weight * loss.density(place.x) / place.slope;
        cell.mass += mass;
        cell.excess += mass * excess;
    }
    cell
}

/// A cell by quadrature over x, in pieces as short as the density and the loss need.
fn over_x(loss: &SingleLoss, v0: f64, left: f64, right: f64) -> Cell {
    let mut cell = Cell::default();
    let mut from = left;
    while from < right {
        // Between the two parts of a mixture the density is 0.
        if from > GAP && from < loss.mu - GAP {
            from = loss.mu - GAP;
            continue;
        }
        let to = right.min(from + piece(loss, from));
        // x is so large that nothing can be added to it.
        if to <= from {
            break;
        }
        let half = (to - from) / 2.0;
        for (node, weight) in legendre(5) {
            let x = from + half * (1.0 + node);
            let mass = weight * half * loss.density(x);
            cell.mass += mass;
            cell.excess += mass * -(v0 - loss.at(x)).min(0.0).exp_m1();
        }
        from = to;
    }
    cell
}

/// Length of a piece: an eighth of a standard deviation, and, where both parts of the mixture
/// matter, a twelfth of the distance π/μ to the singularities of L in the complex plane.
fn piece(loss: &SingleLoss, x: f64) -> f64 {
    let u = loss.mu * (x.abs() - loss.mu / 2.0);
    if u.abs() < 50.0 - loss.rate.ln() { (0.25 / loss.mu).min(0.125) } else { 0.125 }
}

/// Nodes and weights of Gauss–Legendre quadrature on [−1, 1] (DLMF table 3.5.1).
fn legendre(order: usize) -> &'static [(f64, f64)] {
    match order {
        2 => &[(-0.577_350_269_189_625_8, 1.0), (0.577_350_269_189_625_8, 1.0)],
        3 => &[
            (-0.774_596_669_241_483_4, 5.0 / 9.0),
            (0.0, 8.0 / 9.0),
            (0.774_596_669_241_483_4, 5.0 / 9.0),
        ],
        _ => &[
            (-0.906_179_845_938_664, 0.236_926_885_056_189_1),
            (-0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
            (0.0, 0.568_888_888_888_888_9),
            (0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
            (0.906_179_845_938_664, 0.236_926_885_056_189_1),
        ],
    }
}
