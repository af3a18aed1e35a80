//! One way to choose powers, carried out.

use std::any::Any;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use lapa::aggregate::Histograms;
use lapa::config::{EvaluationChoice, Experiment};
use lapa::data::Dataset;
use lapa::observe::number;
use lapa::optimize::ddpg::Agent;
use lapa::optimize::{Ddpg, Given, Known, Objective, Optimizer, PowerChoice, Progress};
use lapa::run::SwitchingRound;
use lapa_privacy::AccountError;
use lapa_privacy::allocate::Basis;
use serde::{Deserialize, Serialize};

use super::{Live, PhaseError, Pilot, problem};
use crate::power::{Average, CostError, PrivacyCost, Problem, privacy_cost_until};

/// Powers, and what they are worth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The method.
    pub optimizer: PowerChoice,
    /// The method whose powers were worse than equal power on the pilots, and were not taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<PowerChoice>,
    /// J, the noise terms of the bound.
    #[serde(with = "number")]
    pub objective: f64,
    /// J over that of full power.
    #[serde(with = "number")]
    pub objective_relative: f64,
    /// J of equal power over that of full power.
    #[serde(with = "number")]
    pub equal_relative: f64,
    /// J over that of equal power in the rehearsal of a run.
    #[serde(default, with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub rehearsed: Option<f64>,
    /// T_th: of all devices under the sum rule, else of each.
    pub switching_round: SwitchingRound,
    /// Largest σ_required/σ over devices and rounds; 1 where every device has what it needs.
    #[serde(with = "number")]
    pub worst_under_noising: f64,
    /// Σ|p_k|²
    pub total_power_w: f64,
    /// Number of evaluations.
    pub evaluations: u64,
    /// Duration.
    pub seconds: f64,
    /// Provable ε of the worst device: on basis certified its declared budget, else what the noise
    /// that the pilot asked for is worth, counted as `privacy.channel_trust` says.
    #[serde(with = "number::optional")]
    pub epsilon: Option<f64>,
    /// ε of that noise without the channel's (κ = 0): a forecast, since the run's own noise follows
    /// its own rounds. `None` if no theorem covers it.
    #[serde(with = "number::optional")]
    pub epsilon_without_channel: Option<f64>,
    /// DDPG: J of what its actor alone proposes at the end, over that of full power.
    #[serde(default, with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub policy_relative: Option<f64>,
    /// |p_k|² of each device.
    pub powers_w: Vec<f64>,
    /// (evaluations, least J over that of full power so far), where J is finite.
    pub curve: Vec<(u64, f64)>,
}

impl Choice {
    /// J over that of equal power, on the pilots.
    pub fn over_equal(&self) -> f64 {
        self.objective_relative / self.equal_relative
    }
}

/// The problem of choosing powers for an experiment, after its pilot.
pub struct Chooser {
    experiment: Experiment,
    pilots: Vec<Pilot>,
    problems: Average,
    live: Option<Live>,
    /// J at full and at equal power.
    full: f64,
    equal: f64,
    start: Option<Agent>,
    ddpg: Option<Ddpg>,
}

impl Chooser {
    /// Powers are judged by the pilots' traces, or by training on as many digits as `data` has.
    ///
    /// # Panics
    /// If there is no pilot.
    pub fn new(
        experiment: &Experiment,
        pilots: Vec<Pilot>,
        data: &Dataset,
    ) -> Result<Self, PhaseError> {
        let each: Result<Vec<Problem>, _> = pilots.iter().map(|p| problem(experiment, p)).collect();
        let mut others = each?;
        let mut problems = Average::new(others.remove(0), others);
        let mut live = match experiment.control.evaluation {
            EvaluationChoice::Trace => None,
            EvaluationChoice::Live => Some(Live::new(experiment, data)?),
        };
        let limits = problems.limits().clone();
        let judge: &mut dyn Objective = match &mut live {
            Some(live) => live,
            None => &mut problems,
        };
        let full = judge.evaluate(&limits.full())?.objective;
        let equal = judge.evaluate(&limits.equal())?.objective;
        if !(full > 0.0 && full.is_finite()) {
            return Err(PhaseError::NothingToFit(full));
        }
        Ok(Self {
            experiment: experiment.clone(),
            pilots,
            problems,
            live,
            full,
            equal,
            start: None,
            ddpg: None,
        })
    }

    /// DDPG starts from this agent instead of from random networks.
    pub fn start_from(&mut self, agent: Agent) {
        self.start = Some(agent);
    }

    /// DDPG's agent, once it was trained.
    pub fn agent(&self) -> Option<&Agent> {
        self.ddpg.as_ref().and_then(Ddpg::agent)
    }

    /// Warnings of the trainings that judged powers, each once.
    pub fn take_warnings(&mut self) -> BTreeSet<String> {
        self.live.as_mut().map(Live::take_warnings).unwrap_or_default()
    }

    /// The problem as the pilots' traces state it.
    pub fn problems(&self) -> &Average {
        &self.problems
    }

