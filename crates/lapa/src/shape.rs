//! Shapes of samples.

use std::fmt;

/// Channels × rows × columns of a sample, or of what a layer makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Channels (features, after a linear layer).
    pub channels: usize,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
}

impl Shape {
    /// A shape of `channels` × `rows` × `cols`.
    pub const fn new(channels: usize, rows: usize, cols: usize) -> Self {
        Self { channels, rows, cols }
    }

    /// Values per sample.
    pub const fn len(self) -> usize {
        self.channels * self.rows * self.cols
    }

    /// True if a sample holds no value.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Values per channel.
    pub const fn area(self) -> usize {
        self.rows * self.cols
    }

    /// Sides of an image: `28×28` of a gray one, `3×32×32` of one in color.
    pub fn of_image(self) -> String {
        match self.channels {
            1 => format!("{}×{}", self.rows, self.cols),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}×{}×{}", self.channels, self.rows, self.cols)
    }
}
