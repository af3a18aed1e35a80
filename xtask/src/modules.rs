//! The modules of the engine: which may import which, and a page with the first line of each.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The source of the engine.
const ENGINE: &str = "crates/lapa/src";

/// Each module of the engine with the modules that it may import, beside those that all may. The
/// list is in order: a module imports only modules before it.
///
/// `station` has neither `data` nor `device`: the base station cannot see a record.
const ALLOWED: &[(&str, &str)] = &[
    ("files", ""),
    ("atomic", "files"),
    ("schedule", ""),
    ("pool", "schedule"),
    ("seed", ""),
    ("observe", "files"),
    ("data", "atomic files seed"),
    ("partition", "seed"),
    ("model", "data pool seed"),
    ("optimize", "atomic model seed"),
    ("budget", "model observe"),
    ("device", "budget data model observe"),
    ("radio", "device pool seed"),
    ("station", "budget model radio seed"),
    ("federation", "budget data observe radio station"),
    ("round", "budget federation observe radio station"),
    (
        "simulation",
        "budget data device federation model observe partition pool radio round seed \
         station",
    ),
    ("run", "atomic budget data federation files model observe simulation station"),
    (
        "remote",
        "atomic budget data device federation files model observe partition pool radio round \
         run seed simulation station",
    ),
    ("blame", "budget data model optimize partition radio remote run simulation"),
];

/// Modules that all others may import: the words of configurations and errors, and the one clock.
const VOCABULARY: [&str; 3] = ["clock", "config", "error"];

/// Imports inside the engine that the table does not allow.
pub fn problems(root: &Path) -> Result<Vec<String>, String> {
    let mut problems = Vec::new();
    let mut sources = BTreeMap::new();
    collect(&root.join(ENGINE), "", &mut sources)?;
    for (name, file) in sources {
        let module = name.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        if module == "lib" || VOCABULARY.contains(&module) || name.contains("test") {
            continue;
        }
        let Some((_, allowed)) = ALLOWED.iter().find(|(user, _)| *user == module) else {
            problems.push(format!("{name}: not in the table of xtask/src/modules.rs"));
            continue;
        };
        let text = read(&file)?;
        for used in imports(&text) {
            let known = used == module || VOCABULARY.contains(&used.as_str());
            if !known && allowed.split(' ').all(|module| module != used) {
                problems.push(format!("{ENGINE}/{name}: {module} must not import {used}"));
            }
        }
    }
    Ok(problems)
}

/// The modules after `crate::` in code that is no comment and no test.
fn imports(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut found = BTreeSet::new();
    for line in lines {
        for (at, start) in line.match_indices("crate::") {
            let rest = &line[at + start.len()..];
            let name: String =
                rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            if !name.is_empty() {
                found.insert(name);
            }
        }
    }
    found
}

/// docs/modules.md: every file of every crate with the first sentence of its documentation.
pub fn page(root: &Path) -> Result<String, String> {
    let mut page = String::from(
        "# Modules\n\nWritten by `cargo xtask gen` from the first line of each file's documentation.\n",
    );
    let crates = fs::read_dir(root.join("crates")).map_err(|error| format!("crates: {error}"))?;
    let mut names: Vec<String> =
        crates.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    for name in names {
        let folder = root.join("crates").join(&name).join("src");
        let _ = write!(page, "\n## `{name}`\n\n| File | What it is |\n|---|---|\n");
        let mut files = BTreeMap::new();
        collect(&folder, "", &mut files)?;
        for (file, path) in files {
            if file.contains("test") {
                continue;
            }
            let text = read(&path)?;
            let head = text.lines().take_while(|line| line.starts_with("//!"));
            let head: Vec<&str> = head.map(|line| line[3..].trim()).collect();
            let first = head.split(|line| line.is_empty()).next().unwrap_or_default().join(" ");
            let _ = writeln!(page, "| `{file}` | {first} |");
        }
    }
    Ok(page)
}

/// Adds the source files below a folder, by their name under it.
fn collect(
    folder: &Path,
    prefix: &str,
    files: &mut BTreeMap<String, PathBuf>,
) -> Result<(), String> {
    let failed = |error| format!("cannot read {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            collect(&entry.path(), &format!("{name}/"), files)?;
        } else if name.ends_with(".rs") {
            files.insert(name, entry.path());
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    #[test]
    fn the_engine_keeps_its_order() {
        assert_eq!(problems(process::root()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn modules_import_only_earlier_ones_and_the_station_sees_no_record() {
        for (at, (module, allowed)) in ALLOWED.iter().enumerate() {
            for used in allowed.split_whitespace() {
                let before = ALLOWED.iter().position(|(name, _)| *name == used);
                assert!(before.is_some_and(|before| before < at), "{module} imports {used}");
            }
        }
        let (_, station) = ALLOWED.iter().find(|(name, _)| *name == "station").unwrap();
        let station: Vec<&str> = station.split(' ').collect();
        assert!(!station.contains(&"data") && !station.contains(&"device"));
    }

    #[test]
    fn imports_are_read_from_code_alone() {
        let text = "//! [`crate::data`]\nuse crate::radio::{Link, Radio};\nlet x = crate::seed::stream();\n\
                    #[cfg(test)]\nmod tests { use crate::device::Device; }\n";
        assert_eq!(imports(text).into_iter().collect::<Vec<_>>(), ["radio", "seed"]);
    }
}
