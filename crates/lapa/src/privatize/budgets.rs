//! Who may release what: allocator, filters and ledger, in that order, before anything is
//! computed.

use lapa_privacy::allocate::{
    Allocator, AllocatorState, Arb, Ask, Basis, Lapa, OptimalSplit, Pid, Transcript, Uniform,
};
use lapa_privacy::ledger::{DataKey, Grant, Ledger, Repeat, Request, Terms, add_up};
use lapa_privacy::{Adjacency, Event, Filter, FilterKind, Release};
use rand::Rng;

use super::readings::Readings;
use super::terms::{DeviceTerms, PrivatizeError, terms};
use crate::config::{AllocatorName, Entropy, Experiment};

/// A share below this part of an equal share is refused rather than sent as pure noise.
const FLOOR: f64 = 0.01;

/// The kind of a device's terms where nothing is enforced.
const UNLIMITED: &str = "unlimited";

/// A release that is on record.
#[derive(Clone, Debug, PartialEq)]
pub struct Granted {
    /// The device.
    pub device: u32,
    /// The release.
    pub event: Event,
    /// What it costs on the basis of the run: ε_k as claimed, or of this one release as proved.
    pub epsilon: f64,
    /// The smoothed angle that its share was decided with.
    pub angle: Option<f64>,
}

impl Granted {
    /// Standard deviation of the noise on each coordinate.
    pub fn sigma(&self) -> f64 {
        match &self.event {
            Event::Release(release) => release.sigma_artificial,
            Event::NonPrivate { .. } => 0.0,
        }
    }
}

/// What a device has spent so far, over all runs on its ledger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spent {
    /// The paper's sum of epsilons.
    pub claimed: f64,
    /// What can be proved; ∞ after a release without noise.
    pub provable: f64,
}

/// What the grants of a round were decided with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decision {
    /// `e^[t]`, the PID-like error.
    pub pid_error: Option<f64>,
    /// `ε^[t]`, the round's budget.
    pub epsilon_round: Option<f64>,
}

/// One device's book.
struct Account {
    terms: DeviceTerms,
    /// What this run may spend in all, in the filter's currency.
    start: f64,
    /// What other runs on the same ledger had spent when this one began.
    others: f64,
    /// What this run has spent.
    own: f64,
    /// The paper's sum of epsilons over this run.
    claimed: f64,
}

/// The budgets of all devices.
pub struct Budgets {
    /// What the ledger knows the data by.
    data: String,
    basis: Basis,
    delta: f64,
    /// None: no noise.
    allocator: Option<Box<dyn Allocator>>,
    accounts: Vec<Account>,
    ledger: Ledger,
    run: String,
    repeat: Repeat,
    rounds: u32,
    readings: Readings,
    warnings: Vec<String>,
    out_of_range: bool,
}

impl Budgets {
    /// The budgets of devices with `public_samples`, recorded in memory only.
    pub fn new(experiment: &Experiment, public_samples: &[u32]) -> Result<Self, PrivatizeError> {
        let devices = terms(experiment, public_samples, &|_| None)?;
        let data = DataKey { data: "memory".into(), partition: "memory".into() };
        let ledger = Ledger::in_memory()?;
        Self::begin(experiment, public_samples, devices, ledger, &data, "memory")
    }

    /// Records in `ledger` from now on, as `run`, which begins there or goes on. Where the ledger
    /// already knows a device, its kind of filter stays.
    pub fn move_to(
        &mut self,
        experiment: &Experiment,
        public_samples: &[u32],
        ledger: Ledger,
        data: &DataKey,
        run: &str,
    ) -> Result<(), PrivatizeError> {
        let mut known = ledger.terms()?;
        known.retain(|declared| declared.data == data.data);
        let devices = match known.is_empty() {
            true => self.accounts.drain(..).map(|account| account.terms).collect(),
            false => terms(experiment, public_samples, &|device| {
                let declared = known.iter().find(|declared| declared.device == device)?;
                serde_json::from_str(&declared.terms.kind).ok()
            })?,
        };
        *self = Self::begin(experiment, public_samples, devices, ledger, data, run)?;
        Ok(())
    }

