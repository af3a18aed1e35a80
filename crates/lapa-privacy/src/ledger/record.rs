//! One round: offer, price, record, in one transaction.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::{OptionalExtension, ToSql, Transaction, TransactionBehavior, params};

use super::error::{At, LedgerError};
use super::place::Place;
use super::query::{capacity, event_of, one};
use super::seal::Seal;
use super::{Ledger, MEMORY, Repeat, Request};
use crate::Event;
use crate::filter::{Decision, left_of};

/// Proof that a release is in a ledger: only [`Offers::record`] makes one, and only after the disk
/// has it. Noise takes it away: each record is drawn from once.
#[derive(Debug, PartialEq)]
pub struct Recorded {
    device: u32,
    granted: f64,
    cost: f64,
    event: Event,
    in_memory: bool,
}

impl Recorded {
    /// The device.
    pub fn device(&self) -> u32 {
        self.device
    }

    /// Cost that was granted: what was asked for, or what was left.
    pub fn granted(&self) -> f64 {
        self.granted
    }

    /// Cost that was charged.
    pub fn cost(&self) -> f64 {
        self.cost
    }

    /// The release.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The same once more, from a ledger in memory, which holds nobody to a budget: audits draw many
    /// times from one record. `None` from a file.
    pub fn again(&self) -> Option<Self> {
        let Self { device, granted, cost, ref event, in_memory } = *self;
        in_memory.then(|| Self { device, granted, cost, event: event.clone(), in_memory })
    }
}

/// An open round: what each device may spend, decided but not yet charged. No other process can
/// change the ledger while it lives; dropped, it leaves the ledger as it was.
pub struct Offers<'a> {
    round: Round<'a>,
    offers: Vec<Offer>,
}

/// The decision on one request.
struct Offer {
    request: Request,
    attempt: u32,
    spent: f64,
    left: f64,
    granted: Option<f64>,
    /// The release on record, if the round is replayed and had one.
    replayed: Option<Replayed>,
}

/// The outcome of an earlier attempt at the round: its cost and event, or a refusal.
type Replayed = Option<(f64, Event)>;

/// A round of a run.
struct Round<'a> {
    tx: Transaction<'a>,
    path: &'a Path,
    place: Option<&'a Place>,
    run: &'a str,
    round: u32,
    seal: Seal,
}

impl Ledger {
    /// Decides what each device may spend in a round. Round 0 is what leaves devices once, before
    /// the first round.
    ///
    /// A device is granted the cost it asks for or what is left, whichever is less, and refused if
    /// that is 0 or below `floor` ([`Decision`]).
    ///
    /// A round that is recorded already is repeated as `repeat` says. A replay must ask for the
    /// same costs and give the same events; it gets the recorded grants and pays nothing.
    pub fn offer<'a>(
        &'a mut self,
        run: &'a str,
        round: u32,
        repeat: Repeat,
        floor: f64,
        requests: &[Request],
    ) -> Result<Offers<'a>, LedgerError> {
        check(floor, requests)?;
        self.expect_in_place()?;
        let Self { conn, path, place, .. } = self;
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).at(path)?;
        let seal = Seal::read(&tx).at(path)?;
        let mut round = Round { tx, path, place: place.as_ref(), run, round, seal };
        round.agree(repeat)?;
        let offers = requests.iter().map(|request| round.decide(request, repeat, floor));
        let offers = offers.collect::<Result<_, _>>()?;
        Ok(Offers { round, offers })
    }
}

impl Offers<'_> {
    /// The cost granted to each request; `None` where it is refused.
    pub fn granted(&self) -> impl Iterator<Item = Option<f64>> {
        self.offers.iter().map(|offer| offer.granted)
    }

    /// Charges the releases and their costs, one for each grant, in the order of the requests. When
    /// this returns, the record is on the disk: only then may noise be drawn and anything leave a
    /// device. An error leaves the ledger as it was.
    ///
    /// A ledger that is no longer where it was opened is refused: what leaves a device must be on a
    /// record that others find.
    ///
    /// # Panics
    /// If there are fewer releases than grants.
    pub fn record(
        self,
        releases: impl IntoIterator<Item = (Event, f64)>,
    ) -> Result<Vec<Option<Recorded>>, LedgerError> {
        let Self { mut round, offers } = self;
        let mut releases = releases.into_iter();
        let mut recorded = Vec::with_capacity(offers.len());
        for offer in offers {
            let release = offer
                .granted
                .map(|granted| (granted, releases.next().expect("a release for each grant")));
            recorded.push(round.record(offer, release)?);
        }
        let Round { tx, path, place, seal, .. } = round;
        seal.write(&tx).at(path)?;
        tx.commit().at(path)?;
        place.map_or(Ok(()), |place| place.expect(path))?;
        Ok(recorded)
    }
}

