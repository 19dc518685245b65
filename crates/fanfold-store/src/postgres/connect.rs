//! Opens, configures and migrates connections to a PostgreSQL server.

use std::collections::HashMap;
use std::time::Duration;

use postgres::config::Host;
use postgres::{Client, Config, NoTls, Statement};

use super::error;
use crate::schema;
use crate::store::StoreError;

/// The advisory lock that serializes migrations and excludes batches during garbage collection and repairs. The
/// number is arbitrary: the letters "fanf".
pub(super) const ADVISORY_LOCK: i64 = 0x6661_6e66;

/// A connection with its prepared statements.
pub(super) struct PgConnection {
    /// The client.
    pub(super) client: Client,
    /// The prepared statements by their SQL text.
    pub(super) statements: HashMap<String, Statement>,
}

/// Connects to a server.
pub(super) fn connect(config: &Config) -> Result<PgConnection, StoreError> {
    let mut config = config.clone();
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(5));
    }
    let mut client = config.connect(NoTls).map_err(|error| connect_error(&config, error))?;
    // Commits must be durable when they return, even if the server's default is `synchronous_commit = off`.
    let setup = "SET search_path TO fanfold; SET client_min_messages TO warning; \
         SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";
    client.batch_execute(setup).map_err(error::convert)?;
    Ok(PgConnection { client, statements: HashMap::new() })
}

/// Describes a failed connection with the server's address.
fn connect_error(config: &Config, error: postgres::Error) -> StoreError {
    if error.code().is_some() {
        return error::convert(error);
    }
    let name = config.get_dbname().unwrap_or_default();
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .map(|host| match host {
            Host::Tcp(host) => format!("{host}:{port}"),
            Host::Unix(folder) => folder.display().to_string(),
        })
        .collect();
    let hosts = hosts.join(", ");
    let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
    let text = format!(
        "cannot connect to the database {name} at {hosts}: {cause}\n\n\
         hint: check the address and that the server is running"
    );
    StoreError::Other(text.into())
}

/// Returns the schema version; 0 if there are no tables.
pub(super) fn version(client: &mut Client) -> Result<u32, StoreError> {
    let exists =
        client.query_one("SELECT to_regclass('fanfold.marks') IS NOT NULL", &[]).map_err(error::convert)?;
    if !exists.get::<_, bool>(0) {
        return Ok(0);
    }
    let found = client.query_opt("SELECT value FROM fanfold.marks WHERE name = 'version'", &[]);
    let version = found.map_err(error::convert)?.map_or(0, |row| row.get::<_, i64>(0));
    u32::try_from(version).map_err(|_| StoreError::Corrupt(format!("invalid schema version {version}")))
}

/// Creates the tables or migrates them to the newest schema.
pub(super) fn migrate(client: &mut Client) -> Result<(), StoreError> {
    if schema::pending_steps(schema::POSTGRES, version(client)?)?.is_empty() {
        return Ok(());
    }
    let mut transaction = client.transaction().map_err(error::convert)?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&ADVISORY_LOCK]).map_err(error::convert)?;
    transaction.batch_execute("CREATE SCHEMA IF NOT EXISTS fanfold").map_err(error::convert)?;
    // Another process may have migrated the tables in the meantime.
    let exists = transaction
        .query_one("SELECT to_regclass('fanfold.marks') IS NOT NULL", &[])
        .map_err(error::convert)?;
    let found = if exists.get::<_, bool>(0) {
        let row = transaction
            .query_opt("SELECT value FROM marks WHERE name = 'version'", &[])
            .map_err(error::convert)?;
        row.map_or(0, |row| row.get::<_, i64>(0))
    } else {
        0
    };
    let steps = schema::pending_steps(schema::POSTGRES, u32::try_from(found).unwrap_or(u32::MAX))?;
    for step in steps {
        transaction.batch_execute(step).map_err(error::convert)?;
    }
    let set_version = "INSERT INTO marks (name, value) VALUES ('version', $1) \
         ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    transaction
        .execute(set_version, &[&i64::from(schema::newest_version(schema::POSTGRES))])
        .map_err(error::convert)?;
    transaction.commit().map_err(error::convert)
}
