//! Actions of tools: well-known tools by name, other tools by the words in their name and their arguments.

use serde_json::{Map, Value};

use crate::actions::command::parse_command;
use crate::actions::path::{is_pathlike, join, normal};
use crate::actions::{Action, FileRead, LineRange, ReadLines, Verb, patch};
use crate::text::condense::severity::head;

/// The kind of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolKind {
    Shell,
    /// Reads, writes or edits, depending on the argument `command`.
    Editor,
    Patch,
    Plain(Verb),
}

/// The action of a call of any tool. The arguments in `naming` give the display name.
pub(super) fn parse_tool_call(tool: &str, arguments: &str, naming: &[String]) -> Action {
    let given = ToolArguments::parse(arguments, naming);
    Action { name: given.named.clone(), ..parse_arguments(tool, arguments, &given) }
}

/// The command of a shell tool's call.
pub(crate) fn shell_command(tool: &str, arguments: &str) -> Option<String> {
    let is_shell = kind_by_name(&bare_name(tool)) == Some(ToolKind::Shell);
    is_shell.then(|| ToolArguments::parse(arguments, &[]).command()).flatten()
}

fn parse_arguments(tool: &str, arguments: &str, given: &ToolArguments) -> Action {
    let name = bare_name(tool);
    let kind = kind_by_name(&name).unwrap_or_else(|| ToolKind::Plain(verb_by_words(tool, given)));
    match kind {
        ToolKind::Shell => match given.command() {
            Some(command) => {
                parse_command(&command, given.text(&["workdir", "cwd", "working_directory", "dir_path"]))
            }
            None => Action::new(Verb::Run, given.any()),
        },
        ToolKind::Editor => match given.text(&["command"]) {
            Some("view") => given.read(),
            Some("create" | "write") => given.change(Verb::Write),
            Some(_) => given.change(Verb::Edit),
            None => Action::new(Verb::Other, given.any()),
        },
        ToolKind::Patch => {
            let text = given.text(&["input", "patch", "patch_text", "diff"]).unwrap_or(arguments);
            let changes = patch::changed_files(text);
            let Some(first) = changes.first() else { return given.change(Verb::Edit) };
            Action {
                has_more: changes.len() > 1,
                ..Action { changes: changes.clone(), ..Action::new(Verb::Edit, first.clone()) }
            }
        }
        ToolKind::Plain(Verb::Read) => given.read(),
        ToolKind::Plain(verb @ (Verb::Edit | Verb::Write)) => given.change(verb),
        ToolKind::Plain(Verb::Search) => {
            let what = given.text(QUERIES).map_or_else(|| given.any(), str::to_owned);
            let scope = given.text(PATHS).map(normal);
            Action {
                scope: scope.or_else(|| given.text(&["glob", "include", "file_glob"]).map(str::to_owned)),
                ..Action::new(Verb::Search, what)
            }
        }
        ToolKind::Plain(Verb::List) => {
            let what = given.text(&["pattern", "glob", "glob_pattern", "query"]).map(str::to_owned);
            let scope = given.text(PATHS).map(normal);
            match (what, scope) {
                (Some(what), scope) => Action { scope, ..Action::new(Verb::List, what) },
                (None, Some(scope)) => Action::new(Verb::List, scope),
                (None, None) => Action::new(Verb::List, given.plain().map_or_else(|| ".".to_owned(), normal)),
            }
        }
        ToolKind::Plain(Verb::Fetch) => {
            let url = given.text(&["url", "uri", "href", "link"]).or_else(|| given.first_of("urls"));
            Action {
                has_more: given.len_of("urls") > 1,
                ..Action::new(Verb::Fetch, url.map_or_else(|| given.any(), str::to_owned))
            }
        }
        ToolKind::Plain(Verb::Ask) => {
            let asked = ["description", "question", "goal", "task", "name", "prompt"];
            let question = given.text(&asked).or_else(|| given.first_of("questions"));
            Action::new(Verb::Ask, question.map_or_else(|| given.any(), str::to_owned))
        }
        ToolKind::Plain(Verb::Plan) => {
            let subject = given.text(&["subject", "taskId", "title", "thought"]).map(str::to_owned);
            Action::new(Verb::Plan, subject.unwrap_or_else(|| "plan".to_owned()))
        }
        ToolKind::Plain(verb @ (Verb::Run | Verb::Other)) => match given.text(&["code", "script"]) {
            Some(code) => Action::new(verb, code.to_owned()),
            None => Action::new(verb, given.any()),
        },
    }
}