    fn begin(
        experiment: &Experiment,
        public_samples: &[u32],
        devices: Vec<DeviceTerms>,
        mut ledger: Ledger,
        data: &DataKey,
        run: &str,
    ) -> Result<Self, PrivatizeError> {
        let (privacy, rounds) = (&experiment.privacy, experiment.run.rounds);
        refuse_if_nothing_is_left(&ledger, data, run, rounds, &devices)?;
        let listed: Vec<(u32, Terms)> =
            (0..).zip(devices.iter().map(|terms| ledger_terms(terms, privacy.delta))).collect();
        let left = ledger.begin_run(run, data, &listed)?;
        let allocator = allocator(experiment, public_samples, &devices)?;
        let accounts: Vec<Account> = devices
            .into_iter()
            .zip(left)
            .map(|(terms, start)| Account { terms, start, others: 0.0, own: 0.0, claimed: 0.0 })
            .collect();
        let mut budgets = Self {
            data: data.data.clone(),
            basis: privacy.basis,
            delta: privacy.delta,
            allocator,
            accounts,
            ledger,
            run: run.into(),
            repeat: match privacy.entropy {
                Entropy::Seed => Repeat::Replay,
                Entropy::Os => Repeat::ChargeAgain,
            },
            rounds,
            readings: Readings::default(),
            warnings: Vec::new(),
            out_of_range: false,
        };
        budgets.warn_of_delta(public_samples);
        for device in 0..budgets.devices() {
            let total = budgets.ledger.spent(&budgets.data, device)?.unwrap_or_default();
            let own = budgets.ledger.own_spent(run, device, None)?;
            // What is infinite, or equal, leaves no difference.
            let others = if total > own { total - own } else { 0.0 };
            budgets.accounts[device as usize].others = others;
        }
        Ok(budgets)
    }

    fn warn_of_delta(&mut self, public_samples: &[u32]) {
        let delta = self.delta;
        let fewest = public_samples.iter().min().copied().unwrap_or_default();
        if self.allocator.is_some() && delta * f64::from(fewest) >= 1.0 {
            self.warnings.push(format!(
                "privacy.delta = {delta:e} is not below 1/{fewest}, one over the samples of the \
                 smallest device: a mechanism that reveals a record at random would pass"
            ));
        }
    }

    /// Allocates, filters and records the releases of a round; those not granted are left out.
    /// When this returns the record is on the disk.
    pub fn grant(
        &mut self,
        round: u32,
        devices: &[u32],
        weights: &[f64],
    ) -> Result<(Vec<Granted>, Decision), PrivatizeError> {
        if self.repeat == Repeat::ChargeAgain && self.ledger.is_in_memory() {
            return Err(PrivatizeError::NotRecorded);
        }
        let asks: Vec<Ask> = devices
            .iter()
            .zip(weights)
            .map(|(&device, &weight)| {
                let account = &self.accounts[device as usize];
                Ask {
                    device,
                    left: account.start - account.own,
                    weight,
                    sensitivity: account.terms.release.claimed_sensitivity(),
                }
            })
            .collect();
        let (shares, decision, angles) = match &mut self.allocator {
            None => (vec![f64::INFINITY; asks.len()], Decision::default(), vec![None; asks.len()]),
            Some(allocator) => {
                let shares = allocator.allocate(round, &asks);
                let (pid_error, epsilon_round) = (shares.pid_error, shares.round_budget);
                (shares.shares, Decision { pid_error, epsilon_round }, shares.angles)
            }
        };
        let requests: Vec<Request> = asks
            .iter()
            .zip(shares)
            .map(|(ask, share)| {
                let account = &self.accounts[ask.device as usize];
                // A plan spends whole releases.
                let share = if account.is_plan() { 1.0 } else { share };
                Request { device: ask.device, share }
            })
            .collect();
        let floors = devices.iter().map(|&k| self.accounts[k as usize].floor(self.rounds));
        let floor = floors.fold(f64::INFINITY, f64::min);
        let (accounts, delta, noisy) = (&self.accounts, self.delta, self.allocator.is_some());
        let grants = self.ledger.record_round(
            &self.run,
            round,
            self.repeat,
            floor,
            &requests,
            &mut |device, share| -> Result<(Event, f64), PrivatizeError> {
                match noisy {
                    true => accounts[device as usize].terms.priced(share, delta),
                    false => Ok((unprotected(), f64::INFINITY)),
                }
            },
        )?;
        let mut granted = Vec::with_capacity(grants.len());
        for ((&device, grant), angle) in devices.iter().zip(grants).zip(angles) {
            let Grant::Released { event, cost, .. } = grant else { continue };
            self.charge(device, &event, cost);
            let epsilon = match self.basis {
                Basis::Paper => event.claimed_epsilon(delta),
                Basis::Certified => self.readings.of_one(&event, delta)?,
            };
            self.warn_of_range(round, device, epsilon);
            granted.push(Granted { device, event, epsilon, angle });
        }
        Ok((granted, decision))
    }

