//! Who may release what: allocator, filters and ledger, in that order, before anything is
//! computed.

use std::collections::HashMap;

use lapa_privacy::Event;
use lapa_privacy::allocate::{Allocator, AllocatorState, Ask, Basis, Transcript};
use lapa_privacy::ledger::{DataKey, Declared, Grant, Ledger, Repeat, Request, Terms, add_up};
use rand::Rng;

use super::account::{Account, ledger_terms, refuse_if_nothing_is_left};
use super::allocator::allocator;
use super::noise_control::{NoiseRule, sum_suffices};
use super::readings::Readings;
use super::scale::Amplitudes;
use super::terms::{DeviceTerms, PrivatizeError, terms};
use crate::config::{Entropy, Experiment};
use crate::transmit::Link;

/// A release that is on record.
#[derive(Clone, Debug, PartialEq)]
pub struct Granted {
    /// The device.
    pub device: u32,
    /// The link it will be sent over.
    pub link: Link,
    /// The public scale of its update, if that is sent as amplitudes; see
    /// [`power_scale`](super::power_scale).
    pub scale: f64,
    /// Standard deviation of the receiver's noise on each coordinate; 0 without amplitudes.
    pub sigma_channel: f64,
    /// Its share of the budget, in the currency of its filter.
    pub share: f64,
    /// σ_required: the noise on each coordinate that its share of the budget asks for.
    pub sigma_required: f64,
    /// The release.
    pub event: Event,
    /// What it costs on the basis of the run: ε_k as claimed, or of this one release as proved.
    pub epsilon: f64,
    /// The smoothed angle that its share was decided with.
    pub angle: Option<f64>,
}

impl Granted {
    /// σ_required over what may be counted of the noise there is, where that is more than 1: how
    /// much too little noise the device has.
    pub fn under_noising(&self) -> Option<f64> {
        let Event::Release(release) = &self.event else { return None };
        let factor = self.sigma_required / release.sigma();
        // More than what the roots round.
        (factor > 1.0 + 1e-9).then_some(factor)
    }

    /// Standard deviation of the artificial noise on each coordinate.
    pub fn sigma(&self) -> f64 {
        match &self.event {
            Event::Release(release) => release.sigma_artificial,
            Event::Histogram(_) | Event::NonPrivate { .. } => 0.0,
        }
    }
}

/// What the grants of a round were decided with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decision {
    /// `e^[t]`, the PID-like error.
    pub pid_error: Option<f64>,
    /// `ε^[t]`, the round's budget.
    pub epsilon_round: Option<f64>,
}

/// The budgets of all devices.
pub struct Budgets {
    /// What the ledger knows the data by.
    pub(super) data: String,
    basis: Basis,
    pub(super) delta: f64,
    /// None: no noise.
    allocator: Option<Box<dyn Allocator>>,
    pub(super) accounts: Vec<Account>,
    pub(super) ledger: Ledger,
    pub(super) run: String,
    pub(super) repeat: Repeat,
    pub(super) rounds: u32,
    /// How updates are sent as amplitudes; none where they are sent otherwise.
    pub(super) amplitudes: Option<Amplitudes>,
    rule: NoiseRule,
    /// The last round for which the ledger was asked.
    asked: u32,
    pub(super) readings: Readings,
    warnings: Vec<String>,
    out_of_range: bool,
}

impl Budgets {
    /// The budgets of devices with `public_samples`, whose updates have `coordinates`, recorded in
    /// memory only.
    pub fn new(
        experiment: &Experiment,
        public_samples: &[u32],
        coordinates: usize,
    ) -> Result<Self, PrivatizeError> {
        let devices = terms(experiment, public_samples, &|_| None)?;
        let data = DataKey { data: "memory".into(), partition: "memory".into() };
        let ledger = Ledger::in_memory()?;
        let amplitudes = Amplitudes::new(experiment, coordinates);
        Self::begin(experiment, public_samples, amplitudes, devices, ledger, &data, "memory")
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
        let known: HashMap<u32, Declared> = ledger
            .terms()?
            .into_iter()
            .filter(|declared| declared.data == data.data)
            .map(|declared| (declared.device, declared))
            .collect();
        let devices = match known.is_empty() {
            true => self.accounts.drain(..).map(|account| account.terms).collect(),
            false => terms(experiment, public_samples, &|device| {
                serde_json::from_str(&known.get(&device)?.terms.kind).ok()
            })?,
        };
        let amplitudes = self.amplitudes.take();
        *self = Self::begin(experiment, public_samples, amplitudes, devices, ledger, data, run)?;
        Ok(())
    }

