//! A network over plain vectors: the same ops, without images, labels and a loss.

use std::sync::Arc;

use super::chain::Chain;
use super::network::Network;

/// One thread's memory for a network that maps vectors to vectors, and its derivatives. After its
/// first batch it allocates nothing of its own, as a [`Worker`](super::Worker).
pub struct Function {
    network: Arc<Network>,
    /// Samples of the last [`Function::forward`].
    n: usize,
    chain: Chain,
}

impl Function {
    /// The network as a function of the vectors that it is given.
    ///
    /// # Panics
    /// If it has batch norm, which is no function of one vector.
    pub fn new(network: Arc<Network>) -> Self {
        assert!(!network.mixes_samples(), "batch norm is no function of one vector");
        Self { network, n: 0, chain: Chain::default() }
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
        self.chain.make_room(&network.ops, network.inputs(), n);
        self.chain.activations[0][..inputs.len()].copy_from_slice(inputs);
        self.chain.forward(&network.ops, parameters, n);
        &self.chain.outputs()[..n * network.classes()]
    }

    /// gradient = Σ_i (∂y_i/∂parameters)ᵀ d_i over the inputs of the last [`Function::forward`],
    /// for the gradients d_i in its outputs and the parameters that it had.
    ///
    /// # Panics
    /// If the lengths do not fit the network and that batch.
    pub fn gradient(&mut self, parameters: &[f32], in_outputs: &[f32], gradient: &mut [f32]) {
        assert_eq!(gradient.len(), self.network.parameter_count(), "gradient");
        self.begin_backward(parameters, in_outputs);
        // Who wants the one gradient seldom wants the other, and the first op of either is work.
        self.chain.deltas[0].clear();
        self.chain.gradient(&self.network.ops, parameters, self.n, gradient);
    }

    /// (∂y_i/∂x_i)ᵀ d_i for each input x_i of the last [`Function::forward`].
    ///
    /// # Panics
    /// As [`Function::gradient`].
    pub fn input_gradient(&mut self, parameters: &[f32], in_outputs: &[f32]) -> &[f32] {
        self.begin_backward(parameters, in_outputs);
        self.chain.make_room_at_inputs();
        self.chain.backward(&self.network.ops, parameters, self.n);
        &self.chain.deltas[0][..self.n * self.network.inputs()]
    }

    fn begin_backward(&mut self, parameters: &[f32], in_outputs: &[f32]) {
        let (network, n) = (&self.network, self.n);
        assert_eq!(in_outputs.len(), n * network.classes(), "gradient in the outputs");
        assert_eq!(parameters.len(), network.parameter_count(), "parameters");
        self.chain.make_room_back(&network.ops, n);
        self.chain.deltas[network.ops.len()][..in_outputs.len()].copy_from_slice(in_outputs);
    }
}
