//! The public scale of an update that is sent as amplitudes.

use lapa_privacy::{ClipUnit, Release, Sampling};
use lapa_wireless::uplink::{Analog, UplinkError};

/// c with c² = B²/q + σ_art², where B² bounds E‖g‖² over the q coordinates
/// ([`Analog::scale`]): then s = g̃/c keeps to E|s|² ≤ 1, and a device of power p² to
/// E|p·s|² ≤ p², the paper's eq. (5). One coordinate goes into one complex symbol.
///
/// - Device-level clip: B = C.
/// - A gradient of clipped samples: B = C; a Poisson batch of b samples is divided by b̄, and
///   `E[b²]/b̄² ≤ 1 + 1/b̄`. Where |D_k| is not public it may be `excess` times the public n̂ that the
///   sum is divided by.
/// - A local epoch of clipped samples: the sum of `steps` of them.
///
/// Differs from the paper: it assumes E|s|² = 1 of gradients that it does not scale. The norm of
/// the gradient itself cannot be the scale, since it is private.
pub fn power_scale(
    release: &Release,
    steps: u32,
    excess: f64,
    coordinates: usize,
) -> Result<f64, UplinkError> {
    let factor = match (release.clip, release.sampling) {
        (ClipUnit::Device, _) => 1.0,
        (ClipUnit::Sample, Sampling::Poisson { .. }) => {
            excess * (1.0 + 1.0 / release.denominator).sqrt()
        }
        (ClipUnit::Sample, Sampling::Full) => excess * f64::from(steps),
        (ClipUnit::Sample, Sampling::Fixed) => f64::from(steps),
    };
    Analog::scale(factor * release.clip_norm, coordinates, release.sigma_artificial)
}
