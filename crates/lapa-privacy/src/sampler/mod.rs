//! Clipping and noise.
//!
//! Every generator of random numbers is an argument: a simulation passes a seeded one, a real
//! release [`os_stream`].

mod bernoulli;
mod clip;
mod discrete_gaussian;
mod entropy;
mod gaussian;
mod grid;
#[cfg(test)]
mod statistics;

pub use clip::{CLIP_MARGIN, ClipError, Clipped, clip};
pub use discrete_gaussian::DiscreteGaussian;
pub use entropy::{EntropyError, os_stream};
pub use gaussian::{add_gaussian, release_gaussian};
pub use grid::{Grid, GridError};
