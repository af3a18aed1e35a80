//! Convolution, 2×2 max-pool and relu as one op, by the AVX2 kernels.
//!
//! Of [`Saved`] it uses `packed` (weights for the forward pass, then for the input gradient),
//! `offsets` (the winners), `scratch` (one image, channels last), `active`, and the gradient
//! buffers.

use super::{Op, Pass, Saved, grow, row};
use crate::model::kernels::conv_avx2::{self as kernel, Geometry};
use crate::model::kernels::{
    Active, PADDING, add_scaled, has_avx512, has_fast_convolution, norm_squared,
};
use crate::model::layer::Shape;

/// Parameters as those of [`super::Conv`]: W (channels × inputs × kernel × kernel), then b.
pub(in crate::model) struct ConvPoolRelu {
    geometry: Geometry,
    /// Start of each pooling window in an input plane.
    starts: Vec<u16>,
}

/// Calls a kernel with the kernel size as a constant.
macro_rules! with_kernel_size {
    ($size:expr, $function:ident $(::<$flag:literal>)? ($($argument:expr),* $(,)?)) => {
        // SAFETY: `ConvPoolRelu::new` checked that the processor has AVX2, FMA and POPCNT, and
        // every list of active cells is filled for the same geometry just before it is used.
        unsafe {
            match $size {
                3 => kernel::$function::<3 $(, $flag)?>($($argument),*),
                _ => kernel::$function::<5 $(, $flag)?>($($argument),*),
            }
        }
    };
}

impl ConvPoolRelu {
    /// The op, if this processor and this shape have a fast kernel.
    pub fn new(input: Shape, channels: usize, size: usize) -> Option<Self> {
        let covered = matches!(size, 3 | 5)
            && input.area() <= usize::from(u16::MAX)
            && input.rows > size
            && input.cols > size;
        if !covered || !has_fast_convolution() {
            return None;
        }
        let pooled_len = |len: usize| (len + 1 - size) / 2;
        let pooled = Shape::new(channels, pooled_len(input.rows), pooled_len(input.cols));
        let start = |cell: usize| 2 * (cell / pooled.cols) * input.cols + 2 * (cell % pooled.cols);
        let geometry = Geometry { input, pooled, kernel: size, wide: has_avx512() };
        if !geometry.fits_offsets() {
            return None;
        }
        let starts = (0..pooled.area()).map(|cell| start(cell) as u16).collect();
        Some(Self { geometry, starts })
    }

    fn weights(&self) -> usize {
        let Geometry { input, pooled, kernel, .. } = self.geometry;
        pooled.channels * input.channels * kernel * kernel
    }

    /// Lists the active cells of sample `i`, and gives its image, channels last.
    fn visit<'a>(
        &self,
        pass: Pass<'a>,
        i: usize,
        offsets: &[u16],
        active: &mut Active,
        scratch: &'a mut [f32],
    ) -> &'a [f32] {
        let g = &self.geometry;
        let (inputs, outputs) = (g.input.len(), g.pooled.len());
        let (y, dy) = (row(pass.y, i, outputs), row(pass.dy, i, outputs));
        // SAFETY: `new` checked that the processor has AVX2, FMA and POPCNT.
        unsafe {
            kernel::compact_by_channel(g, y, dy, &offsets[i * outputs..][..outputs], active);
        }
        if g.input.channels == 1 {
            // One channel is its own channels-last image.
            return &pass.x[i * inputs..][..inputs + PADDING];
        }
        // SAFETY: as above.
        unsafe {
            kernel::transpose(g.input.channels, g.input.area(), row(pass.x, i, inputs), scratch);
            kernel::prefetch(row(pass.x, (i + 1).min(pass.n - 1), inputs));
        }
        scratch
    }
}

impl Op for ConvPoolRelu {
    fn output_len(&self) -> usize {
        self.geometry.pooled.len()
    }

    fn parameter_count(&self) -> usize {
        self.weights() + self.geometry.pooled.channels
    }

