//! `cargo xtask lint`.

use std::process::ExitCode;

use crate::{Outcome, edges, house, modules, process};

/// Runs every check and lists the failures at the end.
pub fn run() -> Outcome {
    let mut failures = Vec::new();

    let mut format = process::cargo();
    format.args(["fmt", "--all", "--check"]);
    let mut clippy = process::cargo();
    clippy.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    let mut doc = process::cargo();
    doc.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    let mut checks = vec![format, clippy, doc];

    if process::output(process::cargo().args(["deny", "--version"])).is_ok() {
        let mut deny = process::cargo();
        deny.args(["deny", "check"]);
        checks.push(deny);
    } else {
        eprintln!("notice: cargo-deny is not installed; licenses and advisories are not checked");
    }
    for check in &mut checks {
        if !process::run(check)?.success() {
            failures.push(process::shown(check));
        }
    }

    eprintln!("$ house rules");
    failures.extend(house::problems(process::root())?);
    failures.extend(edges::problems()?);
    failures.extend(modules::problems(process::root())?);

    if failures.is_empty() {
        eprintln!("lint: all checks passed");
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("lint: {} failed:", failures.len());
    for failure in failures {
        eprintln!("  {failure}");
    }
    Ok(ExitCode::FAILURE)
}
