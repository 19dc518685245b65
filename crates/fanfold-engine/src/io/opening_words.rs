//! Finds the text that a user typed in a message that starts with text added by an agent.

/// The text that the user typed; none if the agent wrote all of it.
///
/// Agents prepend tagged blocks (`<system-reminder>…</system-reminder>`), instruction files or echoes of commands
/// to prompts. A title must not contain them.
pub fn opening_words(text: &str) -> Option<&str> {
    let rest = without_blocks(text);
    let is_scaffolding = SCAFFOLDING.iter().any(|beginning| rest.starts_with(beginning));
    Some(rest).filter(|rest| !rest.is_empty() && !is_scaffolding)
}

/// Beginnings of user messages that an agent has written.
const SCAFFOLDING: [&str; 3] =
    ["# AGENTS.md instructions", "Caveat: The messages below were generated", "[Request interrupted by user"];

/// Removes leading tagged blocks such as `<environment_context>…</environment_context>`.
fn without_blocks(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some((tag, inside)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        let is_name = !tag.is_empty() && tag.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
        let closed = is_name.then(|| inside.split_once(&format!("</{tag}>"))).flatten();
        let Some((_, after)) = closed else { break };
        rest = after.trim_start();
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_added_by_agents_is_removed() {
        let check = |text: &str, words: Option<&str>| assert_eq!(opening_words(text), words);
        check("<env>here</env>\n<note-2>a > b</note-2> fix it", Some("fix it"));
        check("<env>never closed", Some("<env>never closed"));
        check("<a href=x>y</a> z", Some("<a href=x>y</a> z"));
        check("<system-reminder>\nall of it\n</system-reminder>\n", None);
        check("# AGENTS.md instructions for x\n\n<INSTRUCTIONS>…", None);
        check("  ", None);
    }
}