    fn forward(&self, p: &[f32], n: usize, x: &[f32], y: &mut [f32], saved: &mut Saved) {
        let g = &self.geometry;
        let (inputs, outputs) = (g.input.len(), g.pooled.len());
        let (weights, bias) = p.split_at(self.weights());
        grow(&mut saved.packed, g.forward_len() + g.spread_len());
        grow(&mut saved.offsets, n * outputs);
        g.pack_forward(weights, &mut saved.packed[..g.forward_len()]);
        for i in 0..n {
            let x = &x[i * inputs..][..inputs + PADDING];
            let y = &mut y[i * outputs..][..outputs];
            let offsets = &mut saved.offsets[i * outputs..][..outputs];
            with_kernel_size!(g.kernel, forward::<true>(g, &saved.packed, bias, x, y, offsets));
        }
    }

    /// As [`Op::forward`], without the winners.
    fn infer(&self, p: &[f32], _: &[f32], n: usize, x: &[f32], y: &mut [f32], saved: &mut Saved) {
        let g = &self.geometry;
        let (inputs, outputs) = (g.input.len(), g.pooled.len());
        let (weights, bias) = p.split_at(self.weights());
        grow(&mut saved.packed, g.forward_len());
        g.pack_forward(weights, &mut saved.packed);
        for (i, y) in y.chunks_exact_mut(outputs).take(n).enumerate() {
            let x = &x[i * inputs..][..inputs + PADDING];
            with_kernel_size!(g.kernel, forward::<false>(g, &saved.packed, bias, x, y, &mut []));
        }
    }

    fn backward(&self, p: &[f32], pass: Pass<'_>, dx: &mut [f32], saved: &mut Saved) {
        let g = &self.geometry;
        let (inputs, outputs) = (g.input.len(), g.pooled.len());
        let Saved { packed, offsets, scratch, active, .. } = saved;
        let spread = &mut packed[g.forward_len()..][..g.spread_len()];
        let spread = g.pack_spread(&p[..self.weights()], spread);
        grow(scratch, g.image_len());
        for i in 0..pass.n {
            let (y, dy) = (row(pass.y, i, outputs), row(pass.dy, i, outputs));
            scratch.fill(0.0);
            // SAFETY: `new` checked that the processor has AVX2, FMA and POPCNT.
            unsafe {
                let offsets = &offsets[i * outputs..][..outputs];
                kernel::compact_by_cell(g, &self.starts, y, dy, offsets, active);
            }
            with_kernel_size!(g.kernel, input_gradient(g, &self.starts, spread, active, scratch));
            // SAFETY: as above.
            unsafe {
                let this = &mut dx[i * inputs..][..inputs];
                kernel::transpose(g.input.area(), g.input.channels, scratch, this);
                kernel::prefetch(row(dx, (i + 1).min(pass.n - 1), inputs));
            }
        }
    }

    fn gradient(&self, _: &[f32], pass: Pass<'_>, saved: &mut Saved, gradient: &mut [f32]) {
        self.begin_clipped(saved);
        let Saved { offsets, active, scratch, packed_gradient, .. } = saved;
        for i in 0..pass.n {
            let image = self.visit(pass, i, offsets, active, scratch);
            let g = &self.geometry;
            with_kernel_size!(g.kernel, add_gradient(g, image, active, packed_gradient));
        }
        self.geometry.unpack_gradient(packed_gradient, gradient);
    }

    fn begin_clipped(&self, saved: &mut Saved) {
        grow(&mut saved.scratch, self.geometry.image_len());
        grow(&mut saved.sample_gradient, self.geometry.gradient_len());
        saved.begin_sum(self.geometry.gradient_len());
    }

    fn sample_norm_squared(&self, pass: Pass<'_>, i: usize, saved: &mut Saved) -> f64 {
        let Saved { offsets, active, scratch, sample_gradient, .. } = saved;
        let image = self.visit(pass, i, offsets, active, scratch);
        let g = &self.geometry;
        with_kernel_size!(g.kernel, sample_gradient(g, image, active, sample_gradient));
        norm_squared(sample_gradient)
    }

    fn add_sample(&self, _: Pass<'_>, _: usize, factor: f32, saved: &mut Saved) {
        add_scaled(&mut saved.packed_gradient, factor, &saved.sample_gradient);
    }

    fn end_block(&self, saved: &mut Saved) {
        saved.end_block();
    }

    fn finish_clipped(&self, saved: &Saved, gradient: &mut [f64]) {
        self.geometry.unpack_gradient(&saved.clipped_sum, gradient);
    }
}
