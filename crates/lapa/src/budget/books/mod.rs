//! The books of a run: the accounts of all devices in one ledger.

mod warnings;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use lapa_privacy::ledger::{
    DataKey, Declaration, DeclaredBudget, Ledger, Recorded, Repeat, Request, add_up,
};
use lapa_privacy::{Decision, Event, FilterKind};

use super::account::Account;
use super::amplitudes::Amplitudes;
use super::device_budget::{Channel, Priced, ROUNDING};
use super::noise_control::sum_suffices;
use super::{DeviceBudget, NoiseRule, Odometer, PrivacyError, Result, declare, total_epsilon};
use crate::config::{Experiment, Scale};
use crate::radio::Link;

/// Public numbers of a release that is on record.
#[derive(Clone, Debug, PartialEq)]
pub struct Granted {
    /// The device.
    pub device: u32,
    /// The granted cost, in the currency of its filter.
    pub cost: f64,
    /// The public scale of its update, if that is sent as amplitudes; see
    /// [`power_scale`](super::power_scale).
    pub scale: f64,
    /// Standard deviation of the receiver's noise on each coordinate; 0 without amplitudes.
    pub sigma_channel: f64,
    /// σ_required: the noise on each coordinate that its cost asks for.
    pub sigma_required: f64,
    /// The release.
    pub event: Event,
    /// ε of it on the basis of the run: ε_k as claimed, or of this one release as proved.
    pub epsilon: f64,
}

impl Granted {
    /// Factor by which a device is under-noised: σ_required over the noise that the run's basis
    /// counts, where that is more than 1.
    pub fn under_noising(&self) -> Option<f64> {
        let Event::Release(release) = &self.event else { return None };
        let factor = self.sigma_required / release.claimed_noise();
        // More than what the roots round.
        (factor > 1.0 + 1e-9).then_some(factor)
    }

    /// True if the artificial noise is all that is required: of complex noise both parts count.
    pub(crate) fn is_artificial(&self) -> bool {
        let Event::Release(release) = &self.event else { return false };
        let noise = release.noise.parts().sqrt() * release.sigma_artificial;
        noise >= self.sigma_required * (1.0 - 1e-12)
    }

    /// Standard deviation of the artificial noise on each coordinate.
    pub fn sigma(&self) -> f64 {
        self.event.sigma_artificial()
    }
}

/// The accounts of all devices of a run, and the ledger that records their releases.
pub struct Books {
    /// Name of the data in the ledger.
    pub(super) data: String,
    /// The budget of each device; equal ones are shared.
    pub(super) budgets: Vec<Arc<DeviceBudget>>,
    /// The part of a budget that this run may spend; `None` for all of it.
    fraction: Option<f64>,
    /// The accounts of devices that ever spent or declared something themselves.
    pub(super) accounts: BTreeMap<u32, Account>,
    pub(super) ledger: Ledger,
    pub(super) run: String,
    pub(super) repeat: Repeat,
    pub(super) rounds: u32,
    /// The way updates are sent as amplitudes; `None` where they are sent otherwise.
    pub(super) amplitudes: Option<Amplitudes>,
    /// The last round for which the ledger was asked; a checkpoint must hold it.
    pub(crate) asked: u32,
    pub(super) odometer: Odometer,
    warnings: Vec<String>,
    out_of_range: bool,
    out_of_room: bool,
}

