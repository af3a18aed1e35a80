//! Rounding toward safety: sums that are never below, differences that are never above.

/// The smallest float that is not below a + b. A program that adds up costs by it gets the
/// ledger's bits.
pub fn add_up(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if rounding_error(a, b, sum) > 0.0 { sum.next_up() } else { sum }
}

/// The largest float that is not above a − b.
pub(crate) fn sub_down(a: f64, b: f64) -> f64 {
    let difference = a - b;
    if rounding_error(a, -b, difference) < 0.0 { difference.next_down() } else { difference }
}

/// a + b − fl(a + b), exactly (Knuth's two-sum); NaN, hence no correction, where the sum is
/// infinite.
fn rounding_error(a: f64, b: f64, sum: f64) -> f64 {
    let of_b = sum - a;
    (a - (sum - of_b)) + (b - of_b)
}

/// √x, not below.
pub(crate) fn sqrt_up(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.sqrt().next_up() }
}

/// The last float next to the border at which `ok` holds, between one (≥ 0) where it does and one
/// (≥ 0) where it does not. Bisects in the bits, so 64 steps always suffice.
pub(crate) fn border(ok_at: f64, not_at: f64, ok: impl Fn(f64) -> bool) -> f64 {
    let (mut yes, mut no) = (ok_at.to_bits(), not_at.to_bits());
    while yes.abs_diff(no) > 1 {
        let middle = yes.midpoint(no);
        if ok(f64::from_bits(middle)) {
            yes = middle;
        } else {
            no = middle;
        }
    }
    f64::from_bits(yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_rounded_away_from_the_exact_value() {
        let tiny = f64::EPSILON / 4.0;
        assert_eq!(add_up(1.0, tiny), 1.0 + f64::EPSILON);
        assert_eq!(add_up(1.0, f64::EPSILON), 1.0 + f64::EPSILON);
        assert_eq!(add_up(1.0, f64::INFINITY), f64::INFINITY);
        assert_eq!(sub_down(1.0, tiny), 1.0f64.next_down());
        assert_eq!(sub_down(3.0, 1.0), 2.0);
    }

    #[test]
    fn a_border_is_found_to_the_last_float_from_both_sides() {
        let below = border(0.0, 9.0, |x| x * x <= 2.0);
        let above = border(f64::MAX, 0.0, |x| x * x > 2.0);
        assert_eq!((below.next_up(), above), (above, 2f64.sqrt()));
    }
}
