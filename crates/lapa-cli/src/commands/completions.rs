//! `lapa completions`: what makes a shell complete commands and flags.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::failure::CommandResult;
use crate::output;

/// Print a script that completes commands and flags in a shell
///
/// Put the script where your shell looks for it, once, and open a new shell. A later version of lapa
/// may need it again.
///
///   bash        lapa completions bash > ~/.local/share/bash-completion/completions/lapa
///   zsh         lapa completions zsh > ~/.zfunc/_lapa
///               with `fpath+=~/.zfunc` before `autoload -U compinit && compinit` in ~/.zshrc
///   fish        lapa completions fish > ~/.config/fish/completions/lapa.fish
///   elvish      lapa completions elvish >> ~/.config/elvish/rc.elv
///   powershell  lapa completions powershell >> $PROFILE
///
/// Make the folder first if it is not there (`mkdir -p`). For one session of bash alone:
/// source <(lapa completions bash)
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// The shell.
    shell: Shell,
}

pub fn execute(arguments: Arguments) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::Lapa::command(), "lapa", &mut script);
    output::text_out(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
