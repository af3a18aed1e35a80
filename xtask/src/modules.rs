//! The modules of the engine: which may import which, and a page with the first line of each.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The source of the engine.
const ENGINE: &str = "crates/lapa/src";

/// Each module of the engine with all the modules that it may import. The list is in order: a
/// module imports only modules before it, so there is no cycle.
///
/// `station` and `aggregate` have neither `data` nor `device`: the base station cannot see a record.
const ALLOWED: &[(&str, &str)] = &[
    // Tools.
    ("clock", ""),
    ("files", ""),
    ("atomic", "files"),
    ("schedule", ""),
    ("pool", "schedule"),
    ("seed", ""),
    ("shape", ""),
    ("observe", "files"),
    // Stages, each with the settings of its section.
    ("data", "atomic clock files seed shape"),
    ("partition", "data seed shape"),
    ("model", "data pool seed shape"),
    ("optimize", "atomic files model observe seed"),
    ("device", "data model observe"),
    ("radio", "device pool seed"),
    ("aggregate", "model radio"),
    // The experiment, and what is built from it.
    ("config", "aggregate data device model optimize partition radio seed"),
    ("budget", "aggregate config model observe radio"),
    ("error", "budget data device model observe optimize partition pool radio"),
    ("station", "aggregate budget config error model radio seed"),
    ("federation", "aggregate budget config data error observe radio station"),
    ("round", "aggregate clock error federation observe radio station"),
    (
        "simulation",
        "aggregate budget config data device error federation model observe partition pool radio \
         round seed station",
    ),
    (
        "run",
        "aggregate atomic budget clock config data error federation files model observe simulation \
         station",
    ),
    (
        "remote",
        "aggregate atomic budget config data device error federation files model observe partition \
         pool radio round run seed simulation station",
    ),
    (
        "blame",
        "budget config data error files model optimize partition radio remote run simulation",
    ),
];

/// Imports inside the engine that the table does not allow.
pub fn problems(root: &Path) -> Result<Vec<String>, String> {
    let mut problems = Vec::new();
    let mut sources = BTreeMap::new();
    collect(&root.join(ENGINE), "", &mut sources)?;
    for (name, file) in sources {
        let path = name.trim_end_matches(".rs").trim_end_matches("/mod");
        let module = path.split('/').next().unwrap_or_default();
        if module == "lib" || name.contains("test") {
            continue;
        }
        let Some((_, allowed)) = ALLOWED.iter().find(|(user, _)| *user == module) else {
            problems.push(format!("{name}: not in the table of xtask/src/modules.rs"));
            continue;
        };
        let depth = path.split('/').count();
        let used = imports(&read(&file)?, depth).map_err(|error| format!("{name}: {error}"))?;
        for used in used {
            if used != module && allowed.split(' ').all(|module| module != used) {
                problems.push(format!("{ENGINE}/{name}: {module} must not import {used}"));
            }
        }
    }
    Ok(problems)
}

/// The modules that the code of a module `depth` levels below the crate's root names there, whether
/// in `use`, in braces or inline, after `crate::` or enough of `super::`. Tests do not count.
fn imports(text: &str, depth: usize) -> Result<BTreeSet<String>, String> {
    let tokens: TokenStream = text.parse().map_err(|error| format!("{error}"))?;
    let mut found = BTreeSet::new();
    visit(tokens, depth, &mut found);
    Ok(found)
}

fn visit(tokens: TokenStream, depth: usize, found: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let text = |at: usize| tokens.get(at).map(ToString::to_string).unwrap_or_default();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Punct(_) if text(at) == "#" && text(at + 1) == "[cfg (test)]" => {
                let ends = |token: &TokenTree| match token {
                    TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                    token => token.to_string() == ";",
                };
                at += tokens[at..].iter().position(ends).unwrap_or(tokens.len());
            }
            TokenTree::Group(group) => {
                let in_module = at > 1 && text(at - 2) == "mod";
                visit(group.stream(), depth + usize::from(in_module), found);
            }
            _ if text(at) == "crate" || text(at) == "super" => {
                let mut up = if text(at) == "crate" { depth } else { 1 };
                while text(at + 1) == ":" && text(at + 3) == "super" {
                    (at, up) = (at + 3, up + 1);
                }
                if text(at + 1) == ":" && up == depth {
                    found.extend(tokens.get(at + 3).map(heads).unwrap_or_default());
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// The first names of a path, or of each path in braces.
fn heads(token: &TokenTree) -> Vec<String> {
    let TokenTree::Group(group) = token else { return vec![token.to_string()] };
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    let paths = tokens.split(|token| token.to_string() == ",");
    paths.filter_map(|path| path.first().map(ToString::to_string)).collect()
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
        for blind in ["station", "aggregate"] {
            let (_, allowed) = ALLOWED.iter().find(|(name, _)| *name == blind).unwrap();
            assert!(allowed.split(' ').all(|used| used != "data" && used != "device"));
        }
    }

    #[test]
    fn imports_of_every_form_are_read_and_tests_are_not() {
        let text = "//! [`crate::data`]
            use crate::{radio::{Link, Radio}, files as f}; // crate::run
            use super::super::round::{self, Fleet}; use super::near;
            #[cfg(test)] mod tests { use crate::device::Device; }
            #[cfg(test)] use crate::remote::Mailbox;
            mod inner { use super::super::super::pool::Pool; use super::super::super::{atomic}; }
            fn f() -> crate :: error::Result { g(crate::seed::stream(), \"crate::station::x\") }";
        let found: Vec<String> = imports(text, 2).unwrap().into_iter().collect();
        assert_eq!(found, ["atomic", "error", "files", "pool", "radio", "round", "seed"]);
    }
}
