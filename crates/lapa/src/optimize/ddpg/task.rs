//! P1 as a task for an agent: states, actions, rewards.

use super::super::{Evaluation, Limits};
use super::agent::Sizes;
use super::config::DdpgVariant;

/// An action of ±1 is this many decades of power above or below equal power: 60 dB between the
/// extremes, before the projection. The sum rule's best powers span more than 30.
const DECADES: f64 = 3.0;

/// Objectives count as at most e^10 times better or worse than at equal power.
const MOST_LOGARITHM: f64 = 10.0;

/// Cap of an objective that is not in logarithms, in multiples of that of equal power.
const MOST_PRINTED: f64 = 10.0;

/// The scales of states, actions and rewards: the same for all steps of a search.
pub(super) struct Task {
    limits: Limits,
    rounds: f64,
    /// The objective at equal power, or 1 where that is no scale.
    scale: f64,
    equal: Vec<f64>,
    variant: DdpgVariant,
}

impl Task {
    /// Numbers of a state beside the amplitudes: T_th and the objective.
    const OTHERS: usize = 2;

    pub fn sizes(devices: usize, hidden: usize) -> Sizes {
        Sizes { states: devices + Self::OTHERS, actions: devices, hidden }
    }

    /// A task whose scale is what equal power is worth.
    pub fn new(
        variant: DdpgVariant,
        limits: Limits,
        rounds: u32,
        equal: Vec<f64>,
        worth: f64,
    ) -> Self {
        let scale = if worth > 0.0 && worth.is_finite() { worth } else { 1.0 };
        Self { limits, rounds: f64::from(rounds.max(1)), scale, equal, variant }
    }

    /// The objective as states and rewards have it: ln(L/L_equal), or L as the paper prints it, of
    /// which no more than ten times L_equal counts.
    fn worth(&self, objective: f64) -> f64 {
        match self.variant {
            DdpgVariant::Tuned | DdpgVariant::Td3 => self.logarithm(objective),
            DdpgVariant::Printed => self.scale * self.logarithm(objective).exp().min(MOST_PRINTED),
        }
    }

    /// ln(L/L_equal), within bounds; what is no number counts as the worst.
    fn logarithm(&self, objective: f64) -> f64 {
        let logarithm = (objective / self.scale).ln();
        if logarithm.is_nan() {
            return MOST_LOGARITHM;
        }
        logarithm.clamp(-MOST_LOGARITHM, MOST_LOGARITHM)
    }

    /// s = [p, T_th, L]: amplitudes in units of √P_0, the mean T_th over the devices in units of T,
    /// and ln(L/L_equal), or L as printed, eq. (29).
    pub fn state(&self, amplitudes: &[f64], evaluation: &Evaluation, state: &mut Vec<f32>) {
        let most = self.limits.most_each_w().sqrt();
        state.clear();
        state.extend(amplitudes.iter().map(|p| (p / most) as f32));
        let switching = &evaluation.switching_round;
        let sum: f64 = switching.iter().map(|&round| f64::from(round)).sum();
        state.push((sum / switching.len().max(1) as f64 / self.rounds) as f32);
        state.push(self.worth(evaluation.objective) as f32);
    }

    /// The nearest feasible amplitudes to |p_k|² = 10^(3·a_k) times equal power; as printed, eq. (30),
    /// to p_k = √P_0·(1 + a_k)/2.
    pub fn amplitudes(&self, action: &[f32], amplitudes: &mut Vec<f64>) {
        amplitudes.clear();
        let each = action.iter().zip(&self.equal);
        let most = self.limits.most_each_w().sqrt();
        amplitudes.extend(each.map(|(&a, equal)| match self.variant {
            DdpgVariant::Tuned | DdpgVariant::Td3 => {
                equal * 10f64.powf(0.5 * DECADES * f64::from(a))
            }
            DdpgVariant::Printed => 0.5 * most * (1.0 + f64::from(a)),
        }));
        self.limits.project(amplitudes);
    }

    /// r = −ln(L/L_equal); as printed, eq. (31), r = −L.
    pub fn reward(&self, objective: f64) -> f32 {
        -self.worth(objective) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task_of(variant: DdpgVariant) -> Task {
        let limits = Limits::new(2, 0.02, 2.0, 4.0).unwrap();
        let equal = limits.equal();
        Task::new(variant, limits, 10, equal, 8.0)
    }

    fn task() -> Task {
        task_of(DdpgVariant::Tuned)
    }

    /// Eqs. (29) to (31): p in [0, √P_0], projected; L and −L themselves.
    #[test]
    fn the_printed_task_has_amplitudes_and_the_objective_itself() {
        let task = task_of(DdpgVariant::Printed);
        let mut amplitudes = Vec::new();
        for (action, p) in [([-1.0, 0.0], [0.0, 1.0]), ([-0.5, -1.0], [0.5, 0.0])] {
            task.amplitudes(&action, &mut amplitudes);
            assert_eq!(amplitudes, p);
        }
        task.amplitudes(&[1.0, 1.0], &mut amplitudes);
        assert!((amplitudes.iter().map(|p| p * p).sum::<f64>() - 2.0).abs() < 1e-9, "P_max");
        assert!((task.reward(5.0) + 5.0).abs() < 1e-5);
        // No more than ten times L_equal = 8.
        for worst in [81.0, 1e9, f64::INFINITY, f64::NAN] {
            assert!((task.reward(worst) + 80.0).abs() < 1e-4, "{worst}");
        }
        let evaluation =
            Evaluation { objective: 3.0, switching_round: vec![5, 5], worst_under_noising: 1.0 };
        let mut state = Vec::new();
        task.state(&[1.0, 0.5], &evaluation, &mut state);
        assert_eq!(state[..3], [0.5, 0.25, 0.5]);
        assert!((state[3] - 3.0).abs() < 1e-5);
    }

    /// Equal power is 1 W; P_0 is 4 W, so amplitudes count in units of 2.
    #[test]
    fn states_are_in_units_of_the_limits() {
        let evaluation = Evaluation {
            objective: 8.0 * std::f64::consts::E,
            switching_round: vec![4, 7],
            worst_under_noising: 1.0,
        };
        let mut state = Vec::new();
        task().state(&[1.0, 0.5], &evaluation, &mut state);
        assert_eq!(state, [0.5, 0.25, 0.55, 1.0]);
    }

    /// −1 is 30 dB below equal power; twice 30 dB above is scaled down to P_max.
    #[test]
    fn actions_are_decibels_around_equal_power() {
        let mut amplitudes = Vec::new();
        for (action, watts) in
            [([0.0, 0.0], [1.0, 1.0]), ([-1.0, 0.0], [1e-3, 1.0]), ([1.0, 1.0], [1.0, 1.0])]
        {
            task().amplitudes(&action, &mut amplitudes);
            for (p, watts) in amplitudes.iter().zip(watts) {
                assert!((p * p / watts - 1.0).abs() < 1e-9, "{action:?}: {p}");
            }
        }
    }

    #[test]
    fn rewards_are_logarithms_within_bounds() {
        let reward = |objective: f64| task().reward(objective);
        assert_eq!((reward(8.0), reward(0.0)), (0.0, 10.0));
        assert_eq!((reward(f64::INFINITY), reward(f64::NAN)), (-10.0, -10.0));
        assert!((reward(4.0) - std::f32::consts::LN_2).abs() < 1e-6);
    }
}
