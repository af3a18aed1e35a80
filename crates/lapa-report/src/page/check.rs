//! A strict reader of pages: tags balance, ids are unique, nothing is fetched or run. Builds with
//! debug assertions hold every page against it.

use std::collections::HashSet;

/// Elements that have no end tag.
const VOID: [&str; 4] = ["meta", "link", "br", "hr"];
/// Elements that fetch or run something.
const FORBIDDEN: [&str; 9] =
    ["script", "img", "iframe", "object", "embed", "image", "audio", "video", "base"];
/// Attributes that name something to fetch.
const REFERENCES: [&str; 6] = ["src", "srcset", "href", "xlink:href", "data", "action"];

/// Says what is wrong with a page.
pub(super) fn check(html: &str) -> Result<(), String> {
    let (mut open, mut ids, mut links) = (Vec::<String>::new(), HashSet::new(), Vec::new());
    let mut rest = html.strip_prefix("<!DOCTYPE html>").ok_or("no document type")?;
    let mut last_id = String::new();
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
        if let Some(name) = tag.strip_prefix('/') {
            match open.pop() {
                Some(opened) if opened == name => continue,
                opened => return Err(format!("</{name}> ends {opened:?}")),
            }
        }
        let (tag, closed) = match tag.strip_suffix('/') {
            Some(tag) => (tag, true),
            None => (tag, false),
        };
        let name = tag.split_whitespace().next().unwrap_or_default();
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Err(format!("<{tag}> is no element"));
        }
        if FORBIDDEN.contains(&name) {
            return Err(format!("<{name}> is not allowed"));
        }
        for (key, value) in attributes(tag[name.len()..].trim())? {
            if key.starts_with("on") {
                return Err(format!("{key} runs a script"));
            }
            if REFERENCES.contains(&key.as_str()) && value != "data:," {
                let target = value.strip_prefix('#').ok_or(format!("{key} fetches {value}"))?;
                links.push(target.to_owned());
            }
            if let Some((_, target)) = value.split_once("url(") {
                let target = target.strip_prefix('#').ok_or(format!("{key} fetches {value}"))?;
                links.push(target.trim_end_matches(')').to_owned());
            }
            if key == "id" {
                if !ids.insert(value.clone()) {
                    return Err(format!("id {value} is there twice"));
                }
                last_id = value;
            }
        }
        if name == "style" {
            let style = &rest[..rest.find("</style>").ok_or("an endless style")?];
            if style.contains("url(") || style.contains("@import") {
                return Err("the style fetches something".into());
            }
            rest = &rest[style.len()..];
        }
        if !closed && !VOID.contains(&name) {
            open.push(name.into());
        }
    }
    if !open.is_empty() {
        return Err(format!("still open: {open:?}"));
    }
    if let Some(target) = links.iter().find(|target| !ids.contains(*target)) {
        return Err(format!("nothing has the id {target}"));
    }
    match last_id.as_str() {
        "end" => Ok(()),
        _ => Err("the last id is not `end`".into()),
    }
}

/// The attributes of a tag, all of which must have a quoted value.
fn attributes(mut text: &str) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    while !text.is_empty() {
        let (key, rest) =
            text.split_once("=\"").ok_or(format!("an attribute without value: {text}"))?;
        if key.is_empty() || key.contains(|c: char| c.is_whitespace() || c == '"') {
            return Err(format!("a strange attribute: {key}"));
        }
        let (value, rest) = rest.split_once('"').ok_or(format!("an endless value of {key}"))?;
        found.push((key.to_owned(), value.to_owned()));
        text = rest.trim_start();
    }
    Ok(found)
}

#[test]
fn broken_pages_are_found() {
    let page = |body: &str| check(&format!("<!DOCTYPE html>{body}<p id=\"end\"></p>"));
    page("<a href=\"#end\">x</a><br><g fill=\"url(#end)\"/><style>a > b {}</style>").unwrap();
    for (body, complaint) in [
        ("<b><i></b></i>", "</b> ends Some(\"i\")"),
        ("<p>", "still open"),
        ("<p id=\"a\"></p><p id=\"a\"></p>", "id a is there twice"),
        ("<a href=\"http://x\"></a>", "href fetches http://x"),
        ("<a href=\"file.css\"></a>", "href fetches file.css"),
        ("<a href=\"#nowhere\"></a>", "nothing has the id nowhere"),
        ("<g clip-path=\"url(#none)\"/>", "nothing has the id none"),
        ("<g fill=\"url(http://x)\"/>", "fill fetches"),
        ("<img>", "<img> is not allowed"),
        ("<script>", "<script> is not allowed"),
        ("<p onclick=\"x\"></p>", "onclick runs a script"),
        ("<style>@import 'x'</style>", "the style fetches something"),
        ("<p hidden></p>", "an attribute without value"),
        ("a > b", "a bare >"),
    ] {
        let error = page(body).unwrap_err();
        assert!(error.contains(complaint), "{body}: {error}");
    }
    assert!(check("<p></p>").is_err());
    assert!(check("<!DOCTYPE html><p id=\"x\"></p>").unwrap_err().contains("not `end`"));
}