impl Books {
    /// Opens the books of `run`, which begins in `ledger` or goes on there. `budgets` are those of a
    /// new ledger: where it already knows a device, its kind of filter stays.
    pub(crate) fn open(
        experiment: &Experiment,
        public_samples: &[u32],
        mut budgets: Vec<Arc<DeviceBudget>>,
        coordinates: usize,
        mut ledger: Ledger,
        data: &DataKey,
        (run, repeat): (&str, Repeat),
    ) -> Result<Self> {
        let rounds = experiment.run.rounds;
        let known = ledger.declarations()?;
        let kinds = kinds(&known, &data.data, budgets.len());
        if !kinds.is_empty() {
            budgets = declare(experiment, public_samples, &|device| kinds.get(&device).copied())?;
        }
        if known.iter().all(|declared| declared.run != run) {
            refuse_if_nothing_is_left(&ledger, data, rounds, &budgets)?;
        }
        let left = begin(&mut ledger, run, data, &budgets)?;
        let fraction = experiment.budget_fraction();
        let mut books = Self {
            data: data.data.clone(),
            accounts: accounts(&ledger, run, &budgets, &left, fraction)?,
            budgets,
            fraction,
            ledger,
            run: run.into(),
            repeat,
            rounds,
            amplitudes: None,
            asked: 0,
            odometer: Odometer::default(),
            warnings: Vec::new(),
            out_of_range: false,
            out_of_room: false,
        };
        books.amplitudes = books.scaled(experiment, public_samples, coordinates)?;
        books.warn_at_start(experiment, public_samples)?;
        if experiment.channel_trust() > 0.0 {
            books.recost_others()?;
        }
        Ok(books)
    }

    /// Updates as amplitudes, with the scale of `transmit.scale`; `None` where they are sent otherwise.
    fn scaled(
        &self,
        experiment: &Experiment,
        public_samples: &[u32],
        coordinates: usize,
    ) -> Result<Option<Amplitudes>> {
        let Some(amplitudes) = Amplitudes::new(experiment, coordinates) else { return Ok(None) };
        Ok(Some(match experiment.transmit.scale {
            Scale::PerRelease => amplitudes,
            Scale::Fixed(fixed) => {
                let total = total_epsilon(experiment, public_samples);
                amplitudes.within(fixed.room * self.first_sigma(total)?)
            }
            Scale::Unit => {
                amplitudes.unit(distinct(&self.budgets).map(|budget| &budget.release))?
            }
        }))
    }

    /// The largest σ that a device is asked for in round 1, with budgets split evenly over rounds and,
    /// where they share ε^T = `total`, over devices. 0 without noise.
    fn first_sigma(&self, total: Option<f64>) -> Result<f64> {
        let rounds = f64::from(self.rounds);
        let shared = total.map(|total| total / (rounds * self.budgets.len() as f64));
        let mut largest = 0f64;
        for budget in distinct(&self.budgets).filter(|budget| budget.noisy) {
            let even = if budget.is_plan() { 1.0 } else { budget.capacity() / rounds };
            largest = largest.max(budget.required(shared.unwrap_or(even))?);
        }
        Ok(largest)
    }

    /// Spending of other runs on the ledger before this one, without channel noise.
    fn recost_others(&mut self) -> Result<()> {
        let Self { accounts, budgets, ledger, data, run, .. } = self;
        accounts.values_mut().for_each(|account| account.others_without_channel = 0.0);
        ledger.each_before(run, |entry| {
            let account = accounts.get_mut(&entry.device).filter(|_| entry.data == *data);
            if let Some(account) = account {
                let budget = &budgets[entry.device as usize];
                let cost = budget.cost_without_channel(&entry.event, entry.cost)?;
                account.others_without_channel = add_up(account.others_without_channel, cost);
            }
            Ok(())
        })
    }

