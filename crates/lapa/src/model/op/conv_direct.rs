//! Convolution of any size by the AVX2 kernels that need no columns.
//!
//! Of [`Saved`] it uses `padded`, `packed` (standardized weights, then those in the order of the
//! kernels), and the gradient buffers; `scratch` where the plain convolution stands in.

use std::ops::Range;

use super::standardize::standardize;
use super::{Conv, Op, Pass, Saved, Windows, grow};
use crate::model::kernels::conv_direct::Direct;
use crate::model::kernels::{add_scaled, has_fast_convolution, lanes_sum, norm_squared};

/// Parameters as those of [`Conv`].
pub(in crate::model) struct DirectConv {
    plain: Conv,
    direct: Direct,
    /// The convolution that takes gradients back to the inputs; `None` where it would step between
    /// cells.
    back: Option<Direct>,
}

/// Most cells of a plane, and most weights of an output channel: the kernels keep a table of each.
const MOST: usize = 1 << 20;

impl DirectConv {
    /// The op, if this processor and this shape have the kernels.
    pub fn new(plain: Conv) -> Option<Self> {
        let Windows { input, output, kernel, stride } = plain.windows;
        let largest =
            [input.area(), output.area(), plain.taps(), output.channels * kernel * kernel];
        if !has_fast_convolution() || largest.into_iter().any(|size| size > MOST) {
            return None;
        }
        let padding = (kernel - 1).checked_sub(plain.padding).filter(|_| stride == 1);
        let windows = Windows { input: output, output: input, kernel, stride };
        Some(Self {
            direct: Direct::new(plain.windows, plain.padding),
            back: padding.map(|padding| Direct::new(windows, padding)),
            plain,
        })
    }

    /// Adds the gradient of the samples to `out`, or puts it there.
    fn samples_gradient<const ADD: bool>(
        &self,
        pass: Pass<'_>,
        samples: Range<usize>,
        padded: &mut [Vec<f32>; 3],
        out: &mut [f32],
    ) {
        let Windows { input, output, .. } = self.plain.windows;
        let (n, [images, _, strips]) = (samples.len(), padded);
        grow(images, n * self.direct.image_len());
        grow(strips, n * self.direct.strips_len());
        let x = pass.x[samples.start * input.len()..].chunks_exact(input.len()).take(n);
        for (x, image) in x.zip(images.chunks_exact_mut(self.direct.image_len())) {
            self.direct.pad(x, image);
        }
        let dy = &pass.dy[samples.start * output.len()..][..n * output.len()];
        let (weights, bias) = out.split_at_mut(self.plain.weights());
        let in_strips = self.direct.in_strips(dy, strips);
        // SAFETY: `new` checked that the processor has AVX2 and FMA.
        unsafe { self.direct.gradient::<ADD>(n, images, in_strips, weights) };
        if !ADD {
            bias.fill(0.0);
        }
        for dy in dy.chunks_exact(output.len()) {
            for (bias, dy) in bias.iter_mut().zip(dy.chunks_exact(output.area())) {
                *bias += lanes_sum(dy.len(), |j| dy[j]);
            }
        }
    }
}

impl Op for DirectConv {
    fn output_len(&self) -> usize {
        self.plain.output_len()
    }

    fn parameter_count(&self) -> usize {
        self.plain.parameter_count()
    }

    fn forward(&self, p: &[f32], n: usize, x: &[f32], y: &mut [f32], saved: &mut Saved) {
        let Windows { input, output, .. } = self.plain.windows;
        let (weights, bias) = p.split_at(self.plain.weights());
        let [image, ..] = &mut saved.padded;
        grow(image, self.direct.image_len());
        grow(&mut saved.packed, 2 * self.parameter_count());
        let (standardized, packed) = saved.packed.split_at_mut(self.parameter_count());
        let taps = self.plain.taps();
        if self.plain.standardized {
            standardize(weights, taps, standardized);
        }
        let weights = self.plain.used(weights, standardized);
        let packed = &mut packed[..self.plain.weights()];
        self.direct.pack(packed, |o, tap| weights[o * taps + tap]);
        for (x, y) in x.chunks_exact(input.len()).zip(y.chunks_exact_mut(output.len())).take(n) {
            self.direct.pad(x, image);
            // SAFETY: `new` checked that the processor has AVX2 and FMA.
            unsafe { self.direct.forward(packed, bias, image, y) };
        }
    }

    fn backward(&self, p: &[f32], pass: Pass<'_>, dx: &mut [f32], saved: &mut Saved) {
        let Windows { input, output, kernel, .. } = self.plain.windows;
        let Some(back) = &self.back else {
            return self.plain.backward(p, pass, dx, saved);
        };
        let Saved { padded: [_, image, _], packed, .. } = saved;
        grow(image, back.image_len());
        let (standardized, packed) = packed.split_at_mut(self.parameter_count());
        let weights = self.plain.used(p, standardized);
        let packed = &mut packed[..self.plain.weights()];
        let area = kernel * kernel;
        back.pack(packed, |c, tap| {
            let (o, cell) = (tap / area, area - 1 - tap % area);
            weights[(o * input.channels + c) * area + cell]
        });
        let rows = pass.dy.chunks_exact(output.len()).zip(dx.chunks_exact_mut(input.len()));
        for (dy, dx) in rows.take(pass.n) {
            back.pad(dy, image);
            // SAFETY: `new` checked that the processor has AVX2 and FMA.
            unsafe { back.forward(packed, &[], image, dx) };
        }
    }

    fn gradient(&self, _: &[f32], pass: Pass<'_>, saved: &mut Saved, gradient: &mut [f32]) {
        gradient.fill(0.0);
        let together = self.direct.samples_together();
        for first in (0..pass.n).step_by(together) {
            let samples = first..pass.n.min(first + together);
            self.samples_gradient::<true>(pass, samples, &mut saved.padded, gradient);
        }
        self.plain.through_standardization(gradient, &saved.packed);
    }

    fn begin_clipped(&self, saved: &mut Saved) {
        self.plain.begin_clipped(saved);
    }

    fn sample_norm_squared(&self, pass: Pass<'_>, i: usize, saved: &mut Saved) -> f64 {
        let Saved { sample_gradient, padded, packed, .. } = saved;
        self.samples_gradient::<false>(pass, i..i + 1, padded, sample_gradient);
        self.plain.through_standardization(sample_gradient, packed);
        norm_squared(sample_gradient)
    }

    fn add_sample(&self, _: Pass<'_>, _: usize, factor: f32, saved: &mut Saved) {
        add_scaled(&mut saved.packed_gradient, factor, &saved.sample_gradient);
    }

    fn end_block(&self, saved: &mut Saved) {
        saved.end_block();
    }

    fn finish_clipped(&self, saved: &Saved, gradient: &mut [f64]) {
        self.plain.finish_clipped(saved, gradient);
    }
}
