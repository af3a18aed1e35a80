//! `cargo xtask gen`: committed files that are made from the program itself.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::{TaskResult, modules, process};

/// Writes the files, or with `check` fails when one of them would change.
pub fn run(check: bool) -> TaskResult {
    let lapa = process::build_lapa(false)?;
    let schema = process::output(Command::new(&lapa).args(["config", "schema"]))?;
    let files = [
        ("docs/config.schema.json", format!("{}\n", schema.trim_end())),
        ("docs/cli.md", help_page(&lapa)?),
        ("docs/modules.md", modules::page(process::root())?),
    ];
    let mut stale = false;
    for (name, text) in files {
        let path = process::root().join(name);
        // Line ends may differ in a checkout; the content may not.
        let current = fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
        if current == text {
            eprintln!("{name}: up to date");
        } else if check {
            eprintln!("{name}: stale; run `cargo xtask gen` and commit the result");
            stale = true;
        } else {
            let folder = path.parent().expect("the file lies in a folder");
            fs::create_dir_all(folder)
                .and_then(|()| fs::write(&path, text))
                .map_err(|error| format!("cannot write {name}: {error}"))?;
            eprintln!("{name}: written");
        }
    }
    Ok(if stale { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The text of docs/cli.md: the help of the program and of every subcommand.
pub fn help_page(lapa: &Path) -> Result<String, String> {
    let mut page = String::from(
        "# The command line\n\nWritten by `cargo xtask gen` from the program's own help.\n",
    );
    add_help(lapa, &[], &mut page)?;
    Ok(page)
}

/// Adds the help of one subcommand and then of those below it.
fn add_help(lapa: &Path, subcommand: &[String], page: &mut String) -> Result<(), String> {
    // Clap breaks lines at the width of the terminal, and here there is none.
    let mut command = Command::new(lapa);
    command.args(subcommand).arg("--help").env("COLUMNS", "100");
    let help = process::output(&mut command)?;
    let title = [&["lapa".to_owned()], subcommand].concat().join(" ");
    page.push_str(&format!("\n## `{title}`\n\n```text\n"));
    for line in help.trim_end().lines() {
        page.push_str(line.trim_end());
        page.push('\n');
    }
    page.push_str("```\n");
    for name in subcommands(&help) {
        add_help(lapa, &[subcommand, &[name]].concat(), page)?;
    }
    Ok(())
}

/// The names under `Commands:` in a help text, without `help` itself.
fn subcommands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| line.trim_end() != "Commands:").skip(1);
    list.take_while(|line| line.is_empty() || line.starts_with(' '))
        // Names stand two columns in; the rest of a long description further.
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subcommands_are_read_from_help() {
        let help = "Trains.\n\nUsage: lapa <COMMAND>\n\nCommands:\n  run    Run an experiment\n         \
                    over many rounds\n  data   Data sets\n  help   Print this\n\nOptions:\n  \
                    -h, --help  Print help\n";
        assert_eq!(subcommands(help), ["run", "data"]);
        assert_eq!(subcommands("Usage: lapa run\n\nOptions:\n  -h  x\n"), Vec::<String>::new());
    }
}
