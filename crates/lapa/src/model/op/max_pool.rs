//! Maximum pooling. Keeps the winning cell of each window, in row-major order, in `Saved::offsets`.

use super::{Op, Pass, Saved, Windows, grow};
use crate::model::kernels::vectorized;

pub(in crate::model) struct MaxPool {
    pub windows: Windows,
}

impl Op for MaxPool {
    fn output_len(&self) -> usize {
        self.windows.output.len()
    }

    fn forward(&self, _: &[f32], n: usize, x: &[f32], y: &mut [f32], saved: &mut Saved) {
        let w = &self.windows;
        grow(&mut saved.offsets, n * w.output.len());
        let planes = x[..n * w.input.len()].chunks_exact(w.input.area());
        let outputs = y.chunks_exact_mut(w.output.area());
        for ((x, y), winners) in
            planes.zip(outputs).zip(saved.offsets.chunks_exact_mut(w.output.area()))
        {
            if (w.kernel, w.stride) == (2, 2) {
                maxima_of_four(w, x, y, winners);
            } else {
                w.maxima(x, y, winners);
            }
        }
    }

    fn backward(&self, _: &[f32], pass: Pass<'_>, dx: &mut [f32], saved: &mut Saved) {
        let w = &self.windows;
        let dx = &mut dx[..pass.n * w.input.len()];
        dx.fill(0.0);
        let gradients = pass.dy.chunks_exact(w.output.area());
        let gradients = gradients.zip(saved.offsets.chunks_exact(w.output.area()));
        for (dx, (dy, winners)) in dx.chunks_exact_mut(w.input.area()).zip(gradients) {
            for (cell, (&winner, &dy)) in winners.iter().zip(dy).enumerate() {
                let (row, col) = (usize::from(winner) / w.kernel, usize::from(winner) % w.kernel);
                dx[w.first(cell) + row * w.input.cols + col] += dy;
            }
        }
    }
}

impl Windows {
    /// Maxima of one plane.
    fn maxima(&self, x: &[f32], y: &mut [f32], winners: &mut [u16]) {
        for (cell, (y, winner)) in y.iter_mut().zip(winners).enumerate() {
            let x = &x[self.first(cell)..];
            (*y, *winner) = (x[0], 0);
            // Strict comparison in row-major order: ties go to the first cell.
            for row in 0..self.kernel {
                for col in 0..self.kernel {
                    let value = x[row * self.input.cols + col];
                    if value > *y {
                        (*y, *winner) = (value, (row * self.kernel + col) as u16);
                    }
                }
            }
        }
    }
}

vectorized! {
    /// The same for 2×2 windows side by side.
    fn maxima_of_four(windows: &Windows, x: &[f32], y: &mut [f32], winners: &mut [u16]) {
        let (width, cols) = (windows.input.cols, windows.output.cols);
        for row in 0..windows.output.rows {
            let (above, below) = x[2 * row * width..][..2 * width].split_at(width);
            let (above, below) = (above.as_chunks::<2>().0, below.as_chunks::<2>().0);
            let (above, below) = (&above[..cols], &below[..cols]);
            let y = &mut y[row * cols..][..cols];
            let winners = &mut winners[row * cols..][..cols];
            for c in 0..cols {
                let window = [above[c][0], above[c][1], below[c][0], below[c][1]];
                let (mut most, mut winner) = (window[0], 0);
                for (cell, value) in window.into_iter().enumerate().skip(1) {
                    let larger = value > most;
                    most = if larger { value } else { most };
                    winner = if larger { cell as u16 } else { winner };
                }
                (y[c], winners[c]) = (most, winner);
            }
        }
    }
}
