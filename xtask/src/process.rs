//! Starting other programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::Instant;

use serde_json::Value;

/// The root of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

/// The start of something to be timed.
#[expect(clippy::disallowed_methods, reason = "the one place that asks for it")]
pub fn now() -> Instant {
    Instant::now()
}

/// The cargo that runs us, in the root of the workspace.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    forget_package(&mut command);
    command
}

/// Hides from a command that `cargo xtask` runs it.
pub fn forget_package(command: &mut Command) {
    // `cargo xtask` describes our own package in these; some build scripts watch them, and passing
    // them on would rebuild what a plain `cargo` has already built.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&*name);
        }
    }
}

/// The command as the user would type it.
pub fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_stem().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Shows the command, runs it with our own input and output, and waits for it.
pub fn run(command: &mut Command) -> Result<ExitStatus, String> {
    eprintln!("$ {}", shown(command));
    command.status().map_err(|error| format!("cannot start `{}`: {error}", shown(command)))
}

/// Runs the command and returns its standard output; a failure is an error with what it printed.
pub fn output(command: &mut Command) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start `{}`: {error}", shown(command)))?;
    if !output.status.success() {
        let printed = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{}` failed ({}): {printed}", shown(command), output.status));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| format!("`{}` printed something that is not UTF-8", shown(command)))
}

/// The exit code of a finished program; 1 when a signal ended it.
pub fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(1))
}

/// Builds the `lapa` program and returns its path.
pub fn build_lapa(release: bool) -> Result<PathBuf, String> {
    let mut command = cargo();
    command.args(["build", "--package", "lapa-cli"]);
    if release {
        command.args(["--bin", "lapa", "--release"]);
    } else {
        // With the features that the tests and the Python package have: one compilation for all.
        command.args(["--package", "lapa-python"]);
    }
    executable(command)
}

/// Runs a `cargo build` and returns the path of the `lapa` program that it made.
pub fn executable(mut command: Command) -> Result<PathBuf, String> {
    eprintln!("$ {}", shown(&command));
    command.args(["--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit());
    let messages = output(&mut command)?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "lapa")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .ok_or_else(|| "cargo built no program named `lapa`".into())
}

/// The packages of the workspace, as `cargo metadata` has them.
pub fn metadata() -> Result<Value, String> {
    let text = output(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    serde_json::from_str(&text).map_err(|error| format!("`cargo metadata` is not JSON: {error}"))
}

/// The target that the compiler makes programs for, as x86_64-unknown-linux-gnu.
pub fn host() -> Result<String, String> {
    let text = output(Command::new("rustc").arg("-vV").current_dir(root()))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| format!("rustc names no host: {text}"))
}

/// The files in a folder and in those below it.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error| format!("cannot read {}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            files.extend(self::files(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}
