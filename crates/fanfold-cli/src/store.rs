//! Where sessions are kept, and the engine on them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use etcetera::{BaseStrategy as _, choose_base_strategy};
use fanfold_engine::{Engine, MachineClock, OpError, store_hint, store_words};
use fanfold_store::{MemoryStore, OpenMode, SessionId, SessionRow, StoreError, open};

use crate::failure::Failure;
use crate::output::is_same_file;
use crate::settings::Options;

/// The profile that is used when none is named.
pub(crate) const DEFAULT_PROFILE: &str = "default";

/// The engine on the store that is set.
pub(crate) fn engine(options: &Options) -> Result<Engine, Failure> {
    engine_for(options, OpenMode::Write)
}

/// The engine on the store that is set, which must be there and is only read.
pub(crate) fn engine_to_read(options: &Options) -> Result<Engine, Failure> {
    engine_for(options, OpenMode::Read)
}

/// The engine on the store that is set, which must be there. What is new in it is made ready to be found, where it may
/// be written to.
pub(crate) fn engine_to_search(options: &Options) -> Result<Engine, Failure> {
    let reading = engine_for(options, OpenMode::Read)?;
    Ok(engine_for(options, OpenMode::Write).unwrap_or(reading))
}

/// An engine that keeps nothing, with a copy of a session if it is there.
pub(crate) fn copy_of(engine: Option<&Engine>, id: &SessionId) -> Result<Engine, Failure> {
    let copy = Engine::new(Arc::new(MemoryStore::default()), Arc::new(MachineClock));
    let Some(engine) = engine else { return Ok(copy) };
    if engine.store().session(id).map_err(|error| store_failed(&error))?.is_some() {
        let line = engine.export_line(id).map_err(|error| failed(&error))?;
        copy.import_line(&line).map_err(|error| failed(&error))?;
    }
    Ok(copy)
}

/// Whether there is a store to be read.
pub(crate) fn is_there(options: &Options) -> Result<bool, Failure> {
    let address = address(options)?;
    Ok(address.contains(':') || PathBuf::from(&address).exists())
}

fn engine_for(options: &Options, purpose: OpenMode) -> Result<Engine, Failure> {
    let address = address(options)?;
    if purpose == OpenMode::Read && !is_there(options)? {
        return Err(Failure::new(
            format!("there is no store at {address}"),
            "keep a session first: fanfold fold --session new chat.json",
        ));
    }
    let store = open(&address, purpose).map_err(|error| not_opened(&address, &error))?;
    Ok(Engine::new(Arc::from(store), Arc::new(MachineClock)))
}

/// A file that is written is not the store itself.
pub(crate) fn refuse_to_replace(options: &Options, path: &Path) -> Result<(), Failure> {
    let address = address(options)?;
    let is_store = !address.contains(':') && is_same_file(Path::new(&address), path);
    match is_store {
        false => Ok(()),
        true => Err(Failure::new(
            format!("{} is the store, where sessions are kept", path.display()),
            "write to another file",
        )),
    }
}

/// The address of the store: the one that is set, or the profile's file.
pub(crate) fn address(options: &Options) -> Result<String, Failure> {
    if let Some(store) = &options.store {
        return Ok(store.clone());
    }
    let profile = options.profile.as_deref().unwrap_or(DEFAULT_PROFILE);
    Ok(profile_file(profile)?.display().to_string())
}

pub(crate) fn folder() -> Result<PathBuf, Failure> {
    let base = choose_base_strategy().map_err(|error| {
        Failure::new(format!("there is no home folder: {error}"), "name a store with --store FILE")
    })?;
    Ok(base.data_dir().join("fanfold"))
}

pub(crate) fn profile_file(profile: &str) -> Result<PathBuf, Failure> {
    let is_name = !profile.is_empty()
        && profile.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
        && profile.len() <= 64;
    if !is_name {
        let message = format!("`{profile}` is no name of a profile");
        return Err(Failure::new(message, "use letters, digits, - and _"));
    }
    Ok(folder()?.join(format!("{profile}.db")))
}

/// An address as it may be shown: without a password.
pub(crate) fn shown(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
    let place = match place.rsplit_once('@') {
        Some((who, host)) => match who.split_once(':') {
            Some((user, _)) => format!("{user}:…@{host}"),
            None => place.to_owned(),
        },
        None => place.to_owned(),
    };
    let query = query.map_or(String::new(), |_| "?…".to_owned());
    format!("{scheme}://{place}{query}")
}

fn not_opened(address: &str, error: &StoreError) -> Failure {
    Failure::new(
        format!("the store {} could not be opened: {}", shown(address), store_words(error)),
        store_hint(error),
    )
}

/// A session by what a person calls it.
pub(crate) fn find(engine: &Engine, name: &str) -> Result<SessionRow, Failure> {
    engine.find(name).map_err(|error| failed(&error))
}

/// Why an operation on sessions was not done.
pub(crate) fn failed(error: &OpError) -> Failure {
    Failure::new(error.to_string(), error.hint())
}

/// Why a store did not do something.
pub(crate) fn store_failed(error: &StoreError) -> Failure {
    Failure::new(store_words(error), store_hint(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let check = |address: &str, expected: &str| assert_eq!(shown(address), expected);
        check(
            "postgres://me:s3cr3t@host:5432/kept?sslmode=require&password=s3cr3t",
            "postgres://me:…@host:5432/kept?…",
        );
        check("postgres://me:s3@cr3t@host/kept", "postgres://me:…@host/kept");
        check("postgres://me@host/kept", "postgres://me@host/kept");
        check("kept.db", "kept.db");
        check("memory:", "memory:");
    }
}