impl Round<'_> {
    /// The run has begun, and repeats rounds as it did from its first one.
    fn agree(&mut self, repeat: Repeat) -> Result<(), LedgerError> {
        let Self { ref tx, path, run, .. } = *self;
        let run = || run.to_string();
        let sql = "SELECT repeat FROM run WHERE run = ?";
        let recorded = one(tx, sql, [self.run], |row| row.get::<_, Option<String>>(0)).optional();
        let recorded = recorded.at(path)?.ok_or_else(|| LedgerError::NotBegun(run()))?;
        match recorded.as_deref().and_then(Repeat::from_name) {
            Some(recorded) if recorded != repeat => {
                Err(LedgerError::Repeat { run: run(), recorded, given: repeat })
            }
            Some(_) => Ok(()),
            None => {
                let mut toggle = |sql, params: &[&dyn ToSql]| {
                    tx.query_row(sql, params, |row| self.seal.toggle("run", row)).at(path)
                };
                toggle("SELECT * FROM run WHERE run = ?", &[&self.run])?;
                let sql = "UPDATE run SET repeat = ? WHERE run = ? RETURNING *";
                toggle(sql, &[&repeat.name(), &self.run])
            }
        }
    }

    /// The last attempt of a device at this round: its number, what was asked for, what came of it.
    fn last(&self, device: u32) -> Result<Option<(u32, f64, Option<Row>)>, LedgerError> {
        let sql = "SELECT attempt, asked, granted, cost, event FROM record
                   WHERE run = ? AND device = ? AND round = ? ORDER BY attempt DESC LIMIT 1";
        let read = |row: &rusqlite::Row<'_>| {
            let event: Option<String> = row.get(4)?;
            let released: rusqlite::Result<Option<Row>> =
                event.map(|event| Ok((row.get(2)?, row.get(3)?, event))).transpose();
            Ok((row.get(0)?, row.get(1)?, released?))
        };
        let last = one(&self.tx, sql, params![self.run, device, self.round], read);
        last.optional().at(self.path)
    }

    /// Decision on a request: the recorded one if the round is replayed, else what fits.
    fn decide(&self, request: &Request, repeat: Repeat, floor: f64) -> Result<Offer, LedgerError> {
        let (request, last) = (*request, self.last(request.device)?);
        let (spent, left) = self.left(request.device)?;
        let mut offer = Offer { request, attempt: 1, spent, left, granted: None, replayed: None };
        match last {
            Some((_, asked, released)) if repeat == Repeat::Replay => {
                offer.granted = released.as_ref().map(|(granted, ..)| *granted);
                let read = |(_, cost, event): Row| Ok((cost, event_of(&event, self.path)?));
                let released = released.map(read).transpose()?;
                if asked != request.cost {
                    let recorded = shown(asked, released.as_ref().map(|(_, event)| event));
                    return Err(self.conflict(&request, recorded, shown(request.cost, None)));
                }
                offer.replayed = Some(released);
            }
            last => {
                offer.attempt = last.map_or(1, |(attempt, ..)| attempt + 1);
                offer.granted = Decision::of(request.cost, left, floor).granted();
            }
        }
        Ok(offer)
    }

    /// The record of an offer: the one that is there, if the replay is the same, or a new one,
    /// charged to the device.
    fn record(
        &mut self,
        offer: Offer,
        release: Option<(f64, (Event, f64))>,
    ) -> Result<Option<Recorded>, LedgerError> {
        let Offer { request: Request { device, cost: asked }, .. } = offer;
        let in_memory = self.path == Path::new(MEMORY);
        let recorded = |granted, cost, event| Recorded { device, granted, cost, event, in_memory };
        match (offer.replayed, release) {
            (Some(None), _) => Ok(None),
            (Some(Some((cost, event))), Some((granted, (given, _)))) => {
                if event == given {
                    return Ok(Some(recorded(granted, cost, event)));
                }
                let (was, now) = (shown(asked, Some(&event)), shown(asked, Some(&given)));
                Err(self.conflict(&offer.request, was, now))
            }
            (_, None) => {
                self.insert(&offer.request, offer.attempt, None)?;
                Ok(None)
            }
            (None, Some((granted, (event, cost)))) => {
                self.check_cost(device, &event, cost, offer.left)?;
                let row = (granted, cost, recordable(&event)?);
                self.insert(&offer.request, offer.attempt, Some(row))?;
                self.charge(device, super::add_up(offer.spent, cost))?;
                Ok(Some(recorded(granted, cost, event)))
            }
        }
    }

    fn conflict(&self, request: &Request, recorded: String, given: String) -> LedgerError {
        let (run, round, device) = (self.run.to_string(), self.round, request.device);
        LedgerError::Conflict { run, round, device, recorded, given }
    }

    fn charge(&self, device: u32, spent: f64) -> Result<(), LedgerError> {
        let sql = "INSERT INTO account SELECT data, ?1, ?2 FROM run WHERE run = ?3
                   ON CONFLICT (data, device) DO UPDATE SET spent = excluded.spent";
        let charged = self.tx.prepare_cached(sql);
        let charged = charged.and_then(|mut sql| sql.execute(params![device, spent, self.run]));
        charged.at(self.path).map(drop)
    }

    /// Spending of a device over all runs, and the rest for this one.
    fn left(&self, device: u32) -> Result<(f64, f64), LedgerError> {
        let capacity = capacity(&self.tx, self.run, device)
            .at(self.path)?
            .ok_or_else(|| LedgerError::UnknownDevice { run: self.run.to_string(), device })?;
        let sql = "SELECT spent FROM account JOIN run USING (data) WHERE run = ? AND device = ?";
        let spent: Option<f64> = one(&self.tx, sql, params![self.run, device], |row| row.get(0))
            .optional()
            .at(self.path)?;
        let spent = spent.unwrap_or_default();
        Ok((spent, left_of(capacity, spent)))
    }

    fn check_cost(
        &self,
        device: u32,
        event: &Event,
        cost: f64,
        left: f64,
    ) -> Result<(), LedgerError> {
        if cost.is_nan() || cost < 0.0 {
            return Err(LedgerError::Parameter { name: "cost", value: cost, allowed: "from 0" });
        }
        let bare = match event {
            Event::NonPrivate { what } => Some(what.as_str()),
            Event::Histogram(histogram) if histogram.sigma == 0.0 => Some("exact label counts"),
            Event::Histogram(_) | Event::Release(_) => None,
        };
        if let Some(what) = bare.filter(|_| cost.is_finite()) {
            return Err(LedgerError::NonPrivate { what: what.into(), cost });
        }
        if cost > left {
            let (run, round) = (self.run.to_string(), self.round);
            return Err(LedgerError::Overspent { run, round, device, cost, left });
        }
        Ok(())
    }

    fn insert(
        &mut self,
        request: &Request,
        attempt: u32,
        released: Option<(f64, f64, String)>,
    ) -> Result<(), LedgerError> {
        let Self { ref tx, path, run, round, ref mut seal, .. } = *self;
        let Request { device, cost: asked } = request;
        let (granted, cost, event) = released
            .map_or((None, None, None), |(granted, cost, event)| {
                (Some(granted), Some(cost), Some(event))
            });
        let sql = "INSERT INTO record VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *";
        let row = params![run, device, round, attempt, asked, granted, cost, event];
        one(tx, sql, row, |row| seal.toggle("record", row)).at(path)
    }
}

