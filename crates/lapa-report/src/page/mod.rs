//! A page that stands alone: style and drawings are part of it, nothing is fetched, nothing runs.

mod svg;

const STYLE: &str = include_str!("page.css");
/// Tells browsers to run nothing and to fetch nothing, whatever the page holds.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// Drawings of more pixels take the whole width of the page.
const WIDE: u32 = 800;

/// A page under construction. All text is plain text: what looks like markup is shown as it is.
#[derive(Default)]
pub struct Page {
    title: String,
    lead: String,
    sections: Vec<String>,
    body: String,
    figures: usize,
}

/// A table of a page.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Headings of the columns; one that begins with `>` has numbers, aligned right.
    pub headers: Vec<String>,
    /// The rows, each with a cell per column.
    pub rows: Vec<Vec<Entry>>,
    /// Caption; may be empty.
    pub caption: String,
}

impl Table {
    /// A table without rows.
    pub fn new(caption: &str, headers: &[&str]) -> Self {
        let headers = headers.iter().map(|&header| header.into()).collect();
        Self { headers, rows: Vec::new(), caption: caption.into() }
    }

    /// Adds a row of cells, or of what becomes one.
    pub fn row<C: Into<Entry>>(&mut self, cells: impl IntoIterator<Item = C>) -> &mut Self {
        self.rows.push(cells.into_iter().map(Into::into).collect());
        self
    }
}

/// A cell of a table.
#[derive(Clone, Debug)]
pub struct Entry {
    text: String,
    badge: Option<Badge>,
}

impl Entry {
    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Words that judge, as a colored badge.
    pub fn badge(badge: Badge, text: impl Into<String>) -> Self {
        Self { text: text.into(), badge: Some(badge) }
    }
}

impl<T: Into<String>> From<T> for Entry {
    fn from(text: T) -> Self {
        Self { text: text.into(), badge: None }
    }
}

/// The color of a badge. It only repeats what the badge's words say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Badge {
    /// Good.
    Good,
    /// Partly, or with a condition.
    Mixed,
    /// Bad.
    Bad,
    /// Nobody can say.
    Unknown,
}

impl Badge {
    fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Mixed => "mixed",
            Self::Bad => "bad",
            Self::Unknown => "unknown",
        }
    }
}

impl Page {
    /// An empty page.
    pub fn new(title: &str) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Sets the summary right below the title, a sentence or two.
    pub fn lead(&mut self, text: &str) -> &mut Self {
        self.lead = text.into();
        self
    }

    /// Begins a section, which the table of contents lists.
    pub fn section(&mut self, title: &str) -> &mut Self {
        self.sections.push(title.into());
        let number = self.sections.len();
        self.add(format!("<h2 id=\"section-{number}\">{}</h2>", escape(title)))
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: &str) -> &mut Self {
        self.add(format!("<p>{}</p>", escape(text)))
    }

    /// Adds an aside.
    pub fn note(&mut self, text: &str) -> &mut Self {
        self.add(format!("<p class=\"note\">{}</p>", escape(text)))
    }

    /// Adds what must not be overlooked.
    pub fn warning(&mut self, text: &str) -> &mut Self {
        self.add(format!("<p class=\"warning\"><strong>Warning:</strong> {}</p>", escape(text)))
    }

    /// Adds a table.
    pub fn table(&mut self, table: Table) -> &mut Self {
        let number = |column: usize| table.headers.get(column).is_some_and(|h| h.starts_with('>'));
        let class = |column| if number(column) { " class=\"number\"" } else { "" };
        // Keyboard users can scroll what has a tab stop.
        let mut text = String::from("<div class=\"scroll\" tabindex=\"0\"><table>");
        if !table.caption.is_empty() {
            text += &format!("<caption>{}</caption>", escape(&table.caption));
        }
        text += "\n<thead><tr>";
        for (column, header) in table.headers.iter().enumerate() {
            let name = escape(header.trim_start_matches('>'));
            text += &format!("<th scope=\"col\"{}>{name}</th>", class(column));
        }
        text += "</tr></thead>\n<tbody>\n";
        for row in &table.rows {
            text += "<tr>";
            for (column, cell) in row.iter().enumerate() {
                let shown = escape(&cell.text);
                let shown = match cell.badge {
                    Some(v) => format!("<span class=\"badge {}\">{shown}</span>", v.class()),
                    None => shown,
                };
                text += &format!("<td{}>{shown}</td>", class(column));
            }
            text += "</tr>\n";
        }
        self.add(text + "</tbody></table></div>")
    }