    fn begin(
        experiment: &Experiment,
        public_samples: &[u32],
        amplitudes: Option<Amplitudes>,
        devices: Vec<DeviceTerms>,
        mut ledger: Ledger,
        data: &DataKey,
        run: &str,
    ) -> Result<Self, PrivatizeError> {
        let (delta, rounds) = (experiment.delta(), experiment.run.rounds);
        refuse_if_nothing_is_left(&ledger, data, run, rounds, &devices)?;
        let listed: Vec<(u32, Terms)> = (0..)
            .zip(devices.iter().map(|terms| ledger_terms(terms, delta, experiment.channel_trust())))
            .collect();
        let left = ledger.begin_run(run, data, &listed)?;
        let allocator = allocator(experiment, public_samples, &devices)?;
        let accounts: Vec<Account> = devices
            .into_iter()
            .zip(left)
            .map(|(terms, left)| Account {
                start: match (&terms.filter, &experiment.privacy) {
                    (Some(filter), Some(privacy)) => {
                        left.min(privacy.budget_fraction * filter.capacity())
                    }
                    _ => left,
                },
                terms,
                others: 0.0,
                others_without_channel: 0.0,
                own: 0.0,
                own_without_channel: 0.0,
                claimed: 0.0,
                switching_round: None,
                declared: None,
            })
            .collect();
        let mut budgets = Self {
            data: data.data.clone(),
            basis: experiment.basis(),
            delta,
            allocator,
            accounts,
            ledger,
            run: run.into(),
            repeat: match experiment.run.entropy {
                Entropy::Seed => Repeat::Replay,
                Entropy::Os => Repeat::ChargeAgain,
            },
            rounds,
            amplitudes,
            rule: NoiseRule::of(&experiment.control),
            asked: 0,
            readings: Readings::default(),
            warnings: Vec::new(),
            out_of_range: false,
        };
        budgets.warn_of_delta(public_samples);
        if experiment.run.ledger.is_some() && budgets.ledger.is_new()? {
            budgets.warnings.push(format!(
                "new ledger {}: nothing was ever released on it, so all budgets are whole",
                budgets.ledger.path().display()
            ));
        }
        for device in 0..budgets.devices() {
            let others = budgets.ledger.spent_at_start(run, device)?;
            budgets.accounts[device as usize].others = others;
            budgets.accounts[device as usize].others_without_channel = others;
        }
        if experiment.channel_trust() > 0.0 {
            budgets.recost_others()?;
        }
        Ok(budgets)
    }

