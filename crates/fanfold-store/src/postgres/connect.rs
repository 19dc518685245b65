//! Connections to a server, and what they are set to.

use std::collections::HashMap;
use std::time::Duration;

use postgres::config::Host;
use postgres::{Client, Config, NoTls, Statement};

use super::error;
use crate::schema;
use crate::store::StoreError;

/// Guards the making of the tables, and sweeps from batches. Any number does; these are the letters "fanf".
pub(super) const ADVISORY_LOCK: i64 = 0x6661_6e66;

/// A connection and the statements it has prepared.
pub(super) struct Connection {
    /// The connection.
    pub(super) client: Client,
    /// Statements by their text.
    pub(super) statements: HashMap<String, Statement>,
}

/// Connects.
pub(super) fn connect(config: &Config) -> Result<Connection, StoreError> {
    let mut config = config.clone();
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(5));
    }
    let mut client = config.connect(NoTls).map_err(|error| connect_error(&config, error))?;
    // A server that answers before a commit is safe is told to wait for ours.
    let wait = "SET search_path TO fanfold; SET client_min_messages TO warning; \
         SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";
    client.batch_execute(wait).map_err(error::convert)?;
    Ok(Connection { client, statements: HashMap::new() })
}

/// Why a server could not be reached, and which.
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
        "the database {name} at {hosts} can't be reached: {cause}\n\nhint: is the server running, and the address right?"
    );
    StoreError::Other(text.into())
}

/// The version of the tables; 0 if there are none.
pub(super) fn version(client: &mut Client) -> Result<u32, StoreError> {
    let is_there =
        client.query_one("SELECT to_regclass('fanfold.marks') IS NOT NULL", &[]).map_err(error::convert)?;
    if !is_there.get::<_, bool>(0) {
        return Ok(0);
    }
    let found = client.query_opt("SELECT value FROM fanfold.marks WHERE name = 'version'", &[]);
    let version = found.map_err(error::convert)?.map_or(0, |row| row.get::<_, i64>(0));
    u32::try_from(version).map_err(|_| StoreError::Broken(format!("{version} is no version")))
}

/// Makes the tables, or brings them up to date.
pub(super) fn migrate(client: &mut Client) -> Result<(), StoreError> {
    if schema::pending_steps(schema::POSTGRES, version(client)?)?.is_empty() {
        return Ok(());
    }
    let mut work = client.transaction().map_err(error::convert)?;
    work.execute("SELECT pg_advisory_xact_lock($1)", &[&ADVISORY_LOCK]).map_err(error::convert)?;
    work.batch_execute("CREATE SCHEMA IF NOT EXISTS fanfold").map_err(error::convert)?;
    // Another process may have been quicker.
    let is_there =
        work.query_one("SELECT to_regclass('fanfold.marks') IS NOT NULL", &[]).map_err(error::convert)?;
    let found = if is_there.get::<_, bool>(0) {
        let row =
            work.query_opt("SELECT value FROM marks WHERE name = 'version'", &[]).map_err(error::convert)?;
        row.map_or(0, |row| row.get::<_, i64>(0))
    } else {
        0
    };
    let steps = schema::pending_steps(schema::POSTGRES, u32::try_from(found).unwrap_or(u32::MAX))?;
    for step in steps {
        work.batch_execute(step).map_err(error::convert)?;
    }
    let note = "INSERT INTO marks (name, value) VALUES ('version', $1) \
         ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    work.execute(note, &[&i64::from(schema::newest_version(schema::POSTGRES))]).map_err(error::convert)?;
    work.commit().map_err(error::convert)
}
