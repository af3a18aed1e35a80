//! `cargo xtask dist`: the files of a release.

mod archive;
mod container;
mod libraries;
mod man;
mod sbom;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;

use crate::{TaskResult, generate, process, python};
use archive::Entry;

/// Options of a release.
#[derive(Args)]
pub struct Options {
    /// Folder for the files.
    #[arg(long, value_name = "DIR", default_value = "target/dist")]
    out: PathBuf,
    /// Also build the container image lapa:VERSION, with podman or docker. This needs a network.
    #[arg(long)]
    container: bool,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Files of the root that go into the archive.
const DOCUMENTS: [&str; 5] =
    ["CHANGELOG.md", "LICENSE", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// Each shell, and where its completions stand in the archive.
const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "completions/lapa.bash"),
    ("zsh", "completions/_lapa"),
    ("fish", "completions/lapa.fish"),
    ("elvish", "completions/lapa.elv"),
    ("powershell", "completions/lapa.ps1"),
];

/// Makes the files of a release.
pub fn run(options: &Options) -> TaskResult {
    if !cfg!(target_os = "linux") {
        return Err("`cargo xtask dist` makes files for Linux, and runs on Linux only".into());
    }
    let engine = options.container.then(container::engine).transpose()?;
    let commit = Commit::last()?;
    let machine = Machine::here()?;
    let out = process::root().join(&options.out);
    fs::create_dir_all(&out).map_err(|error| format!("--out {}: {error}", out.display()))?;
    let mut files = vec![program(&out, &commit, &machine)?, bill(&out, &commit)?];
    files.extend(wheel(&out, &commit, &machine)?);
    sums(&out, files)?;
    if let Some(engine) = engine {
        container::build(engine, VERSION)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The last commit: every file of a release bears its time.
struct Commit {
    seconds: u64,
    /// In UTC, as 2026-01-02T03:04:05Z.
    time: String,
}

impl Commit {
    fn last() -> Result<Self, String> {
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            process::output(git.current_dir(process::root()).args(arguments).env("TZ", "UTC"))
        };
        let date = "--date=format-local:%s %Y-%m-%dT%H:%M:%SZ";
        let text = git(&["log", "-1", "--format=%cd", date])?;
        let (seconds, time) = text.trim().split_once(' ').unwrap_or_default();
        if !git(&["status", "--porcelain"])?.is_empty() {
            eprintln!("notice: there are changes that are not committed; the files have them too");
        }
        let seconds = seconds.parse().map_err(|_| format!("git: no time of a commit: {text}"))?;
        Ok(Self { seconds, time: time.into() })
    }
}

/// Paths of this machine, which no file of a release may hold, each with what stands for it.
struct Machine {
    paths: Vec<(String, &'static str)>,
}

impl Machine {
    fn here() -> Result<Self, String> {
        let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"));
        let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home);
        let cargo = cargo.ok_or("neither CARGO_HOME nor HOME is set: where are the crates?")?;
        let shown = |path: &Path| path.display().to_string();
        let mut paths = vec![(shown(&cargo), "cargo"), (shown(process::root()), "lapa")];
        // Each registry has a folder with a name of its own; the compiler takes the last that fits.
        let registries = fs::read_dir(cargo.join("registry/src")).into_iter().flatten().flatten();
        paths.extend(registries.map(|folder| (shown(&folder.path()), "crates")));
        Ok(Self { paths })
    }

    /// Makes a command compile without these paths, without a network, in a folder of its own.
    fn hide(&self, command: &mut Command, commit: &Commit) {
        let flags =
            self.paths.iter().map(|(path, name)| format!("--remap-path-prefix={path}={name}"));
        command.env("CARGO_ENCODED_RUSTFLAGS", flags.collect::<Vec<_>>().join("\x1f"));
        command.env("CARGO_TARGET_DIR", process::root().join("target/dist-build"));
        command.env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo").env("CARGO_NET_OFFLINE", "true");
        command.env("SOURCE_DATE_EPOCH", commit.seconds.to_string());
    }

    /// Refuses bytes that hold one of the paths.
    fn check(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let held = |path: &str| bytes.windows(path.len()).any(|part| part == path.as_bytes());
        match self.paths.iter().find(|(path, _)| held(path)) {
            Some((path, _)) => Err(format!("{name}: contains {path}, a path of this machine")),
            None => Ok(()),
        }
    }
}

/// Makes the archive of the program.
fn program(out: &Path, commit: &Commit, machine: &Machine) -> Result<PathBuf, String> {
    step("the program");
    let mut cargo = process::cargo();
    machine.hide(&mut cargo, commit);
    cargo.args(["build", "--locked", "--release", "--package", "lapa-cli", "--bin", "lapa"]);
    let lapa = process::executable(cargo)?;
    let needs = libraries::of(&lapa)?;
    let libraries = needs.libraries.into_iter().collect::<Vec<_>>().join(", ");
    eprintln!("needs {libraries}; glibc {} or newer", needs.glibc);

    step("the archive");
    let name = format!("lapa-{VERSION}-{}-linux", std::env::consts::ARCH);
    let mut entries = Vec::new();
    let mut add = |path: &str, bytes: Vec<u8>| {
        machine.check(path, &bytes)?;
        let inside = format!("{name}/{path}");
        entries.push(Entry { path: inside, bytes, executable: path == "lapa" });
        Ok::<(), String>(())
    };
    add("lapa", read(&lapa)?)?;
    for document in DOCUMENTS {
        add(document, read(&process::root().join(document))?)?;
    }
    for (shell, path) in COMPLETIONS {
        let script = process::output(Command::new(&lapa).args(["completions", shell]))?;
        add(path, script.into_bytes())?;
    }
    let date = commit.time.split('T').next().unwrap_or_default();
    for (file, page) in man::pages(&generate::help_page(&lapa)?, VERSION, date) {
        add(&format!("man/{file}"), page.into_bytes())?;
    }
    let bytes = archive::tar_gz(entries, commit.seconds).map_err(|error| error.to_string())?;
    write(out.join(format!("{name}.tar.gz")), &bytes)
}

/// Makes the bill of materials of the program.
fn bill(out: &Path, commit: &Commit) -> Result<PathBuf, String> {
    step("the bill of materials");
    let bill = sbom::document("lapa-cli", &process::host()?, &commit.time)?;
    write(out.join(format!("lapa-{VERSION}.cdx.json")), format!("{bill:#}\n").as_bytes())
}

/// Makes the wheel, with a bill of materials of its own; `None`, after a notice, without Python.
fn wheel(out: &Path, commit: &Commit, machine: &Machine) -> Result<Option<PathBuf>, String> {
    step("the wheel");
    let Some(python) = python::environment()? else { return Ok(None) };
    let bill = sbom::document("lapa-python", &process::host()?, &commit.time)?;
    let bill_file = process::root().join("target/dist-build/lapa-python.cdx.json");
    write(bill_file.clone(), format!("{bill:#}\n").as_bytes())?;
    let wheel = python::build(&python, "release", |maturin| {
        machine.hide(maturin, commit);
        maturin.arg("--sbom-include").arg(&bill_file);
    })?;
    // A wheel is compressed: what it holds is looked at outside.
    let unpacked = wheel.with_extension("unpacked");
    let mut unzip = Command::new(&python);
    process::output(unzip.args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&unpacked))?;
    for file in process::files(&unpacked)? {
        machine.check(&file.display().to_string(), &read(&file)?)?;
    }
    let name = wheel.file_name().unwrap_or_default();
    write(out.join(name), &read(&wheel)?).map(Some)
}

