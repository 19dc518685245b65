//! Results of attacks as a table.

use std::fmt::Write as _;

/// The number of failures that are described on stderr.
const MAX_DESCRIBED: usize = 12;

/// The result of one attack.
pub(super) struct Row {
    attack: String,
    pub(super) n_tries: usize,
    /// A description of each failure.
    failures: Vec<String>,
    /// The measurement.
    pub(super) figure: String,
    /// The condition for passing.
    target: String,
    /// The reason why the attack did not run here.
    skipped: Option<String>,
}

impl Row {
    pub(super) fn new(attack: impl Into<String>, target: impl Into<String>) -> Row {
        Row {
            attack: attack.into(),
            n_tries: 0,
            failures: Vec::new(),
            figure: String::new(),
            target: target.into(),
            skipped: None,
        }
    }

    /// A row for an attack that cannot run on this machine.
    pub(super) fn skipped(attack: &str, reason: impl Into<String>) -> Row {
        Row { skipped: Some(reason.into()), ..Row::new(attack, "") }
    }

    /// A row that reports an attack that could not run as a failure.
    pub(super) fn from_result(attack: &str, result: anyhow::Result<Row>) -> Row {
        result.unwrap_or_else(|error| {
            let mut row = Row::new(attack, "");
            row.count(false, || format!("{error:#}"));
            row
        })
    }

    /// Counts a try, and a failure unless it was passed.
    pub(super) fn count(&mut self, is_passed: bool, describe: impl FnOnce() -> String) {
        self.n_tries += 1;
        if !is_passed {
            self.failures.push(describe());
        }
    }

    /// Counts a failure.
    pub(super) fn fail(&mut self, description: String) {
        self.failures.push(description);
    }

    pub(super) fn is_passed(&self) -> bool {
        self.failures.is_empty()
    }

    pub(super) fn n_failures(&self) -> usize {
        self.failures.len()
    }

    /// Prints the row and its first failures on stderr.
    pub(super) fn report(&self) {
        let figure = self.skipped.as_ref().map_or(self.figure.clone(), |reason| format!("skipped: {reason}"));
        eprintln!("  {}: {} of {} failed; {figure}", self.attack, self.n_failures(), self.n_tries);
        for failure in self.failures.iter().take(MAX_DESCRIBED) {
            eprintln!("    - {}", one_line(failure));
        }
        let n_more = self.failures.len().saturating_sub(MAX_DESCRIBED);
        if n_more > 0 {
            eprintln!("    and {n_more} more");
        }
    }
}

/// The rows as a table of a Markdown page.
pub(super) fn markdown(rows: &[Row]) -> String {
    let mut table =
        String::from("| attack | tries | failures | figure | target |\n| --- | --- | --- | --- | --- |\n");
    for row in rows {
        let (tries, failures) = match &row.skipped {
            Some(reason) => (format!("skipped: {reason}"), String::new()),
            None => (row.n_tries.to_string(), row.n_failures().to_string()),
        };
        let _ =
            writeln!(table, "| {} | {tries} | {failures} | {} | {} |", row.attack, row.figure, row.target);
    }
    table
}

/// A text without line ends and control characters, shortened.
fn one_line(text: &str) -> String {
    const MAX_CHARS: usize = 400;
    let words: Vec<&str> = text.split_whitespace().collect();
    let visible = |c: char| if c.is_control() { '?' } else { c };
    words.join(" ").chars().map(visible).take(MAX_CHARS).collect()
}
