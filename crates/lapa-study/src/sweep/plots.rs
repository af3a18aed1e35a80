//! The accuracy of a sweep against its keys, and over the rounds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lapa_report::plot::{Figure, PlotError, Series, StackedBars};

use super::{Key, PointResult, Setting, SweepResults};
use crate::statistics::Estimate;

/// Curves, or bars side by side, that one plot shows.
const MOST_CURVES: usize = 10;
/// Quantity that plots by a key show.
const FINAL: &str = "Final test accuracy";
const FINAL_AXIS: &str = "Accuracy after the last round";
/// An axis whose values span this factor is logarithmic.
const DECADES: f64 = 100.0;

/// The plots of a sweep.
#[derive(Clone, Debug, Default)]
pub struct Plots {
    /// Files, as SVG and PNG.
    pub files: Vec<PathBuf>,
    /// Curves that the plots leave out, in words.
    pub left_out: Vec<String>,
}

/// The points with the same values of all keys but one, by that key's values.
struct Combination<'a> {
    name: String,
    points: Vec<(&'a Setting, &'a PointResult)>,
}

impl SweepResults {
    /// Draws the accuracy by each key with two values or more into `folder`, and over the rounds if
    /// there is one key. Points without a result are left out.
    pub fn plot(&self, folder: &Path) -> Result<Plots, PlotError> {
        let mut plots = Plots::default();
        let keys = self.grid.keys();
        for (at, key) in keys.iter().enumerate().filter(|(_, key)| key.settings().len() > 1) {
            let stem = format!("accuracy-by-{}", key.name().replace('.', "-"));
            let combinations = plots.most(self.combinations(at), &stem);
            let files = match key.numbers() {
                _ if combinations.is_empty() => continue,
                Some(numbers) => self.curves(key, &numbers, &combinations, &folder.join(stem))?,
                None => self.bars(key, &combinations, &folder.join(stem))?,
            };
            plots.files.extend(files);
        }
        if let [key] = keys {
            let stem = "accuracy-by-round";
            let points = self.combinations(0).into_iter().flat_map(|all| all.points).collect();
            let points: Vec<_> = plots.most(points, stem);
            let title = self.title("Test accuracy");
            let figure = Figure::new(title, "Round", "Accuracy").percent();
            let lines = points.iter().map(|(setting, result)| {
                let rounds = result.rounds.iter();
                let points = rounds.map(|at| (f64::from(at.round), at.accuracy)).collect();
                series(label(key, setting), points)
            });
            if !points.is_empty() {
                plots.files.extend(lines.fold(figure, Figure::line).save(&folder.join(stem))?);
            }
        }
        Ok(plots)
    }

