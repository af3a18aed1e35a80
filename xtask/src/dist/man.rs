//! Man pages, made from the help of the program.

use std::fmt::Write;

/// The man pages of the program and of every subcommand, each with its file name. `help` is the text
/// of docs/cli.md, which holds the help of each under a heading of its own.
pub fn pages(help: &str, version: &str, date: &str) -> Vec<(String, String)> {
    let sections = help.split("\n## `").skip(1).filter_map(|section| {
        let (title, rest) = section.split_once("`\n\n```text\n")?;
        let (text, _) = rest.split_once("\n```")?;
        let name = title.replace(' ', "-");
        let page = page(&name, text, version, date);
        Some((format!("{name}.1"), page))
    });
    sections.collect()
}

fn page(name: &str, help: &str, version: &str, date: &str) -> String {
    let (about, usage) = help.split_once("\nUsage: ").unwrap_or((help, ""));
    let (summary, description) = about.split_once("\n\n").unwrap_or((about, about));
    let (synopsis, lists) = usage.split_once('\n').unwrap_or((usage, ""));
    let summary = summary.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut roff = format!(
        ".TH {} 1 {date} \"lapa {version}\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}\n.SH DESCRIPTION\n",
        escaped(&name.to_uppercase()),
        escaped(name),
        escaped(summary.trim_end_matches('.')),
        escaped(synopsis),
    );
    roff += &paragraphs(description.trim());
    roff += &definitions(lists);
    let see =
        if name == "lapa" { ".PP\nEach command has a page, as lapa\\-run(1)." } else { "lapa(1)" };
    // Writing to a string cannot fail.
    let _ = writeln!(roff, ".SH \"SEE ALSO\"\n{see}");
    roff
}

/// Paragraphs that are filled, and indented lines that stay as they are.
fn paragraphs(text: &str) -> String {
    let (mut roff, mut verbatim) = (String::new(), false);
    for line in text.lines() {
        if line.starts_with(' ') != verbatim {
            verbatim = !verbatim;
            roff += if verbatim { ".nf\n" } else { ".fi\n" };
        }
        roff += &if line.is_empty() { ".PP\n".into() } else { escaped(line) + "\n" };
    }
    roff + if verbatim { ".fi\n" } else { "" }
}

/// Lists of commands, arguments and options: a heading, then names, each with its text below or
/// beside it.
fn definitions(text: &str) -> String {
    let (mut roff, mut blank) = (String::new(), false);
    for line in text.lines() {
        let words = line.trim_start();
        let indent = line.len() - words.len();
        if indent == 0 && !words.is_empty() {
            let _ = writeln!(roff, ".SH {}", escaped(words.trim_end_matches(':')).to_uppercase());
        } else if (1..10).contains(&indent) {
            let (name, beside) = words.split_once("  ").unwrap_or((words, ""));
            let _ = writeln!(roff, ".TP\n.B {}\n{}", escaped(name), escaped(beside.trim_start()));
        } else if !words.is_empty() {
            let start = if blank { ".IP\n" } else { "" };
            let item = if words.starts_with("- ") { ".br\n" } else { "" };
            let _ = writeln!(roff, "{start}{item}{}", escaped(words));
        }
        blank = words.is_empty();
    }
    roff.replace("\n\n", "\n")
}

/// Text that roff prints as it stands.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::process;

    #[test]
    fn every_command_has_a_page_with_its_sections() {
        let help = fs::read_to_string(process::root().join("docs/cli.md")).unwrap();
        let pages = pages(&help.replace("\r\n", "\n"), "1.2.3", "2026-01-02");
        assert_eq!(pages.len(), help.matches("\n## `lapa").count());
        for name in ["lapa.1", "lapa-run.1", "lapa-config-check.1"] {
            assert!(pages.iter().any(|(file, _)| file == name), "{name}");
        }
        for (file, text) in &pages {
            for heading in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"] {
                assert!(text.contains(&format!("\n.SH {heading}\n")), "{file}: {heading}");
            }
        }
    }

    #[test]
    fn a_page_is_the_help_in_roff() {
        let help = "Does it.\n\nMore\\text.\n  as is\n.end\n\nUsage: lapa do [OPTIONS]\n\nCommands:\n  \
                    one  First\n\nOptions:\n      --it <N>\n          How often\n\n          \
                    - a: A\n\n  -h, --help\n          Help\n";
        let expected = ".TH LAPA\\-DO 1 2026-01-02 \"lapa 1.2.3\"\n.SH NAME\nlapa\\-do \\- Does it\n\
                        .SH SYNOPSIS\nlapa do [OPTIONS]\n.SH DESCRIPTION\nMore\\etext.\n.nf\n  as is\n\
                        .fi\n\\&.end\n.SH COMMANDS\n.TP\n.B one\nFirst\n.SH OPTIONS\n.TP\n\
                        .B \\-\\-it <N>\nHow often\n.IP\n.br\n\\- a: A\n.TP\n.B \\-h, \\-\\-help\nHelp\n\
                        .SH \"SEE ALSO\"\nlapa(1)\n";
        assert_eq!(page("lapa-do", help, "1.2.3", "2026-01-02"), expected);
    }
}
