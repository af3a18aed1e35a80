//! The scheme `dirichlet`: label shares drawn at random.

use rand_distr::{Distribution, multi};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sizes::total;
use super::{DEVICES, MOST_DEVICES, PartitionError, PartitionScheme, Plan};
use crate::seed::Stream;

/// Most draws of `dirichlet` while a device stays empty.
const DRAWS: u32 = 1000;
/// Empty devices, of all draws so far and per draw, from which `dirichlet` gives up early. With m of
/// them expected, about e^−m of the draws leave none; where m < 30, counts as high as this do not occur.
/// So a thousand draws would have found no plan: the chance is below 10⁻⁹.
const HOPELESS: usize = 600;
const HOPELESS_PER_DRAW: usize = 60;

/// Label shares over the devices, for each label drawn from a symmetric Dirichlet distribution
/// (Hsu, Qi and Brown, "Measuring the effects of non-identical data distribution for federated
/// visual classification", 2019). Uses the whole training set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(description = "Parameters of scheme dirichlet.")]
pub struct Dirichlet {
    /// Number of devices.
    #[schemars(range(min = 1, max = MOST_DEVICES))]
    pub devices: u32,
    /// Concentration of the label shares; the smaller, the more uneven.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub concentration: f64,
}

impl Default for Dirichlet {
    fn default() -> Self {
        Self { devices: DEVICES, concentration: 0.5 }
    }
}

impl PartitionScheme for Dirichlet {
    fn devices(&self) -> u32 {
        self.devices
    }

    fn devices_key(&self) -> &'static str {
        "`partition.dirichlet.devices`"
    }

    fn plan(&self, supply: &[u32], rng: &mut Stream) -> Result<Plan, PartitionError> {
        let shares = Shares {
            scheme: "dirichlet",
            key: "dirichlet.concentration",
            concentration: self.concentration,
            devices: self.devices,
        };
        shares.draw(supply, rng)
    }
}

/// Shares of the devices, by a symmetric Dirichlet distribution.
pub(super) struct Shares {
    pub scheme: &'static str,
    /// Key of the concentration, after `partition.`.
    pub key: &'static str,
    pub concentration: f64,
    pub devices: u32,
}

impl Shares {
    /// Parts of each pile of samples for each device, drawn until no device is empty.
    pub fn draw(&self, piles: &[u32], rng: &mut Stream) -> Result<Plan, PartitionError> {
        let Self { scheme, key, concentration, devices } = *self;
        let count = devices as usize;
        if count == 1 {
            return Ok(vec![piles.to_vec()]);
        }
        let shares = multi::Dirichlet::new(&vec![concentration; count])
            .map_err(|_| PartitionError::Concentration { key, concentration })?;
        let (mut draws, mut empty) = (0, 0);
        while draws < DRAWS {
            let columns: Vec<_> = piles.iter().map(|&n| cut(n, &shares.sample(rng))).collect();
            let is_empty = |device: &usize| columns.iter().all(|column| column[*device] == 0);
            draws += 1;
            match (0..count).filter(is_empty).count() {
                0 => {
                    let counts = |device| columns.iter().map(|column| column[device]).collect();
                    return Ok((0..count).map(counts).collect());
                }
                found => empty += found,
            }
            if empty >= HOPELESS && empty >= HOPELESS_PER_DRAW * draws as usize {
                break;
            }
        }
        let samples = total(piles);
        Err(PartitionError::EmptyDevice { scheme, key, concentration, devices, samples, draws })
    }
}

/// Cuts `n` samples at the running sums of the shares: nothing is lost to rounding.
fn cut(n: u32, shares: &[f64]) -> Vec<u32> {
    let (mut sum, mut start) = (0.0, 0);
    let mut parts: Vec<u32> = shares
        .iter()
        .map(|share| {
            sum += share;
            // Shares of extreme concentrations may be NaN; such a part is empty.
            let end = ((sum * f64::from(n)).round() as u32).clamp(start, n);
            end - std::mem::replace(&mut start, end)
        })
        .collect();
    if let Some(last) = parts.last_mut() {
        *last += n - start;
    }
    parts
}
