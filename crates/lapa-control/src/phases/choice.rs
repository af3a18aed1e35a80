//! One way to choose powers, carried out.

use std::ops::ControlFlow;

use lapa::budget::Histograms;
use lapa::config::{EvaluationChoice, Experiment, PowerChoice};
use lapa::data::Dataset;
use lapa::observe::number;
use lapa::run::SwitchingRound;
use lapa_privacy::AccountError;
use lapa_privacy::allocate::Basis;
use serde::Serialize;

use super::{Live, PhaseError, Pilot, problem};
use crate::optimize::ddpg::{Agent, Settings};
use crate::optimize::{CmaEs, Ddpg, Known, OptimizeError, Optimizer, Progress, RandomSearch};
use crate::power::{CostError, Objective, Problem, privacy_cost_until};

/// The ways to choose powers that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PowerMethod {
    /// P_max/K each.
    Equal,
    /// P_0 each, scaled into P_max.
    Full,
    /// In proportion to weight over channel gain.
    ClosedForm,
    /// The best of as many random draws as DDPG takes steps.
    RandomSearch,
    /// The best of CMA-ES.
    CmaEs,
    /// The best of DDPG.
    Ddpg,
}

impl PowerMethod {
    /// All of them, the cheap ones first.
    pub const ALL: [Self; 6] =
        [Self::Equal, Self::Full, Self::ClosedForm, Self::RandomSearch, Self::CmaEs, Self::Ddpg];

    /// Its name, as on the command line and in `control.power`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Full => "full",
            Self::ClosedForm => "closed-form",
            Self::RandomSearch => "random-search",
            Self::CmaEs => "cma-es",
            Self::Ddpg => "ddpg",
        }
    }

    /// The one that `control.power` names; none where powers are given.
    pub fn of(power: PowerChoice) -> Option<Self> {
        match power {
            PowerChoice::File => None,
            PowerChoice::Equal => Some(Self::Equal),
            PowerChoice::Full => Some(Self::Full),
            PowerChoice::ClosedForm => Some(Self::ClosedForm),
            PowerChoice::CmaEs => Some(Self::CmaEs),
            PowerChoice::Ddpg => Some(Self::Ddpg),
        }
    }
}

/// Powers, and what they are worth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// The method.
    pub optimizer: PowerMethod,
    /// J, the noise terms of the bound.
    #[serde(with = "number")]
    pub objective: f64,
    /// J over that of full power.
    #[serde(with = "number")]
    pub objective_relative: f64,
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
    /// its own rounds. None if no theorem covers it.
    #[serde(with = "number::optional")]
    pub epsilon_without_channel: Option<f64>,
    /// DDPG: J of what its actor alone proposes at the end, over that of full power.
    #[serde(default, with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub policy_relative: Option<f64>,
    /// |p_k|² of each device.
    pub powers_w: Vec<f64>,
    /// (evaluations, least J over that of full power so far).
    pub curve: Vec<(u64, f64)>,
}

/// An optimizer; DDPG is asked for more than others afterwards.
enum Searcher {
    Ddpg(Box<Ddpg>),
    Other(Box<dyn Optimizer>),
}

/// The problem of choosing powers for an experiment, after its pilot.
pub struct Chooser {
    experiment: Experiment,
    pilot: Pilot,
    problem: Problem,
    live: Option<Live>,
    /// J at full power.
    full: f64,
    start: Option<Agent>,
    ddpg: Option<Ddpg>,
}

