//! `cargo xtask lint`.

use std::process::ExitCode;

use crate::{TaskResult, containerfile, edges, house, modules, process};

/// Runs every check and lists the failures at the end.
pub fn run() -> TaskResult {
    let mut failures = Vec::new();
    let mut checks = vec![
        "fmt --all --check",
        "clippy --workspace --all-targets -- -D warnings",
        "doc --workspace --no-deps",
    ];
    if process::output(process::cargo().args(["deny", "--version"])).is_ok() {
        checks.push("deny check");
    } else {
        eprintln!("notice: cargo-deny is not installed; licenses and advisories are not checked");
    }
    for arguments in checks {
        let mut check = process::cargo();
        check.args(arguments.split(' '));
        if arguments.starts_with("doc") {
            check.env("RUSTDOCFLAGS", "-D warnings");
        }
        if !process::run(&mut check)?.success() {
            failures.push(process::shown(&check));
        }
    }

    eprintln!("$ house rules");
    failures.extend(house::problems(process::root())?);
    failures.extend(containerfile::problems(process::root())?);
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
