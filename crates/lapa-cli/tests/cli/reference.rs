//! Help, schema, and the committed pages made from them.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;

const COMMANDS: [&[&str]; 21] = [
    &[],
    &["run"],
    &["init"],
    &["config"],
    &["config", "check"],
    &["config", "schema"],
    &["data"],
    &["data", "list"],
    &["data", "get"],
    &["data", "path"],
    &["partition"],
    &["link"],
    &["bound"],
    &["sweep"],
    &["account"],
    &["audit"],
    &["explain"],
    &["flower"],
    &["flower", "up"],
    &["bench"],
    &["completions"],
];

#[test]
fn every_command_has_help() {
    let place = TempDir::new().unwrap();
    for command in COMMANDS {
        let text = stdout(lapa(place.path()).args(command).arg("--help").assert());
        let usage = format!("Usage: {}", [&["lapa"], command].concat().join(" "));
        assert!(text.contains(&usage), "{text}");
        let help = stdout(lapa(place.path()).arg("help").args(command).assert());
        assert_eq!(help, text, "lapa help");
    }
    failure(&mut lapa(place.path()), 2);
    failure(lapa(place.path()).arg("trian"), 2);
    assert!(stdout(lapa(place.path()).arg("--version").assert()).contains("lapa "));
}

/// A committed page.
fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    fs::read_to_string(path).unwrap().replace("\r\n", "\n")
}

#[test]
fn the_committed_schema_is_that_of_the_program() {
    let place = TempDir::new().unwrap();
    let schema = stdout_json(lapa(place.path()).args(["config", "schema"]));
    assert!(schema["properties"]["run"].is_object());
    let committed: Value = serde_json::from_str(&page("config.schema.json")).unwrap();
    assert_eq!(committed, schema, "run `cargo xtask gen`");
}

#[test]
fn the_committed_help_is_that_of_the_program() {
    let place = TempDir::new().unwrap();
    let page = page("cli.md");
    for command in COMMANDS {
        let mut help = lapa(place.path());
        let help = stdout(help.args(command).arg("--help").env("COLUMNS", "100").assert());
        let help: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
        let title = [&["lapa"], command].concat().join(" ");
        let section = format!("## `{title}`\n\n```text\n{}\n```\n", help.join("\n"));
        assert!(page.contains(&section), "{title} has changed: run `cargo xtask gen`");
    }
}

#[test]
fn completions_are_scripts_that_know_every_command() {
    let place = TempDir::new().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(lapa(place.path()).args(["completions", shell]).assert());
        for name in COMMANDS.iter().filter_map(|command| command.last()) {
            assert!(script.contains(name), "{shell}: {name}");
        }
        fs::write(place.path().join(shell), script).unwrap();
    }
    let refusal = failure(lapa(place.path()).args(["completions", "tcsh"]), 2);
    assert!(refusal.contains("'tcsh'"), "{refusal}");
    assert!(refusal.contains("bash, elvish, fish, powershell, zsh"), "{refusal}");

    let mut bash = std::process::Command::new("bash");
    match bash.arg("-n").arg(place.path().join("bash")).output() {
        Ok(checked) => {
            assert!(checked.status.success() && checked.stderr.is_empty(), "{checked:?}")
        }
        Err(error) => {
            eprintln!("skipped: the script was not checked, bash does not start: {error}")
        }
    }
}