    /// Grants, prices and records the releases of a round; refused devices are left out. When this
    /// returns the record is on the disk.
    pub(crate) fn record(
        &mut self,
        round: u32,
        links: &[Link],
        costs: &[f64],
    ) -> Result<Vec<(Granted, Recorded)>> {
        if links.is_empty() {
            return Ok(Vec::new());
        }
        self.expect_a_file()?;
        self.asked = round;
        let requests = links.iter().zip(costs).map(|(link, &cost)| self.request(link.device, cost));
        let requests: Vec<Request> = requests.collect();
        let sum_suffices = self.sum_suffices(links, &requests)?;
        let floors = links.iter().map(|link| self.budget(link.device).floor(self.rounds));
        let floor = floors.fold(f64::INFINITY, f64::min);
        let Self { ledger, run, repeat, budgets, amplitudes, .. } = self;
        let offers = ledger.offer(run, round, *repeat, floor, &requests)?;
        let mut priced = Vec::with_capacity(links.len());
        for (link, granted) in links.iter().zip(offers.granted()) {
            let Some(granted) = granted else { continue };
            let channel = amplitudes.as_ref().map(|by| (by, link.receiver_noise));
            let budget = &budgets[link.device as usize];
            priced.push(budget.price(granted, sum_suffices, channel)?);
        }
        let required: Vec<f64> = priced.iter().map(|priced| priced.sigma_required).collect();
        let releases = priced.into_iter().map(|Priced { event, cost, .. }| (event, cost));
        let recorded = offers.record(releases)?;
        let granted = links.iter().zip(recorded).filter_map(|(link, r)| Some((link, r?)));
        granted
            .zip(required)
            .map(|((link, recorded), required)| self.enter(round, link, recorded, required))
            .collect()
    }

    /// The request of a device for an allocated cost: a plan spends whole releases, and a run with a
    /// part of the budget no more than that part. The ledger holds the whole budget.
    fn request(&self, device: u32, cost: f64) -> Request {
        let left = self.left(device);
        let within = |cost, floor| Decision::of(cost, left, floor).granted().unwrap_or(0.0);
        let cost = match (self.budget(device).is_plan(), self.fraction) {
            (true, _) => within(1.0, 1.0),
            (false, Some(_)) => within(cost, 0.0),
            (false, None) => cost,
        };
        Request { device, cost }
    }

    /// True if the channel suffices by the paper's sum over the devices, where that decides. A latched
    /// switch waits for a round that requires no more than the one before, and stays.
    fn sum_suffices(&self, links: &[Link], requests: &[Request]) -> Result<bool> {
        let latched = match self.budgets.first().map(|budget| budget.rule) {
            Some(NoiseRule::Sum) => false,
            Some(NoiseRule::SumLatched) => true,
            _ => return Ok(false),
        };
        if !self.is_noisy() {
            return Ok(false);
        }
        if latched && self.accounts.values().any(|account| account.has_switched) {
            return Ok(true);
        }
        let mut devices = Vec::with_capacity(links.len());
        for (link, request) in links.iter().zip(requests) {
            let budget = self.budget(link.device);
            devices.push((budget.required(request.cost)?, budget.trusted(self.channel(link))?));
        }
        let required: f64 = devices.iter().map(|(required, _)| required).sum();
        Ok(sum_suffices(devices.into_iter()) && (!latched || self.falls_to(required)))
    }

    /// True if the σ of the last round before, over the devices that sent in it, is not below
    /// `required`. They had what they required: a latched switch asks only until it switches.
    fn falls_to(&self, required: f64) -> bool {
        let latest = || self.accounts.values().map(|account| account.latest);
        let Some(last) = latest().map(|(round, _)| round).max().filter(|round| *round > 0) else {
            return false;
        };
        let before: f64 =
            latest().filter(|(round, _)| *round == last).map(|(_, sigma)| sigma).sum();
        required <= before * ROUNDING
    }