impl Chooser {
    /// Powers are judged by the pilot's trace, or by training on as many digits as `data` has.
    pub fn new(experiment: &Experiment, pilot: Pilot, data: &Dataset) -> Result<Self, PhaseError> {
        let mut problem = problem(experiment, &pilot)?;
        let mut live = match experiment.control.evaluation {
            EvaluationChoice::Trace => None,
            EvaluationChoice::Live => Some(Live::new(experiment, data)?),
        };
        let full = problem.limits().full();
        let judge: &mut dyn Objective = match &mut live {
            Some(live) => live,
            None => &mut problem,
        };
        let full = judge.evaluate(&full)?.objective;
        if !(full > 0.0 && full.is_finite()) {
            return Err(PhaseError::NothingToFit(full));
        }
        Ok(Self {
            experiment: experiment.clone(),
            pilot,
            problem,
            live,
            full,
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

    /// The problem as the pilot's trace states it.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Lets one optimizer choose. `on_progress` may break off.
    pub fn choose(
        &mut self,
        optimizer: PowerMethod,
        on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Choice, PhaseError> {
        let seed = self.experiment.run.seed;
        let start = lapa::clock::now();
        let mut searcher = self.searcher(optimizer)?;
        let objective: &mut dyn Objective = match &mut self.live {
            Some(live) => live,
            None => &mut self.problem,
        };
        let optimum = match &mut searcher {
            Searcher::Ddpg(ddpg) => ddpg.optimize(objective, seed, on_progress)?,
            Searcher::Other(other) => other.optimize(objective, seed, on_progress)?,
        };
        let mut policy = None;
        if let Searcher::Ddpg(ddpg) = searcher {
            policy = ddpg.policy_objective();
            self.ddpg = Some(*ddpg);
        }
        let seconds = start.elapsed().as_secs_f64();
        let (evaluations, best) = (optimum.evaluations, optimum.evaluation.objective);
        let mut on_device = || on_progress(Progress { evaluations, of: evaluations, best });
        let (epsilon, epsilon_without_channel) =
            self.privacy(&optimum.amplitudes, &mut on_device)?;
        let evaluation = optimum.evaluation;
        let rounds = evaluation.switching_round;
        let sum = self.experiment.control.noise.goes_by_sum();
        let powers_w: Vec<f64> = optimum.amplitudes.iter().map(|p| p * p).collect();
        Ok(Choice {
            optimizer,
            objective: evaluation.objective,
            objective_relative: evaluation.objective / self.full,
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
            curve: optimum.curve.into_iter().map(|(n, j)| (n, j / self.full)).collect(),
        })
    }

    fn searcher(&self, optimizer: PowerMethod) -> Result<Searcher, PhaseError> {
        let (control, limits) = (&self.experiment.control, self.problem.limits());
        let steps = control.ddpg.episodes.saturating_mul(control.ddpg.steps);
        Ok(Searcher::Other(match optimizer {
            PowerMethod::Equal => Box::new(Known::equal(limits)),
            PowerMethod::Full => Box::new(Known::full(limits)),
            PowerMethod::ClosedForm => Box::new(Known::closed_form(&self.problem)),
            PowerMethod::RandomSearch => Box::new(RandomSearch { evaluations: steps }),
            PowerMethod::CmaEs => Box::new(CmaEs { evaluations: control.cma_es.evaluations }),
            PowerMethod::Ddpg => {
                let settings = Settings::from(control.ddpg);
                settings.check_for(limits.devices())?;
                let ddpg = match &self.start {
                    Some(agent) => Ddpg::with_agent(settings, agent)?,
                    None => Ddpg::new(settings)?,
                };
                return Ok(Searcher::Ddpg(ddpg.into()));
            }
        }))
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
        let (problem, releases) = (&self.problem, &self.pilot.releases);
        let cost = privacy_cost_until(problem, amplitudes, releases, delta, on_device);
        let cost = match cost {
            Err(CostError::Cancelled(cancelled)) => {
                return Err(OptimizeError::from(cancelled).into());
            }
            // Some costs are known only for a whole schedule.
            Err(CostError::Account { source: AccountError::Unsupported { .. }, .. }) => None,
            cost => Some(cost?),
        };
        // Noisy histograms are one more release, which this cost does not have.
        let complete = cost.filter(|_| !matches!(histograms, Some(Histograms::Noisy(_))));
        let counted = match self.experiment.basis() {
            // Whatever the noise: no more than the budget is spent.
            Basis::Certified => self.pilot.budget,
            Basis::Paper => complete.map(|cost| cost.counted),
        };
        Ok((counted, complete.map(|cost| cost.artificial_only)))
    }
}
