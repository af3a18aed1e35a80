//! Verification of a ledger at opening: nothing was lost or changed since it was written.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::Connection;

use super::error::{At, LedgerError};
use super::query::event_of;
use super::seal::Seal;
use super::{add_up, schema};

/// Refuses anything but a whole ledger.
pub(super) fn check(conn: &Connection, path: &Path) -> Result<(), LedgerError> {
    // In one transaction: other processes write meanwhile.
    let tx = conn.unchecked_transaction().at(path)?;
    schema::identify(&tx, path)?;
    let damaged = |detail| Err(LedgerError::Corrupt { path: path.to_path_buf(), detail });
    let state: String = tx.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).at(path)?;
    if state != "ok" {
        return damaged(state);
    }
    if tx.prepare("PRAGMA foreign_key_check").and_then(|mut sql| sql.exists([])).at(path)? {
        return damaged("a record has no run or data set".into());
    }
    let undeclared = "SELECT 1 FROM record WHERE NOT coalesce((SELECT last FROM declared
                      WHERE declared.run = record.run AND first <= device
                      ORDER BY first DESC LIMIT 1) >= device, FALSE)";
    if tx.prepare(undeclared).and_then(|mut sql| sql.exists([])).at(path)? {
        return damaged("a record is of a device that its run did not declare".into());
    }
    if Seal::read(&tx).at(path)? != Seal::computed(&tx).at(path)? {
        return damaged("its records were changed after they were written".into());
    }
    let mut spent = sums(&tx, path)?;
    let mut statement = tx.prepare("SELECT data, device, spent FROM account").at(path)?;
    let mut rows = statement.query([]).at(path)?;
    while let Some(row) = rows.next().at(path)? {
        let account: rusqlite::Result<(String, u32, f64)> = row.try_into();
        let (data, device, recorded) = account.at(path)?;
        let sum = spent.get_mut(&data).and_then(|devices| devices.remove(&device));
        let sum = sum.unwrap_or_default();
        if recorded != sum {
            return damaged(format!(
                "device {device} has spent {recorded}, but its releases cost {sum}"
            ));
        }
    }
    match spent.values().find_map(|devices| devices.iter().next()) {
        Some((device, sum)) => {
            damaged(format!("device {device} has no account, but its releases cost {sum}"))
        }
        None => Ok(()),
    }
}

/// Cost of the releases of each device of each data set, added as they were recorded. All events must
/// be readable.
fn sums(conn: &Connection, path: &Path) -> Result<HashMap<String, HashMap<u32, f64>>, LedgerError> {
    let sql = "SELECT data, device, cost, event FROM record JOIN run USING (run)
               WHERE event IS NOT NULL ORDER BY id";
    let mut statement = conn.prepare(sql).at(path)?;
    let mut rows = statement.query([]).at(path)?;
    let mut spent: HashMap<String, HashMap<u32, f64>> = HashMap::new();
    let mut last = String::new();
    while let Some(row) = rows.next().at(path)? {
        let text = |column| row.get_ref(column).and_then(|value| Ok(value.as_str()?)).at(path);
        let (data, event) = (text(0)?, text(3)?);
        let (device, cost): (u32, f64) =
            row.get(1).and_then(|device| Ok((device, row.get(2)?))).at(path)?;
        if !spent.contains_key(data) {
            spent.insert(data.into(), HashMap::new());
        }
        // Unwrap safety: put there just above.
        let sum = spent.get_mut(data).unwrap().entry(device).or_default();
        *sum = add_up(*sum, cost);
        // Most events are the same as the one before.
        if event != last {
            event_of(event, path)?;
            last = event.into();
        }
    }
    Ok(spent)
}
