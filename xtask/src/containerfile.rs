//! House rules of the Containerfile: pinned images, our toolchain, no root, nothing superfluous.

use std::fs;
use std::path::Path;

const FILE: &str = "Containerfile";

/// Names that must stay out of the image's context.
const IGNORED: [&str; 2] = [".git", "target"];

/// Violations of the rules under `root`, each as `file: what`.
pub fn problems(root: &Path) -> Result<Vec<String>, String> {
    let read = |name: &str| {
        fs::read_to_string(root.join(name)).map_err(|error| format!("cannot read {name}: {error}"))
    };
    let exists = |path: &str| root.join(path).exists();
    let mut problems = check(&read(FILE)?, env!("CARGO_PKG_RUST_VERSION"), exists);
    let ignored = read(".dockerignore")?;
    for name in IGNORED.iter().filter(|name| ignored.lines().all(|line| line != **name)) {
        problems.push(format!(".dockerignore: does not exclude {name}"));
    }
    Ok(problems)
}

fn check(text: &str, rust: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut problems = Vec::new();
    let mut report = |what: String| problems.push(format!("{FILE}: {what}"));
    let mut user = "root".to_owned();
    for (word, rest) in instructions(text) {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let first = words.first().copied().unwrap_or_default();
        match word.as_str() {
            "FROM" => {
                user = "root".into();
                let (image, tag) = first.split_once(':').unwrap_or((first, "latest"));
                if tag.starts_with("latest") {
                    report(format!("FROM {first}: name a tag other than latest"));
                }
                let ours = tag.strip_prefix(rust).is_some_and(|tag| tag.starts_with(['.', '-']));
                if image == "rust" && !ours {
                    report(format!("FROM {first}: Cargo.toml says rust-version {rust}"));
                }
            }
            "ADD" => report(format!("ADD {rest}: use COPY")),
            "USER" => user = rest.clone(),
            // The last word is the destination; files of an earlier stage are not ours.
            "COPY" if !first.starts_with("--from") => {
                let sources = words.iter().rev().skip(1).filter(|word| !word.starts_with("--"));
                for source in sources.filter(|source| !exists(source)) {
                    report(format!("COPY {source}: there is no such file"));
                }
            }
            "RUN" if rest.contains("apt-get install") && !rest.contains("/var/lib/apt/lists") => {
                report("RUN apt-get install: remove /var/lib/apt/lists/* in the same step".into());
            }
            _ => {}
        }
    }
    if ["root", "0"].contains(&user.as_str()) {
        report("the program would run as root: end with USER".into());
    }
    problems
}

/// The instructions, each with its arguments on one line.
fn instructions(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let instruction = |line: &str| {
        let (word, rest) = line.trim().split_once(' ')?;
        Some((word.to_uppercase(), rest.trim().to_owned()))
    };
    joined.lines().filter_map(instruction).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    #[test]
    fn our_file_keeps_the_rules() {
        assert_eq!(problems(process::root()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn each_rule_is_checked() {
        let text = "FROM rust:1.9-slim AS build\nADD a b\nCOPY Cargo.toml missing ./\n\
                    FROM debian\n# a comment\nRUN apt-get update \\\n  && apt-get install x\n\
                    COPY --from=build /out /bin\nUSER root\n";
        let found = check(text, "1.95", |path| path == "Cargo.toml");
        assert_eq!(
            found,
            [
                "Containerfile: FROM rust:1.9-slim: Cargo.toml says rust-version 1.95",
                "Containerfile: ADD a b: use COPY",
                "Containerfile: COPY missing: there is no such file",
                "Containerfile: FROM debian: name a tag other than latest",
                "Containerfile: RUN apt-get install: remove /var/lib/apt/lists/* in the same step",
                "Containerfile: the program would run as root: end with USER",
            ]
        );
    }
}
