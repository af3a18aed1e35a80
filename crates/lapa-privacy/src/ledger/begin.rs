//! Begin of a run: the budgets of its devices.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Row, ToSql, TransactionBehavior, params};

use super::error::{At, LedgerError};
use super::query::{all, one};
use super::seal::Seal;
use super::{DataKey, DeclaredBudget, Ledger};
use crate::filter::left_of;

impl Ledger {
    /// Begins a run, or resumes it: declares what its devices may spend on this data, and returns
    /// what is left for each, in the order given.
    ///
    /// Runs on the same data share what is left: they need the same partition, and for each device
    /// the same kind of filter and δ. ε and the capacity are the run's own: a run is refused
    /// what would take the spending of all runs past *its* capacity. The guarantee over all runs
    /// on a device is therefore that of the largest capacity declared; see [`Ledger::declarations`].
    ///
    /// A run that resumes must declare the same as before, and gets what was left when it began.
    pub fn begin_run(
        &mut self,
        run: &str,
        data: &DataKey,
        devices: &[(u32, DeclaredBudget)],
    ) -> Result<Vec<f64>, LedgerError> {
        let mut seen = HashSet::new();
        for (device, terms) in devices {
            check(terms)?;
            if !seen.insert(*device) {
                return Err(LedgerError::Twice { device: *device });
            }
        }
        self.expect_in_place()?;
        let path = &self.path;
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate).at(path)?;
        let left = match begun(&tx, path, run)? {
            Some(recorded) => resume(&tx, path, run, &recorded, data, devices)?,
            None => declare(&tx, path, run, data, devices)?,
        };
        tx.commit().at(path)?;
        self.expect_in_place()?;
        Ok(left)
    }
}

/// The data of a run, if it has begun.
fn begun(tx: &Connection, path: &Path, run: &str) -> Result<Option<DataKey>, LedgerError> {
    let sql = "SELECT data, partition FROM run JOIN data USING (data) WHERE run = ?";
    one(tx, sql, [run], |row| Ok(DataKey { data: row.get(0)?, partition: row.get(1)? }))
        .optional()
        .at(path)
}

fn declare(
    tx: &Connection,
    path: &Path,
    run: &str,
    data: &DataKey,
    devices: &[(u32, DeclaredBudget)],
) -> Result<Vec<f64>, LedgerError> {
    let mut seal = Seal::read(tx).at(path)?;
    let DataKey { data, partition } = data;
    let sql = "INSERT OR IGNORE INTO data VALUES (?, ?) RETURNING *";
    insert(tx, &mut seal, "data", sql, params![data, partition]).at(path)?;
    let sql = "SELECT partition FROM data WHERE data = ?";
    let recorded: String = one(tx, sql, [data], |row| row.get(0)).at(path)?;
    if recorded != *partition {
        let (data, given) = (data.clone(), partition.clone());
        return Err(LedgerError::Partition { data, recorded, given });
    }
    let sql = "INSERT INTO run VALUES (?, ?, (SELECT coalesce(max(id), 0) FROM record), NULL)
               RETURNING *";
    insert(tx, &mut seal, "run", sql, params![run, data]).at(path)?;

    let mut starts = Vec::with_capacity(devices.len());
    for (device, terms) in devices {
        let sql = "INSERT OR IGNORE INTO account VALUES (?, ?, ?, ?, 0)
                   RETURNING data, device, kind, delta";
        let row = params![data, device, terms.kind, terms.delta];
        insert(tx, &mut seal, "account", sql, row).at(path)?;
        let sql = "SELECT kind, delta, spent FROM account WHERE data = ? AND device = ?";
        let (kind, delta, spent): (String, f64, f64) =
            one(tx, sql, params![data, device], |row| row.try_into()).at(path)?;
        if (&kind, delta) != (&terms.kind, terms.delta) {
            let shown = |kind: &str, delta: f64| format!("kind {kind} and delta {delta:e}");
            return Err(LedgerError::Terms {
                data: data.clone(),
                device: *device,
                recorded: shown(&kind, delta),
                given: shown(&terms.kind, terms.delta),
            });
        }
        let sql = "INSERT INTO declared VALUES (?, ?, ?, ?, ?, ?) RETURNING *";
        let row = params![run, device, data, terms.epsilon, terms.capacity, spent];
        insert(tx, &mut seal, "declared", sql, row).at(path)?;
        starts.push(left_of(terms.capacity, spent));
    }
    seal.write(tx).at(path)?;
    Ok(starts)
}

/// Inserts a row, unless it may be left out, and puts it under the seal.
fn insert(
    tx: &Connection,
    seal: &mut Seal,
    table: &str,
    sql: &str,
    row: &[&dyn ToSql],
) -> rusqlite::Result<()> {
    one(tx, sql, row, |row| seal.toggle(table, row)).optional().map(|_| ())
}

fn resume(
    tx: &Connection,
    path: &Path,
    run: &str,
    recorded: &DataKey,
    data: &DataKey,
    devices: &[(u32, DeclaredBudget)],
) -> Result<Vec<f64>, LedgerError> {
    let differs = |recorded, given| LedgerError::Resumed { run: run.to_string(), recorded, given };
    if recorded != data {
        let shown = |key: &DataKey| format!("data {} and partition {}", key.data, key.partition);
        return Err(differs(shown(recorded), shown(data)));
    }
    let sql = "SELECT device, kind, epsilon, delta, capacity, start_spent FROM declared
               JOIN account USING (data, device) WHERE run = ? ORDER BY device";
    let read = |row: &Row<'_>| {
        let terms = DeclaredBudget::read(row, 1)?;
        let left = left_of(terms.capacity, row.get(5)?);
        Ok((row.get(0)?, (terms, left)))
    };
    let declared: BTreeMap<u32, (DeclaredBudget, f64)> =
        all(tx, sql, [run], read).at(path)?.into_iter().collect();

    let others = || {
        let given: BTreeSet<_> = devices.iter().map(|(device, _)| device).collect();
        differs(format!("devices {:?}", declared.keys()), format!("devices {given:?}"))
    };
    if declared.len() != devices.len() {
        return Err(others());
    }
    let start = |(device, terms): &(u32, DeclaredBudget)| match declared.get(device) {
        Some((was, left)) if was == terms => Ok(*left),
        Some((was, _)) => {
            let shown = |terms: &DeclaredBudget| format!("device {device} of {terms}");
            Err(differs(shown(was), shown(terms)))
        }
        None => Err(others()),
    };
    devices.iter().map(start).collect()
}

/// Refuses terms without meaning.
fn check(terms: &DeclaredBudget) -> Result<(), LedgerError> {
    let DeclaredBudget { kind: _, epsilon, delta, capacity } = *terms;
    for (name, value, allowed, ok) in [
        ("epsilon", epsilon, "above 0", epsilon > 0.0),
        ("delta", delta, "a number above 0 and below 1", delta > 0.0 && delta < 1.0),
        ("capacity", capacity, "from 0", capacity >= 0.0),
    ] {
        if !ok {
            return Err(LedgerError::Parameter { name, value, allowed });
        }
    }
    Ok(())
}
