//! The same chapters as Markdown, for docs.

use super::Table;
use crate::paper::Chapter;

/// A document of chapters; figures are linked as `figures/NAME.svg`.
pub fn markdown(title: &str, lead: &str, chapters: &[Chapter]) -> String {
    let mut text = format!("# {title}\n\n{lead}\n");
    for chapter in chapters {
        text += &format!("\n## {}\n\n{}\n", chapter.title, chapter.text);
        for picture in &chapter.pictures {
            let (name, caption) = (&picture.name, &picture.caption);
            text += &format!("\n![{}](figures/{name}.svg)\n\n*{caption}*\n", chapter.title);
        }
        for table in &chapter.tables {
            text += &format!("\n{}", rows(table));
        }
    }
    text
}

/// A table with its caption above.
fn rows(table: &Table) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let plain = |text: &str| text.replace('|', "\\|");
    let mut text = match table.caption.as_str() {
        "" => String::new(),
        caption => format!("{caption}\n\n"),
    };
    text += &line(table.headers.iter().map(|h| plain(h.trim_start_matches('>'))).collect());
    let rule = |header: &String| if header.starts_with('>') { "---:" } else { "---" };
    text += &line(table.headers.iter().map(|header| rule(header).to_owned()).collect());
    for row in &table.rows {
        text += &line(row.iter().map(|entry| plain(entry.text())).collect());
    }
    text
}
