//! Search results as lines for a model: the hits in the JSON of known servers, otherwise the text unchanged.

use serde_json::Value;

/// Maximum number of lines.
const MAX_LINES: usize = 24;
/// Maximum length of one hit in bytes.
const MAX_LINE_BYTES: usize = 600;
/// Maximum length of all lines in bytes.
const MAX_TOTAL_BYTES: usize = 12 << 10;

/// The results of one search.
#[derive(Debug, Clone, Default)]
pub(crate) struct SearchResults {
    /// The search terms, if the server was queried term by term.
    pub(crate) terms: Vec<String>,
    /// The provider's answers, each a text that may be JSON.
    pub(crate) texts: Vec<String>,
}

impl SearchResults {
    /// The result lines without one entity's, sorted by their number of search terms.
    pub(crate) fn lines(&self, excluded_entity: &str) -> String {
        let mut lines: Vec<(usize, String)> = Vec::new();
        for text in &self.texts {
            for line in result_lines(text, excluded_entity, &self.terms) {
                let line = truncate(&line);
                if !line.is_empty() && !lines.iter().any(|(_, known)| *known == line) {
                    lines.push((self.n_terms(&line), line));
                }
            }
        }
        // The sort is stable: lines with equally many terms keep the provider's order.
        lines.sort_by_key(|(n, _)| std::cmp::Reverse(*n));
        let mut out = String::new();
        for (_, line) in lines.into_iter().take(MAX_LINES) {
            if out.len() + line.len() > MAX_TOTAL_BYTES {
                break;
            }
            out.push_str(&line);
            out.push('\n');
        }
        out.trim_end().to_owned()
    }

    fn n_terms(&self, line: &str) -> usize {
        let line = line.to_lowercase();
        self.terms.iter().filter(|term| line.contains(&term.to_lowercase())).count()
    }
}

fn result_lines(text: &str, excluded_entity: &str, terms: &[String]) -> Vec<String> {
    let is_json = text.trim_start().starts_with(['{', '[']);
    let value = if is_json { serde_json::from_str::<Value>(text).ok() } else { None };
    let Some(value) = value else { return vec![text.to_owned()] };
    let entities = value.get("entities").and_then(Value::as_array);
    if let Some(entities) = entities {
        let others = entities.iter().filter(|entity| entity["name"] != excluded_entity);
        return others.flat_map(|entity| entity_lines(entity, terms)).collect();
    }
    let keys = ["results", "memories", "hits", "items", "data"];
    let list = value.as_array().or_else(|| keys.iter().find_map(|key| value.get(key)?.as_array()));
    match list {
        Some(list) => list.iter().filter_map(hit).map(|hit| format!("- {hit}")).collect(),
        None => hit(&value).map_or_else(|| vec![text.to_owned()], |hit| vec![format!("- {hit}")]),
    }
}

/// The observations of an entity that contain a search term, or its first ones if none does.
fn entity_lines(entity: &Value, terms: &[String]) -> Vec<String> {
    const MAX_UNMATCHED: usize = 4;
    let name = entity["name"].as_str().unwrap_or_default();
    let observations = entity["observations"].as_array();
    let all: Vec<&str> = observations.into_iter().flatten().filter_map(Value::as_str).collect();
    let has_term = |text: &&&str| {
        let lower = text.to_lowercase();
        terms.iter().any(|term| lower.contains(&term.to_lowercase()))
    };
    let matching: Vec<&&str> = all.iter().filter(has_term).collect();
    let shown: Vec<&str> = if matching.is_empty() {
        all.iter().take(MAX_UNMATCHED).copied().collect()
    } else {
        matching.into_iter().copied().collect()
    };
    if shown.is_empty() {
        let kind = entity["entityType"].as_str().unwrap_or_default();
        return vec![format!("- {name} ({kind})")];
    }
    shown.into_iter().map(|text| format!("- {name}: {text}")).collect()
}

/// The text of a hit, under any of the usual keys.
fn hit(value: &Value) -> Option<&str> {
    let keys = ["memory", "text", "content", "observation", "summary", "data"];
    value.as_str().or_else(|| keys.iter().find_map(|key| value.get(key)?.as_str()))
}

/// A line cut to its maximum length.
fn truncate(line: &str) -> String {
    let line = line.trim();
    if line.len() <= MAX_LINE_BYTES || !line.starts_with("- ") {
        return line[..line.floor_char_boundary(MAX_TOTAL_BYTES)].to_owned();
    }
    format!("{}…", &line[..line.floor_char_boundary(MAX_LINE_BYTES)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(terms: &[&str], texts: &[&str]) -> String {
        let owned = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
        SearchResults { terms: owned(terms), texts: owned(texts) }.lines("this talk")
    }

    #[test]
    fn hits_of_known_servers_become_lines() {
        let graph = r#"{"entities":[{"name":"staging","entityType":"host","observations":["port 8443","in Frankfurt"]},
            {"name":"this talk","observations":["port again"]},{"name":"empty","entityType":"x","observations":[]}],"relations":[]}"#;
        assert_eq!(lines(&["port"], &[graph, graph]), "- staging: port 8443\n- empty (x)");
        assert_eq!(lines(&["host"], &[graph]), "- staging: port 8443\n- staging: in Frankfurt\n- empty (x)");
        let mem0 = r#"{"results":[{"memory":"Likes tea","score":0.9},{"memory":"Likes tea"},{"x":1}]}"#;
        assert_eq!(lines(&[], &[mem0]), "- Likes tea");
        assert_eq!(lines(&[], &[r#"["a","b"]"#, "plain words"]), "- a\n- b\nplain words");
        assert_eq!(lines(&[], &["{broken", ""]), "{broken");
    }

    #[test]
    fn lines_are_ranked_by_terms_and_limited_in_size() {
        let list: Vec<String> = (0..500).map(|i| format!("memory {i} {}", "x".repeat(700))).collect();
        let json = serde_json::to_string(&list).unwrap();
        let shown = lines(&["memory", "499"], &[&json]);
        assert!(shown.starts_with("- memory 499 ") && shown.len() <= MAX_TOTAL_BYTES, "{}", shown.len());
        assert!(lines(&[], &[&"y".repeat(1 << 20)]).len() <= MAX_TOTAL_BYTES);
    }
}
