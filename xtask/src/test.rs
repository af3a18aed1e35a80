//! `cargo xtask test`.

use std::process::{Command, ExitCode};

use crate::{Outcome, browser, process, python};

/// Data sets that some tests read; those tests skip with a message when they are missing.
const DATA_SETS: [&str; 2] = ["mnist", "fashion-mnist"];

/// Fetches the data sets, runs the tests, opens a report in a browser, and tests the Python package.
/// Passes on the exit code of what fails first.
pub fn run(long: bool) -> Outcome {
    let lapa = process::build_lapa(false)?;
    for name in DATA_SETS {
        let mut get = Command::new(&lapa);
        get.args(["data", "get", name]);
        if !process::run(&mut get)?.success() {
            eprintln!("notice: could not get {name}; the tests that need it will skip");
        }
    }
    let mut test = process::cargo();
    test.args(["test", "--workspace"]);
    if long {
        test.env("LAPA_TEST_LONG", "1");
    }
    let status = process::run(&mut test)?;
    if !status.success() {
        return Ok(process::exit_code(status));
    }
    let pages = browser::run()?;
    if pages != ExitCode::SUCCESS {
        return Ok(pages);
    }
    python::run(long)
}
