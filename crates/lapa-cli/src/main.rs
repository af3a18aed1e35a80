//! The `lapa` command line.
fn main() {}
