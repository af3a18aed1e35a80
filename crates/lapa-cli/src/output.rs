//! Standard output: results, as text for people or as JSON. Standard error: what is told besides.
//!
//! Nothing else writes to either, but for the bars of [`crate::progress`]: control characters of
//! files and paths must not reach a terminal, which would obey them.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use lapa::budget::round_up;
use lapa::observe::Quantiles;
use serde::Serialize;

use crate::failure::{CommandResult, Failure};

/// Format of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// The flags of a command that shows its progress.
#[derive(Args)]
pub struct Printing {
    /// Print no progress.
    #[arg(long)]
    pub quiet: bool,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// The flag of a command that shows no progress.
#[derive(Args)]
pub struct Formatted {
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// The flag of a command that draws.
#[derive(Args)]
pub struct PlotFolder {
    /// Folder for the plots.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
}

/// Prints a result in the wanted format; the exit code is that of success.
pub fn print(
    format: Format,
    value: &impl Serialize,
    text: impl FnOnce() -> String,
) -> CommandResult {
    match format {
        Format::Json => json(value)?,
        Format::Text => text_out(&text())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a value as pretty JSON.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)?;
    text_out(&format!("{text}\n"))
}

/// Prints text. A reader that went away (`lapa … | head`) is not an error.
pub fn text_out(text: &str) -> Result<(), Failure> {
    match std::io::stdout().lock().write_all(visible(text).as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Tells something on standard error, as a line. Nothing depends on whether it can be written: a run
/// goes on when its reader has gone or the disk of its log is full.
pub fn say(text: &str) {
    say_drawn(&visible(text));
}

/// The same for text that has its own colors, made of [`visible`] parts.
pub fn say_drawn(text: &str) {
    let _ = std::io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}

/// The text with its control characters, and those that turn the direction of writing, as `\u001b`,
/// which JSON and TOML read back. Line ends and tabs stay.
pub fn visible(text: &str) -> String {
    let hidden = |c: char| {
        let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        turns || c.is_control() && !matches!(c, '\n' | '\t')
    };
    let mut shown = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            '\r' if text[at..].starts_with("\r\n") => shown.push(c),
            c if hidden(c) => shown += &format!("\\u{:04x}", u32::from(c)),
            c => shown.push(c),
        }
    }
    shown
}

/// A number with its noun: `1 round`, `2 rounds`.
pub fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// The text in lines of at most 98 columns, each after `indent`.
pub fn wrap(text: &str, indent: &str) -> String {
    let (mut lines, mut line) = (Vec::new(), indent.to_owned());
    for word in text.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > 98 {
            lines.push(std::mem::replace(&mut line, indent.to_owned()));
        }
        if line != indent {
            line.push(' ');
        }
        line += word;
    }
    lines.push(line);
    lines.join("\n")
}

/// An ε rounded up; a dash if there is none.
pub fn or_dash(epsilon: Option<f64>) -> String {
    epsilon.map_or("–".into(), round_up)
}

/// `a.svg and a.png`
pub fn paths(plots: &[PathBuf; 2]) -> String {
    plots.each_ref().map(|path| path.display().to_string()).join(" and ")
}

/// A column of a table: its heading, and the text of an item's cell.
pub type Column<T> = (&'static str, fn(&T) -> String);

/// A plain table with a row for each item.
pub fn columns<'a, T: 'a>(items: impl IntoIterator<Item = &'a T>, columns: &[Column<T>]) -> String {
    let header: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let row = |item| columns.iter().map(|(_, cell)| cell(item)).collect();
    table(&header, &items.into_iter().map(row).collect::<Vec<_>>())
}

/// Rows of a table before it shows the ends only.
pub const MOST_ROWS: usize = 60;

/// Devices of a JSON list before it has the ends only.
pub const MOST_LISTED: usize = 1000;

/// Rows of each end.
const END: usize = 10;

/// Order of the rows of a bounded table: the word for it, and how a value is shown.
pub type By = (&'static str, fn(f64) -> String);

/// A plain table of devices, `row(i)` for `values[i]`. Of more than [`MOST_ROWS`] it shows those of
/// the ten largest and the ten smallest values, and the quantiles of all below, but for `all`.
pub fn bounded(
    header: &[&str],
    values: &[f64],
    all: bool,
    (word, shown): By,
    row: impl Fn(usize) -> Vec<String>,
) -> String {
    if all || values.len() <= MOST_ROWS {
        return table(header, &(0..values.len()).map(row).collect::<Vec<_>>());
    }
    let ends = ends(values);
    let (top, bottom) = ends.split_at(END);
    let gap = std::iter::once(vec!["…".into(); header.len()]);
    let rows = top.iter().map(|&i| row(i)).chain(gap).chain(bottom.iter().map(|&i| row(i)));
    let mut text = table(header, &rows.collect::<Vec<_>>());
    if let Some(Quantiles { min, q25, median, q75, max }) = Quantiles::of(values.iter().copied()) {
        let [min, q25, median, q75, max] = [min, q25, median, q75, max].map(shown);
        text += &format!(
            "the {END} of {} devices with the largest and the {END} with the smallest {word}\n\
             {word}: {min} to {max}, quartiles {q25}, {median} and {q75}\n",
            values.len()
        );
    }
    text
}

/// Positions of the devices that are listed: all, or of more than [`MOST_LISTED`] the [`ends`].
pub fn listed(values: &[f64], all: bool) -> Vec<usize> {
    if all || values.len() <= MOST_LISTED { (0..values.len()).collect() } else { ends(values) }
}

/// Positions of the ten largest and the ten smallest values, the largest first.
fn ends(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    order.drain(END..order.len() - END);
    order
}

/// Items that come one by one with a value each: all, or of more than [`MOST_LISTED`] the [`ends`].
pub struct Few<T> {
    count: usize,
    kept: Vec<(usize, f64, T)>,
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { count: 0, kept: Vec::new() }
    }
}

impl<T> Few<T> {
    pub fn add(&mut self, value: f64, item: T) {
        self.kept.push((self.count, value, item));
        self.count += 1;
        if self.kept.len() > MOST_LISTED {
            self.cut();
        }
    }

    /// Keeps the ends; earlier ones come first of equal values.
    fn cut(&mut self) {
        self.kept.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        self.kept.drain(END..self.kept.len() - END);
    }

    /// The item at a position, which is one of the ends if there are many.
    pub fn get(&self, position: usize) -> Option<&T> {
        self.kept.iter().find(|(at, ..)| *at == position).map(|(.., item)| item)
    }

    /// The items that are listed.
    pub fn items(&mut self) -> Vec<&T> {
        if self.count > MOST_LISTED {
            self.cut();
        }
        self.kept.iter().map(|(.., item)| item).collect()
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
        for ((cell, width), right) in row.iter().zip(&widths).zip(&right) {
            let (cell, width) = (cell.as_str(), *width);
            line += &if *right { format!("{cell:>width$}  ") } else { format!("{cell:<width$}  ") };
        }
        text += &format!("{}\n", line.trim_end());
        if index == 0 {
            let rule: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
            text += &format!("{}\n", rule.join("  "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{END, Few, bounded, ends, visible};

    /// 100 values, the largest in the middle.
    #[test]
    fn a_long_table_shows_its_ends() {
        let values: Vec<f64> = (0..101).map(|i| f64::from(50 - (i - 50i32).abs())).collect();
        let row = |i: usize| vec![format!("d{i}"), values[i].to_string()];
        let text = bounded(&["device", ">x"], &values, false, ("x", |x| x.to_string()), row);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2 + 10 + 1 + 10 + 2, "{text}");
        assert!(lines[2].starts_with("d50 ") && lines[22].starts_with("d100 "), "{text}");
        assert!(lines[11].ends_with("45") && lines[13].ends_with('4'), "{text}");
        assert_eq!(lines[24], "x: 0 to 50, quartiles 12, 25 and 37");
        let few = bounded(&["device", ">x"], &values[..60], false, ("x", |x| x.to_string()), row);
        assert_eq!(few.lines().count(), 62);
    }

    /// Values that repeat, so that equal ones must be taken in the same order.
    #[test]
    fn items_that_come_one_by_one_are_the_ends_of_all() {
        for many in [3, 1000, 1001, 1025, 5000] {
            let values: Vec<f64> = (0..many).map(|i| f64::from(i * 7919 % 83)).collect();
            let mut few = Few::default();
            values.iter().enumerate().for_each(|(i, &value)| few.add(value, i));
            let kept: Vec<usize> = few.items().into_iter().copied().collect();
            if values.len() > 1000 {
                assert_eq!(kept, ends(&values), "{many}");
                assert_eq!(kept.len(), 2 * END);
            } else {
                assert_eq!(kept, (0..values.len()).collect::<Vec<_>>());
            }
            assert_eq!(few.get(kept[0]), Some(&kept[0]));
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_spelled_out() {
        assert_eq!(visible("ε ± \t│\r\n"), "ε ± \t│\r\n");
        assert_eq!(visible("a\x1b]0;b\x07\rc\x7f"), "a\\u001b]0;b\\u0007\\u000dc\\u007f");
        assert_eq!(visible("\u{9b}2J \u{202e}x\u{2069}"), "\\u009b2J \\u202ex\\u2069");
        let json = serde_json::to_string("\u{9b}\u{7f}\u{202e}\x1b").unwrap();
        let read: String = serde_json::from_str(&visible(&json)).unwrap();
        assert_eq!(read, "\u{9b}\u{7f}\u{202e}\x1b");
    }
}