/// Writes SHA256SUMS, which `sha256sum --check` reads.
fn sums(out: &Path, mut files: Vec<PathBuf>) -> Result<(), String> {
    step("checksums");
    files.sort();
    let mut lines = String::new();
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        lines += &format!("{}  {name}\n", archive::sha256(&read(file)?));
    }
    write(out.join("SHA256SUMS"), lines.as_bytes()).map(|_| ())
}

fn step(name: &str) {
    eprintln!("dist: {name}");
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// Writes a file and says so.
fn write(path: PathBuf, bytes: &[u8]) -> Result<PathBuf, String> {
    fs::write(&path, bytes).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    eprintln!("wrote {} ({} bytes)", path.display(), bytes.len());
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SHA-256 of "abc" by FIPS 180, and of nothing.
    #[test]
    fn sums_are_lines_of_sha256sum_by_name() {
        let out = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| write(out.path().join(name), text.as_bytes()).unwrap();
        sums(out.path(), vec![file("b.whl", ""), file("a.tar.gz", "abc")]).unwrap();
        let text = fs::read_to_string(out.path().join("SHA256SUMS")).unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a.tar.gz\n\
                        e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b.whl\n";
        assert_eq!(text, expected);
        let error = sums(out.path(), vec![out.path().join("c")]).unwrap_err();
        assert!(error.starts_with("cannot read ") && error.contains("/c: "), "{error}");
    }

    #[test]
    fn a_path_of_the_machine_is_found_anywhere_in_a_file() {
        let machine = Machine { paths: vec![("/place/lapa".into(), "lapa")] };
        for good in [&b""[..], b"/place/lap", b"lapa/src/lib.rs", b"\xff\0/place/other"] {
            assert_eq!(machine.check("file", good), Ok(()));
        }
        let expected = Err("bin/lapa: contains /place/lapa, a path of this machine".to_owned());
        for bad in [&b"/place/lapa"[..], b"\0\xff/place/lapa/src/lib.rs\0", b"x/place/lapa"] {
            assert_eq!(machine.check("bin/lapa", bad), expected);
        }
    }

    /// Paths that are hidden from the compiler are those that are looked for.
    #[test]
    fn this_machine_has_the_folders_of_crates_and_project() {
        let machine = Machine::here().unwrap();
        let root = process::root().display().to_string();
        assert!(machine.check("x", format!("in {root}/src").as_bytes()).is_err());
        let mut command = Command::new("true");
        machine.hide(&mut command, &Commit { seconds: 5, time: String::new() });
        let flags = command.get_envs().find(|(name, _)| *name == "CARGO_ENCODED_RUSTFLAGS");
        let flags = flags.unwrap().1.unwrap().to_str().unwrap();
        assert_eq!(flags.split('\x1f').count(), machine.paths.len());
        assert!(flags.contains(&format!("--remap-path-prefix={root}=lapa")), "{flags}");
    }
}
