//! The channel vectors of all devices.

pub use num_complex::Complex64;

/// h_k ∈ C^{N_a} for every device k: path loss and fading together, so that a signal of power p²
/// arrives with power p²‖h_k‖² over all antennas.
#[derive(Clone, Debug, PartialEq)]
pub struct Channels {
    antennas: usize,
    coefficients: Vec<Complex64>,
}

impl Channels {
    /// Room for `devices` channels of `antennas` coefficients, all 0.
    pub fn new(devices: usize, antennas: usize) -> Self {
        Self { antennas, coefficients: vec![Complex64::ZERO; devices * antennas] }
    }

    /// Devices.
    pub fn devices(&self) -> usize {
        self.coefficients.len() / self.antennas
    }

    /// Antennas of the base station, N_a.
    pub fn antennas(&self) -> usize {
        self.antennas
    }

    /// h_k
    pub fn of(&self, device: usize) -> &[Complex64] {
        &self.coefficients[device * self.antennas..][..self.antennas]
    }

    /// h_k, to be set.
    pub fn of_mut(&mut self, device: usize) -> &mut [Complex64] {
        &mut self.coefficients[device * self.antennas..][..self.antennas]
    }

    /// ‖h_k‖²
    pub fn gain(&self, device: usize) -> f64 {
        self.of(device).iter().map(|h| h.norm_sqr()).sum()
    }

    /// The channels of some devices, in that order.
    pub fn select(&self, devices: impl IntoIterator<Item = usize>) -> Self {
        let coefficients = devices.into_iter().flat_map(|k| self.of(k).iter().copied()).collect();
        Self { antennas: self.antennas, coefficients }
    }
}
