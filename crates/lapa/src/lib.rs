//! Federated learning across simulated devices, stage by stage.
//!
//! The folders are the stages of a round, in the order in which data flows:
//! [`data`] → [`partition`] → [`learn`] → [`privatize`] → [`transmit`] → [`aggregate`] →
//! [`observe`].
//! The order itself is written once, in `round.rs`.
//!
//! ```
//! use lapa::config::{Experiment, Override};
//! use lapa::data::{self, DataName};
//! use lapa::federation::Federation;
//!
//! let text = r#"
//!     data.name = "synthetic"
//!     run.evaluate_every = 1
//!     partition.mix = { iid = 2, non_iid = 1, iid_samples = 40, non_iid_samples = 60 }
//! "#;
//! let flags = [Override::parse("model.name=logistic")?];
//! let experiment = Experiment::from_toml(text, "example", &flags)?;
//! let digits = data::load(&DataName::Synthetic, &mut |_| {})?;
//! let mut federation = Federation::new(experiment, digits)?;
//! let first = federation.next_round()?;
//! assert_eq!(first.round, 1);
//! assert!(first.accuracy.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// What people read is for the command line to say.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod aggregate;
pub mod atomic;
pub mod config;
mod crew;
pub mod data;
pub mod federation;
pub mod files;
pub mod learn;
pub mod model;
pub mod observe;
pub mod page;
pub mod partition;
pub mod plot;
pub mod privatize;
pub mod remote;
mod round;
pub mod run;
mod schedule;
pub mod seed;
pub mod transmit;
