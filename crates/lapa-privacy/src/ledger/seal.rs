//! A digest over all that the ledger holds, and names under its key.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use sha2::{Digest, Sha256};

/// Length of a ledger's key.
pub(super) const KEY_BYTES: usize = 32;

/// The tables under the seal and their columns. Accounts are left out: they follow from the records.
pub(super) const SEALED: [(&str, &str); 5] = [
    ("secret", "key"),
    ("data", "data, partition"),
    ("run", "run, data, earlier, repeat"),
    ("declared", "run, first, last, kind, epsilon, delta, capacity"),
    ("record", "id, run, device, round, attempt, asked, granted, cost, event"),
];

/// A digest of the ledger's content: the SHA-256 of every row, added bit by bit without carry, so
/// that a row comes or goes at the cost of its own hash. It shows damage and writing by other
/// programs. It is no signature: anyone who knows the rule can make another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seal([u8; 32]);

impl Seal {
    /// The seal of a ledger that has nothing but its key.
    pub(super) fn create(conn: &Connection, key: [u8; KEY_BYTES]) -> rusqlite::Result<()> {
        let mut seal = Self::default();
        conn.query_row("INSERT INTO secret VALUES (?) RETURNING key", [key], |row| {
            seal.toggle("secret", row)
        })?;
        conn.execute("INSERT INTO seal VALUES (?)", [seal.0]).map(|_| ())
    }

    /// The seal on record.
    pub(super) fn read(conn: &Connection) -> rusqlite::Result<Self> {
        conn.prepare_cached("SELECT digest FROM seal")?.query_row([], |row| row.get(0)).map(Self)
    }

    /// Puts the seal on record.
    pub(super) fn write(&self, conn: &Connection) -> rusqlite::Result<()> {
        conn.prepare_cached("UPDATE seal SET digest = ?")?.execute([self.0]).map(|_| ())
    }

    /// The seal that belongs on the ledger as it is.
    pub(super) fn computed(conn: &Connection) -> rusqlite::Result<Self> {
        let mut seal = Self::default();
        for (table, columns) in SEALED {
            let mut statement = conn.prepare(&format!("SELECT {columns} FROM {table}"))?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                seal.toggle(table, row)?;
            }
        }
        Ok(seal)
    }

    /// Adds a row, or takes it away. It must have the columns of [`SEALED`].
    pub(super) fn toggle(&mut self, table: &str, row: &Row<'_>) -> rusqlite::Result<()> {
        let mut hash = Sha256::new_with_prefix(table);
        for column in 0..row.as_ref().column_count() {
            // Each value with its type and length, so that no two rows read the same.
            let (kind, number, bytes): (u8, [u8; 8], &[u8]) = match row.get_ref(column)? {
                ValueRef::Null => (0, [0; 8], &[]),
                ValueRef::Integer(value) => (1, value.to_le_bytes(), &[]),
                ValueRef::Real(value) => (2, value.to_le_bytes(), &[]),
                ValueRef::Text(text) => (3, (text.len() as u64).to_le_bytes(), text),
                ValueRef::Blob(blob) => (4, (blob.len() as u64).to_le_bytes(), blob),
            };
            hash.update([kind]);
            hash.update(number);
            hash.update(bytes);
        }
        self.0.iter_mut().zip(hash.finalize()).for_each(|(sum, byte)| *sum ^= byte);
        Ok(())
    }
}

/// HMAC-SHA256 (RFC 2104) in hexadecimal, for keys of at most 64 bytes.
pub(super) fn hmac(key: &[u8], message: &[u8]) -> String {
    let padded = |byte: u8| {
        let mut block = [byte; 64];
        block.iter_mut().zip(key).for_each(|(padding, key)| *padding ^= key);
        Sha256::new_with_prefix(block)
    };
    let inner = padded(0x36).chain_update(message).finalize();
    padded(0x5c).chain_update(inner).finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, sections 4.2 to 4.5.
    #[test]
    fn hmac_is_that_of_the_rfc() {
        let counted: Vec<u8> = (1..=25).collect();
        for (key, message, expected) in [
            (
                &[0x0b; 20][..],
                &b"Hi There"[..],
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 20],
                &[0xdd; 50],
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
            ),
            (
                &counted,
                &[0xcd; 50],
                "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
            ),
        ] {
            assert_eq!(hmac(key, message), expected);
        }
    }
}
