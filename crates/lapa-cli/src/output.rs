//! What goes to standard output: text for people, or JSON.

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;

use crate::failure::Failure;

/// How a result is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Prints a value as pretty JSON.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::failed)?;
    text_out(&format!("{text}\n"))
}

/// Prints text. A reader that went away (`lapa … | head`) is not an error.
pub fn text_out(text: &str) -> Result<(), Failure> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::failed(error)),
        _ => Ok(()),
    }
}

/// A plain table with a header; columns beginning with `>` in the header are right-aligned.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let right: Vec<bool> = header.iter().map(|name| name.starts_with('>')).collect();
    let header: Vec<String> =
        header.iter().map(|name| name.trim_start_matches('>').to_owned()).collect();
    let all = || std::iter::once(&header).chain(rows);
    let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let mut text = String::new();
    for (index, row) in all().enumerate() {
        let mut line = String::new();
        for ((cell, &width), &right) in row.iter().zip(&widths).zip(&right) {
            match right {
                true => line.push_str(&format!("{cell:>width$}  ")),
                false => line.push_str(&format!("{cell:<width$}  ")),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
        if index == 0 {
            let rule: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
            text.push_str(&rule.join("  "));
            text.push('\n');
        }
    }
    text
}
