//! Noise control: the switch from artificial noise to channel noise, the power of each device, and
//! the effect on convergence.
//!
//! [`bound`] is the paper's Theorem 1, as printed and corrected. [`power`] is its problem P1: a
//! pilot run leaves a [`Trace`](power::Trace), and a [`Problem`](power::Problem) judges transmit
//! amplitudes by it. [`phases`] lets a [`lapa::optimize::Optimizer`] choose them, and runs with them.

// Only the command line prints.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod bound;
pub mod phases;
pub mod power;

pub use phases::{InMemory, Job};
