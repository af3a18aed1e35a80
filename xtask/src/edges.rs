//! Dependencies that are allowed between the crates of the workspace.
//!
//! The privacy and the radio crate know nothing of the engine, so that each can be checked, and
//! used, on its own; the engine knows nothing of what controls, audits or shows it.

use serde_json::Value;

use crate::process;

/// Each crate with the crates it may use, in whatever kind of dependency.
const ALLOWED: &[(&str, &str)] = &[
    ("lapa-privacy", ""),
    ("lapa-wireless", ""),
    ("lapa", "lapa-privacy lapa-wireless"),
    ("lapa-report", "lapa"),
    ("lapa-control", "lapa lapa-privacy lapa-report lapa-wireless"),
    ("lapa-study", "lapa lapa-control lapa-privacy lapa-report lapa-wireless"),
    ("lapa-audit", "lapa lapa-privacy lapa-report"),
    ("lapa-cli", "lapa lapa-privacy lapa-wireless lapa-report lapa-control lapa-study lapa-audit"),
    // One compiled file is the Python module and the program that `pip install` provides.
    (
        "lapa-python",
        "lapa lapa-privacy lapa-wireless lapa-report lapa-control lapa-study lapa-audit lapa-cli",
    ),
    ("xtask", "lapa-privacy"),
];

/// The dependencies in the workspace that the table does not allow.
pub fn problems() -> Result<Vec<String>, String> {
    Ok(forbidden(&process::metadata()?))
}

fn forbidden(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let mut problems = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some((_, allowed)) = ALLOWED.iter().find(|(user, _)| *user == name) else {
            problems.push(format!("{name}: not in the table of xtask/src/edges.rs"));
            continue;
        };
        let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
        // Only dependencies inside the workspace have a path.
        for used in dependencies.iter().filter(|used| used["path"].is_string()) {
            let used = used["name"].as_str().unwrap_or_default();
            if allowed.split(' ').all(|allowed| allowed != used) {
                problems.push(format!("{name}: must not depend on {used}"));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_workspace_keeps_its_edges() {
        assert_eq!(problems().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn forbidden_and_unknown_crates_are_named() {
        let metadata = json!({"packages": [
            {"name": "lapa-privacy", "dependencies": [
                {"name": "serde"}, {"name": "lapa", "path": "x"}]},
            {"name": "lapa", "dependencies": [{"name": "lapa-privacy", "path": "x"}]},
            {"name": "stranger", "dependencies": []},
        ]});
        assert_eq!(
            forbidden(&metadata),
            [
                "lapa-privacy: must not depend on lapa",
                "stranger: not in the table of xtask/src/edges.rs"
            ]
        );
    }
}
