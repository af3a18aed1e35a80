//! A strict reader of pages: tags balance, ids are unique, nothing is fetched or run. Tests of all
//! crates that write pages use it.

use std::collections::HashSet;

/// Elements that have no end tag.
const VOID: [&str; 4] = ["meta", "link", "br", "hr"];
/// Elements that fetch or run something.
const FORBIDDEN: [&str; 9] =
    ["script", "img", "iframe", "object", "embed", "image", "audio", "video", "base"];
/// Attributes that name something to fetch.
const REFERENCES: [&str; 6] = ["src", "srcset", "href", "xlink:href", "data", "action"];

/// The first defect of a page, if it has one.
pub fn check(html: &str) -> Result<(), String> {
    let mut reader = Reader::default();
    let mut rest = html.strip_prefix("<!DOCTYPE html>").ok_or("no document type")?;
    while let Some(start) = rest.find('<') {
        if rest[..start].contains('>') {
            return Err(format!("a bare > in {:?}", &rest[..start]));
        }
        rest = &rest[start..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = &comment[comment.find("-->").ok_or("an endless comment")? + 3..];
            continue;
        }
        let end = rest.find('>').ok_or("an endless tag")?;
        let (tag, after) = (&rest[1..end], &rest[end + 1..]);
        rest = after;
        if reader.tag(tag)? == "style" {
            let style = &rest[..rest.find("</style>").ok_or("an endless style")?];
            if style.contains("url(") || style.contains("@import") {
                return Err("the style fetches something".into());
            }
            rest = &rest[style.len()..];
        }
    }
    reader.finish()
}

/// State of a page read so far.
#[derive(Default)]
struct Reader<'a> {
    open: Vec<&'a str>,
    ids: HashSet<&'a str>,
    links: Vec<&'a str>,
    last_id: &'a str,
}

impl<'a> Reader<'a> {
    /// Reads a start tag or an end tag; returns the name of a started element.
    fn tag(&mut self, tag: &'a str) -> Result<&'a str, String> {
        if let Some(name) = tag.strip_prefix('/') {
            return match self.open.pop() {
                Some(opened) if opened == name => Ok(""),
                opened => Err(format!("</{name}> ends {opened:?}")),
            };
        }
        let element = tag.strip_suffix('/').unwrap_or(tag);
        let name = element.split_whitespace().next().unwrap_or_default();
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Err(format!("<{element}> is no element"));
        }
        if FORBIDDEN.contains(&name) {
            return Err(format!("<{name}> is not allowed"));
        }
        for (key, value) in attributes(element[name.len()..].trim())? {
            self.attribute(key, value)?;
        }
        if element == tag && !VOID.contains(&name) {
            self.open.push(name);
        }
        Ok(name)
    }

    fn attribute(&mut self, key: &str, value: &'a str) -> Result<(), String> {
        if key.starts_with("on") {
            return Err(format!("{key} runs a script"));
        }
        let target = |of: &'a str| of.strip_prefix('#').ok_or(format!("{key} fetches {value}"));
        if REFERENCES.contains(&key) && value != "data:," {
            self.links.push(target(value)?);
        }
        if let Some((_, url)) = value.split_once("url(") {
            self.links.push(target(url)?.trim_end_matches(')'));
        }
        if key == "id" {
            if !self.ids.insert(value) {
                return Err(format!("id {value} is there twice"));
            }
            self.last_id = value;
        }
        Ok(())
    }

    /// Checks that the page is complete.
    fn finish(self) -> Result<(), String> {
        if !self.open.is_empty() {
            return Err(format!("still open: {:?}", self.open));
        }
        if let Some(target) = self.links.iter().find(|target| !self.ids.contains(*target)) {
            return Err(format!("nothing has the id {target}"));
        }
        if self.last_id != "end" {
            return Err("the last id is not `end`".into());
        }
        Ok(())
    }
}

/// The attributes of a tag, all of which must have a quoted value.
fn attributes(mut text: &str) -> Result<Vec<(&str, &str)>, String> {
    let mut found = Vec::new();
    while !text.is_empty() {
        let (key, rest) =
            text.split_once("=\"").ok_or(format!("an attribute without value: {text}"))?;
        if key.is_empty() || key.contains(|c: char| c.is_whitespace() || c == '"') {
            return Err(format!("a strange attribute: {key}"));
        }
        let (value, rest) = rest.split_once('"').ok_or(format!("an endless value of {key}"))?;
        found.push((key, value));
        text = rest.trim_start();
    }
    Ok(found)
}
