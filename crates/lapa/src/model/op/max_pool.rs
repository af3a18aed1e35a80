//! 2×2 maximum pooling. Keeps the winning cell of each window (0 to 3) in `Saved::offsets`.

use super::{Op, Pass, Saved, grow, row};
use crate::model::layer::Shape;

pub(in crate::model) struct MaxPool {
    pub input: Shape,
}

impl MaxPool {
    fn pooled(&self) -> (usize, usize) {
        (self.input.rows / 2, self.input.cols / 2)
    }
}

impl Op for MaxPool {
    fn output_len(&self) -> usize {
        let (rows, cols) = self.pooled();
        self.input.channels * rows * cols
    }

    fn forward(&self, _: &[f32], n: usize, x: &[f32], y: &mut [f32], saved: &mut Saved) {
        let (rows, cols) = self.pooled();
        let width = self.input.cols;
        grow(&mut saved.offsets, n * self.output_len());
        let mut out = 0;
        for plane in x[..n * self.input.len()].chunks_exact(self.input.area()) {
            for r in 0..rows {
                for c in 0..cols {
                    let first = 2 * r * width + 2 * c;
                    let window = [first, first + 1, first + width, first + width + 1];
                    let mut best = 0;
                    // Strict comparison in row-major order: ties go to the first cell.
                    for cell in 1..4 {
                        if plane[window[cell]] > plane[window[best]] {
                            best = cell;
                        }
                    }
                    y[out] = plane[window[best]];
                    saved.offsets[out] = best as u16;
                    out += 1;
                }
            }
        }
    }

    fn backward(&self, _: &[f32], pass: Pass<'_>, dx: &mut [f32], saved: &mut Saved) {
        let (rows, cols) = self.pooled();
        let cells = rows * cols;
        let width = self.input.cols;
        let area = self.input.area();
        let planes = pass.n * self.input.channels;
        dx[..planes * area].fill(0.0);
        for (plane, dx) in dx[..planes * area].chunks_exact_mut(area).enumerate() {
            let winners = &saved.offsets[plane * cells..][..cells];
            for (cell, (&winner, &dy)) in winners.iter().zip(row(pass.dy, plane, cells)).enumerate()
            {
                let (r, c) = (2 * (cell / cols), 2 * (cell % cols));
                let winner = winner as usize;
                dx[(r + winner / 2) * width + c + winner % 2] = dy;
            }
        }
    }
}
