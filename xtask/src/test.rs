//! `cargo xtask test`.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use serde_json::Value;

use crate::{TaskResult, browser, process, python};

/// Data sets that some tests read; those tests skip with a message when they are missing.
const DATA_SETS: [&str; 2] = ["mnist", "fashion-mnist"];

/// Fetches the data sets, runs the tests, opens a report in a browser, and tests the Python package.
/// Passes on the exit code of what fails first.
pub fn run(long: bool) -> TaskResult {
    let lapa = process::build_lapa(false)?;
    for name in DATA_SETS {
        let mut get = Command::new(&lapa);
        get.args(["data", "get", name]);
        if !process::run(&mut get)?.success() {
            eprintln!("notice: could not get {name}; the tests that need it will skip");
        }
    }
    let tested = run_suites(long)?;
    if !tested.success() {
        return Ok(process::exit_code(tested));
    }
    let pages = browser::run()?;
    if pages != ExitCode::SUCCESS {
        return Ok(pages);
    }
    python::run(long)
}

/// Runs the tests of the program beside all others: on two cores each half fills the gaps that the
/// other's last tests leave. Documentation tests come after them. Returns the first failure.
fn run_suites(long: bool) -> Result<ExitStatus, String> {
    let cargo = |arguments: &[String]| {
        let mut test = process::cargo();
        test.args(["test", "--workspace", "--no-fail-fast"]).args(arguments);
        if long {
            test.env("LAPA_TEST_LONG", "1");
        }
        test
    };
    let built = process::run(&mut cargo(&["--no-run".into(), "--all-targets".into()]))?;
    if !built.success() {
        return Ok(built);
    }
    let [program, others] = halves(&process::metadata()?);
    let mut program = cargo(&program);
    let beside = std::thread::spawn(move || {
        let shown = process::shown(&program);
        (shown, program.stdin(Stdio::null()).output())
    });
    let others = process::run(&mut cargo(&others))?;
    let (shown, program) = beside.join().map_err(|_| "a thread of ours panicked")?;
    let program = program.map_err(|error| format!("cannot start `{shown}`: {error}"))?;
    eprintln!("$ {shown} (beside the one above)");
    let write = |error| format!("cannot write to standard output: {error}");
    std::io::stderr().write_all(&program.stderr).map_err(write)?;
    std::io::stdout().write_all(&program.stdout).map_err(write)?;
    let documents = process::run(&mut cargo(&["--doc".into()]))?;
    let all = [others, program.status, documents];
    Ok(all.into_iter().find(|status| !status.success()).unwrap_or(documents))
}

/// Arguments of `cargo test` that select the integration tests of the program, and all other tests but
/// those of the documentation.
fn halves(metadata: &Value) -> [Vec<String>; 2] {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let tests = |package: &Value| -> BTreeSet<String> {
        let targets = list(&package["targets"]).into_iter();
        let tests = targets.filter(|target| list(&target["kind"]).contains(&"test".into()));
        tests.filter_map(|target| Some(target["name"].as_str()?.to_owned())).collect()
    };
    let (mut program, mut others) = (BTreeSet::new(), BTreeSet::new());
    for package in list(&metadata["packages"]) {
        let half = if package["name"] == "lapa-cli" { &mut program } else { &mut others };
        half.extend(tests(&package));
    }
    // A name selects the tests of all packages that have one.
    let others: BTreeSet<_> = others.difference(&program).cloned().collect();
    let selected =
        |names: BTreeSet<String>| names.into_iter().flat_map(|name| ["--test".into(), name]);
    let rest = ["--lib".to_owned(), "--bins".into(), "--examples".into()];
    [selected(program).collect(), rest.into_iter().chain(selected(others)).collect()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_is_in_one_half() {
        let [program, others] = halves(&process::metadata().unwrap());
        let names = |half: &[String]| -> BTreeSet<String> {
            half.iter().filter(|word| !word.starts_with("--")).cloned().collect()
        };
        assert!(names(&program).is_disjoint(&names(&others)));
        assert!(names(&program).contains("golden_runs") && names(&others).contains("conformance"));
        assert!(others.starts_with(&["--lib".into(), "--bins".into()]));
    }
}
