//! Standard error that nobody reads, and control characters on their way to a terminal.

use tempfile::TempDir;

use super::*;

/// Commands that tell something on standard error, each with its exit code where that is read.
#[cfg(target_os = "linux")]
const TELLING: [(&[&str], i32); 5] = [
    (&["run", "small.toml", "--out"], 0),
    (&["sweep", "small.toml", "--grid", "run.rounds=1,2", "--seeds", "1", "--out"], 0),
    (&["config", "check", "bad.toml"], 2),
    (&["run", "small.toml", "-c", "run.roundz=3"], 2),
    (&["bench", "--only", "gradient", "--seconds", "0.05"], 0),
];

/// The exit code of a command whose standard error is `stderr`.
#[cfg(target_os = "linux")]
fn exit_code(place: &Path, arguments: &[&str], stderr: std::process::Stdio) -> Option<i32> {
    use std::process::{Command, Stdio};
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("lapa"));
    command.current_dir(place).args(arguments).env("LAPA_DATA", place.join("empty"));
    command.env("HTTPS_PROXY", "http://127.0.0.1:9").env("PATH", "");
    command.stdout(Stdio::null()).stderr(stderr).status().unwrap().code()
}

#[cfg(target_os = "linux")]
#[test]
fn work_goes_on_when_standard_error_cannot_be_written() {
    use std::process::Stdio;
    let place = TempDir::new().unwrap();
    write_small(place.path());
    fs::write(place.path().join("bad.toml"), "[run]\nrounds = 0\n").unwrap();
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    let full = || Stdio::from(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    for (arguments, code) in TELLING {
        for (out, stderr) in [("closed", closed()), ("full", full())] {
            let out = format!("{out}-{}", arguments[0]);
            let mut arguments = arguments.to_vec();
            if arguments.last() == Some(&"--out") {
                arguments.push(&out);
            }
            assert_eq!(exit_code(place.path(), &arguments, stderr), Some(code), "{arguments:?}");
        }
    }
    for out in ["closed-run", "full-run"] {
        assert!(place.path().join(out).join("summary.json").is_file(), "{out}");
    }
    for out in ["closed-sweep", "full-sweep"] {
        assert!(place.path().join(out).join("sweep.json").is_file(), "{out}");
    }
}

/// Bytes that would rename a terminal's window, as `ESC ] 0 ; …`.
const TITLE: &str = "\u{1b}]0;pwned\u{7}";

/// Checks that nothing but line ends is a control character.
fn assert_harmless(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let found = text.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(found, None, "{text:?}");
}

#[test]
fn control_characters_of_a_configuration_are_spelled_out() {
    let place = TempDir::new().unwrap();
    write_small(place.path());
    for (text, shown) in [
        // Written as they are, which TOML allows in no place.
        (format!("data.name = \"{TITLE}\"\n"), "\\u001b]0;pwned"),
        (format!("# \u{9b}2J\n[run]\nrounds = \"x\" # {TITLE}\n"), "rounds"),
        // Escaped, so that they are part of a value or a key.
        ("data.name = \"\\u001b]0;pwned\\u0007\"\n".into(), "]0;pwned"),
        ("\"\\u001b]0;pwned\\u0007\" = 1\n".into(), "\\u001b]0;pwned"),
        ("run.ledger = \"\\u009b2J/\\u001b]0;pwned\\u0007\"\n".into(), "]0;pwned"),
    ] {
        fs::write(place.path().join("my.toml"), text).unwrap();
        for command in [&["run", "my.toml", "--quiet"][..], &["config", "check", "my.toml"]] {
            let output = lapa(place.path()).args(command).assert().get_output().clone();
            assert_harmless(&output.stdout);
            assert_harmless(&output.stderr);
            if output.status.code() == Some(2) {
                assert!(one_line(&output.stderr).contains(shown), "{}", one_line(&output.stderr));
            }
        }
    }
    // The mistake is underlined although what stands before it takes more room.
    let text = format!("[run] # {TITLE}\nrounds = \"x\"\n");
    fs::write(place.path().join("my.toml"), text.replace(TITLE, "\u{9b}")).unwrap();
    let plain = fs::read_to_string(place.path().join("my.toml")).unwrap().replace('\u{9b}', "");
    fs::write(place.path().join("plain.toml"), plain).unwrap();
    let underlined = |file: &str| {
        let output = lapa(place.path()).args(["config", "check", file]).assert().code(2);
        let text = stderr(output);
        text.lines().find(|line| line.contains('─') && line.contains('·')).unwrap().to_owned()
    };
    assert_eq!(underlined("my.toml"), underlined("plain.toml"));
}

#[cfg(unix)]
#[test]
fn control_characters_of_a_run_folder_are_spelled_out() {
    let place = TempDir::new().unwrap();
    write_small(place.path());
    let folder = format!("r{TITLE}");
    let arguments = ["run", "small.toml", "--out", &folder];
    let output = lapa(place.path()).args(arguments).assert().success().get_output().clone();
    assert_harmless(&output.stdout);
    assert_harmless(&output.stderr);
    assert!(one_line(&output.stdout).contains("r\\u001b]0;pwned\\u0007"));
    let path = place.path().join(&folder);
    for file in ["manifest.json", "summary.json", "metrics.jsonl", "config.resolved.toml"] {
        let whole = fs::read(path.join(file)).unwrap();
        for damaged in [format!("{TITLE}\n"), format!("{{\"x\": \"{TITLE}\"}}\n")] {
            fs::write(path.join(file), damaged).unwrap();
            for command in [&["report"][..], &["run", "--resume"]] {
                let output = lapa(place.path()).args(command).arg(&folder).assert();
                let output = output.get_output();
                assert_harmless(&output.stdout);
                assert_harmless(&output.stderr);
            }
        }
        fs::write(path.join(file), whole).unwrap();
    }
}
