//! A network over plain vectors: the same ops, without images, labels and a loss.

use std::sync::Arc;

use super::network::Network;
use super::op::{Pass, Saved};
use super::worker::make_room;

/// One thread's memory for a network that maps vectors to vectors, and its derivatives. After its
/// first batch it allocates nothing of its own, as a [`Worker`](super::Worker).
pub struct Function {
    network: Arc<Network>,
    /// Samples of the last [`Function::forward`].
    n: usize,
    /// `activations[s]` are the inputs of op s; the last ones are the outputs.
    activations: Vec<Vec<f32>>,
    /// The gradient in the activations.
    deltas: Vec<Vec<f32>>,
    saved: Vec<Saved>,
}

impl Function {
    /// The network as a function of the vectors that it is given.
    ///
    /// # Panics
    /// If it has batch norm, which is no function of one vector.
    pub fn new(network: Arc<Network>) -> Self {
        assert!(!network.mixes_samples(), "batch norm is no function of one vector");
        let ops = network.ops.len();
        Self {
            network,
            n: 0,
            activations: vec![Vec::new(); ops + 1],
            deltas: vec![Vec::new(); ops + 1],
            saved: (0..ops).map(|_| Saved::default()).collect(),
        }
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Outputs for `n` inputs, one after the other.
    ///
    /// # Panics
    /// If the lengths do not fit the network.
    pub fn forward(&mut self, parameters: &[f32], inputs: &[f32], n: usize) -> &[f32] {
        let network = &self.network;
        assert_eq!(inputs.len(), n * network.inputs(), "inputs");
        assert_eq!(parameters.len(), network.parameter_count(), "parameters");
        self.n = n;
        make_room(&mut self.activations[0], n * network.inputs());
        self.activations[0][..inputs.len()].copy_from_slice(inputs);
        for (s, slot) in network.ops.iter().enumerate() {
            let (x, y) = self.activations.split_at_mut(s + 1);
            make_room(&mut y[0], n * slot.op.output_len());
            let parameters = &parameters[slot.parameters.clone()];
            slot.op.forward(parameters, n, &x[s], &mut y[0], &mut self.saved[s]);
        }
        &self.activations[network.ops.len()][..n * network.classes()]
    }

    /// gradient = Σ_i (∂y_i/∂parameters)ᵀ d_i over the inputs of the last [`Function::forward`],
    /// for the gradients d_i in its outputs and the parameters that it had.
    ///
    /// # Panics
    /// If the lengths do not fit the network and that batch.
    pub fn gradient(&mut self, parameters: &[f32], in_outputs: &[f32], gradient: &mut [f32]) {
        assert_eq!(gradient.len(), self.network.parameter_count(), "gradient");
        self.backward(parameters, in_outputs, Some(gradient));
    }

    /// (∂y_i/∂x_i)ᵀ d_i for each input x_i of the last [`Function::forward`].
    ///
    /// # Panics
    /// As [`Function::gradient`].
    pub fn input_gradient(&mut self, parameters: &[f32], in_outputs: &[f32]) -> &[f32] {
        self.backward(parameters, in_outputs, None);
        &self.deltas[0][..self.n * self.network.inputs()]
    }

    /// Back through the ops, for the gradient in the parameters or else in the inputs: who wants
    /// the one seldom wants the other, and the first op of either is work.
    fn backward(
        &mut self,
        parameters: &[f32],
        in_outputs: &[f32],
        mut gradient: Option<&mut [f32]>,
    ) {
        let (network, n) = (&self.network, self.n);
        assert_eq!(in_outputs.len(), n * network.classes(), "gradient in the outputs");
        assert_eq!(parameters.len(), network.parameter_count(), "parameters");
        let last = network.ops.len();
        make_room(&mut self.deltas[last], in_outputs.len());
        self.deltas[last][..in_outputs.len()].copy_from_slice(in_outputs);
        for (s, slot) in network.ops.iter().enumerate().rev() {
            let (before, after) = self.deltas.split_at_mut(s + 1);
            let pass =
                Pass { n, x: &self.activations[s], y: &self.activations[s + 1], dy: &after[0] };
            let saved = &mut self.saved[s];
            if let Some(gradient) = &mut gradient {
                slot.op.gradient(pass, saved, &mut gradient[slot.parameters.clone()]);
                if s == 0 {
                    break;
                }
            }
            if before[s].len() < self.activations[s].len() {
                before[s].resize(self.activations[s].len(), 0.0);
            }
            slot.op.backward(&parameters[slot.parameters.clone()], pass, &mut before[s], saved);
        }
    }
}
