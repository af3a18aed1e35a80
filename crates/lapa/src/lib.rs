//! Private federated learning over wireless links: the engine.
//!
//! Two roles, one protocol. A [`device`] holds everything that may see records, the [`station`]
//! nothing that may, and the [`radio`] has the public numbers between them. `round.rs` is the order
//! of a round, for simulated and for remote devices. A [`simulation`] owns K devices and a station;
//! [`remote`] carries the same two roles between processes.
//!
//! ```
//! use lapa::config::{Experiment, Override};
//! use lapa::data::{self, DataName};
//! use lapa::simulation::Simulation;
//!
//! let text = r#"
//!     data.name = "synthetic"
//!     run.evaluate_every = 1
//!     partition.mix = { iid = 2, non_iid = 1, iid_samples = 40, non_iid_samples = 60 }
//! "#;
//! let flags = [Override::parse("model.name=logistic")?];
//! let experiment = Experiment::from_toml(text, "example", &flags)?;
//! let digits = data::load(&DataName::Synthetic, &mut |_| {})?;
//! let mut simulation = Simulation::new(experiment, digits)?;
//! let first = simulation.next_round()?;
//! assert_eq!(first.round, 1);
//! assert!(first.accuracy.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Messages to people belong to the command line.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod aggregate;
pub mod atomic;
pub mod blame;
pub mod budget;
pub mod clock;
pub mod config;
pub mod data;
pub mod device;
pub mod error;
pub mod federation;
pub mod files;
pub mod model;
pub mod observe;
pub mod optimize;
pub mod partition;
mod pool;
pub mod radio;
pub mod remote;
mod round;
pub mod run;
mod schedule;
pub mod seed;
mod shape;
pub mod simulation;
pub mod station;
