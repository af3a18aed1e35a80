//! Cached virtual environments of Python with pinned packages.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;

/// The oldest Python that the pinned packages support.
const OLDEST_PYTHON: (u32, u32) = (3, 11);

/// A virtual environment of its own for each use: its name in the user's cache folder, and the
/// variable that says another folder.
pub struct Environment {
    name: &'static str,
    variable: &'static str,
}

/// Environment of the comparison with others' programs.
const PEERS: Environment = Environment { name: "peers-venv", variable: "LAPA_PEERS_VENV" };
/// Environment of the published tasks, whose packages need other versions than the other comparisons.
const PUBLISHED: Environment =
    Environment { name: "published-venv", variable: "LAPA_PUBLISHED_VENV" };
/// Environment of the Python package's tests.
pub const PACKAGE: Environment = Environment { name: "python-venv", variable: "LAPA_PYTHON_VENV" };

/// The Python of the comparison with others' programs, made and filled first when necessary, with
/// what a file of pinned packages in `bench/peers` wants.
pub fn python(requirements: &str) -> Result<PathBuf, String> {
    environment(&PEERS, &process::root().join("bench/peers").join(requirements))
}

/// The Python of the published tasks, likewise.
pub fn published(requirements: &str) -> Result<PathBuf, String> {
    environment(&PUBLISHED, &process::root().join("bench/peers").join(requirements))
}

/// The Python of an environment, made and filled first when necessary with what a file of pinned
/// packages wants.
pub fn environment(environment: &Environment, requirements: &Path) -> Result<PathBuf, String> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = venv_folder(environment, variable).ok_or_else(|| {
        format!("no place for the virtual environment: set {} to a folder", environment.variable)
    })?;
    let inside = if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" };
    let python = folder.join(inside);
    if !python.exists() {
        let system = system_python()?;
        eprintln!("making a virtual environment in {}", folder.display());
        let mut make = Command::new(system);
        make.args(["-m", "venv"]).arg(&folder);
        if !process::run(&mut make)?.success() {
            return Err("`python3 -m venv` failed: is the venv module installed (on Debian and \
                        Ubuntu the package python3-venv)?"
                .into());
        }
    }

    let text = fs::read_to_string(requirements)
        .map_err(|error| format!("cannot read {}: {error}", requirements.display()))?;
    let wanted = pins(&text);
    if installed(&python, &wanted) {
        return Ok(python);
    }
    eprintln!("installing {}; this may download gigabytes", wanted.join(", "));
    let mut install = Command::new(&python);
    // Our own standard output carries the result, possibly as JSON.
    install.stdout(std::io::stderr());
    install.args(["-m", "pip", "install", "--disable-pip-version-check", "-r"]).arg(requirements);
    if !process::run(&mut install)?.success() || !installed(&python, &wanted) {
        return Err(format!(
            "could not install {} into {}: see pip's message above, or install them there by hand",
            wanted.join(", "),
            folder.display()
        ));
    }
    Ok(python)
}

/// Folder of an environment: that of the variable, or one in the user's cache folder.
fn venv_folder(
    environment: &Environment,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    if let Some(folder) = variable(environment.variable) {
        return Some(folder.into());
    }
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| {
        let home = variable("HOME").or_else(|| variable("USERPROFILE"))?;
        Some(Path::new(&home).join(".cache"))
    })?;
    Some(cache.join("lapa").join(environment.name))
}

/// A Python on the search path that is new enough.
pub fn system_python() -> Result<&'static str, String> {
    let mut seen = Vec::new();
    for name in ["python3", "python"] {
        let mut ask = Command::new(name);
        ask.args(["-c", "import sys; print(*sys.version_info[:2])"]);
        let Ok(answer) = process::output(&mut ask) else { continue };
        let mut parts = answer.split_whitespace().filter_map(|part| part.parse::<u32>().ok());
        if let (Some(major), Some(minor)) = (parts.next(), parts.next()) {
            if (major, minor) >= OLDEST_PYTHON {
                return Ok(name);
            }
            seen.push(format!("{name} is {major}.{minor}"));
        }
    }
    let found = if seen.is_empty() { "none was found".into() } else { seen.join(", ") };
    let (major, minor) = OLDEST_PYTHON;
    Err(format!("Python {major}.{minor} or newer is needed on the search path; {found}"))
}

/// The `name==version` lines of a requirements file.
fn pins(requirements: &str) -> Vec<String> {
    requirements
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#') && line.contains("=="))
        .map(without_extras)
        .collect()
}

/// `name[extra]==1.2` as `name==1.2`.
fn without_extras(pin: &str) -> String {
    match (pin.find('['), pin.find(']')) {
        (Some(open), Some(close)) if open < close => {
            format!("{}{}", &pin[..open], &pin[close + 1..])
        }
        _ => pin.to_owned(),
    }
}

/// True if the environment holds exactly the wanted versions (a build tag such as `+cpu` aside).
fn installed(python: &Path, wanted: &[String]) -> bool {
    let script = "import sys; from importlib.metadata import version\n\
                  for pin in sys.argv[1:]:\n\
                  \x20   name, wanted = pin.split('==')\n\
                  \x20   assert version(name).split('+')[0] == wanted";
    process::output(Command::new(python).args(["-c", script]).args(wanted)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(variables: &[(&str, &str)]) -> Option<PathBuf> {
        venv_folder(&PEERS, |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        })
    }

    #[test]
    fn the_environment_variable_wins_over_the_caches() {
        let home = ("HOME", "h");
        let cache = ("XDG_CACHE_HOME", "c");
        assert_eq!(folder(&[home, cache, ("LAPA_PEERS_VENV", "v")]), Some("v".into()));
        assert_eq!(folder(&[home, cache]), Some("c/lapa/peers-venv".into()));
        assert_eq!(folder(&[home]), Some("h/.cache/lapa/peers-venv".into()));
        assert_eq!(folder(&[]), None);
    }

    #[test]
    fn pins_skip_comments_and_blank_lines() {
        assert_eq!(
            pins("# pinned==0\n\ntorch==1.2.3\n numpy==4.5 \nflwr[simulation]==6\n"),
            ["torch==1.2.3", "numpy==4.5", "flwr==6"]
        );
    }
}