    /// Adds a drawing, given as the text of an SVG file that refers to nothing outside of it.
    pub fn figure(&mut self, svg: &str, caption: &str) -> &mut Self {
        self.figures += 1;
        let drawing = svg::inline(svg, &format!("figure-{}-", self.figures), caption);
        let caption = escape(caption);
        let class = if svg::width(svg) > WIDE { " class=\"wide\"" } else { "" };
        self.add(format!(
            "<figure{class}><div class=\"card\">{drawing}</div>\n<figcaption>{caption}</figcaption></figure>"
        ))
    }

    /// Adds long text as it is (a file, say), folded away behind its title.
    pub fn details(&mut self, title: &str, text: &str) -> &mut Self {
        self.add(format!(
            "<details><summary>{}</summary><pre>{}</pre></details>",
            escape(title),
            escape(text)
        ))
    }

    /// The page as HTML. Its last element has the id `end`, which shows that the page is complete.
    pub fn finish(&self) -> String {
        let title = escape(&self.title);
        let mut contents = String::new();
        for (number, section) in (1..).zip(&self.sections) {
            contents +=
                &format!("<li><a href=\"#section-{number}\">{}</a></li>\n", escape(section));
        }
        if !contents.is_empty() {
            contents = format!("<nav aria-label=\"Contents\"><ul>\n{contents}</ul></nav>\n");
        }
        let lead = match self.lead.as_str() {
            "" => String::new(),
            lead => format!("<p class=\"lead\">{}</p>\n", escape(lead)),
        };
        // The empty icon keeps browsers from asking for one.
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n\
             <style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n{lead}\
             {contents}</header>\n<main>\n{}</main>\n\
             <footer id=\"end\">Written by lapa {}. This file is self-contained: it needs no network \
             and runs no scripts.</footer>\n</body>\n</html>\n",
            self.body,
            env!("CARGO_PKG_VERSION"),
        )
    }

    fn add(&mut self, html: String) -> &mut Self {
        self.body += &(html + "\n");
        self
    }
}

/// Text as HTML that shows it, in elements and in quoted attributes.
fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
#[path = "../../tests/support/pages.rs"]
mod pages;

#[cfg(test)]
mod tests {
    use super::pages::check;
    use super::*;

    const EVIL: &str = "<script>alert('1')</script> & \"x\" </style><img src=http://x>";
    const SVG: &str = "<?xml version='1.0'?><svg viewBox=\"0 0 1 1\"><clipPath id=\"c\"></clipPath>\
                       <g clip-path=\"url(#c)\"/></svg>";

    fn full() -> Page {
        let mut page = Page::new(EVIL);
        page.lead(EVIL).section(EVIL).paragraph(EVIL).note(EVIL).warning(EVIL).details(EVIL, EVIL);
        let mut table = Table::new(EVIL, &[EVIL, ">n"]);
        table.row([EVIL.into(), Entry::badge(Badge::Bad, EVIL)]).row(["a", "12"]);
        page.table(table).section("Two").figure(SVG, EVIL).figure(SVG, "again");
        page
    }

    #[test]
    fn a_page_is_whole_and_all_text_stays_text() {
        let html = full().finish();
        assert_eq!(check(&html), Ok(()));
        assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
        // Title twice, lead, section and its contents, paragraph, note, warning, details twice,
        // caption, header, cell, badge, label and caption of the figure.
        assert_eq!(html.matches("&lt;script&gt;alert(&#39;1&#39;)").count(), 16);
    }

    #[test]
    fn numbers_stand_right_and_badges_have_words() {
        let html = full().finish();
        assert!(html.contains("<th scope=\"col\" class=\"number\">n</th>"));
        assert!(html.contains("<td class=\"number\">12</td>"));
        assert!(html.contains("<span class=\"badge bad\">&lt;script"));
    }

    #[test]
    fn a_drawing_can_stand_in_a_page_twice() {
        let html = full().finish();
        for figure in ["figure-1-c", "figure-2-c"] {
            assert!(html.contains(&format!("id=\"{figure}\"")));
            assert!(html.contains(&format!("url(#{figure})")));
        }
        assert!(!html.contains("<?xml"));
        assert!(html.contains("role=\"img\" aria-label=\"again\""));
    }

    #[test]
    fn an_empty_page_is_a_page() {
        let html = Page::new("t").finish();
        assert_eq!(check(&html), Ok(()));
        assert!(!html.contains("<nav") && html.contains("id=\"end\""));
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
}
