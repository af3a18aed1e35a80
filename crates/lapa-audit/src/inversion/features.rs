
use std::sync::Arc;
use lapa::model::{Function, Network};
pub struct Features { pub function: Function, pub target: Vec<f32> , pub norm: f64}
impl Features {
    pub fn new(network: &Network, prefix: Network, gradient: &[f32]) -> Self {
        let t = network.tensors();
        let at = t.iter().position(|t| t.name.ends_with("linear.weight")).unwrap();
        let (w, b) = (&gradient[t[at].range.clone()], &gradient[t[at+1].range.clone()]);
        let width = t[at].shape[1];
        let sq: f64 = b.iter().map(|&b| f64::from(b).powi(2)).sum();
        let mut f = vec![0.0f64; width];
        for (row, &b) in w.chunks_exact(width).zip(b) { for (f, &w) in f.iter_mut().zip(row) { *f += f64::from(w) * f64::from(b) / sq; } }
        let norm = f.iter().map(|f| f * f).sum();
        Self { function: Function::new(Arc::new(prefix)), target: f.iter().map(|&f| f as f32).collect(), norm }
    }
    pub fn distance(&mut self, parameters: &[f32], image: &[f32], descent: &mut [f32]) -> f64 {
        let p = &parameters[..self.function.network().parameter_count()];
        let y = self.function.forward(p, image, 1);
        let mut sum = 0.0;
        let d: Vec<f32> = y.iter().zip(&self.target).map(|(&y, &t)| { let d = f64::from(y - t); sum += d * d; (2.0 * d / self.norm) as f32 }).collect();
        descent.copy_from_slice(self.function.input_gradient(p, &d));
        sum / self.norm
    }
}
