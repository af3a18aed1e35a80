//! Rules kl and js: weights as the paper's, with another divergence in place of the Wasserstein distance.
//!
//! The paper prefers the Wasserstein distance to both, in words; these rules let a run compare.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wasserstein::{ByDistance, GroundMetric, default_floor};
use super::{BuildRule, Histograms, Rule};

/// The parameters of a rule by a divergence.
macro_rules! rule {
    ($(#[$about:meta])* $name:ident, $divergence:ident) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            /// Least divergence: smaller ones count as this, so that no device takes all.
            #[schemars(range(min = 1e-3, max = 100))]
            pub floor: f64,
            /// Way of label histograms to the base station. The default follows privacy.
            pub histograms: Histograms,
        }

        impl Default for $name {
            /// The floor of the Wasserstein distance in total variation.
            fn default() -> Self {
                let floor = default_floor(GroundMetric::TotalVariation);
                Self { floor, histograms: Histograms::Exact }
            }
        }

        impl BuildRule for $name {
            fn build(&self, _: usize) -> Box<dyn Rule> {
                Box::new(ByDistance::new(self.floor, $divergence))
            }

            fn histograms(&self) -> Option<Histograms> {
                Some(self.histograms)
            }
        }
    };
}

rule! {
    /// Parameters of rule kl.
    KlConfig, kl
}
rule! {
    /// Parameters of rule js.
    JsConfig, js
}

/// Kullback–Leibler divergence Σ p_i·ln(p_i/g_i), in nats.
pub fn kl(p: &[f64], g: &[f64]) -> f64 {
    let terms = p.iter().zip(g).filter(|(p, _)| **p > 0.0);
    terms.map(|(p, g)| p * (p / g).ln()).sum()
}

/// Jensen–Shannon divergence ½KL(p‖m) + ½KL(g‖m) with m = (p + g)/2, in nats: at most ln 2.
pub fn js(p: &[f64], g: &[f64]) -> f64 {
    let middle: Vec<f64> = p.iter().zip(g).map(|(p, g)| (p + g) / 2.0).collect();
    (kl(p, &middle) + kl(g, &middle)) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definitions in decimals of 40 digits (Python's decimal).
    #[test]
    fn divergences_are_those_of_exact_arithmetic() {
        let (p, g) = ([0.7, 0.2, 0.1, 0.0], [0.1, 0.4, 0.3, 0.2]);
        assert!((kl(&p, &g) - 1.113_646_439_359_919_3).abs() < 1e-15);
        assert!((js(&p, &g) - 0.239_017_836_645_165_08).abs() < 1e-15);
        assert_eq!((kl(&p, &p), js(&g, &g)), (0.0, 0.0));
        assert!((js(&[1.0, 0.0], &[0.0, 1.0]) - 2f64.ln()).abs() < 1e-15);
    }
}