    fn channel(&self, link: &Link) -> Channel<'_> {
        self.amplitudes.as_ref().map(|by| (by, link.receiver_noise))
    }

    /// Enters a recorded release in its device's account.
    fn enter(
        &mut self,
        round: u32,
        link: &Link,
        recorded: Recorded,
        sigma_required: f64,
    ) -> Result<(Granted, Recorded)> {
        let (device, event) = (link.device, recorded.event().clone());
        let budget = &self.budgets[device as usize];
        let account = self.accounts.entry(device).or_default();
        account.charge(budget, round, &event, recorded.cost())?;
        let epsilon = budget.epsilon_of(&event, &mut self.odometer)?;
        self.warn_of_range(round, device, epsilon);
        let (mut scale, mut sigma_channel) = (1.0, 0.0);
        if let Some((amplitudes, receiver_noise)) = self.channel(link) {
            let release = match &event {
                Event::Release(release) => release,
                _ => self.release(device),
            };
            scale = amplitudes.scale(release)?;
            sigma_channel = amplitudes.channel_noise(release, receiver_noise)?;
            if let Some(factor) = amplitudes.beyond(release)?
                && !self.out_of_room
            {
                self.out_of_room = true;
                self.warnings.push(format!(
                    "round {round}, device {device}: the artificial noise is more than the scale of \
                     updates makes room for, so that this one is scaled down and the channel's noise \
                     on it is {factor:.2} times as large; transmit.fixed.room sets the room of a fixed \
                     scale"
                ));
            }
        }
        let cost = recorded.granted();
        let granted =
            Granted { device, cost, scale, sigma_channel, sigma_required, event, epsilon };
        Ok((granted, recorded))
    }

    /// Charges each device for its label histogram, in the ledger's round 0: with noise for a
    /// `fraction` of what the run may spend on the device, or without noise (ε = ∞). `None` for
    /// devices with nothing left.
    pub(crate) fn record_histograms(
        &mut self,
        fraction: Option<f64>,
    ) -> Result<Vec<Option<Recorded>>> {
        self.expect_a_file()?;
        let requests: Vec<Request> = (0..self.devices())
            .map(|device| Request { device, cost: self.histogram_cost(device, fraction) })
            .collect();
        let offers = self.ledger.offer(&self.run, 0, self.repeat, 0.0, &requests)?;
        let mut releases = Vec::with_capacity(requests.len());
        for (budget, granted) in self.budgets.iter().zip(offers.granted()) {
            let Some(granted) = granted else { continue };
            let Priced { event, cost, .. } = budget.price_histogram(granted)?;
            releases.push((event, cost));
        }
        let recorded = offers.record(releases)?;
        for recorded in recorded.iter().flatten() {
            let device = recorded.device();
            let account = self.accounts.entry(device).or_default();
            let budget = &self.budgets[device as usize];
            account.charge(budget, 0, recorded.event(), recorded.cost())?;
        }
        Ok(recorded)
    }

    /// The cost of a device's label histogram: a `fraction` of what the run may spend on it, ∞ without
    /// noise.
    pub(crate) fn histogram_cost(&self, device: u32, fraction: Option<f64>) -> f64 {
        fraction.map_or(f64::INFINITY, |fraction| fraction * self.start(device))
    }

    /// The most that this run may spend on a device, in the filter's currency.
    pub(super) fn start(&self, device: u32) -> f64 {
        let start = self.accounts.get(&device).and_then(|account| account.start);
        start.unwrap_or_else(|| self.budget(device).part(self.fraction))
    }

    /// Enters the declaration of a remote device: it holds itself to the budget ε `declared`, over
    /// all that it releases, and has `left` of it, which is the most that the run may spend on it.
    pub(crate) fn trust(&mut self, device: u32, declared: f64, left: f64) {
        let start = self.start(device).min(left);
        let account = self.accounts.entry(device).or_default();
        account.start = Some(start);
        account.declared = Some(declared);
    }

    /// Refuses a real release without a record that lasts.
    fn expect_a_file(&self) -> Result<()> {
        if self.repeat == Repeat::ChargeAgain && self.ledger.is_in_memory() {
            return Err(PrivacyError::NotRecorded);
        }
        Ok(())
    }

    fn is_noisy(&self) -> bool {
        self.budgets.first().is_some_and(|budget| budget.noisy)
    }

    /// Goes on after `round`, when the ledger had been asked for round `asked` last, and label
    /// histograms were `known` or not: spending is what the ledger has. Its later rounds count at
    /// once with the operating system's entropy, and when they are repeated in a seeded simulation.
    pub(crate) fn restore(&mut self, round: u32, asked: u32, known: bool) -> Result<()> {
        let recorded = self.last_recorded()?;
        if recorded < asked {
            let run = self.run.clone();
            return Err(PrivacyError::LedgerBehind { run, recorded, asked, round });
        }
        self.asked = asked;
        let Self { ledger, accounts, budgets, repeat, run, .. } = self;
        ledger.each_of_run(run, |entry| {
            // Round 0 is repeated unless the checkpoint has what came of it.
            let done = entry.round <= round && (entry.round > 0 || known);
            if done || *repeat == Repeat::ChargeAgain {
                let account = accounts.entry(entry.device).or_default();
                let budget = &budgets[entry.device as usize];
                account.charge(budget, entry.round, &entry.event, entry.cost)?;
            }
            Ok(())
        })
    }
}

