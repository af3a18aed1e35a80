//! One round: check, record and charge, in one transaction.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, ToSql, TransactionBehavior, params};

use super::error::{At, LedgerError};
use super::query::event_of;
use super::seal::Seal;
use super::{Grant, Ledger, Repeat, Request, sum};
use crate::Event;

/// What a round of a run knows.
struct Round<'a> {
    tx: &'a Connection,
    path: &'a Path,
    run: &'a str,
    round: u32,
    floor: f64,
    seal: Seal,
}

impl Ledger {
    /// Decides what each device may release in a round, and charges it. When this returns, the
    /// record is on the disk: only then may noise be drawn and anything leave a device. Round 0 is
    /// what leaves devices once, before the first round.
    ///
    /// A device is granted the share it asks for or what is left, whichever is less; if that is
    /// 0 or below `floor` it is refused. `release` says for a device and its granted share what
    /// will be released and what it costs, which must be no more than what is left. It must draw
    /// no noise. Its error, or any other, leaves the ledger as it was.
    ///
    /// A ledger that is no longer where it was opened is refused before and after: what leaves a
    /// device must be on a record that others find.
    ///
    /// A round that is recorded already is repeated as `repeat` says. A replay must ask for the
    /// same shares and give the same events; it gets the recorded grants and pays nothing.
    pub fn record_round<E: From<LedgerError>>(
        &mut self,
        run: &str,
        round: u32,
        repeat: Repeat,
        floor: f64,
        requests: &[Request],
        release: &mut dyn FnMut(u32, f64) -> Result<(Event, f64), E>,
    ) -> Result<Vec<Grant>, E> {
        check(floor, requests)?;
        self.expect_in_place()?;
        let path = &self.path;
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate).at(path)?;
        let seal = Seal::read(&tx).at(path)?;
        let mut here = Round { tx: &tx, path, run, round, floor, seal };
        here.agree(repeat)?;
        let mut grants = Vec::with_capacity(requests.len());
        for request in requests {
            let last = here.last(request.device)?;
            grants.push(match (repeat, last) {
                (Repeat::Replay, Some((_, asked, grant))) => {
                    here.replay(request, asked, grant, release)?
                }
                (_, last) => {
                    let attempt = last.map_or(1, |(attempt, ..)| attempt + 1);
                    here.charge(request, attempt, release)?
                }
            });
        }
        here.seal.write(&tx).at(path)?;
        tx.commit().at(path)?;
        self.expect_in_place()?;
        Ok(grants)
    }
}

