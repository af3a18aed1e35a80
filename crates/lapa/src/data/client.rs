//! Runs a package client of the machine, quietly and with a time limit.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Long enough for 30 MB over a slow line, short enough not to look hung.
pub const LIMIT: Duration = Duration::from_secs(120);

/// The same for 140 MB.
pub const LONG_LIMIT: Duration = Duration::from_secs(600);

/// Runs `program` inside `folder` and waits for success; the error says what it printed.
pub fn run(
    program: &str,
    args: &[impl AsRef<OsStr>],
    folder: &Path,
    limit: Duration,
) -> Result<(), String> {
    // A file, not a pipe: a pipe that nobody drains, or that a grandchild keeps open, would hang.
    let output = tempfile::tempfile().map_err(|e| format!("no temporary file: {e}"))?;
    let copy = || output.try_clone().map_err(|e| format!("no temporary file: {e}"));
    let started = crate::clock::now();
    let mut child = Command::new(program)
        .args(args)
        .current_dir(folder)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(copy()?)
        .stderr(copy()?)
        .spawn()
        .map_err(|e| match e.kind() {
            ErrorKind::NotFound => format!("`{program}` is not installed"),
            _ => format!("`{program}` does not start: {e}"),
        })?;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("`{program}` {status}{}", said(output))),
            Ok(None) if started.elapsed() < limit => {
                std::thread::sleep(Duration::from_millis(20));
            }
            outcome => {
                // It may end by itself between the look and the kill: nothing to report then.
                let _ = child.kill();
                let _ = child.wait();
                return Err(match outcome {
                    Err(e) => format!("cannot wait for `{program}`: {e}"),
                    _ => format!("`{program}` did not finish within {} s", limit.as_secs()),
                });
            }
        }
    }
}

/// The first lines of the output that are not warnings.
fn said(mut output: File) -> String {
    let mut bytes = Vec::new();
    if output.rewind().and_then(|()| output.take(1 << 16).read_to_end(&mut bytes)).is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("npm warn") && !line.starts_with("W:"))
        .take(3)
        .collect();
    if lines.is_empty() { String::new() } else { format!(": {}", lines.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_client_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = run("no-such-client", &[""], folder.path(), LIMIT).unwrap_err();
        assert_eq!(error, "`no-such-client` is not installed");
    }

    #[cfg(unix)]
    #[test]
    fn output_is_quoted_and_time_is_limited() {
        let folder = tempfile::tempdir().unwrap();
        let shell = |script| run("sh", &["-c", script], folder.path(), Duration::from_millis(300));
        assert_eq!(shell("echo fine; pwd > here"), Ok(()));
        assert!(folder.path().join("here").exists());
        let error = shell("echo 'W: old lists'; echo 'E: no such package' >&2; exit 3");
        assert_eq!(error.unwrap_err(), "`sh` exit status: 3: E: no such package");
        assert_eq!(shell("exec sleep 60").unwrap_err(), "`sh` did not finish within 0 s");
    }
}