const PATHS: &[&str] = &[
    "file_path",
    "path",
    "filePath",
    "file",
    "filename",
    "file_name",
    "absolute_path",
    "target_file",
    "notebook_path",
    "relative_workspace_path",
    "dir_path",
    "directory",
    "dir",
    "folder",
    "target_directory",
    "AbsolutePath",
    "TargetFile",
];
const QUERIES: &[&str] =
    &["pattern", "query", "q", "regex", "search_term", "search", "search_query", "text", "keyword", "name"];

/// The name without server and namespace, in lower case with underscores.
fn bare_name(tool: &str) -> String {
    let last = tool.rsplit("__").next().unwrap_or(tool);
    let last = last.rsplit("functions.").next().unwrap_or(last);
    last.to_ascii_lowercase().replace(['-', '.'], "_")
}

fn kind_by_name(name: &str) -> Option<ToolKind> {
    let kind = match name {
        "bash" | "shell" | "terminal" | "exec_command" | "local_shell" | "local_shell_call"
        | "run_shell_command" | "run_terminal_cmd" | "execute_command" | "run_command" | "container_exec"
        | "execute_bash" | "powershell" | "unified_exec" | "shell_command" => ToolKind::Shell,
        "text_editor" | "str_replace_based_edit_tool" | "str_replace_editor" | "file_editor" => {
            ToolKind::Editor
        }
        "apply_patch" => ToolKind::Patch,
        "read" | "read_file" | "view" | "view_file" | "open_file" | "cat" | "notebookread"
        | "read_text_file" | "get_file_contents" | "view_image" | "read_many_files" => {
            ToolKind::Plain(Verb::Read)
        }
        "edit" | "multiedit" | "multi_edit" | "patch" | "replace" | "str_replace" | "edit_file"
        | "apply_diff" | "replace_in_file" | "notebookedit" | "notebook_edit" | "insert"
        | "search_replace" => ToolKind::Plain(Verb::Edit),
        "write" | "write_file" | "create_file" | "write_to_file" | "save_file" => {
            ToolKind::Plain(Verb::Write)
        }
        "grep"
        | "rg"
        | "search"
        | "search_files"
        | "codebase_search"
        | "search_file_content"
        | "grep_search"
        | "web_search"
        | "websearch"
        | "google_web_search"
        | "session_search"
        | "toolsearch" => ToolKind::Plain(Verb::Search),
        "glob" | "ls" | "list" | "list_dir" | "list_directory" | "list_files" | "find_files"
        | "file_search" | "find_path" | "tree" => ToolKind::Plain(Verb::List),
        "execute_code" | "python" | "run_code" | "code_interpreter" | "ipython" => ToolKind::Plain(Verb::Run),
        "webfetch" | "web_fetch" | "web_extract" | "fetch" | "browser_navigate" | "read_url" => {
            ToolKind::Plain(Verb::Fetch)
        }
        "task"
        | "agent"
        | "delegate_task"
        | "spawn_agent"
        | "dispatch_agent"
        | "askuserquestion"
        | "clarify"
        | "ask_followup_question"
        | "ask_user" => ToolKind::Plain(Verb::Ask),
        "todowrite" | "todo_write" | "update_plan" | "todo" | "todoread" | "taskcreate" | "taskupdate"
        | "tasklist" | "exitplanmode" | "enterplanmode" | "think" | "write_todos" => {
            ToolKind::Plain(Verb::Plan)
        }
        _ => return None,
    };
    Some(kind)
}

