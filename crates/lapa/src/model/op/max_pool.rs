//! Maximum pooling. Keeps the winning cell of each window, in row-major order, in `Saved::offsets`.

use super::{Op, Pass, Saved, Windows, grow};

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
            match (w.kernel, w.stride) {
                (2, 2) => w.maxima(2, 2, x, y, winners),
                (kernel, stride) => w.maxima(kernel, stride, x, y, winners),
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
    /// Maxima of one plane. The numbers of the windows are arguments so that those of a call can be
    /// constants.
    #[inline(always)]
    fn maxima(&self, kernel: usize, stride: usize, x: &[f32], y: &mut [f32], winners: &mut [u16]) {
        let (width, cols) = (self.input.cols, self.output.cols);
        let rows = y.chunks_exact_mut(cols).zip(winners.chunks_exact_mut(cols));
        for (r, (y, winners)) in rows.enumerate() {
            let x = &x[r * stride * width..][..(kernel - 1) * width + width];
            for (c, (y, winner)) in y.iter_mut().zip(winners).enumerate() {
                let first = c * stride;
                (*y, *winner) = (x[first], 0);
                // Strict comparison in row-major order: ties go to the first cell.
                for row in 0..kernel {
                    for col in 0..kernel {
                        let value = x[first + row * width + col];
                        if value > *y {
                            (*y, *winner) = (value, (row * kernel + col) as u16);
                        }
                    }
                }
            }
        }
    }
}
