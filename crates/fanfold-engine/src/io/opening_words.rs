//! The first words of a person in a message, without what agents put before them.

/// The words of a person in a text; none if it is all scaffolding.
///
/// Agents put blocks of tags before what a person said (`<system-reminder>…</system-reminder>`), whole files of instructions,
/// or echoes of commands. For a title that is noise.
pub fn opening_words(text: &str) -> Option<&str> {
    let rest = without_blocks(text);
    let is_scaffolding = SCAFFOLDING.iter().any(|beginning| rest.starts_with(beginning));
    Some(rest).filter(|rest| !rest.is_empty() && !is_scaffolding)
}

/// Beginnings of messages that an agent writes in a person's name.
const SCAFFOLDING: [&str; 3] =
    ["# AGENTS.md instructions", "Caveat: The messages below were generated", "[Request interrupted by user"];

/// A text without the blocks of tags that it begins with: `<environment_context>…</environment_context>`.
fn without_blocks(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some((tag, inside)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        let is_name = !tag.is_empty() && tag.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
        let closed = is_name.then(|| inside.split_once(&format!("</{tag}>"))).flatten();
        let Some((_, behind)) = closed else { break };
        rest = behind.trim_start();
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_puts_before_the_first_words_is_left_out() {
        let check = |text: &str, words: Option<&str>| assert_eq!(opening_words(text), words);
        check("<env>here</env>\n<note-2>a > b</note-2> fix it", Some("fix it"));
        check("<env>never closed", Some("<env>never closed"));
        check("<a href=x>y</a> z", Some("<a href=x>y</a> z"));
        check("<system-reminder>\nall of it\n</system-reminder>\n", None);
        check("# AGENTS.md instructions for x\n\n<INSTRUCTIONS>…", None);
        check("  ", None);
    }
}
