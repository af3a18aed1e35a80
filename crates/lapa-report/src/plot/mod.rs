//! Plots as SVG and PNG, drawn without any font of the system.
//!
//! A thin layer: callers state what to show, this module how it looks.

mod accuracy;
mod axis;
mod bars;
mod canvas;
mod contact;
mod drawing;
mod figure;
mod forest;
mod heat;
mod image;
mod link;
mod panels;
mod pictures;
mod run;
mod scatter;
mod series;
mod style;
mod svg;
#[cfg(test)]
mod tests;
mod tiles;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use kuva::render::render::Scene;

use lapa::files::Folder;

pub use accuracy::{plot_classes, plot_devices};
pub use bars::StackedBars;
pub use contact::contact_sheet;
pub use figure::Figure;
pub use forest::Forest;
pub use link::{plot_links, plot_sweep};
pub use panels::Panels;
pub use pictures::{Picture, Pictures};
pub use run::{plot_partition, plot_run, plot_sizes};
pub use scatter::{Marker, Scatter};
pub use series::Series;
pub use tiles::{Tile, Tiles, Tone};

/// A plot that cannot be drawn or written.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// There is nothing to draw.
    #[error("{}: the plot has no finite point", stem.display())]
    NoPoints {
        /// Path of the plot without its ending.
        stem: PathBuf,
    },
    /// The PNG could not be encoded.
    #[error("{}: cannot draw the image: {message}", path.display())]
    Png {
        /// The file.
        path: PathBuf,
        /// Reason of the failure.
        message: String,
    },
    /// The file system refused.
    #[error("{}: cannot write the plot", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Reason of the failure.
        source: io::Error,
    },
}

impl lapa::blame::Blame for PlotError {}

/// Draws and writes `stem.svg` and `stem.png`.
fn save(scene: Scene, stem: &Path) -> Result<[PathBuf; 2], PlotError> {
    let folder = Folder::open(stem.parent().unwrap_or(Path::new("")));
    let folder = folder.map_err(|source| PlotError::Io { path: files(stem)[0].clone(), source })?;
    save_in(scene, &folder, stem)
}

/// Draws and writes `stem.svg` and `stem.png`, whose folder is open.
fn save_in(scene: Scene, folder: &Folder, stem: &Path) -> Result<[PathBuf; 2], PlotError> {
    let paths = files(stem);
    let svg = svg::svg(&scene, stem).into_bytes();
    let png =
        image::png(scene).map_err(|message| PlotError::Png { path: paths[1].clone(), message })?;
    for (path, bytes) in paths.iter().zip([svg, png]) {
        folder
            .replace(path.file_name().unwrap_or_default(), |file| file.write_all(&bytes))
            .map_err(|source| PlotError::Io { path: path.clone(), source })?;
    }
    Ok(paths)
}

/// `stem.svg` and `stem.png`.
fn files(stem: &Path) -> [PathBuf; 2] {
    // Appended rather than set, because a stem such as `eps0.5` has no ending to replace.
    [".svg", ".png"].map(|ending| {
        let mut name = OsString::from(stem);
        name.push(ending);
        PathBuf::from(name)
    })
}
