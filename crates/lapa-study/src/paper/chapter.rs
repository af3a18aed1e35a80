//! Chapters of the report: words, drawings and tables of one figure.

use std::path::Path;

use lapa_report::plot::{Figure, Forest, Panels, Scatter, Series, Tiles};

use super::{Curve, DATA, Evidence};
use crate::cell::Finished;
use crate::report::{ReportError, Table, write};
use crate::statistics::Estimate;

/// A figure of the paper as it came out.
pub struct Chapter {
    /// Its heading.
    pub title: &'static str,
    /// The subject of the figure and the runs behind it.
    pub text: String,
    /// The drawings.
    pub pictures: Vec<Picture>,
    /// The numbers.
    pub tables: Vec<Table>,
}

impl Chapter {
    /// A chapter without drawings and tables.
    pub fn new(title: &'static str, text: impl Into<String>) -> Self {
        Self { title, text: text.into(), pictures: Vec::new(), tables: Vec::new() }
    }

    /// Adds a drawing.
    pub fn picture(mut self, name: &'static str, caption: &'static str, drawing: Drawing) -> Self {
        self.pictures.push(Picture { name, caption, drawing });
        self
    }

    /// Adds a table.
    pub fn table(mut self, table: Table) -> Self {
        self.tables.push(table);
        self
    }
}

/// A drawing with its caption.
pub struct Picture {
    /// Name of its files, without endings.
    pub name: &'static str,
    /// The question that the drawing answers.
    pub caption: &'static str,
    /// The drawing itself.
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
    /// A table of colored tiles.
    Tiles(Tiles),
}

impl Picture {
    /// Writes `folder/name.svg`, and `folder/name.png` of what is drawn anew.
    pub fn save(&self, folder: &Path) -> Result<(), ReportError> {
        let stem = folder.join(self.name);
        match &self.drawing {
            Drawing::Panels(panels) => panels.save(&stem),
            Drawing::Scatter(scatter) => scatter.save(&stem),
            Drawing::Svg(svg) => return write(&stem.with_extension("svg"), svg.as_bytes()),
            Drawing::Forest(forest) => forest.save(&stem),
            Drawing::Tiles(tiles) => tiles.save(&stem),
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

/// Accuracy of every evaluated round over seeds, in fractions.
fn convergence(evidence: &Evidence, curve: &Curve) -> Option<Series> {
    let cells = evidence.finished(curve)?;
    let points = cells.first()?.evaluations().enumerate().map(|(at, (round, _))| {
        let values: Vec<f64> =
            cells.iter().filter_map(|cell| Some(cell.evaluations().nth(at)?.1)).collect();
        band(f64::from(round), &values)
    });
    Some(Series::with_band(&curve.name, points))
}

/// Accuracy over rounds, one curve each, with bands over seeds.
pub fn convergence_figure(evidence: &Evidence, title: &str, curves: &[Curve]) -> Figure {
    let figure = Figure::new(title, "Round", "Test accuracy").percent();
    curves.iter().filter_map(|curve| convergence(evidence, curve)).fold(figure, Figure::line)
}

/// Gain in accuracy over one method after each evaluated round, in points, with bands over seeds.
pub fn gains_figure(evidence: &Evidence, title: &str, over: &Curve, curves: &[Curve]) -> Figure {
    let gains = |curve: &Curve| {
        let (of, over) = (evidence.finished(curve)?, evidence.finished(over)?);
        let rounds: Vec<u32> = of.first()?.evaluations().map(|(round, _)| round).collect();
        let gain = |at: usize| -> Option<Vec<f64>> {
            let accuracy = |cell: &Finished| Some(100.0 * cell.evaluations().nth(at)?.1);
            of.iter().zip(&over).map(|(of, over)| Some(accuracy(of)? - accuracy(over)?)).collect()
        };
        let point = |(at, round): (usize, &u32)| Some(band(f64::from(*round), &gain(at)?));
        Some(Series::with_band(&curve.name, rounds.iter().enumerate().filter_map(point)))
    };
    let figure = Figure::new(title, "Round", format!("Gain over {} (points)", over.name));
    curves.iter().filter_map(gains).fold(figure, Figure::line)
}

/// Final accuracy over something that was varied, in fractions: (x, curve).
pub fn against(
    evidence: &Evidence,
    name: &str,
    points: impl IntoIterator<Item = (f64, Curve)>,
) -> Option<Series> {
    let point = |(x, curve)| Some(band(x, &evidence.each(&curve, |finished| finished.accuracy())?));
    let points: Vec<Band> = points.into_iter().filter_map(point).collect();
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
    let plus = estimate.is_some_and(|estimate| estimate.mean > 0.0);
    format!("{}{}", if plus { "+" } else { "" }, shown(estimate))
}

/// Meaning of the accuracies of a quick look.
const QUICK_ACCURACY: &str = "Test accuracy in percent, mean of the last five evaluations. In the 30 rounds of a preview \
     these include rounds in which the model still learns fast, so the values are far below the \
     final accuracy.";

/// Final accuracies in percent: a row for each name, a column for each of its curves.
pub fn accuracy_table(
    evidence: &Evidence,
    first: &str,
    columns: impl IntoIterator<Item = String>,
    rows: impl IntoIterator<Item = (String, Vec<Curve>)>,
) -> Table {
    let caption = if evidence.settings.quick {
        QUICK_ACCURACY
    } else {
        "Test accuracy in percent, mean of the last five evaluations, ± half-width of the 95 % \
             interval over the seeds."
    };
    let mut table = Table::new(caption, &[first]);
    table.headers.extend(columns.into_iter().map(|column| format!(">{column}")));
    for (name, curves) in rows {
        let accuracy = |curve| shown(Estimate::of_each(evidence.accuracies(curve)));
        table.row(std::iter::once(name).chain(curves.iter().map(accuracy)));
    }
    table
}

/// Rows of a table with a column for each data set: the curves of both, with `note` after their
/// names.
pub fn by_data(of: impl Fn(&str) -> Vec<Curve>, note: &str) -> Vec<(String, Vec<Curve>)> {
    let [first, second] = DATA.map(|(data, _)| of(data));
    let rows = first.into_iter().zip(second);
    rows.map(|(a, b)| (format!("{}{note}", a.name), vec![a, b])).collect()
}

/// The names of the data sets, as headings.
pub fn data_names() -> [String; 2] {
    DATA.map(|(_, name)| name.to_owned())
}
