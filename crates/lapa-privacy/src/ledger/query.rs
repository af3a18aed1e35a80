//! Queries of the ledger.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
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

/// The declaration of a run for devices with one and the same budget.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// The run.
    pub run: String,
    /// Hash of the data set.
    pub data: String,
    /// Hash of who holds which records.
    pub partition: String,
    /// The devices, from the first to the last.
    pub devices: RangeInclusive<u32>,
    /// The budget of each of them.
    pub budget: DeclaredBudget,
}

impl Ledger {
    /// Spending on a device's data by all runs, rounded up; 0 before its first release.
    pub fn spent(&self, data: &str, device: u32) -> Result<f64, LedgerError> {
        let sql = "SELECT spent FROM account WHERE data = ? AND device = ?";
        let spent = one(&self.conn, sql, params![data, device], |row| row.get(0)).optional();
        Ok(spent.at(&self.path)?.unwrap_or_default())
    }

    /// Spending on the data of each device that ever released something, by all runs; rounded up.
    pub fn spending(&self, data: &str) -> Result<BTreeMap<u32, f64>, LedgerError> {
        spending(&self.conn, data).at(&self.path)
    }

    /// The same, before a run began.
    pub fn spending_before(&self, run: &str) -> Result<BTreeMap<u32, f64>, LedgerError> {
        spending_before(&self.conn, run).at(&self.path)
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
        let mut history = Vec::new();
        let keep = |entry| {
            history.push(entry);
            Ok::<_, LedgerError>(())
        };
        self.each("AND run = ? AND device = ?", params![run, device], keep)?;
        Ok(history)
    }

    /// The last round of a run that is recorded, refusals included; 0 before the first.
    pub fn last_round(&self, run: &str) -> Result<u32, LedgerError> {
        let sql = "SELECT coalesce(max(round), 0) FROM record WHERE run = ?";
        self.conn.query_row(sql, [run], |row| row.get(0)).at(&self.path)
    }

    /// Reads the releases of a run one by one, in the order they were recorded.
    pub fn each_of_run<E: From<LedgerError>>(
        &self,
        run: &str,
        read: impl FnMut(Entry) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each("AND run = ?", [run], read)
    }

    /// Reads the releases of the time before a run began one by one, in the order they were recorded.
    pub fn each_before<E: From<LedgerError>>(
        &self,
        run: &str,
        read: impl FnMut(Entry) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each("AND id <= (SELECT earlier FROM run WHERE run = ?)", [run], read)
    }

    /// Reads all releases one by one, by data and device, those of a device in the order they were
    /// recorded.
    pub fn each_by_device<E: From<LedgerError>>(
        &self,
        mut read: impl FnMut(Entry) -> Result<(), E>,
    ) -> Result<(), E> {
        let sql = "SELECT data, device FROM account ORDER BY data, device";
        let mut accounts = self.conn.prepare(sql).at(&self.path)?;
        let mut rows = accounts.query([]).at(&self.path)?;
        // By the index over runs and devices.
        let only = "AND run IN (SELECT run FROM run WHERE data = ?) AND device = ?";
        while let Some(row) = rows.next().at(&self.path)? {
            let account: rusqlite::Result<(String, u32)> = row.try_into();
            let (data, device) = account.at(&self.path)?;
            self.each(only, params![data, device], &mut read)?;
        }
        Ok(())
    }

    /// All releases, in the order they were recorded.
    pub fn releases(&self) -> Result<Vec<Entry>, LedgerError> {
        let mut all = Vec::new();
        let keep = |entry| {
            all.push(entry);
            Ok::<_, LedgerError>(())
        };
        self.each("", [], keep)?;
        Ok(all)
    }

