//! Tables and their migrations: forward only, each in one transaction, recorded in `schema_versions`.
//!
//! A record is stored as its JSON (`doc`), the very text that events carry and commands print; the columns beside it
//! exist for indexes and are written from the same record.

use rusqlite::{Connection, OptionalExtension};
use weald_core::Timestamp;
use weald_core::store::{Result, StoreError};

use super::backend;

/// The migrations; the n-th brings the database to version n.
const MIGRATIONS: [&str; 4] = [
    include_str!("v1.sql"),
    include_str!("v2.sql"),
    include_str!("v3.sql"),
    include_str!("v4.sql"),
];

/// The version this binary writes.
pub const NEWEST: u32 = MIGRATIONS.len() as u32;

/// The database's version; 0 when it is empty. A newer one is refused.
pub fn version(connection: &Connection) -> Result<u32> {
    let table = "SELECT 1 FROM sqlite_schema WHERE name = 'schema_versions'";
    let known = connection
        .query_row(table, [], |_| Ok(()))
        .optional()
        .map_err(backend)?;
    if known.is_none() {
        return Ok(0);
    }
    known_version(connection)
}

/// The same where tables are known to be there.
pub fn known_version(connection: &Connection) -> Result<u32> {
    let newest = "SELECT coalesce(max(version), 0) FROM schema_versions";
    let found = connection
        .prepare_cached(newest)
        .and_then(|mut newest| newest.query_row([], |row| row.get(0)))
        .map_err(backend)?;
    match found > NEWEST {
        true => Err(StoreError::NewerSchema {
            found,
            known: NEWEST,
        }),
        false => Ok(found),
    }
}

/// Brings the database to [`NEWEST`]. The caller holds the turn.
pub fn migrate(connection: &Connection, now: Timestamp) -> Result<()> {
    for next in version(connection)?..NEWEST {
        let sql = format!(
            "BEGIN IMMEDIATE; {} INSERT INTO schema_versions VALUES ({}, '{now}'); COMMIT;",
            MIGRATIONS[next as usize],
            next + 1,
        );
        connection.execute_batch(&sql).map_err(backend)?;
    }
    Ok(())
}
