//! Begin of a run: the budgets of its devices.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Row, ToSql, TransactionBehavior, params};

use super::error::{At, LedgerError};
use super::query::{all, one, spending, spending_before};
use super::seal::Seal;
use super::{DataKey, DeclaredBudget, Ledger};
use crate::filter::left_of;

/// Neighboring devices with the same budget.
type Group<'a> = (RangeInclusive<u32>, &'a DeclaredBudget);

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
        devices: &[(u32, impl Borrow<DeclaredBudget>)],
    ) -> Result<Vec<f64>, LedgerError> {
        let groups = groups(devices)?;
        self.expect_in_place()?;
        let path = &self.path;
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate).at(path)?;
        let spent = match begun(&tx, path, run)? {
            Some(recorded) => {
                agree(&tx, path, run, (&recorded, data), &groups)?;
                spending_before(&tx, run).at(path)?
            }
            None => {
                declare(&tx, path, run, data, &groups)?;
                spending(&tx, &data.data).at(path)?
            }
        };
        tx.commit().at(path)?;
        self.expect_in_place()?;
        let left = |(device, budget): &(u32, _)| {
            let budget: &DeclaredBudget = Borrow::borrow(budget);
            left_of(budget.capacity, spent.get(device).copied().unwrap_or_default())
        };
        Ok(devices.iter().map(left).collect())
    }
}

/// The devices by number, neighbors with the same budget together. Refuses budgets without meaning.
fn groups(devices: &[(u32, impl Borrow<DeclaredBudget>)]) -> Result<Vec<Group<'_>>, LedgerError> {
    let mut order: Vec<usize> = (0..devices.len()).collect();
    order.sort_by_key(|&at| devices[at].0);
    let mut groups: Vec<Group<'_>> = Vec::new();
    for at in order {
        let (device, budget) = (devices[at].0, devices[at].1.borrow());
        if let Some((range, known)) = groups.last_mut() {
            if *range.end() == device {
                return Err(LedgerError::Twice { device });
            }
            let same = std::ptr::eq(*known, budget) || *known == budget;
            if same && device - range.end() == 1 {
                *range = *range.start()..=device;
                continue;
            }
        }
        check(budget)?;
        groups.push((device..=device, budget));
    }
    Ok(groups)
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
    key: &DataKey,
    groups: &[Group<'_>],
) -> Result<(), LedgerError> {
    let mut seal = Seal::read(tx).at(path)?;
    let DataKey { data, partition } = key;
    let sql = "INSERT OR IGNORE INTO data VALUES (?, ?) RETURNING *";
    insert(tx, &mut seal, "data", sql, params![data, partition]).at(path)?;
    let sql = "SELECT partition FROM data WHERE data = ?";
    let recorded: String = one(tx, sql, [data], |row| row.get(0)).at(path)?;
    if recorded != *partition {
        let (data, given) = (data.clone(), partition.clone());
        return Err(LedgerError::Partition { data, recorded, given });
    }
    let sql = "SELECT run FROM run WHERE data = ?";
    let earlier: Vec<String> = all(tx, sql, [data], |row| row.get(0)).at(path)?;
    let sql = "INSERT INTO run VALUES (?, ?, (SELECT coalesce(max(id), 0) FROM record), NULL)
               RETURNING *";
    insert(tx, &mut seal, "run", sql, params![run, data]).at(path)?;
    for (devices, budget) in groups {
        for earlier in &earlier {
            expect_same_kind(tx, path, (data, earlier), devices, budget)?;
        }
        let sql = "INSERT INTO declared VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING *";
        let DeclaredBudget { kind, epsilon, delta, capacity } = budget;
        let row = params![run, devices.start(), devices.end(), kind, epsilon, delta, capacity];
        insert(tx, &mut seal, "declared", sql, row).at(path)?;
    }
    seal.write(tx).at(path)
}

/// Refuses another kind of filter or δ than an earlier run declared for one of these devices.
fn expect_same_kind(
    tx: &Connection,
    path: &Path,
    (data, earlier): (&str, &str),
    devices: &RangeInclusive<u32>,
    budget: &DeclaredBudget,
) -> Result<(), LedgerError> {
    let sql = "SELECT first, last, kind, epsilon, delta, capacity FROM declared
               WHERE run = ? AND first <= ? ORDER BY first DESC";
    let mut statement = tx.prepare_cached(sql).at(path)?;
    let mut rows = statement.query(params![earlier, devices.end()]).at(path)?;
    while let Some(row) = rows.next().at(path)? {
        let (others, known) = DeclaredBudget::read(row, 0).at(path)?;
        if others.end() < devices.start() {
            break;
        }
        if (&known.kind, known.delta) != (&budget.kind, budget.delta) {
            let shown = |b: &DeclaredBudget| format!("kind {} and delta {:e}", b.kind, b.delta);
            return Err(LedgerError::OtherFilter {
                data: data.into(),
                device: *others.start().max(devices.start()),
                recorded: shown(&known),
                given: shown(budget),
            });
        }
    }
    Ok(())
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

/// Refuses a run that resumes with other data or other budgets than it began with.
fn agree(
    tx: &Connection,
    path: &Path,
    run: &str,
    (recorded, data): (&DataKey, &DataKey),
    groups: &[Group<'_>],
) -> Result<(), LedgerError> {
    let differs = |recorded, given| LedgerError::Resumed { run: run.to_string(), recorded, given };
    if recorded != data {
        let shown = |key: &DataKey| format!("data {} and partition {}", key.data, key.partition);
        return Err(differs(shown(recorded), shown(data)));
    }
    let sql = "SELECT first, last, kind, epsilon, delta, capacity FROM declared
               WHERE run = ? ORDER BY first";
    let declared = all(tx, sql, [run], |row: &Row<'_>| DeclaredBudget::read(row, 0)).at(path)?;
    let known: Vec<Group<'_>> = declared.iter().map(|(range, b)| (range.clone(), b)).collect();
    if known == groups {
        return Ok(());
    }
    let (was, now) = (numbers(&known), numbers(groups));
    if was != now {
        return Err(differs(format!("devices {was}"), format!("devices {now}")));
    }
    // The same devices: the first group that differs begins with one of another budget, or ends
    // before one.
    let by_device: BTreeMap<u32, &DeclaredBudget> =
        known.iter().map(|(range, budget)| (*range.start(), *budget)).collect();
    for (range, given) in groups {
        for device in range.clone() {
            let was = by_device.range(..=device).next_back().map(|(_, budget)| *budget);
            if let Some(was) = was.filter(|was| was != given) {
                let shown = |budget: &DeclaredBudget| format!("device {device} of {budget}");
                return Err(differs(shown(was), shown(given)));
            }
        }
    }
    Ok(())
}

/// The devices of groups in words: `[0, 7–9]`.
fn numbers(groups: &[Group<'_>]) -> String {
    let mut ranges: Vec<RangeInclusive<u32>> = Vec::new();
    for (range, _) in groups {
        match ranges.last_mut() {
            Some(last) if last.end() + 1 == *range.start() => *last = *last.start()..=*range.end(),
            _ => ranges.push(range.clone()),
        }
    }
    let shown = ranges.iter().map(|range| match range.end() - range.start() {
        0 => range.start().to_string(),
        _ => format!("{}–{}", range.start(), range.end()),
    });
    format!("[{}]", shown.collect::<Vec<_>>().join(", "))
}

/// Refuses a budget without meaning.
fn check(budget: &DeclaredBudget) -> Result<(), LedgerError> {
    let DeclaredBudget { kind: _, epsilon, delta, capacity } = *budget;
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
