//! Runs on paper: [`plot`]s, [`page`]s that stand alone, [`table`]s, the files that a finished
//! [`run`] leaves for its readers, and the intervals of what is shown ([`student`]).

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod page;
pub mod plot;
pub mod run;
pub mod student;
pub mod table;
