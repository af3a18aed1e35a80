//! Randomness of real releases.

use rand::SeedableRng;
use rand::rngs::SysRng;
use rand_chacha::ChaCha20Rng;

/// The operating system gave no randomness.
#[derive(Debug, thiserror::Error)]
#[error("the operating system provides no randomness, so nothing is released: {0}")]
pub struct EntropyError(#[source] rand::rngs::SysError);

/// ChaCha20 with a fresh 256-bit seed of the operating system, for the noise and the batches of
/// real releases.
///
/// Noise from a seed that someone knows, such as a simulation's, hides nothing from them.
pub fn os_stream() -> Result<ChaCha20Rng, EntropyError> {
    ChaCha20Rng::try_from_rng(&mut SysRng).map_err(EntropyError)
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;

    /// Two of 2²⁵⁶ seeds.
    #[test]
    fn every_stream_is_another() {
        let (mut a, mut b) = (os_stream().unwrap(), os_stream().unwrap());
        assert_ne!(a.get_seed(), b.get_seed());
        assert_ne!([a.next_u64(), a.next_u64()], [b.next_u64(), b.next_u64()]);
    }
}
