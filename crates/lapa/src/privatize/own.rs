//! One device's own book: what a device that trusts nobody holds itself to.
//!
//! A simulation has the budgets of all devices in one place ([`Budgets`](super::Budgets)). A real
//! device has a ledger of its own and decides by itself: whatever it is asked for, nothing is drawn
//! before the release is on record, and nothing is recorded past its budget. The ledger counts all
//! that the device ever released, in any run and whatever its records were at the time.

use std::collections::BTreeSet;

use lapa_privacy::allocate::Basis;
use lapa_privacy::ledger::{DataKey, Declared, Grant, Ledger, Repeat, Request, add_up};
use lapa_privacy::{Event, Filter, FilterKind, Histogram};

use super::account::{floor, ledger_terms};
use super::budgets::{Granted, unprotected};
use super::histograms::priced;
use super::noise_control::NoiseRule;
use super::readings::Readings;
use super::terms::{DeviceTerms, PrivatizeError, terms};
use crate::config::{Entropy, Experiment};
use crate::transmit::Link;

/// What the account of a device is called in its own ledger: one for all its records.
const OWN: &str = "device";

/// The number of that account in a new ledger, whatever the device's own number is: that is a
/// federation's, the ledger and its budget are the device's.
const ACCOUNT: u32 = 0;

/// Why a device refuses. Nothing was released, and nothing spent.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// A share without meaning.
    #[error("device {device} refuses: it was asked for a share of {share}, allowed is {allowed}")]
    Share {
        /// The device.
        device: u32,
        /// What was asked for.
        share: f64,
        /// What is allowed.
        allowed: String,
    },
    /// More than is left.
    #[error(
        "device {device} refuses: it was asked for a share of {share}, and {left} is left of its \
         budget of {capacity} (epsilon {epsilon})"
    )]
    MoreThanLeft {
        /// The device.
        device: u32,
        /// What was asked for.
        share: f64,
        /// What is left, in the currency of its filter.
        left: f64,
        /// What there was at first.
        capacity: f64,
        /// The budget ε.
        epsilon: f64,
    },
    /// A round that the run does not have.
    #[error("device {device} refuses: it was asked for round {round}, allowed is 1 to {rounds}")]
    Round {
        /// The device.
        device: u32,
        /// What was asked for.
        round: u32,
        /// Rounds of its configuration.
        rounds: u32,
    },
    /// A round before one that is over.
    #[error(
        "device {device} refuses: it was asked for round {round} of run {run}, but has answered \
         round {last}"
    )]
    Past {
        /// The device.
        device: u32,
        /// The run.
        run: String,
        /// What was asked for.
        round: u32,
        /// The last round that was answered.
        last: u32,
    },
    /// Another question for a round that was answered.
    #[error(
        "device {device} refuses: it has answered round {round} of run {run}, and this is another \
         question"
    )]
    Answered {
        /// The device.
        device: u32,
        /// The run.
        run: String,
        /// The round.
        round: u32,
    },
    /// Not the model of the configuration.
    #[error("device {device} refuses: it was given {given} {what}, its model has {expected}")]
    Length {
        /// The device.
        device: u32,
        /// "parameters" or "values".
        what: &'static str,
        /// How many there were.
        given: usize,
        /// How many there should be.
        expected: usize,
    },
    /// A model that is not a number.
    #[error("device {device} refuses: parameter {index} is {value}, allowed is a finite number")]
    NotFinite {
        /// The device.
        device: u32,
        /// Where.
        index: usize,
        /// The value.
        value: f32,
    },
}

/// How a device's budget stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnSpending {
    /// ε of all that was released, afterwards; ∞ after a release without noise.
    pub epsilon: f64,
    /// The budget ε; ∞ where nothing is enforced.
    pub declared: f64,
    /// δ
    pub delta: f64,
    /// What is left, in the currency of the filter.
    pub left: f64,
    /// What there was at first.
    pub capacity: f64,
    /// How often something was released.
    pub releases: u32,
}

/// The budget of one device, in its own ledger.
pub struct OwnBudget {
    device: u32,
    /// Its account in the ledger.
    account: u32,
    terms: DeviceTerms,
    noisy: bool,
    basis: Basis,
    delta: f64,
    rounds: u32,
    budget_fraction: f64,
    rule: NoiseRule,
    repeat: Repeat,
    ledger: Ledger,
    readings: Readings,
}

