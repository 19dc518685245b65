//! Opens the session store that the settings select.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use etcetera::{BaseStrategy as _, choose_base_strategy};
use fanfold_engine::{MachineClock, SessionEngine, store_hint, store_message};
use fanfold_store::{CheckMode, OpenMode, SessionId, SqliteStore, StoreError};

use crate::failure::{Failure, Result};
use crate::files::output::is_same_file;
use crate::settings::Options;

/// The profile when none is named.
pub(crate) const DEFAULT_PROFILE: &str = "default";

/// Opens the store, creating it if necessary.
pub(crate) fn open(options: &Options) -> Result<SessionEngine> {
    open_for(options, OpenMode::Write)
}

/// Opens an existing store for reading.
pub(crate) fn open_read_only(options: &Options) -> Result<SessionEngine> {
    open_for(options, OpenMode::Read)
}

/// An engine in memory, because the store could not be opened.
pub(crate) fn without_store(failure: &Failure) -> SessionEngine {
    SessionEngine::without_store(&failure.to_store_error(), Arc::new(MachineClock))
}

/// Opens an existing store for searching: for writing if possible, so that new messages can be indexed.
pub(crate) fn open_to_search(options: &Options) -> Result<SessionEngine> {
    let reading = open_read_only(options)?;
    Ok(open(options).unwrap_or(reading))
}

/// An engine in memory, with a copy of a session if it exists.
pub(crate) fn copy_in_memory(engine: Option<&SessionEngine>, id: &SessionId) -> Result<SessionEngine> {
    let copy = SessionEngine::new(Arc::new(SqliteStore::in_memory()), Arc::new(MachineClock));
    let Some(engine) = engine else { return Ok(copy) };
    if engine.store().session(id)?.is_some() {
        copy.import_line(&engine.export_line(id)?)?;
    }
    Ok(copy)
}

/// True if the store exists. A server is assumed to.
pub(crate) fn exists(options: &Options) -> Result<bool> {
    let address = address(options)?;
    Ok(address.contains(':') || PathBuf::from(&address).exists())
}

/// Opens an existing store to check it, even if its file is damaged.
pub(crate) fn open_to_check(options: &Options, mode: CheckMode) -> Result<SessionEngine> {
    let address = existing_address(options)?;
    let store = fanfold_store::open_to_check(&address, mode).map_err(|error| not_opened(&address, &error))?;
    Ok(SessionEngine::new(Arc::from(store), Arc::new(MachineClock)))
}

/// The address of the store, if the store exists.
fn existing_address(options: &Options) -> Result<String> {
    let address = address(options)?;
    if exists(options)? {
        return Ok(address);
    }
    Err(Failure::new(
        format!("there is no store at {address}"),
        "store a session first: fanfold fold --session new chat.json",
    ))
}

fn open_for(options: &Options, mode: OpenMode) -> Result<SessionEngine> {
    let address = match mode {
        OpenMode::Write | OpenMode::WritePromptly => address(options)?,
        OpenMode::Read => existing_address(options)?,
    };
    let store = fanfold_store::open(&address, mode).map_err(|error| not_opened(&address, &error))?;
    Ok(SessionEngine::new(Arc::from(store), Arc::new(MachineClock)))
}

/// Refuses to overwrite the store with an output file.
pub(crate) fn refuse_to_overwrite(options: &Options, path: &Path) -> Result<()> {
    let address = address(options)?;
    let is_store = !address.contains(':') && is_same_file(Path::new(&address), path);
    match is_store {
        false => Ok(()),
        true => {
            Err(Failure::new(format!("{} is the session store", path.display()), "write to another file"))
        }
    }
}

/// The address of the store: the one in the settings, or the profile's file.
pub(crate) fn address(options: &Options) -> Result<String> {
    if let Some(store) = &options.store {
        return Ok(store.clone());
    }
    let profile = options.profile.as_deref().unwrap_or(DEFAULT_PROFILE);
    Ok(profile_file(profile)?.display().to_string())
}

/// The folder of the profiles' files.
pub(crate) fn folder() -> Result<PathBuf> {
    let base = choose_base_strategy().map_err(|error| {
        Failure::new(format!("there is no home folder: {error}"), "name a store with --store FILE")
    })?;
    Ok(base.data_dir().join("fanfold"))
}

/// The file of a profile.
pub(crate) fn profile_file(profile: &str) -> Result<PathBuf> {
    let is_name = !profile.is_empty()
        && profile.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
        && profile.len() <= 64;
    if !is_name {
        let message = format!("`{profile}` is not a valid profile name");
        return Err(Failure::new(message, "use letters, digits, - and _"));
    }
    Ok(folder()?.join(format!("{profile}.db")))
}

/// True if an address contains a password.
pub(crate) fn has_password(address: &str) -> bool {
    let Some((_, rest)) = address.split_once("://") else { return false };
    let (authority, query) = rest.split_once('?').unwrap_or((rest, ""));
    let credentials = authority.rsplit_once('@').map_or("", |(credentials, _)| credentials);
    let is_in_query = query.split('&').any(|field| field.starts_with("password="));
    is_in_query || credentials.split_once(':').is_some_and(|(_, password)| !password.is_empty())
}

/// The address without its password, for messages.
pub(crate) fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (authority, query) =
        rest.split_once('?').map_or((rest, None), |(before, query)| (before, Some(query)));
    let authority = match authority.rsplit_once('@') {
        Some((credentials, host)) => match credentials.split_once(':') {
            Some((user, _)) => format!("{user}:…@{host}"),
            None => authority.to_owned(),
        },
        None => authority.to_owned(),
    };
    let query = query.map_or(String::new(), |_| "?…".to_owned());
    format!("{scheme}://{authority}{query}")
}

fn not_opened(address: &str, error: &StoreError) -> Failure {
    Failure::new(
        format!("the store {} could not be opened: {}", without_password(address), store_message(error)),
        store_hint(error),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden() {
        let check = |address: &str, expected: &str| assert_eq!(without_password(address), expected);
        check(
            "postgres://me:s3cr3t@host:5432/kept?sslmode=require&password=s3cr3t",
            "postgres://me:…@host:5432/kept?…",
        );
        check("postgres://me:s3@cr3t@host/kept", "postgres://me:…@host/kept");
        check("postgres://me@host/kept", "postgres://me@host/kept");
        check("kept.db", "kept.db");
        check("memory:", "memory:");
    }

    #[test]
    fn passwords_are_recognised() {
        for address in
            ["postgres://me:s3@cr3t@host:5432/kept", "postgres://me@host/kept?sslmode=require&password=x"]
        {
            assert!(has_password(address), "{address}");
        }
        for address in
            ["postgres://me@host:5432/kept?sslmode=require", "postgres://me:@host/kept", "C:\\a@b:c.db"]
        {
            assert!(!has_password(address), "{address}");
        }
    }
}
