//! Clipping to a norm that rounding cannot push a vector over.

/// A vector longer than `CLIP_MARGIN`·C is scaled to this length. The room up to C is for rounding:
/// 2⁻²⁴ for each scaled coordinate and n·2⁻⁵³ for the norm of n coordinates.
pub const CLIP_MARGIN: f64 = 1.0 - 1e-5;

/// Below this C the rounding of subnormal coordinates would no longer fit in the margin of
/// [`clip`], which takes norms in f64.
const SMALLEST_CLIP_NORM: f64 = 1e-30;

/// Result of [`clip`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clipped {
    /// ‖g‖ before clipping: private.
    pub norm: f64,
    /// True if the vector was scaled.
    pub clipped: bool,
}

/// Error of [`clip`], which leaves the vector unchanged.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ClipError {
    /// A coordinate is not finite.
    #[error("coordinate {index} = {value}: expected a finite number")]
    NotFinite {
        /// Its index.
        index: usize,
        /// Its value.
        value: f32,
    },
    /// No vector can be clipped to this norm.
    #[error("clip_norm = {0}: expected a finite number from {SMALLEST_CLIP_NORM:e}")]
    ClipNorm(f64),
}

/// g·min(1, C/‖g‖): the paper's eq. (17). After it ‖g‖ ≤ C, rounding included.
///
/// Differs from the paper: C is [`CLIP_MARGIN`]·C.
pub fn clip(vector: &mut [f32], clip_norm: f64) -> Result<Clipped, ClipError> {
    if !(clip_norm >= SMALLEST_CLIP_NORM && clip_norm.is_finite()) {
        return Err(ClipError::ClipNorm(clip_norm));
    }
    // Squares of finite f32 sum up to less than f64 holds, so that a norm that is not finite has a
    // coordinate that is not.
    let norm = vector.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt();
    if !norm.is_finite()
        && let Some(index) = vector.iter().position(|v| !v.is_finite())
    {
        return Err(ClipError::NotFinite { index, value: vector[index] });
    }
    let limit = CLIP_MARGIN * clip_norm;
    let clipped = norm > limit;
    if clipped {
        let factor = limit / norm;
        for value in vector {
            *value = (f64::from(*value) * factor) as f32;
        }
    }
    Ok(Clipped { norm, clipped })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn norm(vector: &[f32]) -> f64 {
        vector.iter().fold(0.0, |norm: f64, &v| norm.hypot(v.into()))
    }

    #[test]
    fn a_long_vector_keeps_its_direction() {
        let mut vector = [3.0, -4.0, 12.0];
        assert_eq!(clip(&mut vector, 2.0), Ok(Clipped { norm: 13.0, clipped: true }));
        for (v, original) in vector.into_iter().zip([3.0, -4.0, 12.0f64]) {
            assert!((f64::from(v) - original * 2.0 * CLIP_MARGIN / 13.0).abs() < 1e-7);
        }
    }

    #[test]
    fn a_short_vector_and_zero_stay() {
        let mut vector = [3.0, -4.0, 12.0];
        assert_eq!(clip(&mut vector, 13.01), Ok(Clipped { norm: 13.0, clipped: false }));
        assert_eq!(vector, [3.0, -4.0, 12.0]);
        let mut zero = [0.0, -0.0];
        assert_eq!(clip(&mut zero, 1.0), Ok(Clipped { norm: 0.0, clipped: false }));
        assert_eq!(zero.map(f32::to_bits), [0.0, -0.0f32].map(f32::to_bits));
        assert_eq!(clip(&mut [], 1.0), Ok(Clipped { norm: 0.0, clipped: false }));
    }

    #[test]
    fn what_is_not_finite_is_refused_and_stays() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut vector = [7.0, bad, 1.0];
            let error = clip(&mut vector, 1.0).unwrap_err();
            assert!(matches!(error, ClipError::NotFinite { index: 1, .. }), "{error}");
            assert_eq!(vector.map(f32::to_bits), [7.0, bad, 1.0].map(f32::to_bits));
        }
        for bad in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e-31] {
            let mut vector = [7.0];
            let error = clip(&mut vector, bad).unwrap_err();
            assert!(matches!(error, ClipError::ClipNorm { .. }), "{error}");
            assert_eq!(vector, [7.0]);
        }
    }

    proptest! {
        /// The second norm is computed another way, and C is not widened.
        #[test]
        fn nothing_is_longer_than_the_norm(
            mut vector in prop::collection::vec(prop::num::f32::NORMAL | prop::num::f32::SUBNORMAL | prop::num::f32::ZERO, 0..200),
            exponent in -30.0..40.0f64,
        ) {
            let clip_norm = 10f64.powf(exponent);
            let before = norm(&vector);
            let clipped = clip(&mut vector, clip_norm).unwrap();
            prop_assert!((clipped.norm - before).abs() <= 1e-12 * before);
            prop_assert!(norm(&vector) <= clip_norm);
            prop_assert!(!clipped.clipped || norm(&vector) > clip_norm * (1.0 - 2e-5));
        }

        #[test]
        fn coordinates_close_to_the_limit(
            mut vector in prop::collection::vec(-1.0..1.0f32, 1..200),
            factor in 0.999_98..1.000_02f64,
        ) {
            let clip_norm = norm(&vector).max(1e-3) * factor;
            clip(&mut vector, clip_norm).unwrap();
            prop_assert!(norm(&vector) <= clip_norm);
        }
    }
}
