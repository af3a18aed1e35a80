//! The bill of materials (SBOM): every crate in a program, as CycloneDX 1.6.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use super::VERSION;
use crate::process;

/// The bill of materials of what is compiled from a package for a target, as of a time in ISO 8601.
///
/// `cargo metadata` describes the crates. Which of them the package uses says `cargo tree`, since
/// the former turns on the features that any crate of the workspace asks for. Crates that run only
/// when it is compiled, as procedural macros do, have the scope `excluded`.
pub fn document(package: &str, target: &str, time: &str) -> Result<Value, String> {
    let mut cargo = process::cargo();
    cargo.args(["metadata", "--format-version", "1", "--locked", "--offline"]);
    let text = process::output(cargo.args(["--filter-platform", target]))?;
    let metadata: Value =
        serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    let lock = fs::read_to_string(process::root().join("Cargo.lock"))
        .map_err(|error| format!("cannot read Cargo.lock: {error}"))?;
    let used = tree(package, target, "normal")?;
    let linked = tree(package, target, "normal,no-proc-macro")?;
    let root = format!("{package}@{VERSION}");
    Ok(bill(&root, &metadata, &checksums(&lock), [&used, &linked], time))
}

/// References `name@version` of the crates that the package needs by these kinds of edges.
fn tree(package: &str, target: &str, edges: &str) -> Result<BTreeSet<String>, String> {
    let mut cargo = process::cargo();
    cargo.args(["tree", "--locked", "--offline", "--prefix", "none", "--package", package]);
    let text = process::output(cargo.args(["--target", target, "--edges", edges]))?;
    let reference = |line: &str| {
        let (name, rest) = line.split_once(" v")?;
        Some(format!("{name}@{}", rest.split(' ').next()?))
    };
    Ok(text.lines().filter_map(reference).collect())
}

/// The SHA-256 of each crate in Cargo.lock; those of the workspace have none.
fn checksums(lock: &str) -> BTreeMap<String, String> {
    let entries = lock.split("[[package]]").filter_map(|entry| {
        let field = |name: &str| {
            let value = |line: &str| {
                Some(line.strip_prefix(name)?.strip_prefix(" = \"")?.strip_suffix('"')?.to_owned())
            };
            entry.lines().find_map(value)
        };
        Some((format!("{}@{}", field("name")?, field("version")?), field("checksum")?))
    });
    entries.collect()
}

fn bill(
    root: &str,
    metadata: &Value,
    checksums: &BTreeMap<String, String>,
    [used, linked]: [&BTreeSet<String>; 2],
    time: &str,
) -> Value {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut names = BTreeMap::new();
    let mut components = BTreeMap::new();
    for package in list(&metadata["packages"]) {
        let reference = reference(&package);
        if used.contains(&reference) {
            names.insert(package["id"].to_string(), reference.clone());
            let scope = if linked.contains(&reference) { "required" } else { "excluded" };
            let component = component(&package, checksums.get(&reference), scope);
            components.insert(reference, component);
        }
    }
    let mut edges = BTreeMap::new();
    for node in list(&metadata["resolve"]["nodes"]) {
        let Some(reference) = names.get(&node["id"].to_string()) else { continue };
        let normal =
            |edge: &Value| list(&edge["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
        let targets = list(&node["deps"]).into_iter().filter(normal);
        let targets: BTreeSet<&String> =
            targets.filter_map(|edge| names.get(&edge["pkg"].to_string())).collect();
        edges.insert(reference, json!({ "ref": reference, "dependsOn": targets }));
    }
    let mut root = components.remove(root).unwrap_or_default();
    root["type"] = "application".into();
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "timestamp": time, "component": root },
        "components": components.into_values().collect::<Vec<_>>(),
        "dependencies": edges.into_values().collect::<Vec<_>>(),
    })
}

/// The name of a package in the document: `name@version`.
fn reference(package: &Value) -> String {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    format!("{}@{}", text("name"), text("version"))
}

/// A crate. The package URL names what is in the registry: the workspace's own crates have none.
fn component(package: &Value, checksum: Option<&String>, scope: &str) -> Value {
    let reference = reference(package);
    let mut component = json!({
        "type": "library",
        "bom-ref": reference,
        "name": package["name"],
        "version": package["version"],
        "scope": scope,
    });
    if let Some(license) = package["license"].as_str() {
        // An older way to write it, which is not SPDX.
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    if let Some(checksum) = checksum {
        component["purl"] = format!("pkg:cargo/{}", reference.replace('+', "%2B")).into();
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKAGE: &str = "lapa-cli";
    const TIME: &str = "2026-01-02T03:04:05Z";

    fn references(list: &Value, key: &str) -> BTreeSet<String> {
        let items = list.as_array().unwrap().iter();
        items.map(|item| item[key].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_program_s_bill_is_complete() {
        let bill = document(PACKAGE, &process::host().unwrap(), TIME).unwrap();
        // Required by the specification.
        assert_eq!(
            (&bill["bomFormat"], &bill["specVersion"]),
            (&json!("CycloneDX"), &json!("1.6"))
        );
        assert_eq!(bill["version"], 1);
        assert_eq!(bill["metadata"]["timestamp"], TIME);
        assert_eq!(bill["metadata"]["component"]["type"], "application");
        assert_eq!(bill["metadata"]["component"]["name"], PACKAGE);
        let lock = fs::read_to_string(process::root().join("Cargo.lock")).unwrap();
        for component in bill["components"].as_array().unwrap() {
            let [name, version] = ["name", "version"].map(|key| component[key].as_str().unwrap());
            assert_eq!(component["type"], "library", "{name}");
            assert!(component["licenses"][0]["expression"].is_string(), "{name}");
            let entry = format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n");
            let entry = lock.split(&entry).nth(1).unwrap_or_else(|| panic!("{name} {version}"));
            let entry = entry.split("\n\n").next().unwrap();
            // Ours are in no registry.
            if name.starts_with("lapa") {
                assert_eq!(component["purl"], Value::Null, "{name}");
                continue;
            }
            assert_eq!(
                component["purl"],
                format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
            );
            let hash = component["hashes"][0]["content"].as_str().unwrap();
            assert!(
                hash.len() == 64 && entry.contains(&format!("checksum = \"{hash}\"")),
                "{name}"
            );
        }
    }

    #[test]
    fn the_graph_reaches_every_crate_and_no_other() {
        let bill = document(PACKAGE, &process::host().unwrap(), TIME).unwrap();
        let root = bill["metadata"]["component"]["bom-ref"].as_str().unwrap().to_owned();
        let mut expected = references(&bill["components"], "bom-ref");
        for name in ["clap", "libsqlite3-sys", "rayon", "rustls", "serde", "lapa-privacy"] {
            assert!(expected.iter().any(|known| known.starts_with(&format!("{name}@"))), "{name}");
        }
        for name in ["assert_cmd", "opendp", "proptest", "pyo3", "cc", "xtask", "windows-sys"] {
            assert!(!expected.iter().any(|known| known.starts_with(&format!("{name}@"))), "{name}");
        }
        expected.insert(root.clone());
        assert_eq!(references(&bill["dependencies"], "ref"), expected);
        let (mut reached, mut open) = (BTreeSet::new(), vec![root]);
        while let Some(next) = open.pop() {
            let node = bill["dependencies"].as_array().unwrap().iter().find(|n| n["ref"] == next);
            let targets = node.unwrap()["dependsOn"].as_array().unwrap().clone();
            if reached.insert(next) {
                open.extend(targets.iter().map(|target| target.as_str().unwrap().to_owned()));
            }
        }
        assert_eq!(reached, expected);
    }
}
