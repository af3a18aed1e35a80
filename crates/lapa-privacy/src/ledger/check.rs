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
        return damaged("a record has no run, device or data set".into());
    }
    if Seal::read(&tx).at(path)? != Seal::computed(&tx).at(path)? {
        return damaged("its records were changed after they were written".into());
    }
    let spent = sums(&tx, path)?;
    let mut statement = tx.prepare("SELECT rowid, device, spent FROM account").at(path)?;
    let mut rows = statement.query([]).at(path)?;
    while let Some(row) = rows.next().at(path)? {
        let account: i64 = row.get(0).at(path)?;
        let (device, recorded): (u32, f64) =
            row.get(1).and_then(|device| Ok((device, row.get(2)?))).at(path)?;
        let sum = spent.get(&account).copied().unwrap_or_default();
        if recorded != sum {
            return damaged(format!(
                "device {device} has spent {recorded}, but its releases cost {sum}"
            ));
        }
    }
    Ok(())
}

/// Cost of the releases of each account, added as they were recorded. All events must be readable.
fn sums(conn: &Connection, path: &Path) -> Result<HashMap<i64, f64>, LedgerError> {
    let sql = "SELECT account.rowid, cost, event FROM record JOIN declared USING (run, device)
               JOIN account USING (data, device) WHERE event IS NOT NULL ORDER BY id";
    let mut statement = conn.prepare(sql).at(path)?;
    let mut rows = statement.query([]).at(path)?;
    let mut spent: HashMap<i64, f64> = HashMap::new();
    let mut last = String::new();
    while let Some(row) = rows.next().at(path)? {
        let (account, cost): (i64, f64) =
            row.get(0).and_then(|account| Ok((account, row.get(1)?))).at(path)?;
        let sum = spent.entry(account).or_default();
        *sum = add_up(*sum, cost);
        // Most events are the same as the one before.
        let event = row.get_ref(2).at(path)?.as_str().map_err(rusqlite::Error::from).at(path)?;
        if event != last {
            event_of(event, path)?;
            last = event.into();
        }
    }
    Ok(spent)
}