/// The kind of filter that a ledger already holds for each of `devices` devices on this data.
fn kinds(known: &[Declaration], data: &str, devices: usize) -> HashMap<u32, FilterKind> {
    let mut kinds = HashMap::new();
    for known in known.iter().filter(|declared| declared.data == data) {
        if let Ok(kind) = serde_json::from_str(&known.budget.kind) {
            kinds.extend(known.devices.clone().take(devices).map(|device| (device, kind)));
        }
    }
    kinds
}

/// The accounts that others have spent from before `run`.
fn accounts(
    ledger: &Ledger,
    run: &str,
    budgets: &[Arc<DeviceBudget>],
    left: &[f64],
    fraction: Option<f64>,
) -> Result<BTreeMap<u32, Account>> {
    let mut accounts = BTreeMap::new();
    for (device, others) in ledger.spending_before(run)? {
        let Some(budget) = budgets.get(device as usize) else { continue };
        let start = Some(left[device as usize].min(budget.part(fraction)));
        let others_without_channel = others;
        let spent = Account { start, others, others_without_channel, ..Account::default() };
        accounts.insert(device, spent);
    }
    Ok(accounts)
}

/// Declares the budgets of a run in its ledger; returns what is left for each device.
fn begin(
    ledger: &mut Ledger,
    run: &str,
    data: &DataKey,
    budgets: &[Arc<DeviceBudget>],
) -> Result<Vec<f64>> {
    let mut shared: HashMap<*const DeviceBudget, Arc<DeclaredBudget>> = HashMap::new();
    let mut declared = |budget: &Arc<DeviceBudget>| {
        let new = || Arc::new(budget.declared());
        Arc::clone(shared.entry(Arc::as_ptr(budget)).or_insert_with(new))
    };
    let listed: Vec<_> = (0..).zip(budgets.iter().map(&mut declared)).collect();
    Ok(ledger.begin_run(run, data, &listed)?)
}

/// The budgets without repetition.
fn distinct(budgets: &[Arc<DeviceBudget>]) -> impl Iterator<Item = &DeviceBudget> {
    let mut seen = HashSet::new();
    budgets.iter().filter(move |budget| seen.insert(Arc::as_ptr(budget))).map(|budget| &**budget)
}

/// Refuses a new run to which the ledger has nothing to give, before it leaves a trace there.
fn refuse_if_nothing_is_left(
    ledger: &Ledger,
    data: &DataKey,
    rounds: u32,
    budgets: &[Arc<DeviceBudget>],
) -> Result<()> {
    let spending = ledger.spending(&data.data)?;
    let mut epsilon = 0.0f64;
    for (device, budget) in (0..).zip(budgets) {
        let spent = spending.get(&device).copied().unwrap_or_default();
        if budget.filter.is_none() || budget.capacity() - spent >= budget.floor(rounds) {
            return Ok(());
        }
        epsilon = epsilon.max(budget.epsilon());
    }
    Err(PrivacyError::Budget(format!(
        "{}: nothing is left of any device's budget (privacy.epsilon = {epsilon}) on this data",
        ledger.path().display()
    )))
}
