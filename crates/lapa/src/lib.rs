//! Federated learning across simulated devices, stage by stage.
//!
//! The folders are the stages of a round, in the order in which data flows:
//! [`data`] → [`partition`] → [`learn`] → [`aggregate`] → [`observe`].
//! The order itself is written once, in `round.rs`.

// What people read is for the command line to say.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod aggregate;
mod atomic;
pub mod config;
pub mod data;
pub mod learn;
pub mod model;
pub mod observe;
pub mod partition;
pub mod plot;
pub mod round;
pub mod run;
pub mod seed;
