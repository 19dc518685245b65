//! Settings files: where they are, and what is wrong with them, to the column.

use std::path::{Path, PathBuf};

use etcetera::{BaseStrategy as _, choose_base_strategy};

use super::options::Options;
use crate::failure::{Failure, not_read};

/// The name of a project's file.
pub(crate) const PROJECT_FILE: &str = ".fanfold.toml";

/// The project's file: the nearest one from a directory upwards.
pub(crate) fn project_file(from: &Path) -> Option<PathBuf> {
    from.ancestors().map(|directory| directory.join(PROJECT_FILE)).find(|path| path.is_file())
}

/// Where the user's file is, or would be.
pub(crate) fn user_file() -> Option<PathBuf> {
    let base = choose_base_strategy().ok()?;
    Some(base.config_dir().join("fanfold").join("config.toml"))
}

/// Reads a file. Paths in it are meant from the file's own directory.
pub(crate) fn read(path: &Path) -> anyhow::Result<Options> {
    let text = std::fs::read_to_string(path).map_err(|error| not_read(path, &error))?;
    let mut options = parse(&text, &path.display().to_string())?;
    let directory = path.parent().unwrap_or(Path::new(""));
    for relative in [&mut options.rules, &mut options.tokenizer].into_iter().flatten() {
        *relative = directory.join(&*relative);
    }
    // An address with a scheme is no path.
    if let Some(store) = options.store.as_mut().filter(|store| !store.contains(':')) {
        *store = directory.join(&*store).display().to_string();
    }
    Ok(options)
}

