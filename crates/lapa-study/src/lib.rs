//! Many runs and what they say.
//!
//! A [`cell::Cell`] is one run of a study; [`execute::execute`] runs many of them, several at once,
//! and keeps what each left in a [`store::Store`]. [`paper`] makes the cells of the paper's figures
//! and judges its claims by [`statistics`]; [`sweep`] makes those of a user's grid; [`beyond`]
//! compares policies at equal provable privacy. [`report`] puts it all on one page.

pub mod beyond;
pub mod cell;
pub mod execute;
pub mod paper;
pub mod report;
pub mod statistics;
pub mod store;
pub mod sweep;
