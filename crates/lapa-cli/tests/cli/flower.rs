//! `lapa flower`: which Python it runs, with what, and what it says without one.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::*;

/// A `python3` that answers the check with `code`, and tells with what it is called otherwise.
fn with_python(folder: &Path, code: u8) -> Command {
    let python = folder.join("python3");
    let script = format!("#!/bin/sh\n[ \"$1\" = -c ] && exit {code}\necho \"$@\"\nexit 7\n");
    fs::write(&python, script).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = lapa(folder);
    command.env("PATH", folder);
    command
}

#[test]
fn flower_passes_its_arguments_on_and_the_exit_code_back() {
    let place = TempDir::new().unwrap();
    let mut command = with_python(place.path(), 0);
    command.args(["flower", "up", "--nodes", "3", "--secure", "--help"]);
    let output = command.assert().code(7);
    let text = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    assert_eq!(text.trim_end(), "-m lapa.flower up --nodes 3 --secure --help");
}

#[test]
fn flower_says_what_is_not_installed() {
    let place = TempDir::new().unwrap();
    for code in [3, 4] {
        let text = failure(with_python(place.path(), code).args(["flower", "up"]), 2);
        assert!(text.contains("pip install './bindings/python[flower]'"), "{text}");
    }
    let text = failure(with_python(place.path(), 1).args(["flower", "up"]), 2);
    assert!(text.contains("`python3` does not work"), "{text}");
    let nowhere = place.path().join("nowhere");
    let text = failure(lapa(place.path()).env("PATH", nowhere).args(["flower", "up"]), 2);
    assert!(text.contains("needs Python, but `python3` does not start"), "{text}");
}
