//! The paper's problem P1: which transmit amplitudes make the bound least.
//!
//! A decision is a vector of *amplitudes* p_k ≥ 0; device k sends with |p_k|² watts.

mod average;
mod cost;
mod example;
mod problem;
mod trace;

pub use average::Average;
pub use cost::{CostError, PrivacyCost, privacy_cost, privacy_cost_until};
pub use example::example;
pub use lapa::budget::NoiseRule;
pub use problem::{NoiseArrays, Problem, ProblemError};
pub use trace::{Trace, TraceArrays, TraceError};
