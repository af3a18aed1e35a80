//! Canaries in one run (Steinke, Nasr & Jagielski 2023).
//!
//! Records of the attacker's own are in the devices' data or not, by a fair coin each. After the
//! run the attacker guesses, from the transcript alone, which are in. A theorem bounds the
//! number of correct guesses under (ε, δ); more of them refute it.

mod plant;
mod run;
mod score;

pub(crate) use plant::{Canary, Planted, most_canaries, plant};
pub use run::run;
pub(crate) use score::Scorer;
