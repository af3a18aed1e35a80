//! Privacy accounting: releases, their costs, and budgets. No models, no radio.
//!
//! A release is data ([`Event`]), apart from what it costs ([`accountant`]). The privacy unit is
//! one record of one device: someone with several records, or on several devices, needs group
//! privacy. Choices made by looking at private data outside a release, such as tuning, are not
//! covered.
//!
//! ```
//! use lapa_privacy::accountant::{Accountant, Pld};
//! use lapa_privacy::{Adjacency, Budget, Decision, Filter, Mechanism, calibrate};
//!
//! // ε of 100 releases with σ = Δ, each on a Poisson sample of a tenth of the records.
//! let mut pld = Pld::default();
//! pld.compose(&Mechanism::poisson(0.1, 1.0, Adjacency::ZeroOut), 100)?;
//! assert!(pld.epsilon(1e-5)? < 7.09);
//!
//! // The least σ/Δ for 100 releases without sampling.
//! let budget = Budget::new(8.0, 1e-5)?;
//! let z = calibrate::gaussian_noise_multiplier(budget, 100)?;
//!
//! // A filter holds releases to the budget, however their noise is chosen on the way.
//! let mut filter = Filter::gdp(budget)?;
//! let cost = filter.cost(&Mechanism::Gaussian { noise_multiplier: 2.0 * z })?;
//! while let Decision::Granted(granted) = filter.request(cost, 0.0) {
//!     filter.charge(granted)?;
//! }
//! assert!(filter.spent_epsilon()? <= 8.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod accountant;
pub mod allocate;
mod budget;
pub mod calibrate;
mod choices;
mod error;
mod event;
mod filter;
#[cfg(feature = "ledger")]
pub mod ledger;
mod math;
mod range;
mod rounding;
pub mod sampler;

pub use budget::Budget;
pub use choices::word_of;
pub use error::{AccountError, EventError};
pub use event::{Adjacency, ClipUnit, Event, Histogram, Mechanism, NoiseKind, Release, Sampling};
pub use filter::{Decision, Filter, FilterKind, Overspent, renyi_order};
pub use range::OutOfRange;
