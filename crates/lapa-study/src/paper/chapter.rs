//! What a figure adds to the report: words, drawings and tables.

use std::path::Path;

use lapa_report::plot::{Figure, Forest, Panels, Scatter, Series};

use super::{Curve, Seen};
use crate::report::{ReportError, Table, write};
use crate::statistics::Estimate;

/// A figure of the paper as it came out.
pub struct Chapter {
    /// Its heading.
    pub title: String,
    /// What the paper shows there and what was run.
    pub text: String,
    /// The drawings.
    pub pictures: Vec<Picture>,
    /// The numbers.
    pub tables: Vec<Table>,
}

/// A drawing with its caption.
pub struct Picture {
    /// Name of its files, without endings.
    pub name: String,
    /// What to look at.
    pub caption: String,
    /// How it is drawn.
    pub drawing: Drawing,
}

/// Something that can be drawn.
pub enum Drawing {
    /// Curves in one or several panels.
    Panels(Panels),
    /// Points on a map.
    Scatter(Scatter),
    /// A finished drawing, of which there is no PNG.
    Svg(String),
    /// Differences with intervals.
    Forest(Forest),
}

impl Picture {
    /// Writes `folder/name.svg`, and `folder/name.png` of what is drawn anew.
    pub fn save(&self, folder: &Path) -> Result<(), ReportError> {
        let stem = folder.join(&self.name);
        match &self.drawing {
            Drawing::Panels(panels) => panels.save(&stem),
            Drawing::Scatter(scatter) => scatter.save(&stem),
            Drawing::Svg(svg) => return write(&stem.with_extension("svg"), svg.as_bytes()),
            Drawing::Forest(forest) => forest.save(&stem),
        }?;
        Ok(())
    }
}

/// One panel, with the legend below it: curves may go anywhere.
pub fn alone(title: &str, figure: Figure) -> Drawing {
    Drawing::Panels(Panels::new(title).columns(1).panel(figure))
}

/// Values over seeds as a point of a series; y in the values' unit.
pub type Band = (f64, f64, [f64; 2]);

/// The mean of values over seeds, and its interval.
pub fn band(x: f64, values: &[f64]) -> Band {
    let Estimate { mean, interval } = Estimate::of(values);
    (x, mean, interval.unwrap_or([mean, mean]))
}

/// Something of every evaluated round over seeds, in fractions.
pub fn convergence(seen: &Seen, curve: &Curve) -> Option<Series> {
    let cells = seen.finished(curve)?;
    let rounds: Vec<u32> = cells.first()?.evaluations().map(|(round, _)| round).collect();
    let points = rounds.iter().enumerate().map(|(at, &round)| {
        let values: Vec<f64> =
            cells.iter().filter_map(|cell| Some(cell.evaluations().nth(at)?.1)).collect();
        band(f64::from(round), &values)
    });
    Some(Series::with_band(&curve.name, points))
}

/// Accuracy over rounds, one curve each, with bands over seeds.
pub fn convergence_figure(seen: &Seen, title: &str, curves: &[Curve]) -> Figure {
    let figure = Figure::new(title, "Round", "Test accuracy").percent();
    curves.iter().filter_map(|curve| convergence(seen, curve)).fold(figure, Figure::line)
}

/// Final accuracy over something that was varied, in fractions: (x, curve).
pub fn against(
    seen: &Seen,
    name: &str,
    points: impl IntoIterator<Item = (f64, Curve)>,
) -> Option<Series> {
    let points: Vec<Band> = points
        .into_iter()
        .filter_map(|(x, curve)| {
            let values = seen.each(&curve, |finished| finished.accuracy())?;
            Some(band(x, &values))
        })
        .collect();
    (!points.is_empty()).then(|| Series::with_band(name, points))
}

/// A mean with half the width of its interval: `93.97 ± 0.20`; a dash where cells are missing.
pub fn shown(estimate: Option<Estimate>) -> String {
    match estimate {
        None => "–".into(),
        Some(Estimate { mean, interval: None }) => format!("{mean:.2}"),
        Some(Estimate { mean, interval: Some([_, high]) }) => {
            format!("{mean:.2} ± {:.2}", high - mean)
        }
    }
}

/// A difference as [`shown`], with its sign.
pub fn shown_gain(estimate: Option<Estimate>) -> String {
    match estimate {
        Some(Estimate { mean, .. }) if mean > 0.0 => format!("+{}", shown(estimate)),
        _ => shown(estimate),
    }
}

/// Meaning of the accuracies of a quick look.
const QUICK_ACCURACY: &str = "Test accuracy in percent, mean of the last five evaluations. In the 30 rounds of a preview \
     these include rounds in which the model still learns fast, so the values are far below the \
     final accuracy.";

/// Final accuracies in percent: a row for each name, a column for each of its curves.
pub fn accuracy_table(
    seen: &Seen,
    first: &str,
    columns: &[String],
    rows: impl IntoIterator<Item = (String, Vec<Curve>)>,
) -> Table {
    let mut headers = vec![first.to_owned()];
    headers.extend(columns.iter().map(|column| format!(">{column}")));
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let caption = if seen.settings.quick {
        QUICK_ACCURACY
    } else {
        "Test accuracy in percent, mean of the last five evaluations, ± half-width of the 95 % \
             interval over the seeds."
    };
    let mut table = Table::new(caption, &headers);
    for (name, curves) in rows {
        let mut row = vec![name];
        row.extend(
            curves
                .iter()
                .map(|curve| shown(seen.accuracies(curve).map(|values| Estimate::of(&values)))),
        );
        table.row(row);
    }
    table
}
