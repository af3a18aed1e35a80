//! Plots as SVG and PNG, drawn without any font of the system.
//!
//! A thin layer: callers state what to show, this module how it looks.

mod axis;
mod bars;
mod figure;
mod image;
mod link;
mod run;
mod scatter;
mod style;
mod svg;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::render_multiple;

use crate::atomic::write_atomically;

pub use bars::StackedBars;
pub use figure::{Figure, Series};
pub use link::{plot_links, plot_sweep};
pub use run::{plot_partition, plot_run};
pub use scatter::{Marker, Scatter};

/// A plot that cannot be drawn or written.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// There is nothing to draw.
    #[error("{}: the plot has no point that can be drawn", stem.display())]
    NoPoints {
        /// Path of the plot without its ending.
        stem: PathBuf,
    },
    /// The PNG could not be encoded.
    #[error("{}: cannot draw the image: {message}", path.display())]
    Png {
        /// The file.
        path: PathBuf,
        /// Why it failed.
        message: String,
    },
    /// The file system refused.
    #[error("{}: cannot write the plot", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

/// Draws and writes `stem.svg` and `stem.png`.
fn save(plots: Vec<Plot>, layout: Layout, stem: &Path) -> Result<[PathBuf; 2], PlotError> {
    // Appended rather than set, because a stem such as `eps0.5` has no ending to replace.
    let paths = [".svg", ".png"].map(|ending| {
        let mut name = OsString::from(stem);
        name.push(ending);
        PathBuf::from(name)
    });
    let scene = render_multiple(plots, layout);
    let svg = svg::svg(&scene, stem).into_bytes();
    let png =
        image::png(&scene).map_err(|message| PlotError::Png { path: paths[1].clone(), message })?;
    for (path, bytes) in paths.iter().zip([svg, png]) {
        write_atomically(path, |file| file.write_all(&bytes))
            .map_err(|source| PlotError::Io { path: path.clone(), source })?;
    }
    Ok(paths)
}
