//! `fanfold search`: searches the messages of all sessions.

use std::fmt::Write as _;

use clap::Args;
use fanfold_engine::SessionEngine;
use fanfold_store::search::{
    BrowseReply, DateOrder, DiscoverReply, DiscoveredSession, DisplayMessage, LiveMessages, Profiles,
    ReadReply, ScrollReply, SearchError, SearchReply, SearchRequest, Searcher,
};
use fanfold_store::{Millis, OpenMode, Store, StoreError};

use crate::failure::{Failure, Result};
use crate::settings::{Options, StoreFlags};
use crate::store;
use crate::terminal::{self, RawFlag, Reporter, Text, paint, style, text};

const HELP: &str = "\
All words must match; \"in quotes\" matches a phrase, wor* a prefix, one OR other either
word, NOT this excludes a word. A query that begins with a dash follows `--`:
fanfold search -- rm -rf /usr

Without words, the last sessions are listed; --session prints a session, and --around the
messages around one of its messages.

Examples:
  fanfold search night run record
  fanfold search --session 3 --around 1204
  fanfold search '\"connection refused\"' --role tool --json";

/// Search the messages of all sessions
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct SearchArgs {
    /// Search query; without one, the last sessions are listed
    words: Vec<String>,
    /// Print this session; with a query, search only this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Print the messages around this message of the session
    #[arg(long, value_name = "NUMBER", requires = "session")]
    around: Option<i64>,
    /// Messages on either side
    #[arg(long, value_name = "N")]
    window: Option<i64>,
    /// Maximum number of results, up to 10 [default: 3; 10 for the last sessions]
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<i64>,
    /// Number of results to skip
    #[arg(long, value_name = "N")]
    offset: Option<i64>,
    /// Only these roles, comma-separated: user, assistant, tool, system, other
    #[arg(long, value_name = "NAMES")]
    role: Option<String>,
    /// Only sessions from these sources, comma-separated
    #[arg(long, value_name = "NAMES")]
    source: Option<String>,
    /// Only messages from this day on: 2026-11-15
    #[arg(long, value_name = "DAY")]
    since: Option<String>,
    /// Only messages before this day: 2026-11-15
    #[arg(long, value_name = "DAY")]
    before: Option<String>,
    /// Newest first
    #[arg(long, conflicts_with = "oldest")]
    newest: bool,
    /// Oldest first
    #[arg(long)]
    oldest: bool,
    /// Leave out what is in the current view of this session
    #[arg(long, value_name = "ID")]
    current: Option<String>,
    /// Search another profile, read-only
    #[arg(long, value_name = "NAME")]
    other_profile: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    raw: RawFlag,
    #[command(flatten)]
    pub(super) store: StoreFlags,
}

/// Limits on the printed part of a message.
const MAX_LINES: usize = 6;
const MAX_LINE_LENGTH: usize = 300;

pub(crate) fn run(args: &SearchArgs, options: &Options, reporter: Reporter) -> Result<()> {
    let engine = store::open_to_search(options)?;
    let request = request(args, &engine)?;
    if args.limit.is_some_and(|limit| limit > SearchRequest::MAX_RESULTS) {
        let max = SearchRequest::MAX_RESULTS;
        reporter.note(&format!("at most {max} results are shown; --offset {max} shows the next"));
    }
    let caller = match &args.current {
        Some(name) => {
            let session = engine.find(name)?.id;
            let depths = engine.live_messages(&session)?;
            Some(LiveMessages { session, depths })
        }
        None => None,
    };
    let search = Searcher { store: engine.store(), profiles: &OtherProfiles, caller };
    if args.json {
        return terminal::print_own_json(format_args!("{:#}", search.answer_json(&request)));
    }
    let page = match search.answer(&request).map_err(|error| search_failure(&error))? {
        SearchReply::Discover(found) => results_page(&found),
        SearchReply::Scroll(scroll) => scroll_page(&scroll),
        SearchReply::Read(read) => session_page(&read),
        SearchReply::Browse(browse) => sessions_page(&browse),
    };
    terminal::print_text(page, args.raw.controls())
}

fn request(args: &SearchArgs, engine: &SessionEngine) -> Result<SearchRequest> {
    let query = args.words.join(" ");
    // Names of another profile are resolved there.
    let session_id = match &args.session {
        Some(name) if args.other_profile.is_none() => {
            Some(engine.find(name).map_or_else(|_| name.clone(), |row| row.id.0))
        }
        other => other.clone(),
    };
    Ok(SearchRequest {
        query: (!query.trim().is_empty()).then_some(query),
        limit: args.limit,
        sort: args.newest.then_some(DateOrder::Newest).or(args.oldest.then_some(DateOrder::Oldest)),
        session_id,
        around_message_id: args.around,
        window: args.window,
        role_filter: args.role.clone(),
        profile: args.other_profile.clone(),
        source_filter: args.source.clone(),
        since: args.since.as_deref().map(day).transpose()?,
        before: args.before.as_deref().map(day).transpose()?,
        offset: args.offset,
        max_chars: None,
    })
}