fn verb_by_words(tool: &str, given: &ToolArguments) -> Verb {
    let has = |words: &[&str]| words_of(tool).iter().any(|word| words.contains(&word.as_str()));
    let has_path = given.text(PATHS).is_some() || given.named_path().is_some();
    let rules: [(&[&str], bool, Verb); 9] = [
        (&["search", "find", "query", "grep", "lookup", "locate"], true, Verb::Search),
        (&["list", "ls", "glob", "tree"], true, Verb::List),
        (&["fetch", "browse", "navigate", "download", "http", "url", "scrape", "crawl"], true, Verb::Fetch),
        (&["read", "view", "open", "cat", "show", "get", "load"], has_path, Verb::Read),
        (&["edit", "patch", "replace", "update", "insert", "modify", "append"], has_path, Verb::Edit),
        (&["write", "create", "save"], has_path, Verb::Write),
        (&["run", "exec", "execute", "shell", "bash", "command", "terminal", "test"], true, Verb::Run),
        (&["ask", "delegate", "agent"], true, Verb::Ask),
        (&["plan", "todo"], true, Verb::Plan),
    ];
    rules.iter().find(|(words, is_fit, _)| *is_fit && has(words)).map_or(Verb::Other, |(_, _, verb)| *verb)
}

/// The words of a name in camel case, snake case or kebab case.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in head(name, 200).chars() {
        let starts = !c.is_alphanumeric() || (was_lower && c.is_uppercase());
        if starts {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_numeric();
    }
    words
}

/// The arguments of a call in any form.
#[derive(Default)]
struct ToolArguments {
    map: Map<String, Value>,
    plain: String,
    /// The display name, from the arguments that a policy rule names.
    named: Option<String>,
}

/// The maximum length of a display name.
const LONGEST_NAME: usize = 400;

impl ToolArguments {
    fn parse(text: &str, naming: &[String]) -> ToolArguments {
        let mut value = serde_json::from_str::<Value>(text).ok();
        if let Some(Value::String(inner)) = &value {
            value = Some(serde_json::from_str(inner).unwrap_or_else(|_| Value::String(inner.clone())));
        }
        match value {
            Some(Value::Object(map)) => {
                ToolArguments { named: named(&map, naming), map, ..ToolArguments::default() }
            }
            Some(Value::String(plain)) => ToolArguments { plain, ..ToolArguments::default() },
            Some(Value::Null) => ToolArguments::default(),
            Some(_) | None => ToolArguments { plain: text.to_owned(), ..ToolArguments::default() },
        }
    }

    /// The display name, if it is a path.
    fn named_path(&self) -> Option<&str> {
        self.named.as_deref().filter(|name| is_pathlike(name))
    }

    /// The argument with this name. A linear search is faster for a few arguments.
    fn get(&self, name: &str) -> Option<&Value> {
        const FEW: usize = 8;
        if self.map.len() > FEW {
            return self.map.get(name);
        }
        self.map.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// The first of these arguments with a text.
    fn text(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get(name)?.as_str()).filter(|text| !text.trim().is_empty())
    }

    fn plain(&self) -> Option<&str> {
        Some(self.plain.trim()).filter(|text| !text.is_empty())
    }

