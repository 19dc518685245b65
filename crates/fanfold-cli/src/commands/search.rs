//! `fanfold search`: what was said, by words, by place, by session.

use std::fmt::Write as _;

use fanfold_engine::Engine;
use fanfold_store::search::{
    BrowseReply, DateOrder, DiscoverReply, DiscoveredSession, DisplayMessage, LiveMessages, Profiles,
    ReadReply, ScrollReply, SearchError, SearchReply, SearchRequest, Searcher,
};
use fanfold_store::{Millis, OpenMode, Store, StoreError, open};

use crate::failure::Failure;
use crate::flags::SearchArgs;
use crate::settings::Options;
use crate::store::{engine_to_search, find, folder, profile_file, store_failed};
use crate::terminal::{self, paint, style};

/// How much of a message is shown to a person.
const MOST_LINES: usize = 6;
const LONGEST_LINE: usize = 300;

pub(crate) fn run(args: &SearchArgs, options: &Options) -> anyhow::Result<()> {
    let engine = engine_to_search(options)?;
    let request = request(args, &engine)?;
    if args.limit.is_some_and(|limit| limit > SearchRequest::MAX_RESULTS) {
        let most = SearchRequest::MAX_RESULTS;
        terminal::say(&format!(
            "{} at most {most} are shown at once; --offset {most} shows the next\n",
            paint(style::WARNING, "note:")
        ));
    }
    let caller = match &args.current {
        Some(name) => {
            let session = find(&engine, name)?.id;
            let depths = engine.live(&session).map_err(|error| store_failed(&error))?;
            Some(LiveMessages { session, depths })
        }
        None => None,
    };
    let search = Searcher { store: engine.store(), profiles: &OtherProfiles, caller };
    if args.json {
        return terminal::data(&format!("{:#}\n", search.answer_json(&request)));
    }
    let page = match search.answer(&request).map_err(|error| not_found(&error))? {
        SearchReply::Discover(found) => discovered(&found),
        SearchReply::Scroll(scroll) => scrolled(&scroll),
        SearchReply::Read(read) => read_page(&read),
        SearchReply::Browse(browse) => browsed(&browse),
    };
    terminal::page(&page)
}

fn request(args: &SearchArgs, engine: &Engine) -> Result<SearchRequest, Failure> {
    let query = args.words.join(" ");
    // A name in another profile is that profile's to know.
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

/// The seconds since 1970 at which a day begins, in UTC.
fn day(text: &str) -> Result<f64, Failure> {
    let at = Millis::from_date(text);
    let at = at.ok_or_else(|| Failure::new(format!("`{text}` is no day"), "write it as 2026-11-15"))?;
    Ok(at.0 as f64 / 1000.0)
}

fn not_found(error: &SearchError) -> Failure {
    let words = error.to_string();
    let (message, hint) =
        words.split_once("\n\nhint: ").unwrap_or((&words, "`fanfold doctor` checks the store"));
    Failure::new(message, hint)
}

fn discovered(found: &DiscoverReply) -> String {
    let mut page = String::new();
    for result in &found.results {
        heading(&mut page, result);
        let _ = writeln!(page, "    {}", marked(&result.snippet));
    }
    if let Some(message) = &found.message {
        let _ = writeln!(page, "{message}");
    } else if found.results.is_empty() {
        page.push_str("nothing was found\n");
    }
    page
}

fn heading(page: &mut String, result: &DiscoveredSession) {
    let title = result
        .meta
        .title
        .as_deref()
        .map_or_else(String::new, |title| format!("  {}", paint(style::BOLD, title)));
    let folded = if result.folded { "  (folded away)" } else { "" };
    let number = result.match_message_id.map_or_else(String::new, |number| format!("  message {number}"));
    let _ = writeln!(
        page,
        "{}  {}  {}{number}, {}{title}{folded}",
        paint(style::HANDLE, &result.session_id),
        result.meta.when,
        result.meta.source,
        result.matched_role
    );
    for fork in &result.also_in {
        let _ = writeln!(page, "    also in {fork}");
    }
}

/// Hits in colour instead of between signs.
fn marked(snippet: &str) -> String {
    let mut out = String::new();
    for (i, part) in snippet.replace('\n', " ").split(">>>").enumerate() {
        match part.split_once("<<<").filter(|_| i > 0) {
            Some((hit, rest)) => out.push_str(&format!("{}{rest}", paint(style::HINT, hit))),
            None => out.push_str(part),
        }
    }
    out
}

fn scrolled(scroll: &ScrollReply) -> String {
    let mut page = String::new();
    if let Some(warning) = &scroll.warning {
        let _ = writeln!(page, "{} {warning}", paint(style::WARNING, "note:"));
    }
    more(&mut page, scroll.messages_before, "before");
    scroll.messages.iter().for_each(|message| shown(&mut page, message));
    more(&mut page, scroll.messages_after, "after");
    page
}

fn more(page: &mut String, n: u32, place: &str) {
    if n > 0 {
        let _ = writeln!(page, "{}", paint(style::DIM, format!("… {n} messages {place}")));
    }
}

fn read_page(read: &ReadReply) -> String {
    let mut page = String::new();
    let mut next = 0;
    for message in &read.messages {
        more(&mut page, message.position.saturating_sub(next), "left out");
        next = message.position + 1;
        shown(&mut page, message);
    }
    if let Some(message) = &read.message {
        let _ = writeln!(page, "{message}");
    }
    page
}

fn shown(page: &mut String, message: &DisplayMessage) {
    let at = Millis((message.timestamp * 1000.0) as i64);
    let mark = if message.anchor { paint(style::HINT, ">") } else { " ".to_owned() };
    let role = paint(style::BOLD, message.role);
    let _ = writeln!(page, "{mark} {:>6}  {at}  {role}", message.id);
    let lines: Vec<&str> = message.content.lines().collect();
    for line in lines.iter().take(MOST_LINES) {
        let short: String = line.chars().take(LONGEST_LINE).collect();
        let _ = writeln!(page, "            {short}");
    }
    if lines.len() > MOST_LINES {
        let _ = writeln!(
            page,
            "            {}",
            paint(style::DIM, format!("… {} lines", lines.len() - MOST_LINES))
        );
    }
}

fn browsed(browse: &BrowseReply) -> String {
    let mut page = String::new();
    for one in &browse.results {
        let at = Millis((one.last_active * 1000.0) as i64).to_string();
        let words = one.title.as_deref().unwrap_or(&one.preview);
        let _ = writeln!(
            page,
            "{}  {}  {:>6} messages  {:<8} {words}",
            paint(style::HANDLE, &one.session_id),
            &at[..16],
            one.message_count,
            one.source
        );
    }
    if browse.results.is_empty() {
        let _ = writeln!(page, "{}", browse.message);
    }
    page
}

/// The other profiles of the person, each of which is only read.
pub(crate) struct OtherProfiles;

impl Profiles for OtherProfiles {
    fn names(&self) -> Vec<String> {
        let Ok(folder) = folder() else { return Vec::new() };
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
        let file = profile_file(name).map_err(|failure| StoreError::Address(failure.to_string()))?;
        open(&file.display().to_string(), OpenMode::Read)
    }
}
