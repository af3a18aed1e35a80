//! Residual block (He et al. 2016): the sum of two paths, its layers and a shortcut.
//!
//! `Saved::paths` holds the memory of both, and `Saved::statistics` what the ops in them say of the
//! last batch.

use super::{Op, Pass, Saved};
use crate::model::chain::{Chain, OpSlot};
use crate::model::layer::Shape;

/// Parameters: those of the layers, then those of the shortcut. A shortcut without ops is the
/// identity.
pub(in crate::model) struct Residual {
    pub input: Shape,
    pub output: Shape,
    pub paths: [Vec<OpSlot>; 2],
}

impl Residual {
    fn slots(&self) -> impl Iterator<Item = &OpSlot> {
        self.paths.iter().flatten()
    }

    /// Both paths, each with its memory.
    fn each<'a>(
        &'a self,
        saved: &'a mut Saved,
    ) -> impl Iterator<Item = (&'a [OpSlot], &'a mut Chain)> {
        saved.paths.resize_with(self.paths.len(), Chain::default);
        self.paths.iter().map(Vec::as_slice).zip(&mut saved.paths)
    }

    /// Gives a path its batch.
    fn load(&self, ops: &[OpSlot], path: &mut Chain, n: usize, x: &[f32]) {
        let len = n * self.input.len();
        path.make_room(ops, self.input.len(), n);
        path.activations[0][..len].copy_from_slice(&x[..len]);
    }

    /// y = the sum of the outputs of both paths.
    fn add(&self, saved: &Saved, n: usize, y: &mut [f32]) {
        let [layers, shortcut] = &saved.paths[..] else { return };
        let terms = layers.outputs().iter().zip(shortcut.outputs());
        for (y, (a, b)) in y[..n * self.output.len()].iter_mut().zip(terms) {
            *y = a + b;
        }
    }

    /// Gives a path the gradient in its outputs.
    fn load_back(&self, ops: &[OpSlot], path: &mut Chain, pass: Pass<'_>) {
        let len = pass.n * self.output.len();
        path.make_room_at_inputs();
        path.make_room_back(ops, pass.n);
        path.deltas[ops.len()][..len].copy_from_slice(&pass.dy[..len]);
    }
}

impl Op for Residual {
    fn output_len(&self) -> usize {
        self.output.len()
    }

    fn parameter_count(&self) -> usize {
        self.slots().map(|slot| slot.op.parameter_count()).sum()
    }

    fn forward(&self, p: &[f32], n: usize, x: &[f32], y: &mut [f32], saved: &mut Saved) {
        for (ops, path) in self.each(saved) {
            self.load(ops, path, n, x);
            path.forward(ops, p, n);
        }
        self.add(saved, n, y);
        let Saved { paths, statistics, .. } = saved;
        statistics.clear();
        for (slot, saved) in self.slots().zip(paths.iter().flat_map(|path| &path.saved)) {
            if !slot.statistics.is_empty() {
                statistics.extend_from_slice(&saved.statistics);
            }
        }
    }

    fn infer(
        &self,
        p: &[f32],
        statistics: &[f32],
        n: usize,
        x: &[f32],
        y: &mut [f32],
        saved: &mut Saved,
    ) {
        for (ops, path) in self.each(saved) {
            self.load(ops, path, n, x);
            path.infer(ops, p, statistics, n);
        }
        self.add(saved, n, y);
    }

    fn backward(&self, _: &[f32], pass: Pass<'_>, dx: &mut [f32], saved: &mut Saved) {
        let [layers, shortcut] = &saved.paths[..] else { return };
        let terms = layers.deltas[0].iter().zip(&shortcut.deltas[0]);
        for (dx, (a, b)) in dx[..pass.n * self.input.len()].iter_mut().zip(terms) {
            *dx = a + b;
        }
    }

    fn backward_inside(&self, p: &[f32], pass: Pass<'_>, saved: &mut Saved) {
        for (ops, path) in self.each(saved) {
            self.load_back(ops, path, pass);
            path.backward(ops, p, pass.n);
        }
    }

    fn gradient(&self, p: &[f32], pass: Pass<'_>, saved: &mut Saved, gradient: &mut [f32]) {
        for (ops, path) in self.each(saved) {
            self.load_back(ops, path, pass);
            path.gradient(ops, p, pass.n, gradient);
        }
    }

    fn begin_clipped(&self, saved: &mut Saved) {
        self.each(saved).for_each(|(ops, path)| path.begin_clipped(ops));
    }

    fn sample_norm_squared(&self, pass: Pass<'_>, i: usize, saved: &mut Saved) -> f64 {
        self.each(saved).map(|(ops, path)| path.sample_norm_squared(ops, pass.n, i)).sum()
    }

    fn add_sample(&self, pass: Pass<'_>, i: usize, factor: f32, saved: &mut Saved) {
        self.each(saved).for_each(|(ops, path)| path.add_sample(ops, pass.n, i, factor));
    }

    fn end_block(&self, saved: &mut Saved) {
        self.each(saved).for_each(|(ops, path)| path.end_block(ops));
    }

    fn finish_clipped(&self, saved: &Saved, gradient: &mut [f64]) {
        for (ops, path) in self.paths.iter().zip(&saved.paths) {
            path.finish_clipped(ops, gradient);
        }
    }
}
