//! Adam.

/// β₁, β₂ and ε: PyTorch's defaults.
const BETA: (f64, f64) = (0.9, 0.999);
const EPSILON: f32 = 1e-8;

/// Adam (Kingma & Ba 2015, algorithm 1), with PyTorch's defaults.
pub(super) struct Adam {
    rate: f64,
    steps: i32,
    mean: Vec<f32>,
    square: Vec<f32>,
}

impl Adam {
    pub fn new(parameters: usize, rate: f64) -> Self {
        Self { rate, steps: 0, mean: vec![0.0; parameters], square: vec![0.0; parameters] }
    }

    /// Moves the parameters against the gradient.
    pub fn step(&mut self, parameters: &mut [f32], gradient: &[f32]) {
        // Past this count both corrections are 1.
        self.steps = self.steps.saturating_add(1);
        let rate = (self.rate / (1.0 - BETA.0.powi(self.steps))) as f32;
        let root = (1.0 / (1.0 - BETA.1.powi(self.steps)).sqrt()) as f32;
        let (keep_mean, keep_square) = (BETA.0 as f32, BETA.1 as f32);
        let (new_mean, new_square) = ((1.0 - BETA.0) as f32, (1.0 - BETA.1) as f32);
        let moments = self.mean.iter_mut().zip(&mut self.square);
        for ((p, &g), (mean, square)) in parameters.iter_mut().zip(gradient).zip(moments) {
            *mean = keep_mean * *mean + new_mean * g;
            *square = keep_square * *square + new_square * g * g;
            *p -= rate * *mean / (root * square.sqrt() + EPSILON);
        }
    }
}
