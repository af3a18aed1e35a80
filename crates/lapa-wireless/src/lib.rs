//! A radio uplink: positions, path loss, fading, NOMA receivers, symbol errors, and what a base
//! station decodes of what devices sent. No models, no privacy.
//!
//! Making a channel ([`topology`], [`path_loss`], [`fading`]) is apart from judging it ([`noma`],
//! [`ser`]) and from sending over it ([`uplink`]). Every generator of random numbers is an
//! argument.

pub mod channel;
mod error;
pub mod fading;
pub mod noma;
pub mod path_loss;
pub mod ser;
pub mod topology;
pub mod units;
pub mod uplink;

pub use error::OutOfRange;