    /// Spending of other runs on the ledger before this one, without noise of the channel.
    fn recost_others(&mut self) -> Result<(), PrivatizeError> {
        self.accounts.iter_mut().for_each(|account| account.others_without_channel = 0.0);
        for recorded in self.ledger.releases_before(&self.run)? {
            if recorded.data != self.data {
                continue;
            }
            if let Some(account) = self.accounts.get_mut(recorded.device as usize) {
                let cost = account.cost_without_channel(&recorded.event, recorded.cost)?;
                account.others_without_channel = add_up(account.others_without_channel, cost);
            }
        }
        Ok(())
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

    /// Allocates, filters and records the releases of a round, of the devices with these links;
    /// those not granted are left out. When this returns the record is on the disk.
    pub fn grant(
        &mut self,
        round: u32,
        links: &[Link],
        weights: &[f64],
    ) -> Result<(Vec<Granted>, Decision), PrivatizeError> {
        if links.is_empty() {
            return Ok((Vec::new(), Decision::default()));
        }
        self.expect_a_file()?;
        self.asked = round;
        let asks: Vec<Ask> = links
            .iter()
            .zip(weights)
            .map(|(&Link { device, .. }, &weight)| {
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
                let share = match (account.is_plan(), ask.left >= 1.0) {
                    (true, true) => 1.0,
                    (true, false) => 0.0,
                    (false, _) => share,
                };
                Request { device: ask.device, share }
            })
            .collect();
        let floors =
            links.iter().map(|link| self.accounts[link.device as usize].floor(self.rounds));
        let floor = floors.fold(f64::INFINITY, f64::min);
        let (accounts, delta, noisy) = (&self.accounts, self.delta, self.allocator.is_some());
        let of_device: HashMap<u32, &Link> = links.iter().map(|link| (link.device, link)).collect();
        let amplitudes = self.amplitudes.as_ref();
        let channel = |device: u32| amplitudes.zip(of_device.get(&device).copied());
        let rule = self.rule;
        let sum_suffices = rule == NoiseRule::Sum && noisy && {
            let mut devices = Vec::with_capacity(requests.len());
            for &Request { device, share } in &requests {
                let terms = &accounts[device as usize].terms;
                devices.push((terms.required(share, delta)?, terms.trusted(channel(device))?));
            }
            sum_suffices(devices.into_iter())
        };
        let mut required: HashMap<u32, f64> = HashMap::new();
        let grants = self.ledger.record_round(
            &self.run,
            round,
            self.repeat,
            floor,
            &requests,
            &mut |device, share| -> Result<(Event, f64), PrivatizeError> {
                match noisy {
                    true => {
                        let terms = &accounts[device as usize].terms;
                        let sigma = terms.required(share, delta)?;
                        required.insert(device, sigma);
                        terms.priced(sigma, rule, sum_suffices, channel(device))
                    }
                    false => Ok((unprotected(), f64::INFINITY)),
                }
            },
        )?;
        let mut granted = Vec::with_capacity(grants.len());
        for ((&link, grant), angle) in links.iter().zip(grants).zip(angles) {
            let device = link.device;
            let Grant::Released { event, cost, share, .. } = grant else { continue };
            self.charge(round, device, &event, cost)?;
            let sigma_required = required.get(&device).copied().unwrap_or_default();
            let epsilon = match self.basis {
                Basis::Paper => event.claimed_epsilon(delta),
                Basis::Certified => self.readings.of_one(&event, delta)?,
            };
            self.warn_of_range(round, device, epsilon);
            let (scale, sigma_channel) = self.on_air(&link, &event)?;
            granted.push(Granted {
                device,
                link,
                scale,
                sigma_channel,
                share,
                sigma_required,
                event,
                epsilon,
                angle,
            });
        }
        Ok((granted, decision))
    }

    /// From now on a round that is recorded already is the same round again, whatever noise is
    /// drawn from: for a base station, which draws none and asks the same again.
    pub(crate) fn replay(&mut self) {
        self.repeat = Repeat::Replay;
    }

    /// Takes the word of a device that is elsewhere: it holds itself to the budget ε `declared`, over
    /// all that it releases, and has `left` of it, which is the most that the run may spend on it.
    pub(crate) fn trust(&mut self, device: u32, declared: f64, left: f64) {
        let account = &mut self.accounts[device as usize];
        account.start = account.start.min(left);
        account.declared = Some(declared);
    }

    /// Real releases need a record that lasts.
    pub(super) fn expect_a_file(&self) -> Result<(), PrivatizeError> {
        match self.repeat == Repeat::ChargeAgain && self.ledger.is_in_memory() {
            true => Err(PrivatizeError::NotRecorded),
            false => Ok(()),
        }
    }

    /// The public scale of a device's update and the receiver's noise on it; 1 and 0 where it is
    /// not sent as amplitudes.
    fn on_air(&self, link: &Link, event: &Event) -> Result<(f64, f64), PrivatizeError> {
        let release = match event {
            Event::Release(release) => release,
            _ => &self.accounts[link.device as usize].terms.release,
        };
        match &self.amplitudes {
            Some(by) => Ok((by.scale(release)?, by.channel_noise(release, link)?)),
            None => Ok((1.0, 0.0)),
        }
    }

    pub(super) fn charge(
        &mut self,
        round: u32,
        device: u32,
        event: &Event,
        cost: f64,
    ) -> Result<(), PrivatizeError> {
        let account = &mut self.accounts[device as usize];
        account.own = add_up(account.own, cost);
        let without_channel = account.cost_without_channel(event, cost)?;
        account.own_without_channel = add_up(account.own_without_channel, without_channel);
        account.claimed += event.claimed_epsilon(self.delta);
        if let Event::Release(release) = event {
            let last = if release.sigma_artificial > 0.0 { round } else { 0 };
            account.switching_round = account.switching_round.max(Some(last));
        }
        Ok(())
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

    /// What a checkpoint must hold, beside what the ledger holds.
    pub fn state(&self) -> Option<AllocatorState> {
        self.allocator.as_ref().map(|allocator| allocator.state())
    }

    /// The last round for which the ledger was asked; a checkpoint must hold it.
    pub fn asked(&self) -> u32 {
        self.asked
    }

    /// Goes on after `round`, when the ledger had been asked for round `asked` last, and label
    /// histograms were `known` or not: the allocator as it was, the spending as the ledger has it. What the
    /// ledger has of later rounds counts at once with the operating system's entropy, and when it
    /// is repeated in a seeded simulation.
    pub fn restore(
        &mut self,
        round: u32,
        asked: u32,
        known: bool,
        state: Option<AllocatorState>,
    ) -> Result<(), PrivatizeError> {
        if let (Some(allocator), Some(state)) = (&mut self.allocator, state) {
            allocator.restore(state)?;
        }
        let recorded = self.ledger.last_round(&self.run)?;
        if recorded < asked {
            let run = self.run.clone();
            return Err(PrivatizeError::LedgerBehind { run, recorded, asked, round });
        }
        self.asked = asked;
        for device in 0..self.devices() {
            for recorded in self.ledger.history(&self.run, device)? {
                // Round 0 is repeated unless the checkpoint has what came of it.
                let done = recorded.round <= round && (recorded.round > 0 || known);
                if done || self.repeat == Repeat::ChargeAgain {
                    self.charge(recorded.round, device, &recorded.event, recorded.cost)?;
                }
            }
        }
        Ok(())
    }
}

pub(super) fn unprotected() -> Event {
    Event::NonPrivate { what: "update without noise".into() }
}
