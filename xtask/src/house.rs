//! House rules that no other tool checks: file length, machine paths, words of unfinished work.

use std::fs;
use std::path::Path;

const MOST_LINES: usize = 500;

/// Not part of the project, as in `.gitignore`.
const SKIPPED_FOLDERS: [&str; 4] = [".git", "target", "runs", "__pycache__"];

/// Folders of people's files. Only at the start of a path: `docs/home/` is fine. The folder of this
/// checkout counts too, wherever it is.
const MACHINE_PATHS: [&str; 2] = ["/home/", "/Users/"];

/// Work to be done belongs in an issue.
const WORDS: [&str; 4] = ["TODO", "FIXME", "XXX", "allow(dead_code)"];

/// Violations of the rules under `root`, each as `file:line: what`.
pub fn problems(root: &Path) -> Result<Vec<String>, String> {
    let mut problems = Vec::new();
    let checkout = root.display().to_string();
    visit(root, "", &[&MACHINE_PATHS[..], &[&checkout]].concat(), &mut problems)?;
    problems.sort();
    Ok(problems)
}

fn visit(
    root: &Path,
    folder: &str,
    machine_paths: &[&str],
    problems: &mut Vec<String>,
) -> Result<(), String> {
    let failed = |error| format!("cannot read {}: {error}", root.join(folder).display());
    for entry in fs::read_dir(root.join(folder)).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if entry.file_type().map_err(failed)?.is_dir() {
            if !SKIPPED_FOLDERS.contains(&name.as_str()) {
                visit(root, &path, machine_paths, problems)?;
            }
        // A work tree's `.git` is a file; this file has to spell out what it looks for.
        } else if name != ".git" && path != "xtask/src/house.rs" {
            let bytes = fs::read(entry.path()).map_err(|error| format!("{path}: {error}"))?;
            // Images and other binary files have no lines to check.
            if let Ok(text) = String::from_utf8(bytes) {
                check(&path, &text, machine_paths, problems);
            }
        }
    }
    Ok(())
}

fn check(path: &str, text: &str, machine_paths: &[&str], problems: &mut Vec<String>) {
    let count = text.lines().count();
    if path.ends_with(".rs") && count > MOST_LINES {
        problems.push(format!("{path}: {count} lines; at most {MOST_LINES} are allowed"));
    }
    for (number, line) in (1..).zip(text.lines()) {
        for word in WORDS.iter().filter(|word| line.contains(*word)) {
            problems.push(format!("{path}:{number}: contains `{word}`"));
        }
        for start in machine_paths.iter().filter(|start| has_path(line, start)) {
            problems.push(format!("{path}:{number}: contains a path under `{start}`"));
        }
    }
}

/// True if `start` occurs in the line other than in the middle of a path or an address.
fn has_path(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before
            .is_some_and(|c| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '~' | '}'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let mut problems = Vec::new();
        check(path, text, &MACHINE_PATHS, &mut problems);
        problems
    }

    #[test]
    fn machine_paths_and_words_are_found_with_their_line() {
        let text = "fine\nlet p = \"/home/ann/data\";\n// TODO later\n";
        assert_eq!(
            found("a.rs", text),
            ["a.rs:2: contains a path under `/home/`", "a.rs:3: contains `TODO`"]
        );
    }

    #[test]
    fn paths_inside_addresses_and_relative_paths_are_fine() {
        let text = "https://example.org/home/a\ndocs/home/b\n$ROOT}/home/c\n~/home/d\n";
        assert_eq!(found("a.md", text), Vec::<String>::new());
    }

    #[test]
    fn only_rust_files_have_a_length_limit() {
        let text = "\n".repeat(MOST_LINES + 1);
        assert_eq!(found("a.rs", &text), ["a.rs: 501 lines; at most 500 are allowed"]);
        assert_eq!(found("a.md", &text), Vec::<String>::new());
        assert_eq!(found("a.rs", &"\n".repeat(MOST_LINES)), Vec::<String>::new());
    }
}
