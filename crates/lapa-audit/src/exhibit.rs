//! Parts of the page about an attack.

use lapa_report::page::Table;

/// A part of the page about an attack.
#[derive(Clone, Debug)]
pub enum Exhibit {
    /// A paragraph.
    Text(String),
    /// A table.
    Table(Table),
    /// A drawing: the text of an SVG file, and what it shows.
    Drawing {
        /// Name of the file, without ending.
        name: String,
        /// The drawing.
        svg: String,
        /// Caption below it.
        caption: String,
    },
}
