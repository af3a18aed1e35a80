//! Trace of a pilot run.

/// The numbers of a pilot run. Arrays over rounds and devices are flat, a round after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceArrays {
    /// G_k of each round and device; 0 where it did not send.
    pub weights: Vec<f64>,
    /// σ that its budget asked for, per real coordinate, of each round and device.
    pub sigma_required: Vec<f64>,
    /// σ_n²/(2‖h_k‖²) of each round and device: ν at 1 W. At p_k² watts, ν is this over p_k².
    pub nu_at_watt: Vec<f64>,
    /// c₀² of each device's updates without artificial noise, C²/q + σ_c²: see
    /// [`power_scale`](lapa::budget::power_scale).
    pub quiet_scale_squared: Vec<f64>,
    /// κ of each device: the fraction of the receiver's noise that may be counted.
    pub trust: Vec<f64>,
    /// σ_c²: artificial noise up to this variance does not raise c. 0 unless the scale is fixed.
    pub noise_within_scale: f64,
}

/// Numbers that no pilot run can leave.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TraceError {
    /// No device or no round.
    #[error("a trace of {rounds} rounds and {devices} devices")]
    Empty {
        /// Rounds.
        rounds: usize,
        /// Devices.
        devices: usize,
    },
    /// An array of the wrong length.
    #[error("{name}: {given} numbers, expected {expected}")]
    Length {
        /// Name of the array.
        name: &'static str,
        /// Its length.
        given: usize,
        /// The length it needs.
        expected: usize,
    },
    /// A number without meaning.
    #[error("{name}[{index}] = {value}: expected {allowed}")]
    Value {
        /// Name of the array.
        name: &'static str,
        /// Index of the number.
        index: usize,
        /// The number.
        value: f64,
        /// Allowed values.
        allowed: &'static str,
    },
    /// A factor without meaning.
    #[error("factor {0} on the required noise: expected a finite number from 0")]
    Factor(f64),
}

/// A pilot run, as far as powers are judged by it: who sent with which weight, what noise was
/// required, how good the channels were.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    rounds: usize,
    arrays: TraceArrays,
}

impl Trace {
    /// Checks the numbers. Per-device arrays tell the number of devices.
    pub fn new(arrays: TraceArrays) -> Result<Self, TraceError> {
        let devices = arrays.quiet_scale_squared.len();
        let rounds = arrays.weights.len().checked_div(devices).unwrap_or(0);
        if rounds == 0 || u32::try_from(rounds).is_err() {
            return Err(TraceError::Empty { rounds, devices });
        }
        // Squares and products of four of them stay finite.
        let (any, fraction) = ((1e30, "a number from 0 to 1e30"), (1.0, "a number from 0 to 1"));
        let cells = rounds * devices;
        let within = vec![arrays.noise_within_scale];
        let table = [
            ("noise_within_scale", &within, 1, any),
            ("weights", &arrays.weights, cells, any),
            ("sigma_required", &arrays.sigma_required, cells, any),
            ("nu_at_watt", &arrays.nu_at_watt, cells, any),
            ("quiet_scale_squared", &arrays.quiet_scale_squared, devices, any),
            ("trust", &arrays.trust, devices, fraction),
        ];
        if let Some((name, values, expected, _)) = table.iter().find(|row| row.1.len() != row.2) {
            let (given, expected) = (values.len(), *expected);
            return Err(TraceError::Length { name, given, expected });
        }
        for (name, values, _, (most, allowed)) in table {
            if let Some(index) = values.iter().position(|value| !(0.0..=most).contains(value)) {
                return Err(TraceError::Value { name, index, value: values[index], allowed });
            }
        }
        Ok(Self { rounds, arrays })
    }

    /// The same run with all required noise times `factor`.
    pub fn scaled(&self, factor: f64) -> Result<Self, TraceError> {
        if !(factor >= 0.0 && factor.is_finite()) {
            return Err(TraceError::Factor(factor));
        }
        let mut arrays = self.arrays.clone();
        arrays.sigma_required.iter_mut().for_each(|sigma| *sigma *= factor);
        Self::new(arrays)
    }

    /// Rounds T.
    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// Devices K.
    pub fn devices(&self) -> usize {
        self.arrays.trust.len()
    }

    /// κc₀² of a device.
    pub(super) fn trusted(&self, device: usize) -> f64 {
        self.arrays.trust[device] * self.arrays.quiet_scale_squared[device]
    }

    /// The numbers.
    pub fn arrays(&self) -> &TraceArrays {
        &self.arrays
    }
}