impl Round<'_> {
    /// The run has begun, and repeats rounds as it did from its first one.
    fn agree(&mut self, repeat: Repeat) -> Result<(), LedgerError> {
        let Self { tx, path, run, .. } = *self;
        let run = || run.to_string();
        let recorded: Option<String> = tx
            .prepare_cached("SELECT repeat FROM run WHERE run = ?")
            .and_then(|mut sql| sql.query_row([self.run], |row| row.get(0)).optional())
            .at(path)?
            .ok_or_else(|| LedgerError::NotBegun { run: run() })?;
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
    fn last(&self, device: u32) -> Result<Option<(u32, f64, Grant)>, LedgerError> {
        let sql = "SELECT attempt, asked, share, cost, event FROM record
                   WHERE run = ? AND device = ? AND round = ? ORDER BY attempt DESC LIMIT 1";
        type Row = (u32, f64, Option<(f64, f64, String)>);
        let row: Option<Row> = self
            .tx
            .prepare_cached(sql)
            .and_then(|mut sql| {
                sql.query_row(params![self.run, device, self.round], |row| {
                    let event: Option<String> = row.get(4)?;
                    let released = match event {
                        Some(event) => Some((row.get(2)?, row.get(3)?, event)),
                        None => None,
                    };
                    Ok((row.get(0)?, row.get(1)?, released))
                })
                .optional()
            })
            .at(self.path)?;
        let Some((attempt, asked, released)) = row else { return Ok(None) };
        let grant = match released {
            Some((share, cost, event)) => Grant::Released {
                share,
                cost,
                event: event_of(&event, self.path)?,
                truncated: share < asked,
            },
            None => Grant::Refused,
        };
        Ok(Some((attempt, asked, grant)))
    }

    /// The recorded grant, if the repeat is the same.
    fn replay<E: From<LedgerError>>(
        &self,
        request: &Request,
        asked: f64,
        grant: Grant,
        release: &mut dyn FnMut(u32, f64) -> Result<(Event, f64), E>,
    ) -> Result<Grant, E> {
        let same_share = asked == request.share;
        let (recorded, given) = match &grant {
            Grant::Released { share, event, .. } if same_share => {
                (Some(event), Some(release(request.device, *share)?.0))
            }
            Grant::Released { event, .. } => (Some(event), None),
            Grant::Refused => (None, None),
        };
        if same_share && recorded == given.as_ref() {
            return Ok(grant);
        }
        let shown = |share: f64, event: Option<&Event>| match event {
            Some(event) => format!("share {share} for {event:?}"),
            None => format!("share {share}"),
        };
        Err(LedgerError::Conflict {
            run: self.run.to_string(),
            round: self.round,
            device: request.device,
            recorded: shown(asked, recorded),
            given: shown(request.share, given.as_ref()),
        }
        .into())
    }

    /// A new record, charged to the device.
    fn charge<E: From<LedgerError>>(
        &mut self,
        request: &Request,
        attempt: u32,
        release: &mut dyn FnMut(u32, f64) -> Result<(Event, f64), E>,
    ) -> Result<Grant, E> {
        let (spent, left) = self.left(request.device)?;
        let share = request.share.min(left);
        if share == 0.0 || share < self.floor {
            self.insert(request, attempt, None)?;
            return Ok(Grant::Refused);
        }
        let (event, cost) = release(request.device, share)?;
        self.check_cost(request.device, &event, cost, left)?;
        self.insert(request, attempt, Some((share, cost, recordable(&event)?)))?;
        self.tx
            .prepare_cached(
                "UPDATE account SET spent = ?1 FROM declared WHERE declared.run = ?2
                 AND account.data = declared.data
                 AND account.device = declared.device AND account.device = ?3",
            )
            .and_then(|mut sql| {
                sql.execute(params![super::add_up(spent, cost), self.run, request.device])
            })
            .at(self.path)?;
        Ok(Grant::Released { share, cost, event, truncated: share < request.share })
    }

    /// What a device has spent over all runs, and what is left to this one.
    fn left(&self, device: u32) -> Result<(f64, f64), LedgerError> {
        let sql = "SELECT spent, capacity FROM declared JOIN account USING (data, device)
                   WHERE run = ? AND device = ?";
        let (spent, capacity) = self
            .tx
            .prepare_cached(sql)
            .and_then(|mut sql| {
                sql.query_row(params![self.run, device], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()
            })
            .at(self.path)?
            .ok_or_else(|| LedgerError::UnknownDevice { run: self.run.to_string(), device })?;
        Ok((spent, sum::left(capacity, spent)))
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
        let Request { device, share: asked } = request;
        let (share, cost, event) = match released {
            Some((share, cost, event)) => (Some(share), Some(cost), Some(event)),
            None => (None, None, None),
        };
        self.tx
            .prepare_cached("INSERT INTO record VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *")
            .and_then(|mut sql| {
                let (run, round) = (self.run, self.round);
                let row = params![run, device, round, attempt, asked, share, cost, event];
                sql.query_row(row, |row| self.seal.toggle("record", row))
            })
            .at(self.path)
    }
}

/// The event as JSON. JSON has no infinities, and a record that reads back as something else is
/// none.
fn recordable(event: &Event) -> Result<String, LedgerError> {
    let refused = || LedgerError::Unrecordable { event: format!("{event:?}") };
    let text = serde_json::to_string(event).map_err(|_| refused())?;
    match serde_json::from_str::<Event>(&text) {
        Ok(same) if same == *event => Ok(text),
        _ => Err(refused()),
    }
}

/// Refuses a round without meaning.
fn check(floor: f64, requests: &[Request]) -> Result<(), LedgerError> {
    let shares = requests.iter().map(|request| ("share", request.share));
    for (name, value) in shares.chain([("floor", floor)]) {
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