    /// Declarations of all runs, by data, devices, and in the order the runs began.
    pub fn declarations(&self) -> Result<Vec<Declaration>, LedgerError> {
        let sql = "SELECT run, data, partition, first, last, kind, epsilon, delta, capacity
                   FROM declared JOIN run USING (run) JOIN data USING (data)
                   ORDER BY data, first, run.rowid";
        let read = |row: &Row<'_>| {
            let (run, data, partition) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (devices, budget) = DeclaredBudget::read(row, 3)?;
            Ok(Declaration { run, data, partition, devices, budget })
        };
        all(&self.conn, sql, [], read).at(&self.path)
    }

    /// The run was begun with the device.
    fn expect(&self, run: &str, device: u32) -> Result<(), LedgerError> {
        let begun = self.conn.prepare_cached("SELECT 1 FROM run WHERE run = ?");
        if !begun.and_then(|mut sql| sql.exists([run])).at(&self.path)? {
            return Err(LedgerError::NotBegun(run.into()));
        }
        match capacity(&self.conn, run, device).at(&self.path)? {
            Some(_) => Ok(()),
            None => Err(LedgerError::UnknownDevice { run: run.into(), device }),
        }
    }

    fn each<E: From<LedgerError>>(
        &self,
        only: &str,
        params: impl Params,
        mut read: impl FnMut(Entry) -> Result<(), E>,
    ) -> Result<(), E> {
        let sql = format!(
            "SELECT run, data, partition, round, device, attempt, granted, cost, event FROM record
             JOIN run USING (run) JOIN data USING (data)
             WHERE event IS NOT NULL {only} ORDER BY id"
        );
        let mut statement = self.conn.prepare_cached(&sql).at(&self.path)?;
        let mut rows = statement.query(params).at(&self.path)?;
        while let Some(row) = rows.next().at(&self.path)? {
            read(self.entry(row)?)?;
        }
        Ok(())
    }

    fn entry(&self, row: &Row<'_>) -> Result<Entry, LedgerError> {
        let event: String = row.get(8).at(&self.path)?;
        let event = event_of(&event, &self.path)?;
        let entry = || -> rusqlite::Result<Entry> {
            let (run, data, partition) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (round, device, attempt) = (row.get(3)?, row.get(4)?, row.get(5)?);
            let (granted, cost) = (row.get(6)?, row.get(7)?);
            Ok(Entry { run, data, partition, round, device, attempt, event, granted, cost })
        };
        entry().at(&self.path)
    }
}

/// The capacity that a run declared for a device; `None` if it declared none.
pub(super) fn capacity(conn: &Connection, run: &str, device: u32) -> rusqlite::Result<Option<f64>> {
    let sql = "SELECT last, capacity FROM declared WHERE run = ? AND first <= ?
               ORDER BY first DESC LIMIT 1";
    let read = |row: &Row<'_>| Ok((row.get::<_, u32>(0)?, row.get(1)?));
    let found = one(conn, sql, params![run, device], read).optional()?;
    Ok(found.filter(|(last, _)| *last >= device).map(|(_, capacity)| capacity))
}

/// Spending on the data of each device, by all runs.
pub(super) fn spending(conn: &Connection, data: &str) -> rusqlite::Result<BTreeMap<u32, f64>> {
    let sql = "SELECT device, spent FROM account WHERE data = ?";
    Ok(all(conn, sql, [data], |row| row.try_into())?.into_iter().collect())
}

/// Spending on the data of each device before a run began: its costs, added as the accounts are.
pub(super) fn spending_before(
    conn: &Connection,
    run: &str,
) -> rusqlite::Result<BTreeMap<u32, f64>> {
    let sql = "SELECT device, cost FROM record JOIN run USING (run), run AS new
               WHERE new.run = ? AND run.data = new.data AND id <= new.earlier
               AND event IS NOT NULL ORDER BY id";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([run])?;
    let mut spent = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let sum = spent.entry(row.get(0)?).or_default();
        *sum = super::add_up(*sum, row.get(1)?);
    }
    Ok(spent)
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
    /// The columns first, last, kind, epsilon, delta and capacity from column `at` on.
    pub(super) fn read(row: &Row<'_>, at: usize) -> rusqlite::Result<(RangeInclusive<u32>, Self)> {
        let (kind, epsilon) = (row.get(at + 2)?, row.get(at + 3)?);
        let budget = Self { kind, epsilon, delta: row.get(at + 4)?, capacity: row.get(at + 5)? };
        Ok((row.get(at)?..=row.get(at + 1)?, budget))
    }
}

/// The event of a record.
pub(super) fn event_of(text: &str, path: &Path) -> Result<Event, LedgerError> {
    serde_json::from_str(text).map_err(|error| LedgerError::Corrupt {
        path: path.to_path_buf(),
        detail: format!("event {text}: {error}"),
    })
}
