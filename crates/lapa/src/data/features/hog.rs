//! Histograms of oriented gradients: N. Dalal, B. Triggs, "Histograms of Oriented Gradients for Human
//! Detection", CVPR 2005, as scikit-image computes them.
//!
//! Cells of 4×4 pixels, 9 unsigned angles of 20°, blocks of 2×2 cells with the norm L2-Hys. Each pixel
//! votes for one angle with its gradient's length; of several channels the one with the longest
//! gradient votes.

use std::f32::consts::PI;

use super::{Extract, Features, check_image};
use crate::data::Result;
use crate::shape::Shape;

/// Pixels of a cell on a side.
const CELL: usize = 4;
/// Angles.
const ANGLES: usize = 9;
/// Cells of a block on a side.
const BLOCK: usize = 2;
/// Most that one value of a normalized block may be.
const MOST: f32 = 0.2;
/// ε of a block's norm.
const EPSILON: f32 = 1e-5;

/// Histograms of images of one shape.
pub struct Hog {
    input: Shape,
    /// Cells along rows and columns.
    cells: [usize; 2],
    /// Sine and cosine of the lower end of each angle but the first.
    ends: [[f32; 2]; ANGLES - 1],
}

impl Hog {
    pub fn new(input: Shape) -> Result<Self> {
        check_image(Features::Hog, input, BLOCK * CELL)?;
        let end = |at: usize| {
            let (sin, cos) = (PI * (at + 1) as f32 / ANGLES as f32).sin_cos();
            [sin, cos]
        };
        let ends = std::array::from_fn(end);
        Ok(Self { input, cells: [input.rows / CELL, input.cols / CELL], ends })
    }

    fn blocks(&self) -> [usize; 2] {
        self.cells.map(|cells| cells + 1 - BLOCK)
    }

    /// Differences of the two neighbors along rows and columns, 0 at the edges.
    fn gradient(&self, image: &[f32], row: usize, col: usize) -> [f32; 2] {
        let Shape { rows, cols, .. } = self.input;
        let at = row * cols + col;
        let down =
            if row == 0 || row + 1 == rows { 0.0 } else { image[at + cols] - image[at - cols] };
        let right = if col == 0 || col + 1 == cols { 0.0 } else { image[at + 1] - image[at - 1] };
        [down, right]
    }

    /// The number of the angle of a gradient, up to its sign.
    pub(super) fn angle(&self, [down, right]: [f32; 2]) -> usize {
        let upward = down < 0.0 || down == 0.0 && right < 0.0;
        let [down, right] = if upward { [-down, -right] } else { [down, right] };
        self.ends.iter().take_while(|[sin, cos]| cos * down >= sin * right).count()
    }

    /// Votes of the pixels of each cell, over their number.
    fn vote(&self, image: &[f32], histograms: &mut [f32]) {
        histograms.fill(0.0);
        let [rows, cols] = self.cells;
        for row in 0..rows * CELL {
            for col in 0..cols * CELL {
                let channels = image.chunks_exact(self.input.area());
                let gradients = channels.map(|channel| self.gradient(channel, row, col));
                let length = |[down, right]: [f32; 2]| down.hypot(right);
                let longest = gradients.map(|g| (length(g), g));
                let (length, gradient) =
                    longest.fold((0.0, [0.0; 2]), |a, b| if b.0 > a.0 { b } else { a });
                let cell = row / CELL * cols + col / CELL;
                histograms[cell * ANGLES + self.angle(gradient)] += length / (CELL * CELL) as f32;
            }
        }
    }
}

/// x/√(‖x‖² + ε²)
fn normalize(block: &mut [f32]) {
    let square: f32 = block.iter().map(|x| x * x).sum();
    let scale = 1.0 / (square + EPSILON * EPSILON).sqrt();
    block.iter_mut().for_each(|x| *x *= scale);
}

impl Extract for Hog {
    /// Histograms of the cells.
    type Scratch = Vec<f32>;

    /// The cells of a block.
    const GROUPS: usize = BLOCK * BLOCK;

    fn output(&self) -> Shape {
        let [rows, cols] = self.blocks();
        Shape::new(BLOCK * BLOCK * ANGLES, rows, cols)
    }

    fn scratch(&self) -> Vec<f32> {
        vec![0.0; self.cells[0] * self.cells[1] * ANGLES]
    }

    fn extract(&self, image: &[f32], histograms: &mut Vec<f32>, features: &mut [f32]) {
        self.vote(image, histograms);
        let [rows, cols] = self.blocks();
        let mut block = [0.0; BLOCK * BLOCK * ANGLES];
        for row in 0..rows {
            for col in 0..cols {
                for (at, part) in block.chunks_exact_mut(ANGLES).enumerate() {
                    let cell = (row + at / BLOCK) * self.cells[1] + col + at % BLOCK;
                    part.copy_from_slice(&histograms[cell * ANGLES..][..ANGLES]);
                }
                normalize(&mut block);
                block.iter_mut().for_each(|x| *x = x.min(MOST));
                normalize(&mut block);
                let place = row * cols + col;
                for (channel, value) in block.iter().enumerate() {
                    features[channel * rows * cols + place] = *value;
                }
            }
        }
    }
}