    fn charge(&mut self, device: u32, event: &Event, cost: f64) {
        let account = &mut self.accounts[device as usize];
        account.own = add_up(account.own, cost);
        account.claimed += event.claimed_epsilon(self.delta);
    }

    /// The printed formula of σ holds for ε_k in (0, 1) only.
    fn warn_of_range(&mut self, round: u32, device: u32, epsilon: f64) {
        let claims = self.basis == Basis::Paper && self.allocator.is_some();
        if claims && epsilon >= 1.0 && !self.out_of_range {
            self.out_of_range = true;
            self.warnings.push(format!(
                "round {round}, device {device}: epsilon is {epsilon:.3}, but the printed formula \
                 for sigma holds for epsilon in (0, 1) only"
            ));
        }
    }

    /// Warnings since the last call.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Lets the allocator read what the base station received.
    pub fn observe(&mut self, transcript: &Transcript<'_>, rng: &mut dyn Rng) {
        if let Some(allocator) = &mut self.allocator {
            allocator.observe(transcript, rng);
        }
    }

    /// What a device has spent: what can be proved, over this run and what others had spent before
    /// it on the same ledger, and the paper's sum over this run.
    pub fn spent(&mut self, device: u32) -> Result<Spent, PrivatizeError> {
        let account = &self.accounts[device as usize];
        let (claimed, spent) = (account.claimed, add_up(account.others, account.own));
        let provable = self.readings.provable(account.terms.filter.as_ref(), spent, self.delta)?;
        Ok(Spent { claimed, provable })
    }

    /// The paper's sum of epsilons of a device over this run.
    pub fn claimed(&self, device: u32) -> f64 {
        self.accounts[device as usize].claimed
    }

    /// For each device, what can be proved of all that the ledger has of it by now, and the
    /// largest budget that any run declared for it (0 where nothing is enforced).
    pub fn ledger_readings(&mut self) -> Result<Vec<(f64, f64)>, PrivatizeError> {
        let mut declared = vec![0.0f64; self.accounts.len()];
        for terms in self.ledger.terms()? {
            if terms.data != self.data || terms.terms.epsilon.is_infinite() {
                continue;
            }
            if let Some(largest) = declared.get_mut(terms.device as usize) {
                *largest = largest.max(terms.terms.epsilon);
            }
        }
        let mut readings = Vec::with_capacity(declared.len());
        for (device, declared) in (0..).zip(declared) {
            let spent = self.ledger.spent(&self.data, device)?.unwrap_or_default();
            let filter = self.accounts[device as usize].terms.filter.as_ref();
            readings.push((self.readings.provable(filter, spent, self.delta)?, declared));
        }
        Ok(readings)
    }

    /// The budget that each device was given before round 1; none where nothing is enforced.
    pub fn declared(&self, device: u32) -> Option<&Filter> {
        self.accounts[device as usize].terms.filter.as_ref()
    }

    /// What each release of a device declares, noise apart.
    pub fn release(&self, device: u32) -> &Release {
        &self.accounts[device as usize].terms.release
    }

    /// Devices.
    pub fn devices(&self) -> u32 {
        self.accounts.len() as u32
    }

    /// What a checkpoint must hold, beside what the ledger holds.
    pub fn state(&self) -> Option<AllocatorState> {
        self.allocator.as_ref().map(|allocator| allocator.state())
    }

    /// Goes on after `round`: the allocator as it was, the spending as the ledger has it. What the
    /// ledger has of later rounds counts at once with the operating system's entropy, and when it
    /// is repeated in a seeded simulation.
    pub fn restore(
        &mut self,
        round: u32,
        state: Option<AllocatorState>,
    ) -> Result<(), PrivatizeError> {
        if let (Some(allocator), Some(state)) = (&mut self.allocator, state) {
            allocator.restore(state)?;
        }
        let recorded = self.ledger.last_round(&self.run)?;
        if recorded < round {
            let run = self.run.clone();
            return Err(PrivatizeError::LedgerBehind { run, recorded, round });
        }
        for device in 0..self.devices() {
            for recorded in self.ledger.history(&self.run, device)? {
                if recorded.round <= round || self.repeat == Repeat::ChargeAgain {
                    self.charge(device, &recorded.event, recorded.cost);
                }
            }
        }
        Ok(())
    }
}

