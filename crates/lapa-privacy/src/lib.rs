//! What was released, what it cost, and who may spend what. No models, no radio.
//!
//! A release is data ([`Event`]), apart from what it costs ([`accountant`]). The privacy unit is
//! one record of one device: someone with several records, or on several devices, needs group
//! privacy. Choices made by looking at private data outside a release, such as tuning, are not
//! covered.

pub mod accountant;
mod error;
mod event;
mod math;

pub use error::{AccountError, EventError};
pub use event::{Adjacency, ClipUnit, Event, Mechanism, NoiseKind, Release, Sampling};
