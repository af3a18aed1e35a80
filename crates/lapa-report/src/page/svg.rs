//! Drawings as part of a page.

use super::escape;

/// The `<svg>` element of a file, to stand in a page beside others: without what stands before it,
/// with ids that begin with `prefix`, and with a label for screen readers.
pub(super) fn inline(svg: &str, prefix: &str, label: &str) -> String {
    // Prolog, document type and comments have no place inside a page.
    let element = svg.find("<svg").map_or(svg, |start| &svg[start..]).trim_end();
    let named = [" id=\"", "url(#", "href=\"#"].iter().fold(element.to_owned(), |text, before| {
        text.replace(before, &format!("{before}{prefix}"))
    });
    let start = format!("<svg role=\"img\" aria-label=\"{}\"", escape(label));
    named.replacen("<svg", &start, 1)
}

/// The width that a file gives itself, in pixels; 0 if it gives none.
pub(super) fn width(svg: &str) -> u32 {
    let attribute = svg.split_once(" width=\"").and_then(|(_, rest)| rest.split_once('"'));
    attribute.and_then(|(digits, _)| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{inline, width};

    #[test]
    fn the_width_is_the_files_own() {
        assert_eq!(width("<svg viewBox=\"0 0 9 9\" width=\"950\"><rect width=\"3\"/></svg>"), 950);
        assert_eq!(width("<svg></svg>"), 0);
    }

    #[test]
    fn a_file_becomes_an_element_with_a_label_and_ids_of_its_own() {
        let file = "<?xml version=\"1.0\"?>\n<!DOCTYPE svg>\n<svg width=\"2\"><defs><clipPath \
                    id=\"c\"/></defs><use xlink:href=\"#c\"/><g clip-path=\"url(#c)\" \
                    fill=\"#abc\"/></svg>\n";
        assert_eq!(
            inline(file, "f1-", "a \"b\""),
            "<svg role=\"img\" aria-label=\"a &quot;b&quot;\" width=\"2\"><defs><clipPath \
             id=\"f1-c\"/></defs><use xlink:href=\"#f1-c\"/><g clip-path=\"url(#f1-c)\" \
             fill=\"#abc\"/></svg>"
        );
    }
}