/// Refuses a new run to which the ledger has nothing to give, before it leaves a trace there.
fn refuse_if_nothing_is_left(
    ledger: &Ledger,
    data: &DataKey,
    run: &str,
    rounds: u32,
    devices: &[DeviceTerms],
) -> Result<(), PrivatizeError> {
    if ledger.terms()?.iter().any(|declared| declared.run == run) {
        return Ok(());
    }
    let mut budget = 0.0f64;
    for (device, terms) in (0..).zip(devices) {
        let Some(filter) = &terms.filter else { return Ok(()) };
        let spent = ledger.spent(&data.data, device)?.unwrap_or_default();
        if filter.capacity() - spent >= floor(filter, rounds) {
            return Ok(());
        }
        budget = budget.max(filter.budget().epsilon());
    }
    Err(PrivatizeError::NothingLeft { ledger: ledger.path().into(), epsilon: budget })
}

/// The least share that is worth sending.
fn floor(filter: &Filter, rounds: u32) -> f64 {
    match filter.kind() {
        FilterKind::Plan { .. } => 1.0,
        FilterKind::Gdp | FilterKind::Renyi { .. } => FLOOR * filter.capacity() / f64::from(rounds),
    }
}

impl Account {
    fn is_plan(&self) -> bool {
        self.terms.filter.as_ref().is_some_and(|f| matches!(f.kind(), FilterKind::Plan { .. }))
    }

    fn floor(&self, rounds: u32) -> f64 {
        self.terms.filter.as_ref().map_or(0.0, |filter| floor(filter, rounds))
    }
}

fn unprotected() -> Event {
    Event::NonPrivate { what: "update without noise".into() }
}

fn ledger_terms(terms: &DeviceTerms, delta: f64) -> Terms {
    match &terms.filter {
        None => {
            Terms { kind: UNLIMITED.into(), epsilon: f64::INFINITY, delta, capacity: f64::INFINITY }
        }
        Some(filter) => Terms {
            kind: kind_with_adjacency(filter, terms.release.adjacency),
            epsilon: filter.budget().epsilon(),
            delta,
            capacity: filter.capacity(),
        },
    }
}

/// What costs are counted in: those of two adjacencies do not add up, even in one currency.
fn kind_with_adjacency(filter: &Filter, adjacency: Adjacency) -> String {
    // Unwrap safety: a kind holds only finite numbers and words.
    let mut kind = serde_json::to_value(filter.kind()).expect("a kind can be written");
    kind["adjacency"] = adjacency.to_string().into();
    kind.to_string()
}

/// The allocator of an experiment; on basis paper with the ε^T that follows from
/// `privacy.initial_sigma` if that is given: ε_k^[1] = ε^T/(T·K) is the same for all devices,
/// since σ_k and Δs_k both go by 1/|D_k|.
fn allocator(
    experiment: &Experiment,
    public_samples: &[u32],
    terms: &[DeviceTerms],
) -> Result<Option<Box<dyn Allocator>>, PrivatizeError> {
    let (privacy, rounds) = (&experiment.privacy, experiment.run.rounds);
    let devices = public_samples.len() as u32;
    let total = match (privacy.epsilon, privacy.initial_sigma) {
        (Some(epsilon), _) => epsilon,
        (None, Some(sigma)) => {
            let mean =
                public_samples.iter().map(|&n| f64::from(n)).sum::<f64>() / f64::from(devices);
            let first = Release {
                sigma_artificial: sigma * mean / f64::from(public_samples[0]),
                ..terms[0].release.clone()
            };
            f64::from(rounds) * f64::from(devices) * first.claimed_epsilon(privacy.delta)
        }
        (None, None) => return Ok(None),
    };
    let pid = Pid {
        proportional: privacy.pid_proportional.unwrap_or_default(),
        integral: privacy.pid_integral.unwrap_or_default(),
        window: privacy.pid_window.unwrap_or(2),
        error: privacy.pid_error.unwrap_or(lapa_privacy::allocate::PidError::Relative),
    };
    let decay = privacy.decay.unwrap_or(1.0);
    Ok(Some(match (privacy.allocator, privacy.basis) {
        (AllocatorName::None, _) => return Ok(None),
        (AllocatorName::Uniform, Basis::Paper) => Box::new(Uniform::paper(total, rounds, devices)?),
        (AllocatorName::Uniform, Basis::Certified) => Box::new(Uniform::certified(rounds)?),
        (AllocatorName::Arb, Basis::Paper) => Box::new(Arb::paper(total, rounds, devices)?),
        (AllocatorName::Arb, Basis::Certified) => Box::new(Arb::certified(rounds)?),
        (AllocatorName::Lapa, Basis::Paper) => {
            Box::new(Lapa::paper(total, rounds, devices, pid, decay)?)
        }
        (AllocatorName::Lapa, Basis::Certified) => {
            Box::new(Lapa::certified(rounds, devices, pid, decay)?)
        }
        (AllocatorName::OptimalSplit, _) => Box::new(OptimalSplit::paper(total, rounds, devices)?),
    }))
}
