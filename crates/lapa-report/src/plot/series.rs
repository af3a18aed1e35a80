//! Named curves.

/// A point of a curve, perhaps with the lower and upper end of its interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub x: f64,
    pub y: f64,
    pub interval: Option<[f64; 2]>,
}

/// A named curve.
#[derive(Clone, Debug)]
pub struct Series {
    pub(super) name: String,
    pub(super) points: Vec<Point>,
    pub(super) dashed: bool,
}

impl Series {
    /// A curve through (x, y) points.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().map(|(x, y)| Point { x, y, interval: None });
        Self { name: name.into(), points: points.collect(), dashed: false }
    }

    /// A curve through (x, y) with a band between lower and upper around it: (x, y, [lower, upper]).
    pub fn with_band(
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64, [f64; 2])>,
    ) -> Self {
        let points = points.into_iter().map(|(x, y, ends)| Point { x, y, interval: Some(ends) });
        Self { points: points.collect(), ..Self::new(name, []) }
    }

    /// Draws the curve as a dashed line.
    pub fn dashed(mut self) -> Self {
        self.dashed = true;
        self
    }
}