/// The columns granted, cost and event of a release.
type Row = (f64, f64, String);

fn shown(cost: f64, event: Option<&Event>) -> String {
    match event {
        Some(event) => format!("cost {cost} for {event:?}"),
        None => format!("cost {cost}"),
    }
}

/// The event as JSON. JSON has no infinities, and a record that reads back as something else is
/// none.
fn recordable(event: &Event) -> Result<String, LedgerError> {
    let refused = || LedgerError::Unrecordable(format!("{event:?}"));
    let text = serde_json::to_string(event).map_err(|_| refused())?;
    match serde_json::from_str::<Event>(&text) {
        Ok(same) if same == *event => Ok(text),
        _ => Err(refused()),
    }
}

/// Refuses a round without meaning.
fn check(floor: f64, requests: &[Request]) -> Result<(), LedgerError> {
    let costs = requests.iter().map(|request| ("cost", request.cost));
    for (name, value) in costs.chain([("floor", floor)]) {
        if value.is_nan() || value < 0.0 {
            return Err(LedgerError::Parameter { name, value, allowed: "from 0" });
        }
    }
    let mut seen = HashSet::new();
    match requests.iter().find(|request| !seen.insert(request.device)) {
        Some(Request { device, .. }) => Err(LedgerError::Twice { device: *device }),
        None => Ok(()),
    }
}
