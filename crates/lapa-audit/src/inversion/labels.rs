//! Labels out of the gradient of the last layer: Zhao, Mopuri and Bilen (2020), "iDLG: improved
//! deep leakage from gradients".
//!
//! For an image with label y the gradient in the last layer's row c is (p_c − \[c = y\])·(a, 1), with
//! a the layer's inputs, which relu or pixels keep from being negative. So only the label's row
//! points away from (a, 1), whatever a is.

use lapa::model::Network;

/// Reads labels out of gradients of one model.
#[derive(Clone, Debug)]
pub struct LabelReader {
    /// Places of the last layer's weights and biases.
    weights: std::ops::Range<usize>,
    biases: std::ops::Range<usize>,
    /// Mean inputs of the last layer over the attacker's own images: the direction that noise is
    /// averaged out along.
    inputs: Vec<f64>,
    /// Mean scores of the attacker's own images of each label.
    expected: Vec<Vec<f64>>,
}

impl LabelReader {
    /// From the gradients of single images of the attacker's own, with their labels; `None` unless
    /// the network ends with a fully connected layer.
    pub fn new<'a>(
        network: &Network,
        own: impl Iterator<Item = (&'a [f32], u8)> + Clone,
    ) -> Option<Self> {
        let [.., weights, biases] = network.tensors() else { return None };
        let ([classes, width], true) = (&*weights.shape, biases.name.ends_with("linear.bias"))
        else {
            return None;
        };
        let (weights, biases) = (weights.range.clone(), biases.range.clone());
        let mut inputs = vec![0.0; *width];
        let mut count = 0.0;
        for (gradient, label) in own.clone() {
            let bias = f64::from(gradient[biases.clone()][usize::from(label)]);
            if bias == 0.0 {
                continue;
            }
            let row = &gradient[weights.clone()][usize::from(label) * width..][..*width];
            inputs.iter_mut().zip(row).for_each(|(mean, &w)| *mean += f64::from(w) / bias);
            count += 1.0;
        }
        inputs.iter_mut().for_each(|mean| *mean /= f64::max(count, 1.0));
        let mut reader = Self { weights, biases, inputs, expected: Vec::new() };
        let mut expected = vec![vec![0.0; *classes]; *classes];
        let mut counts = vec![0.0; *classes];
        for (gradient, label) in own {
            let of_label = &mut expected[usize::from(label)];
            of_label.iter_mut().zip(reader.scores(gradient)).for_each(|(sum, score)| *sum += score);
            counts[usize::from(label)] += 1.0;
        }
        for (sums, count) in expected.iter_mut().zip(counts) {
            sums.iter_mut().for_each(|sum| *sum /= f64::max(count, 1.0));
        }
        reader.expected = expected;
        Some(reader)
    }

    /// For each class c, the product of row c of the last layer's gradient with the mean inputs.
    fn scores(&self, gradient: &[f32]) -> Vec<f64> {
        let rows = gradient[self.weights.clone()].chunks_exact(self.inputs.len());
        let biases = &gradient[self.biases.clone()];
        rows.zip(biases)
            .map(|(row, &bias)| {
                let along = row.iter().zip(&self.inputs).map(|(&w, input)| f64::from(w) * input);
                along.sum::<f64>() + f64::from(bias)
            })
            .collect()
    }

    /// The label of one image: the lowest score. Without noise it is the only one below 0, and the
    /// label is right.
    pub fn single(&self, gradient: &[f32]) -> u8 {
        lowest(&self.scores(gradient))
    }

    /// The labels of `n` images, ascending, from their mean gradient. Classes with a score below 0
    /// are there for certain, if there is no noise. The others are guessed: each in turn is the one
    /// whose expected score, from images of the attacker's own, brings the sum closest.
    pub fn batch(&self, gradient: &[f32], n: usize) -> Vec<u8> {
        if n == 1 {
            return vec![self.single(gradient)];
        }
        let mut left: Vec<f64> =
            self.scores(gradient).iter().map(|score| score * n as f64).collect();
        let mut below: Vec<usize> = (0..left.len()).filter(|&c| left[c] < 0.0).collect();
        below.sort_by(|&a, &b| left[a].total_cmp(&left[b]));
        below.truncate(n);
        let mut labels = Vec::with_capacity(n);
        for step in 0..n {
            let label = below.get(step).copied().unwrap_or_else(|| {
                let misfit = |c: usize| -> f64 {
                    left.iter().zip(&self.expected[c]).map(|(l, e)| (l - e).powi(2)).sum()
                };
                usize::from(lowest(&(0..left.len()).map(misfit).collect::<Vec<f64>>()))
            });
            left.iter_mut().zip(&self.expected[label]).for_each(|(left, e)| *left -= e);
            labels.push(label as u8);
        }
        labels.sort_unstable();
        labels
    }
}

fn lowest(values: &[f64]) -> u8 {
    let lowest = values.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
    lowest.map_or(0, |(c, _)| c as u8)
}

/// Number of labels of `truth` that are in `guess`, each counted at most as often as it occurs.
pub fn hits(guess: &[u8], truth: &[u8]) -> usize {
    let mut left = guess.to_vec();
    let found = truth.iter().filter(|label| {
        left.iter().position(|other| other == *label).map(|at| left.swap_remove(at)).is_some()
    });
    found.count()
}
