//! Gradient leakage.
pub mod matching;
pub mod search;
mod softmax;
pub mod features;
