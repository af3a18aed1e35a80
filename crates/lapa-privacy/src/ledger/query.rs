//! Queries of the ledger.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use super::error::{At, LedgerError};
use super::{DeclaredBudget, Ledger};
use crate::Event;

/// An entry of the ledger: one release.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The run.
    pub run: String,
    /// Hash of the data set.
    pub data: String,
    /// Hash of who holds which records.
    pub partition: String,
    /// The round.
    pub round: u32,
    /// The device.
    pub device: u32,
    /// 1, and one more for each time the round was charged again.
    pub attempt: u32,
    /// The released event.
    pub event: Event,
    /// The cost that was granted.
    pub granted: f64,
    /// The charged cost.
    pub cost: f64,
}

/// The declaration of a run for a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// The run.
    pub run: String,
    /// Hash of the data set.
    pub data: String,
    /// Hash of who holds which records.
    pub partition: String,
    /// The device.
    pub device: u32,
    /// The budget.
    pub budget: DeclaredBudget,
    /// Spending on the device's data before the run began.
    pub spent_at_start: f64,
    /// Spending on the device's data, by all runs.
    pub spent: f64,
}

impl Ledger {
    /// Spending on a device's data by all runs, rounded up; `None` if no run declared
    /// the device.
    pub fn spent(&self, data: &str, device: u32) -> Result<Option<f64>, LedgerError> {
        let sql = "SELECT spent FROM account WHERE data = ? AND device = ?";
        one(&self.conn, sql, params![data, device], |row| row.get(0)).optional().at(&self.path)
    }

    /// Spending on a device's data, by all runs, before a run began; rounded up.
    pub fn spent_at_start(&self, run: &str, device: u32) -> Result<f64, LedgerError> {
        let sql = "SELECT start_spent FROM declared WHERE run = ? AND device = ?";
        one(&self.conn, sql, params![run, device], |row| row.get(0))
            .optional()
            .at(&self.path)?
            .ok_or_else(|| LedgerError::UnknownDevice { run: run.to_string(), device })
    }

    /// True if nothing was ever released on this ledger.
    pub fn is_new(&self) -> Result<bool, LedgerError> {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM record)";
        self.conn.query_row(sql, [], |row| row.get(0)).at(&self.path)
    }

    /// Spending of a run itself on a device, in all rounds or in those before one: its costs
    /// added by [`add_up`](super::add_up) round by round. All attempts count.
    pub fn own_spent(
        &self,
        run: &str,
        device: u32,
        before_round: Option<u32>,
    ) -> Result<f64, LedgerError> {
        self.expect(run, device)?;
        let sql = "SELECT cost FROM record WHERE run = ?1 AND device = ?2 AND event IS NOT NULL
                   AND (?3 IS NULL OR round < ?3) ORDER BY round, attempt";
        let before = params![run, device, before_round];
        let costs = all(&self.conn, sql, before, |row| row.get(0)).at(&self.path)?;
        Ok(costs.into_iter().fold(0.0, super::add_up))
    }

    /// A device's releases in a run, in the order they were recorded.
    pub fn history(&self, run: &str, device: u32) -> Result<Vec<Entry>, LedgerError> {
        self.expect(run, device)?;
        self.recorded("AND run = ? AND device = ?", params![run, device])
    }

    /// The last round of a run that is recorded, refusals included; 0 before the first.
    pub fn last_round(&self, run: &str) -> Result<u32, LedgerError> {
        let sql = "SELECT coalesce(max(round), 0) FROM record WHERE run = ?";
        self.conn.query_row(sql, [run], |row| row.get(0)).at(&self.path)
    }

    /// The releases of the time before a run began, in the order they were recorded.
    pub fn releases_before(&self, run: &str) -> Result<Vec<Entry>, LedgerError> {
        self.recorded("AND id <= (SELECT earlier FROM run WHERE run = ?)", [run])
    }

    /// All releases, in the order they were recorded.
    pub fn releases(&self) -> Result<Vec<Entry>, LedgerError> {
        self.recorded("", [])
    }

    /// Declarations of all runs, by data, device, and in the order the runs began.
    pub fn declarations(&self) -> Result<Vec<Declaration>, LedgerError> {
        let sql = "SELECT run, data, partition, device, kind, epsilon, delta, capacity,
                   start_spent, spent FROM declared
                   JOIN account USING (data, device) JOIN data USING (data)
                   ORDER BY data, device, declared.rowid";
        let read = |row: &Row<'_>| {
            let (run, data, partition, device) =
                (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            let budget = DeclaredBudget::read(row, 4)?;
            let (spent_at_start, spent) = (row.get(8)?, row.get(9)?);
            Ok(Declaration { run, data, partition, device, budget, spent_at_start, spent })
        };
        all(&self.conn, sql, [], read).at(&self.path)
    }

    /// The run was begun with the device.
    fn expect(&self, run: &str, device: u32) -> Result<(), LedgerError> {
        let has = |sql, params: &[&dyn rusqlite::ToSql]| {
            self.conn.prepare_cached(sql).and_then(|mut sql| sql.exists(params)).at(&self.path)
        };
        if !has("SELECT 1 FROM run WHERE run = ?", &[&run])? {
            return Err(LedgerError::NotBegun(run.into()));
        }
        if !has("SELECT 1 FROM declared WHERE run = ? AND device = ?", &[&run, &device])? {
            return Err(LedgerError::UnknownDevice { run: run.into(), device });
        }
        Ok(())
    }

    fn recorded(&self, only: &str, params: impl Params) -> Result<Vec<Entry>, LedgerError> {
        let sql = format!(
            "SELECT run, data, partition, round, device, attempt, share, cost, event FROM record
             JOIN run USING (run) JOIN data USING (data)
             WHERE event IS NOT NULL {only} ORDER BY id"
        );
        let read = |row: &Row<'_>| {
            let (run, data, partition) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (round, device, attempt) = (row.get(3)?, row.get(4)?, row.get(5)?);
            let (granted, cost) = (row.get(6)?, row.get(7)?);
            let event = event_of(&row.get::<_, String>(8)?, &self.path);
            let entry = |event| Entry {
                run,
                data,
                partition,
                round,
                device,
                attempt,
                event,
                granted,
                cost,
            };
            Ok(event.map(entry))
        };
        all(&self.conn, &sql, params, read).at(&self.path)?.into_iter().collect()
    }
}

/// The row that a query gives.
pub(super) fn one<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    conn.prepare_cached(sql)?.query_row(params, read)
}

/// All rows that a query gives.
pub(super) fn all<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    conn.prepare_cached(sql)?.query_map(params, read)?.collect()
}

impl DeclaredBudget {
    /// The columns kind, epsilon, delta and capacity from column `first` on.
    pub(super) fn read(row: &Row<'_>, first: usize) -> rusqlite::Result<Self> {
        let (kind, epsilon) = (row.get(first)?, row.get(first + 1)?);
        Ok(Self { kind, epsilon, delta: row.get(first + 2)?, capacity: row.get(first + 3)? })
    }
}

/// The event of a record.
pub(super) fn event_of(text: &str, path: &Path) -> Result<Event, LedgerError> {
    serde_json::from_str(text).map_err(|error| LedgerError::Corrupt {
        path: path.to_path_buf(),
        detail: format!("event {text}: {error}"),
    })
}
