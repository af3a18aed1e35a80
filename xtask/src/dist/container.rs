//! The container image of the program.

use std::process::Command;

use crate::process;

/// Programs that build containers; the first that works is used.
const ENGINES: [&str; 2] = ["podman", "docker"];

/// A container engine that runs here.
pub fn engine() -> Result<&'static str, String> {
    let runs = |name: &&str| process::output(Command::new(name).arg("info")).is_ok();
    ENGINES.into_iter().find(runs).ok_or_else(|| {
        format!(
            "--container: needs {}, installed and with a running engine; none was found",
            ENGINES.join(" or ")
        )
    })
}

/// Builds the image `lapa:VERSION`.
pub fn build(engine: &str, version: &str) -> Result<(), String> {
    let mut build = Command::new(engine);
    build.current_dir(process::root()).args(["build", "--file", "Containerfile", "--tag"]);
    build.arg(format!("lapa:{version}")).arg(".");
    if !process::run(&mut build)?.success() {
        return Err(format!("{engine} could not build the image"));
    }
    Ok(())
}