    fn number(&self, names: &[&str]) -> Option<u32> {
        let value = names.iter().find_map(|name| self.get(name))?;
        let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())?;
        u32::try_from(number).ok()
    }

    fn list(&self, name: &str) -> &[Value] {
        self.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn len_of(&self, name: &str) -> usize {
        self.list(name).len()
    }

    /// The first text of a list, or the main field of its first object.
    fn first_of(&self, name: &str) -> Option<&str> {
        let first = self.list(name).first()?;
        let inner = || ["url", "href", "question"].iter().find_map(|key| first.get(key)?.as_str());
        first.as_str().or_else(inner)
    }

    fn command(&self) -> Option<String> {
        if let Some(command) = self.text(&["command", "cmd", "script", "chars"]) {
            return Some(command.to_owned());
        }
        let action = self.map.get("action");
        let words =
            self.map.get("command").or_else(|| self.map.get("cmd")).or_else(|| action?.get("command"));
        let Some(Value::Array(words)) = words else {
            return self.plain().map(str::to_owned).or_else(|| self.named.clone());
        };
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        let quoted = words.iter().map(|word| {
            let is_plain = !word.is_empty()
                && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./=:,@+".contains(&b));
            if is_plain { (*word).to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
        });
        Some(quoted.collect::<Vec<_>>().join(" "))
    }

    fn path(&self) -> Option<String> {
        let path = self.named_path().or_else(|| self.text(PATHS)).or_else(|| self.text(&["uri"])).map(normal);
        let plain = || self.plain().and_then(|plain| plain.split_whitespace().next()).map(normal);
        path.or_else(|| self.first_of("paths").map(normal)).or_else(plain)
    }

    fn read(&self) -> Action {
        let Some(path) = self.path() else { return Action::new(Verb::Read, self.any()) };
        let path = join(self.text(&["workdir", "cwd"]), &path);
        let lines = self.lines();
        Action { reads: vec![FileRead { path: path.clone(), lines }], ..Action::new(Verb::Read, path) }
    }

    fn lines(&self) -> ReadLines {
        let range = self.list("view_range");
        let ends = |i: usize| range.get(i).and_then(Value::as_i64);
        if let (Some(first), Some(last)) = (ends(0), ends(1)) {
            let last = u32::try_from(last).unwrap_or(u32::MAX);
            return ReadLines::Range(LineRange { first: u32::try_from(first).unwrap_or(1), last });
        }
        let first = self.number(&[
            "offset",
            "start_line",
            "startLine",
            "line_start",
            "start",
            "start_line_one_indexed",
        ]);
        let last = self.number(&["end_line", "endLine", "line_end", "end", "end_line_one_indexed_inclusive"]);
        let limit = self.number(&["limit", "n_lines", "num_lines", "max_lines"]);
        match (first, last, limit) {
            (None, None, None) => ReadLines::All,
            (first, Some(last), _) => ReadLines::Range(LineRange { first: first.unwrap_or(1).max(1), last }),
            (first, None, Some(limit)) => {
                let first = first.unwrap_or(1).max(1);
                ReadLines::Range(LineRange { first, last: first.saturating_add(limit.saturating_sub(1)) })
            }
            (Some(first), None, None) => ReadLines::Range(LineRange { first: first.max(1), last: u32::MAX }),
        }
    }

    fn change(&self, verb: Verb) -> Action {
        let patched = self.text(&["patch", "diff"]).map(patch::changed_files).unwrap_or_default();
        let changes = match self.path() {
            Some(path) if patched.is_empty() => vec![path],
            _ => patched,
        };
        let target = changes.first().cloned().unwrap_or_else(|| self.any());
        Action { has_more: changes.len() > 1, changes, ..Action::new(verb, target) }
    }

    /// The most specific argument of an unknown call: a path, or the first two arguments as `name=value`.
    fn any(&self) -> String {
        let specific = self.text(&["command", "cmd", "url", "query"]).or_else(|| self.text(PATHS));
        if let Some(text) = specific {
            return if is_pathlike(text) { normal(text) } else { text.to_owned() };
        }
        if self.map.is_empty() {
            return self.plain().map(|plain| head(plain, 400).to_owned()).unwrap_or_default();
        }
        let shown = self.map.iter().filter(|(_, value)| !value.is_null()).take(2).map(|(name, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let short = head(&value, 80);
            format!("{name}={short}{}", if short.len() < value.len() { "…" } else { "" })
        });
        shown.collect::<Vec<_>>().join(" ")
    }
}

/// The values of the arguments in `naming` that are present, in this order.
fn named(map: &Map<String, Value>, naming: &[String]) -> Option<String> {
    let values = naming.iter().filter_map(|name| match map.get(name)? {
        Value::Null => None,
        Value::String(text) => Some(text.trim().to_owned()),
        value => Some(value.to_string()),
    });
    let all = values.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ");
    let name = if is_pathlike(&all) { normal(&all) } else { head(&all, LONGEST_NAME).to_owned() };
    (!name.is_empty()).then_some(name)
}
