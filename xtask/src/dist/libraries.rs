//! Shared libraries that a program needs.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::process;

/// The libraries that every Linux with glibc has, without their versions.
const ALLOWED: [&str; 7] = ["libc", "libm", "libgcc_s", "ld-linux", "libpthread", "libdl", "librt"];

/// The dynamic libraries of a program, and the oldest glibc that has all it uses.
#[derive(Debug, PartialEq)]
pub struct Needs {
    pub libraries: BTreeSet<String>,
    pub glibc: String,
}

/// Reads what a program needs; a library that is not on every system is an error.
pub fn of(program: &Path) -> Result<Needs, String> {
    let mut readelf = Command::new("readelf");
    readelf.args(["--dynamic", "--version-info", "--wide"]).arg(program).env("LC_ALL", "C");
    let needs = read(&process::output(&mut readelf)?);
    let known = |library: &String| {
        ALLOWED.iter().any(|name| {
            let rest = library.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['.', '-']))
        })
    };
    match needs.libraries.iter().find(|library| !known(library)) {
        Some(library) => Err(format!(
            "{}: needs {library}, which not every system has; allowed are {}",
            program.display(),
            ALLOWED.join(", ")
        )),
        None => Ok(needs),
    }
}

fn read(readelf: &str) -> Needs {
    let needed = readelf.lines().filter(|line| line.contains("(NEEDED)"));
    let libraries =
        needed.filter_map(|line| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned()));
    let version = |word: &str| -> Option<Vec<u32>> {
        word.strip_prefix("GLIBC_")?.split('.').map(|part| part.parse().ok()).collect()
    };
    let newest = readelf.split_whitespace().filter_map(version).max().unwrap_or_default();
    let glibc = newest.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
    Needs { libraries: libraries.collect(), glibc }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_the_newest_version_are_read() {
        let text = " 0x0000000000000001 (NEEDED)             Shared library: [libm.so.6]\n \
                    0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]\n  \
                    0x0010:   Name: GLIBC_2.9  Flags: none  Version: 4\n  \
                    0x0020:   Name: GLIBC_2.34  Flags: none  Version: 3\n  \
                    0x0030:   Name: GLIBC_2.2.5  Flags: none  Version: 2\n";
        let libraries = ["libc.so.6", "libm.so.6"].map(String::from).into();
        assert_eq!(read(text), Needs { libraries, glibc: "2.34".into() });
    }
}
