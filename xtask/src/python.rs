//! The Python package: built into a virtual environment, and tested there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::peers_env::{self, PACKAGE};
use crate::{TaskResult, browser, process};

/// Folder of the package.
const FOLDER: &str = "bindings/python";

/// Builds the package in the profile of the tests, so that what they have compiled is used again,
/// and runs pytest. Without Python, or without a way to get the packages, it says so.
pub fn run(long: bool) -> TaskResult {
    let Some(python) = environment()? else { return Ok(ExitCode::SUCCESS) };
    let wheel = build(&python, "dev", |_| ())?;
    install(&python, &wheel)?;
    let lapa = process::build_lapa(false)?;
    let mut pytest = Command::new(&python);
    pytest.current_dir(process::root().join(FOLDER));
    pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]);
    pytest.env("LAPA_BINARY", lapa).env("PYTHONDONTWRITEBYTECODE", "1");
    if long {
        pytest.env("LAPA_TEST_LONG", "1");
    }
    Ok(process::exit_code(process::run(&mut pytest)?))
}

/// The Python with what the tests need; `None`, after a notice, if there is no Python.
pub fn environment() -> Result<Option<PathBuf>, String> {
    if let Err(reason) = peers_env::system_python() {
        let packages = ["python3", "python3-venv"];
        let got = browser::may_install() && browser::apt_install(&packages)?;
        if !got || peers_env::system_python().is_err() {
            eprintln!("notice: {reason}; the Python package is left out");
            return Ok(None);
        }
    }
    let requirements = process::root().join(FOLDER).join("requirements-test.txt");
    match peers_env::environment(&PACKAGE, &requirements) {
        Ok(python) => Ok(Some(python)),
        Err(reason) => {
            eprintln!("notice: {reason}; the Python package is left out");
            Ok(None)
        }
    }
}

/// Builds a wheel in a profile of Cargo, by a command that `prepare` may change, and returns where it
/// is.
pub fn build(
    python: &Path,
    profile: &str,
    prepare: impl FnOnce(&mut Command),
) -> Result<PathBuf, String> {
    let folder = process::root().join("target/wheels").join(profile);
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .map_err(|error| format!("cannot empty {}: {error}", folder.display()))?;
    }
    let mut maturin = Command::new(python);
    process::forget_package(&mut maturin);
    maturin.current_dir(process::root().join(FOLDER));
    maturin.args(["-m", "maturin", "build", "--profile", profile, "--interpreter"]).arg(python);
    maturin.arg("--out").arg(&folder);
    prepare(&mut maturin);
    if !process::run(&mut maturin)?.success() {
        return Err("maturin could not build the wheel".into());
    }
    let wheels = fs::read_dir(&folder)
        .map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    wheels
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|ending| ending == "whl"))
        .ok_or_else(|| format!("maturin left no wheel in {}", folder.display()))
}

/// Puts a wheel into the environment in place of an earlier one.
pub fn install(python: &Path, wheel: &Path) -> Result<(), String> {
    let mut pip = Command::new(python);
    // Our own standard output carries the result, possibly as JSON.
    pip.stdout(std::io::stderr());
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip.args(["--force-reinstall", "--no-deps", "--no-index"]).arg(wheel);
    if !process::run(&mut pip)?.success() {
        return Err("pip could not install the wheel".into());
    }
    Ok(())
}
