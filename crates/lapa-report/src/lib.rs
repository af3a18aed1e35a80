//! Runs on paper: [`plot`]s, [`page`]s that stand alone, [`table`]s, and the files that a finished
//! [`run`] leaves for its readers.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod page;
pub mod plot;
pub mod run;
pub mod table;