impl OwnBudget {
    /// The budget of a device in `ledger`. `samples` are the public numbers of samples of all
    /// devices that are known to it, and its own is at `place`.
    pub fn new(
        experiment: &Experiment,
        device: u32,
        samples: &[u32],
        place: usize,
        ledger: Ledger,
    ) -> Result<Self, PrivatizeError> {
        let mut known = ledger.terms()?;
        known.retain(|declared| declared.data == OWN);
        let account = account(&ledger, &known)?;
        let kind: Option<FilterKind> =
            known.first().and_then(|known| serde_json::from_str(&known.terms.kind).ok());
        let mut all = terms(experiment, samples, &|_| kind)?;
        let privacy = experiment.privacy.as_ref();
        Ok(Self {
            device,
            account,
            terms: all.swap_remove(place),
            noisy: privacy.is_some(),
            basis: experiment.basis(),
            delta: experiment.delta(),
            rounds: experiment.run.rounds,
            budget_fraction: privacy.map_or(1.0, |privacy| privacy.budget_fraction),
            rule: NoiseRule::of(&experiment.control),
            repeat: match experiment.run.entropy {
                Entropy::Seed => Repeat::Replay,
                Entropy::Os => Repeat::ChargeAgain,
            },
            ledger,
            readings: Readings::default(),
        })
    }

    /// The release of a round of `run` for a share of the budget. When this returns it is on the
    /// disk, and noise may be drawn.
    pub fn grant(&mut self, run: &str, round: u32, share: f64) -> Result<Granted, PrivatizeError> {
        self.check_share(share)?;
        let (terms, rule, delta) = (self.terms.clone(), self.rule, self.delta);
        let noisy = self.noisy;
        let mut sigma_required = 0.0;
        let event = self.record(run, round, share, &mut |share| {
            if !noisy {
                return Ok((unprotected(), f64::INFINITY));
            }
            sigma_required = terms.required(share, delta)?;
            terms.priced(sigma_required, rule, false, None)
        })?;
        let epsilon = match self.basis {
            Basis::Paper => event.claimed_epsilon(delta),
            Basis::Certified => self.readings.of_one(&event, delta)?,
        };
        Ok(Granted {
            device: self.device,
            link: Link::ideal(self.device),
            scale: 1.0,
            sigma_channel: 0.0,
            share,
            sigma_required,
            event,
            epsilon,
            angle: None,
        })
    }

    /// The device's label histogram for a share of its budget, on the disk before it is drawn.
    pub fn grant_histogram(&mut self, run: &str, share: f64) -> Result<Histogram, PrivatizeError> {
        let limited = self.terms.filter.is_some();
        if share.is_nan() || share <= 0.0 || (limited && share.is_infinite()) {
            return Err(self.strange_share(share, "a number above 0".into()).into());
        }
        let terms = self.terms.clone();
        let event = self.record(run, 0, share, &mut |share| priced(&terms, share))?;
        match event {
            Event::Histogram(histogram) => Ok(histogram),
            // Round 0 has nothing else.
            Event::Release(_) | Event::NonPrivate { .. } => Err(self.answered(run, 0).into()),
        }
    }

    /// A question for a round that was answered otherwise.
    pub(crate) fn answered(&self, run: &str, round: u32) -> Refusal {
        Refusal::Answered { device: self.device, run: run.into(), round }
    }

    /// Whose budget it is.
    pub fn device(&self) -> u32 {
        self.device
    }

    /// What the device holds itself to; none where nothing is enforced.
    pub fn filter(&self) -> Option<&Filter> {
        self.terms.filter.as_ref()
    }

    /// How the budget stands, over all that was ever released.
    pub fn spent(&mut self) -> Result<OwnSpending, PrivatizeError> {
        let spent = self.ledger.spent(OWN, self.account)?.unwrap_or_default();
        let filter = self.terms.filter.as_ref();
        let releases = self.ledger.releases()?;
        let own = releases.iter().filter(|release| release.data == OWN);
        let capacity = filter.map_or(f64::INFINITY, Filter::capacity);
        Ok(OwnSpending {
            epsilon: self.readings.provable(filter, spent, self.delta)?,
            declared: filter.map_or(f64::INFINITY, |filter| filter.budget().epsilon()),
            delta: self.delta,
            left: left(capacity, spent),
            capacity,
            releases: own.count() as u32,
        })
    }

