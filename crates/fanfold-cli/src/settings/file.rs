//! Settings files: their locations, and errors with line and column.

use std::path::{Path, PathBuf};

use etcetera::{BaseStrategy as _, choose_base_strategy};

use super::options::Options;
use crate::failure::{Failure, Result, not_read};

/// The name of a project's file.
pub(crate) const PROJECT_FILE: &str = ".fanfold.toml";

/// The project's file, in the directory or its nearest ancestor.
///
/// A file of another user is passed to `ignore`: in a shared folder, it would apply to the work of all users.
pub(crate) fn project_file(from: &Path, mut ignore: impl FnMut(&Path)) -> Option<PathBuf> {
    let files = from.ancestors().map(|directory| directory.join(PROJECT_FILE)).filter(|path| path.is_file());
    files.into_iter().find(|path| {
        let is_own = is_own(path);
        if !is_own {
            ignore(path);
        }
        is_own
    })
}

/// True if a file, and the link that leads to it, belong to the current user or to root.
#[cfg(unix)]
fn is_own(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let user = rustix::process::geteuid().as_raw();
    let owners = [std::fs::symlink_metadata(path), std::fs::metadata(path)];
    owners.into_iter().all(|metadata| metadata.is_ok_and(|metadata| [user, 0].contains(&metadata.uid())))
}

#[cfg(not(unix))]
fn is_own(_path: &Path) -> bool {
    true
}

/// The path of the user's file, whether it exists or not.
pub(crate) fn user_file() -> Option<PathBuf> {
    let base = choose_base_strategy().ok()?;
    Some(base.config_dir().join("fanfold").join("config.toml"))
}

/// Reads a file. Relative paths in it are resolved against its directory.
pub(crate) fn read(path: &Path) -> Result<Options> {
    let text = std::fs::read_to_string(path).map_err(|error| not_read(path, &error))?;
    let mut options = parse(&text, &path.display().to_string())?;
    let directory = path.parent().unwrap_or(Path::new(""));
    options.fields().into_iter().for_each(|field| field.resolve(directory));
    // The store is a path unless it is an address with a scheme.
    if let Some(store) = options.store.as_mut().filter(|store| !store.contains(':')) {
        *store = directory.join(&*store).display().to_string();
    }
    Ok(options)
}

pub(super) fn parse(text: &str, name: &str) -> Result<Options> {
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let (line, column) = position(text, error.span().map_or(0, |span| span.start));
        let message = error.message().lines().next().unwrap_or("invalid").to_owned();
        let (message, hint) = match unknown_key(&message) {
            Some((key, known)) => (format!("there is no setting `{key}`"), nearest_hint(key, &known)),
            None => {
                let value = unknown_value(&message);
                let near = value.and_then(|(value, known)| nearest(value, known.into_iter()));
                let general = "`fanfold config schema` describes every setting".to_owned();
                (message.clone(), near.map_or(general, |near| format!("did you mean `{near}`?")))
            }
        };
        Failure::new(format!("{name}:{line}:{column}: {message}"), hint)
    })
}

fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(at)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The unknown key and the known ones, from serde's message: ``unknown field `a`, expected one of `b`, `c` ``.
pub(crate) fn unknown_key(message: &str) -> Option<(&str, Vec<&str>)> {
    name_and_known(message.strip_prefix("unknown field `")?)
}

/// The same for a value of an enum.
fn unknown_value(message: &str) -> Option<(&str, Vec<&str>)> {
    name_and_known(message.strip_prefix("unknown variant `")?)
}

fn name_and_known(rest: &str) -> Option<(&str, Vec<&str>)> {
    let (name, rest) = rest.split_once('`')?;
    Some((name, rest.split('`').skip(1).step_by(2).collect()))
}

fn nearest_hint(key: &str, known: &[&str]) -> String {
    match nearest(key, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the settings here are {}", known.join(", ")),
    }
}

/// The word with the smallest edit distance, unless that is too large.
pub(crate) fn nearest<'a>(word: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let max = match word.chars().count() {
        ..=3 => 1,
        n_letters => (n_letters / 3).max(2),
    };
    let with_distance = words.map(|known| (strsim::levenshtein(word, known), known));
    with_distance.filter(|(distance, _)| *distance <= max).min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_ignores_distant_words() {
        let near = |word| nearest(word, ["o1", "gpt-5", "window"].into_iter());
        assert_eq!([near("foo"), near("o3"), near("windwo")], [None, Some("o1"), Some("window")]);
    }
}