    /// The choice, or equal power where that is better on the pilots or in the rehearsal.
    pub fn or_equal(&mut self, choice: Choice) -> Result<Choice, PhaseError> {
        let Choice { optimizer, rehearsed, .. } = choice;
        if choice.over_equal() <= 1.0 && rehearsed.is_none_or(|over| over <= 1.0) {
            return Ok(choice);
        }
        let equal = self.choose(PowerChoice::Equal, &mut |_| ControlFlow::Continue(()))?;
        Ok(Choice { instead_of: Some(optimizer), rehearsed, ..equal })
    }

    /// Lets one optimizer choose. `on_progress` may break off.
    pub fn choose(
        &mut self,
        optimizer: PowerChoice,
        on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Choice, PhaseError> {
        let seed = self.experiment.run.seed;
        let start = lapa::clock::now();
        let mut search = self.optimizer(optimizer)?;
        let objective: &mut dyn Objective = match &mut self.live {
            Some(live) => live,
            None => &mut self.problems,
        };
        let optimum = search.optimize(objective, seed, on_progress)?;
        // DDPG is asked for more than others.
        let mut policy = None;
        if let Ok(ddpg) = (search as Box<dyn Any>).downcast::<Ddpg>() {
            policy = ddpg.policy_objective();
            self.ddpg = Some(*ddpg);
        }
        let seconds = start.elapsed().as_secs_f64();
        let (evaluations, best) = (optimum.evaluations, optimum.evaluation.objective);
        let mut on_device = || on_progress(Progress { evaluations, of: evaluations, best });
        // A device without power has no update that could be costed.
        let (epsilon, epsilon_without_channel) = if best.is_finite() {
            self.privacy(&optimum.amplitudes, &mut on_device)?
        } else {
            (None, None)
        };
        let evaluation = optimum.evaluation;
        let rounds = evaluation.switching_round;
        let sum = self.experiment.control.noise.goes_by_sum();
        let powers_w: Vec<f64> = optimum.amplitudes.iter().map(|p| p * p).collect();
        let curve = optimum.curve.into_iter().map(|(n, j)| (n, j / self.full));
        Ok(Choice {
            optimizer,
            objective: evaluation.objective,
            instead_of: None,
            objective_relative: evaluation.objective / self.full,
            equal_relative: self.equal / self.full,
            rehearsed: None,
            switching_round: if sum {
                SwitchingRound::All(rounds.into_iter().max().unwrap_or_default())
            } else {
                SwitchingRound::Each(rounds.into_iter().map(Some).collect())
            },
            worst_under_noising: evaluation.worst_under_noising,
            total_power_w: powers_w.iter().sum(),
            evaluations: optimum.evaluations,
            seconds,
            epsilon,
            epsilon_without_channel,
            policy_relative: policy.map(|objective| objective / self.full),
            powers_w,
            curve: curve.filter(|(_, j)| j.is_finite()).collect(),
        })
    }

    fn optimizer(&self, choice: PowerChoice) -> Result<Box<dyn Optimizer>, PhaseError> {
        let (optimizers, limits) = (&self.experiment.control.optimizers, self.problems.limits());
        let Some(parameters) = optimizers.get(choice) else {
            let power_w = &self.experiment.transmit.power_w;
            let devices = 0..limits.devices() as u32;
            return Ok(Box::new(Known::given(devices.map(|k| power_w.of(k).sqrt()).collect())));
        };
        parameters.check(limits.devices())?;
        if let (PowerChoice::Ddpg, Some(agent)) = (choice, &self.start) {
            return Ok(Box::new(Ddpg::with_agent(optimizers.ddpg, agent)?));
        }
        let channel_terms = &self.problems.channel_terms();
        Ok(parameters.build(Given { limits, channel_terms, optimizers })?)
    }

    /// ε with the channel's noise counted, and without. `on_device` may break off.
    fn privacy(
        &self,
        amplitudes: &[f64],
        on_device: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<(Option<f64>, Option<f64>), PhaseError> {
        let (delta, histograms) =
            (self.experiment.delta(), self.experiment.aggregate.rule.histograms());
        if histograms == Some(Histograms::Exact) {
            return Ok((Some(f64::INFINITY), Some(f64::INFINITY)));
        }
        let mut cost = Some(PrivacyCost { counted: 0.0, artificial_only: 0.0 });
        for (problem, pilot) in self.problems.problems().zip(&self.pilots) {
            let one = privacy_cost_until(problem, amplitudes, &pilot.releases, delta, on_device);
            cost = match one {
                // Some costs are known only for a whole schedule.
                Err(CostError::Account { source: AccountError::Unsupported { .. }, .. }) => None,
                one => Some(one?).zip(cost).map(|(one, cost)| one.max(cost)),
            };
        }
        // Noisy histograms are one more release, which this cost does not have.
        let complete = cost.filter(|_| !matches!(histograms, Some(Histograms::Noisy(_))));
        let counted = match self.experiment.basis() {
            // Whatever the noise: no more than the budget is spent.
            Basis::Certified => self.pilots[0].budget,
            Basis::Paper => complete.map(|cost| cost.counted),
        };
        Ok((counted, complete.map(|cost| cost.artificial_only)))
    }
}
