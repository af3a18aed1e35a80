//! The figures of a comparison: medians over pairs of measurements, as a table or as JSON.

use serde_json::{Value, json};

use crate::bench_peers::Format;

/// One line of the comparison.
pub struct Row {
    /// The two sides of the comparison.
    pub name: &'static str,
    /// The two figures of every pair: ours, and what it is compared with.
    pub pairs: Vec<(f64, f64)>,
}

impl Row {
    /// Median, smallest and largest of the ratios within the pairs.
    fn ratio(&self) -> (f64, f64, f64) {
        let ratios = sorted(self.pairs.iter().map(|(ours, other)| ours / other));
        (median(&ratios), ratios[0], ratios[ratios.len() - 1])
    }

    fn medians(&self) -> (f64, f64) {
        let ours = sorted(self.pairs.iter().map(|(ours, _)| *ours));
        let other = sorted(self.pairs.iter().map(|(_, other)| *other));
        (median(&ours), median(&other))
    }

    /// The line as JSON.
    pub fn json(&self) -> Value {
        let (ours, other) = self.medians();
        let (ratio, least, most) = self.ratio();
        json!({
            "name": self.name, "pairs": self.pairs.len(), "ours": ours, "other": other,
            "ratio": ratio, "ratio_min": least, "ratio_max": most,
        })
    }
}

/// Prints the rows, as a table below a title or as JSON with the conditions of the measurement.
pub fn print(format: Format, title: &str, rows: &[Row], mut conditions: Value) {
    match format {
        Format::Text => print!("{title}\n{}", text(rows)),
        Format::Json => {
            conditions["rows"] = rows.iter().map(Row::json).collect();
            println!("{conditions:#}");
        }
    }
}

/// The table for people.
fn text(rows: &[Row]) -> String {
    let mut table =
        format!("{:<44} {:>10} {:>10} {:>7}  {}\n", "", "ours /s", "other /s", "ratio", "min–max");
    for row in rows {
        let (ours, other) = row.medians();
        let (ratio, least, most) = row.ratio();
        table.push_str(&format!(
            "{:<44} {:>10} {:>10} {ratio:>7.2}  {least:.2}–{most:.2}\n",
            row.name,
            digits(ours),
            digits(other)
        ));
    }
    table
}

/// Thousands of samples need no decimals; rounds per second do.
fn digits(x: f64) -> String {
    if x < 100.0 { format!("{x:.2}") } else { format!("{x:.0}") }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The median of sorted values.
pub fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_within_pairs() {
        // The ratio of the medians would be 20/10 = 2.
        let row = Row { name: "x", pairs: vec![(10.0, 10.0), (20.0, 40.0), (60.0, 6.0)] };
        assert_eq!(row.medians(), (20.0, 10.0));
        assert_eq!(row.ratio(), (1.0, 0.5, 10.0));
        let even = Row { name: "y", pairs: vec![(1.0, 1.0), (3.0, 1.0)] };
        assert_eq!(even.ratio(), (2.0, 1.0, 3.0));
    }

    #[test]
    fn the_table_has_one_line_per_row() {
        let rows = [Row { name: "batch norm", pairs: vec![(9000.0, 6000.0)] }];
        let table = text(&rows);
        let words: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(words, ["batch", "norm", "9000", "6000", "1.50", "1.50–1.50"]);
    }
}