    /// The largest budget ε that it ever held itself to, in any run on its ledger or now: what is
    /// promised over all of them. ∞ where nothing is enforced.
    pub fn largest_epsilon(&self) -> Result<f64, PrivatizeError> {
        let now = self.filter().map_or(f64::INFINITY, |filter| filter.budget().epsilon());
        let known = self.ledger.terms()?;
        let own = known.iter().filter(|declared| declared.data == OWN);
        Ok(own.map(|declared| declared.terms.epsilon).fold(now, f64::max))
    }

    /// Charges the whole share or nothing: what is left is not a server's to round down to.
    fn record(
        &mut self,
        run: &str,
        round: u32,
        share: f64,
        release: &mut dyn FnMut(f64) -> Result<(Event, f64), PrivatizeError>,
    ) -> Result<Event, PrivatizeError> {
        let data = DataKey { data: OWN.into(), partition: OWN.into() };
        let listed = [(self.account, ledger_terms(&self.terms, self.delta, 0.0))];
        self.ledger.begin_run(run, &data, &listed)?;
        let refusal = self.more_than_left(run, share)?;
        if self.passes_its_part(run, share)? {
            return Err(refusal.into());
        }
        let request = [Request { device: self.account, share }];
        let repeat = self.repeat;
        let mut grants =
            self.ledger.record_round(run, round, repeat, 0.0, &request, &mut |_, granted| {
                match granted < share {
                    true => Err(refusal.clone().into()),
                    false => release(granted),
                }
            })?;
        match grants.pop() {
            Some(Grant::Released { event, .. }) => Ok(event),
            Some(Grant::Refused) | None => Err(refusal.into()),
        }
    }

    /// Whether a share goes past the part of the budget that a run may spend.
    fn passes_its_part(&self, run: &str, share: f64) -> Result<bool, PrivatizeError> {
        let Some(filter) = self.filter() else { return Ok(false) };
        let own = self.ledger.own_spent(run, self.account, None)?;
        Ok(add_up(own, share) > (self.budget_fraction * filter.capacity()).next_up())
    }

    fn more_than_left(&self, run: &str, share: f64) -> Result<Refusal, PrivatizeError> {
        let spent = self.ledger.spent(OWN, self.account)?.unwrap_or_default();
        let capacity = self.filter().map_or(f64::INFINITY, Filter::capacity);
        let mut rest = left(capacity, spent);
        if self.filter().is_some() {
            let own = self.ledger.own_spent(run, self.account, None)?;
            rest = rest.min(left(self.budget_fraction * capacity, own));
        }
        let epsilon = self.filter().map_or(f64::INFINITY, |filter| filter.budget().epsilon());
        Ok(Refusal::MoreThanLeft { device: self.device, share, left: rest, capacity, epsilon })
    }

    fn check_share(&self, share: f64) -> Result<(), Refusal> {
        let allowed = match (self.noisy, &self.terms.filter) {
            (false, _) if share == f64::INFINITY => return Ok(()),
            (false, _) => "infinity, since no noise is added".into(),
            (true, None) if share > 0.0 && share.is_finite() => return Ok(()),
            (true, None) => "a finite number above 0".into(),
            (true, Some(filter)) => {
                let plan = matches!(filter.kind(), FilterKind::Plan { .. });
                // Half of what a base station refuses to send.
                let least = if plan { 1.0 } else { 0.5 * floor(filter, self.rounds) };
                if share >= least && share.is_finite() && (!plan || share == 1.0) {
                    return Ok(());
                }
                match plan {
                    true => "1, a planned release".into(),
                    false => format!("a finite number from {least:e}"),
                }
            }
        };
        Err(self.strange_share(share, allowed))
    }

    fn strange_share(&self, share: f64, allowed: String) -> Refusal {
        Refusal::Share { device: self.device, share, allowed }
    }
}

/// The account of a device in its ledger, whose declarations are `known`: the one that is there.
/// Several accounts are spending on the records of one device without a common budget.
fn account(ledger: &Ledger, known: &[Declared]) -> Result<u32, PrivatizeError> {
    let numbers: BTreeSet<u32> = known.iter().map(|declared| declared.device).collect();
    match numbers.len() {
        0 | 1 => Ok(numbers.first().copied().unwrap_or(ACCOUNT)),
        _ => Err(PrivatizeError::SeveralAccounts {
            ledger: ledger.path().into(),
            numbers: numbers.into_iter().collect(),
        }),
    }
}

fn left(capacity: f64, spent: f64) -> f64 {
    match capacity.is_infinite() {
        true => capacity,
        false => (capacity - spent).max(0.0),
    }
}