fn parse(text: &str, name: &str) -> Result<Options, Failure> {
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let (line, column) = position(text, error.span().map_or(0, |span| span.start));
        let message = error.message().lines().next().unwrap_or("not understood").to_owned();
        let (message, hint) = match unknown_key(&message) {
            Some((key, known)) => (format!("there is no setting `{key}`"), nearest_hint(key, &known)),
            None => {
                let near =
                    unknown_value(&message).and_then(|(value, known)| nearest(value, known.into_iter()));
                let usual = "`fanfold config schema` describes every setting".to_owned();
                (message.clone(), near.map_or(usual, |near| format!("did you mean `{near}`?")))
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

/// The key and the known ones, from serde's words: ``unknown field `a`, expected one of `b`, `c` ``.
pub(crate) fn unknown_key(message: &str) -> Option<(&str, Vec<&str>)> {
    word_and_known(message.strip_prefix("unknown field `")?)
}

/// The same of a value that is one of several.
fn unknown_value(message: &str) -> Option<(&str, Vec<&str>)> {
    word_and_known(message.strip_prefix("unknown variant `")?)
}

fn word_and_known(rest: &str) -> Option<(&str, Vec<&str>)> {
    let (word, rest) = rest.split_once('`')?;
    Some((word, rest.split('`').skip(1).step_by(2).collect()))
}

fn nearest_hint(key: &str, known: &[&str]) -> String {
    match nearest(key, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the settings here are {}", known.join(", ")),
    }
}

/// The word that differs in the fewest letters, if those are few.
pub(crate) fn nearest<'a>(word: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = match word.chars().count() {
        // Of three letters, all but one would be others.
        ..=3 => 1,
        n_letters => (n_letters / 3).max(2),
    };
    let with_distance = words.map(|known| (distance(word, known), known));
    with_distance.filter(|(distance, _)| *distance <= most).min().map(|(_, known)| known)
}

/// How many letters have to be changed, added or left out.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// What `config init` writes: every setting, with its default, commented out.
pub(crate) const TEMPLATE: &str = r#"# Settings of fanfold. Flags and FANFOLD_* variables come before this file.
# `fanfold config show` prints what is used, and where each value comes from.

# window = "128k"            # the model's window in tokens; default: the model's own
# reserve = 8192             # kept for the answer; default: a quarter of the window, at most 8192
# model = "gpt-5"            # gives the window and the counter; default: what the request names
# fallback = ["gpt-4.1"]     # models that may take over: the smallest window of all counts
# policy = "fanfold"         # fanfold, hermes, rules, hamr, mask, window
# rules = "compaction.yaml"  # a `compaction:` block for the policy `rules`
# strategy = "light"         # aggressive (60 %), moderate (80 %), light (95 %), off
# cadence = "cost"           # fold when that pays, or "window": only when it no longer fits
# format = "chat"            # chat, responses, anthropic, sharegpt, hermes; default: recognised
# focus = ""                 # a topic of which more is kept
# user_text = "last_resort"  # or "never": what people said is not even shortened before refusing
# tokenizer = "tokenizer.json"
# color = "auto"             # always, never
# low_mark = 0.565           # how far a fold by the window goes down, as a share of the room
# tail = 0.04                # how much of the end a fold by the window leaves as it is
# working_context = false    # files seen, verdicts and errors ride at the end of each view
# need = false               # a few lines of something folded come back when a message mentions it
# store = "sessions.db"      # where sessions are kept: a file, a folder, or postgres://USER@HOST/DATABASE
# profile = "default"        # each profile has a store of its own

# [serve]                    # in your own file only: it decides where credentials go
# listen = "127.0.0.1:7744"
# openai = "https://api.openai.com/v1"
# anthropic = "https://api.anthropic.com"
# allowed = []               # other addresses that a client may name in `x-fanfold-upstream`
# ca = "company.pem"         # authorities that upstreams are trusted by, beside those of this machine

# [memory]                   # in your own file only: it decides where what you say goes
# command = ["npx", "-y", "@modelcontextprotocol/server-memory"]  # an MCP server, started here
# environment = {}           # variables for it
# mcp = "http://127.0.0.1:8765/mcp"     # or one over HTTP
# http = "http://127.0.0.1:8766/memory" # or one with plain routes
# key_env = "MEMORY_KEY"     # the variable with its key
# search = "search_nodes"    # its tools and their arguments; default: those that are known
# search_argument = "query"
# write = "add_memory"
# write_argument = "text"
# arguments = {}             # always given to both
# offers = true              # it is offered what is folded; default: only with plain routes
# files = false              # what `fanfold memory` keeps goes into requests of the proxy, too
# deadline_ms = 800          # how long a turn waits for it
# tokens = 1500              # how much of a request it may have

# [summary]                  # in your own file only: a model that writes summaries of what is folded
# model = "gpt-5-mini"       # naming one switches summaries on
# url = "https://api.openai.com/v1"
# style = "openai"           # or "anthropic"
# key_env = "OPENAI_API_KEY" # or key_command: a command that prints the key
# timeout = 120              # seconds for one answer
# abort_on_failure = false   # true: a summary that fails leaves everything as it was

# [[tools]]
# name = "read_*"            # a `*` at the end matches any rest
# fold = "auto"              # never, always
# cap = 0.25                 # what one result may take at most, as a share of the room
# condense = "log"           # what its results are: json, log, trace, tests, diff, code, search, listing, table, html, prose, dense
# target = ["path"]          # the arguments that name its target; default: those that are known

# [[models]]
# pattern = "my-local-model"
# window = "32k"

# [[prices]]
# name = "my-local-model"    # what models' names begin with; what is left out is as fanfold knows it
# base = 0.5                 # dollars per million tokens of input
# output = 2.0
# write = 1.0                # to and from the cache, as multiples of base
# read = 0.1
# match = "prefix"           # marks, ends, none
"#;

#[cfg(test)]
mod tests {
    use fanfold_core::Policy;

    use super::*;
    use crate::settings::size::Share;

    #[test]
    fn the_template_is_valid_when_all_of_it_is_used() {
        let uncommented: String = TEMPLATE
            .lines()
            .filter(|line| line.contains(" = ") || line.starts_with("# ["))
            .map(|line| format!("{}\n", line.trim_start_matches("# ")))
            .collect();
        let options = parse(&uncommented, "template").expect("every line is a setting");
        assert_eq!((options.tools.len(), options.models.len(), options.prices.len()), (1, 1, 1));
        let policy = Policy::named("fanfold").expect("the usual policy");
        let marks = (options.low_mark, options.tail);
        assert_eq!(marks, (Some(Share(policy.low_mark)), Some(Share(policy.tail.share))));
        assert_eq!(parse(TEMPLATE, "template").expect("comments only"), Options::default());
    }

    #[test]
    fn a_word_of_other_letters_is_not_near() {
        let near = |word| nearest(word, ["o1", "gpt-5", "window"].into_iter());
        assert_eq!([near("foo"), near("o3"), near("windwo")], [None, Some("o1"), Some("window")]);
    }

    #[test]
    fn distances_are_counted_in_letters() {
        let pairs = [("window", "window"), ("windw", "window"), ("polciy", "policy"), ("", "abc")];
        assert_eq!(pairs.map(|(a, b)| distance(a, b)), [0, 1, 2, 3]);
    }
}