/// The start of a day in UTC, in seconds since 1970.
fn day(text: &str) -> Result<f64> {
    let at = Millis::from_date(text);
    let at = at.ok_or_else(|| Failure::new(format!("`{text}` is not a date"), "write it as 2026-11-15"))?;
    Ok(at.0 as f64 / 1000.0)
}

fn search_failure(error: &SearchError) -> Failure {
    let text = error.to_string();
    let (message, hint) =
        text.split_once("\n\nhint: ").unwrap_or((&text, "`fanfold doctor` checks the store"));
    Failure::new(message, hint)
}

fn results_page(found: &DiscoverReply) -> Text {
    let mut page = Text::default();
    for result in &found.results {
        heading(&mut page, result);
        page.push_line(text!["    ", highlight(&result.snippet)]);
    }
    if let Some(message) = &found.message {
        let _ = writeln!(page, "{message}");
    } else if found.results.is_empty() {
        page.push("no results\n");
    }
    page
}

fn heading(page: &mut Text, result: &DiscoveredSession) {
    let number = result.match_message_id.map_or_else(String::new, |number| format!("  message {number}"));
    let (when, source, role) = (&result.meta.when, &result.meta.source, &result.matched_role);
    page.push(paint(style::HANDLE, &result.session_id));
    page.push(format!("  {when}  {source}{number}, {role}"));
    if let Some(title) = &result.meta.title {
        page.push(text!["  ", paint(style::BOLD, title)]);
    }
    page.push_line(if result.folded { "  (folded)" } else { "" });
    for fork in &result.also_in {
        let _ = writeln!(page, "    also in {fork}");
    }
}

/// Replaces the markers around matches by colours.
fn highlight(snippet: &str) -> Text {
    let mut out = Text::default();
    for (i, part) in snippet.replace('\n', " ").split(">>>").enumerate() {
        match part.split_once("<<<").filter(|_| i > 0) {
            Some((found, rest)) => out.push(text![paint(style::HINT, found), rest]),
            None => out.push(part),
        }
    }
    out
}

fn scroll_page(scroll: &ScrollReply) -> Text {
    let mut page = Text::default();
    if let Some(warning) = &scroll.warning {
        page.push_line(text![paint(style::WARNING, "note:"), " ", warning]);
    }
    omitted(&mut page, scroll.messages_before, "before");
    scroll.messages.iter().for_each(|message| message_lines(&mut page, message));
    omitted(&mut page, scroll.messages_after, "after");
    page
}

fn omitted(page: &mut Text, n: u32, position: &str) {
    if n > 0 {
        page.push_line(paint(style::DIM, format!("… {n} messages {position}")));
    }
}

fn session_page(read: &ReadReply) -> Text {
    let mut page = Text::default();
    let mut next = 0;
    for message in &read.messages {
        omitted(&mut page, message.position.saturating_sub(next), "left out");
        next = message.position + 1;
        message_lines(&mut page, message);
    }
    if let Some(message) = &read.message {
        let _ = writeln!(page, "{message}");
    }
    page
}

fn message_lines(page: &mut Text, message: &DisplayMessage) {
    let at = Millis((message.timestamp * 1000.0) as i64);
    let mark = if message.anchor { paint(style::HINT, ">") } else { Text::from(" ") };
    let number = format!(" {:>6}  {at}  ", message.id);
    page.push_line(text![mark, number, paint(style::BOLD, message.role)]);
    let lines: Vec<&str> = message.content.lines().collect();
    for line in lines.iter().take(MAX_LINES) {
        let short: String = line.chars().take(MAX_LINE_LENGTH).collect();
        let _ = writeln!(page, "            {short}");
    }
    if lines.len() > MAX_LINES {
        let more = format!("… {} lines", lines.len() - MAX_LINES);
        page.push_line(text!["            ", paint(style::DIM, more)]);
    }
}

fn sessions_page(browse: &BrowseReply) -> Text {
    let mut page = Text::default();
    for one in &browse.results {
        let at = Millis((one.last_active * 1000.0) as i64).to_string();
        let title = one.title.as_deref().unwrap_or(&one.preview);
        page.push(paint(style::HANDLE, &one.session_id));
        let _ =
            writeln!(page, "  {}  {:>6} messages  {:<8} {title}", &at[..16], one.message_count, one.source);
    }
    if browse.results.is_empty() {
        let _ = writeln!(page, "{}", browse.message);
    }
    page
}

/// The other profiles of the user, opened read-only.
pub(crate) struct OtherProfiles;

impl Profiles for OtherProfiles {
    fn names(&self) -> Vec<String> {
        let Ok(folder) = store::folder() else { return Vec::new() };
        let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
        let name = |file: std::io::Result<std::fs::DirEntry>| {
            let name = file.ok()?.file_name().into_string().ok()?;
            name.strip_suffix(".db").map(str::to_owned)
        };
        let mut names: Vec<String> = files.filter_map(name).collect();
        names.sort();
        names
    }

    fn open(&self, name: &str) -> Result<Box<dyn Store>, StoreError> {
        let file =
            store::profile_file(name).map_err(|failure| StoreError::InvalidAddress(failure.to_string()))?;
        fanfold_store::open(&file.display().to_string(), OpenMode::Read)
    }
}