    /// The combinations of the other keys' values that have a result, in the order of the grid.
    fn combinations(&self, key: usize) -> Vec<Combination<'_>> {
        let mut all: Vec<Combination> = Vec::new();
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        for (settings, point) in self.grid.points().zip(&self.points) {
            let Some(result) = &point.result else { continue };
            let others = self.grid.keys().iter().zip(&settings).enumerate();
            let others = others.filter(|(at, _)| *at != key).map(|(_, (key, s))| label(key, s));
            let name = others.collect::<Vec<_>>().join(", ");
            let at = *known.entry(name.clone()).or_insert_with(|| {
                all.push(Combination { name, points: Vec::new() });
                all.len() - 1
            });
            all[at].points.push((settings[key], result));
        }
        all
    }

    fn title(&self, what: &str) -> String {
        match self.seeds.len() {
            1 => format!("{what}, one seed"),
            seeds => format!("{what}: mean and 95 % interval over {seeds} seeds"),
        }
    }

    /// A curve for each combination, over the values of `key`.
    fn curves(
        &self,
        key: &Key,
        numbers: &[f64],
        combinations: &[Combination],
        stem: &Path,
    ) -> Result<[PathBuf; 2], PlotError> {
        let mut figure = Figure::new(self.title(FINAL), key.name(), FINAL_AXIS).percent();
        if spans_decades(numbers) {
            figure = figure.log_x();
        }
        for combination in combinations {
            let point = |(setting, result): &(&Setting, &PointResult)| {
                Some((setting.value().as_f64()?, result.accuracy_final))
            };
            let mut points: Vec<_> = combination.points.iter().filter_map(point).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            figure = figure.line(series(combination.name.clone(), points));
        }
        figure.save(stem)
    }

    /// For each value of `key` a bar for each combination. Values are named in the legend if there
    /// is one key; else the legend is the combinations', and values are numbered, since long labels
    /// of many bars are not all drawn.
    fn bars(
        &self,
        key: &Key,
        combinations: &[Combination],
        stem: &Path,
    ) -> Result<[PathBuf; 2], PlotError> {
        let texts = || key.settings().iter().map(Setting::text);
        let numbered = (1..).zip(texts()).map(|(place, text)| format!("{place} {text}"));
        let numbered = numbered.collect::<Vec<_>>().join(", ");
        let one_key = self.grid.keys().len() == 1;
        let (legend, parts, axis): (_, Vec<String>, _) = if one_key {
            (key.name(), texts().map(str::to_owned).collect(), key.name().to_owned())
        } else {
            let names = combinations.iter().map(|combination| combination.name.clone());
            ("other keys", names.collect(), format!("{}: {numbered}", key.name()))
        };
        let title = match self.seeds.len() {
            1 => self.title(FINAL),
            seeds => format!("{FINAL}: mean over {seeds} seeds"),
        };
        let count = parts.len();
        let mut bars = StackedBars::new(title, axis, format!("{FINAL_AXIS} (%)"), legend, parts);
        for (place, setting) in key.settings().iter().enumerate() {
            for (at, combination) in combinations.iter().enumerate() {
                let point = combination.points.iter().find(|(other, _)| *other == setting);
                let mut heights = vec![0.0; count];
                heights[if one_key { place } else { at }] =
                    point.map_or(0.0, |(_, result)| 100.0 * result.accuracy_final.mean);
                let label =
                    if one_key { setting.text().to_owned() } else { (place + 1).to_string() };
                bars = bars.bar(label, heights);
            }
        }
        bars.save(stem)
    }
}

impl Plots {
    /// As many as a plot shows; the rest is noted.
    fn most<T>(&mut self, mut all: Vec<T>, stem: &str) -> Vec<T> {
        if all.len() > MOST_CURVES {
            let count = all.len();
            self.left_out.push(format!(
                "{stem} shows the first {MOST_CURVES} of {count} curves; sweep.json has all of them"
            ));
            all.truncate(MOST_CURVES);
        }
        all
    }
}

/// `key=value`, the key without its section.
fn label(key: &Key, setting: &Setting) -> String {
    let name = key.name().rsplit('.').next().unwrap_or_default();
    format!("{name}={}", setting.text())
}

/// A curve, with a band where there are intervals.
fn series(name: String, points: Vec<(f64, Estimate)>) -> Series {
    let banded = points.iter().map(|(x, y)| Some((*x, y.mean, y.interval?)));
    match banded.collect::<Option<Vec<_>>>() {
        Some(banded) => Series::with_band(name, banded),
        None => Series::new(name, points.into_iter().map(|(x, y)| (x, y.mean))),
    }
}

/// True if the values are positive and far apart.
fn spans_decades(values: &[f64]) -> bool {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    // Two decades, as 0.001 to 0.1 is, in spite of rounding.
    least > 0.0 && most / least >= DECADES * (1.0 - 1e-9)
}

#[cfg(test)]
mod tests {
    use super::spans_decades;

    #[test]
    fn two_decades_make_a_logarithmic_axis() {
        for (values, logarithmic) in [
            (&[0.001, 0.1][..], true),
            (&[0.5, 49.0], false),
            (&[1.0, 100.0, 3.0], true),
            (&[0.0, 100.0, 3.0], false),
            (&[-1.0, 500.0], false),
        ] {
            assert_eq!(spans_decades(values), logarithmic, "{values:?}");
        }
    }
}
