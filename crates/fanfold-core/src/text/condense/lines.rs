//! Chooses the most important lines that fit the room, in order, and marks the gaps.
//!
//! All condensers turn a text into weighted rows and choose among them here: mandatory rows first, then rows by weight
//! per byte, then the beginning and the end while there is room. Rows of weight zero are never shown.
//!
//! ```text
//! line 1        line 1
//! line 2    ->  … 2 lines
//! line 3        error: no such thing
//! error: no such thing
//! ```

use std::borrow::Cow;

use crate::text::condense::CondenseOptions;
use crate::text::condense::severity::{Severity, head, severity_of, tail};

/// Errors, failures, exit codes: chosen before anything else.
pub(crate) const MUST: f32 = 1000.0;
/// Headers, counts, first and last lines.
pub(crate) const FRAME: f32 = 3.0;
/// Definitions, changed lines, first sentences.
pub(crate) const SHAPE: f32 = 1.0;
/// Ordinary lines: fill the remaining room from the beginning and the end.
pub(crate) const PLAIN: f32 = 0.1;
/// Never shown.
pub(crate) const NONE: f32 = 0.0;

/// Rows of at least this weight are chosen by weight, others by position.
const NOTABLE: f32 = 0.5;
const LONGEST: usize = 400;
const MOST_VALUE: f32 = 60.0;

/// A line with its weight.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    text: Cow<'a, str>,
    weight: f32,
    gap: Gap,
}

/// The unit that the mark of a gap counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gap {
    /// Lines.
    Line,
    /// Lines that repeat an earlier one except for numbers.
    Alike,
    /// Passed tests.
    Passed,
    /// Added or removed lines.
    Changed,
    /// List items.
    Item,
    /// Table rows.
    Row,
    /// Search hits.
    Hit,
    /// Nothing: the gap is obvious or does not matter.
    Silent,
}

/// The rows of a text.
pub(crate) struct Rows<'a, 'w> {
    rows: Vec<Row<'a>>,
    options: &'w CondenseOptions<'w>,
    longest: usize,
}

impl<'a, 'w> Rows<'a, 'w> {
    pub(crate) fn new(options: &'w CondenseOptions<'w>) -> Rows<'a, 'w> {
        Rows { rows: Vec::new(), options, longest: (options.room / 2).clamp(40, LONGEST) }
    }

    /// Adds a line. Its value is added to its weight.
    pub(crate) fn push(&mut self, line: &'a str, weight: f32) {
        if line.trim().is_empty() {
            self.rows.push(Row { text: Cow::Borrowed(""), weight: NONE, gap: Gap::Line });
            return;
        }
        let line = line.trim_end();
        if line.len() <= self.longest {
            let weight = weight + self.value(line);
            self.rows.push(Row { text: Cow::Borrowed(line), weight, gap: Gap::Line });
            return;
        }
        let (text, value) = cut(line, self.longest, self.options);
        self.rows.push(Row { text: Cow::Owned(text), weight: weight + value, gap: Gap::Line });
    }

    /// Adds a line with its line number. Its gaps are visible from the numbers.
    pub(crate) fn push_numbered(&mut self, number: usize, line: &str, weight: f32) {
        if line.trim().is_empty() {
            self.push("", NONE);
            self.gap(Gap::Silent);
            return;
        }
        let line = line.trim_end();
        let (text, value) = if line.len() <= self.longest {
            (format!("{number}→{line}"), self.value(line))
        } else {
            let (text, value) = cut(line, self.longest, self.options);
            (format!("{number}→{text}"), value)
        };
        self.rows.push(Row { text: Cow::Owned(text), weight: weight + value, gap: Gap::Silent });
    }

    /// Adds a line that repeats an earlier one except for numbers; shown only if it has a value.
    pub(crate) fn push_repeat(&mut self, line: &'a str) {
        self.push(line, NONE);
        self.gap(Gap::Alike);
    }

    /// Sets what a gap at the last row counts.
    pub(crate) fn gap(&mut self, gap: Gap) {
        if let Some(row) = self.rows.last_mut() {
            row.gap = gap;
        }
    }

    /// Adds a generated line that is never cut.
    pub(crate) fn push_uncut(&mut self, line: String, weight: f32) {
        let value = self.value(head(&line, 4 * LONGEST));
        self.rows.push(Row { text: Cow::Owned(line), weight: weight + value, gap: Gap::Line });
    }

    /// Adds a generated line.
    pub(crate) fn push_owned(&mut self, line: String, weight: f32) {
        let value = self.value(head(&line, 4 * LONGEST));
        let text = if line.len() > self.longest { cut(&line, self.longest, self.options).0 } else { line };
        self.rows.push(Row { text: Cow::Owned(text), weight: weight + value, gap: Gap::Line });
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    /// Raises the weight of a row to at least `weight`.
    pub(crate) fn raise(&mut self, index: usize, weight: f32) {
        if let Some(row) = self.rows.get_mut(index).filter(|row| !row.text.is_empty()) {
            row.weight = row.weight.max(weight);
        }
    }

    /// Raises the weight of the first and the last rows.
    pub(crate) fn raise_ends(&mut self, n_first: usize, n_last: usize) {
        let filled = |row: &Row<'_>| !row.text.is_empty();
        let first: Vec<usize> = (0..self.len()).filter(|&i| filled(&self.rows[i])).take(n_first).collect();
        let last: Vec<usize> =
            (0..self.len()).rev().filter(|&i| filled(&self.rows[i])).take(n_last).collect();
        for i in first.into_iter().chain(last) {
            let weight = if self.rows[i].gap == Gap::Alike { SHAPE } else { FRAME };
            self.raise(i, weight);
        }
    }

    /// Raises the weights of rows near important rows: an error is understood from its context.
    pub(crate) fn spread_weight(&mut self) {
        let lent = |weight: f32, share: f32| weight.min(6.0) * share;
        let mut from_above = NONE;
        for row in &mut self.rows {
            let own = row.weight;
            row.weight = if own > NONE { own.max(from_above) } else { own };
            from_above = if own >= NOTABLE { lent(own, 0.4) } else { from_above * 0.4 };
        }
        for i in (1..self.rows.len()).rev() {
            let from_below = lent(self.rows[i].weight, 0.2);
            let row = &mut self.rows[i - 1];
            row.weight = if row.weight > NONE { row.weight.max(from_below) } else { row.weight };
        }
    }

    /// The value of a line for later work.
    pub(crate) fn value(&self, line: &str) -> f32 {
        value_of(line, self.options)
    }

    /// Chooses rows and joins them.
    pub(crate) fn choose(&self) -> String {
        let mut selection = Selection::new(self);
        selection.by_weight();
        selection.by_position();
        selection.print()
    }
}

/// The value of a line as a finite, bounded weight.
fn value_of(line: &str, options: &CondenseOptions<'_>) -> f32 {
    let value = (options.value)(line);
    // A name in use has the weight of a header.
    if value.is_finite() { (value * FRAME).clamp(NONE, MOST_VALUE) } else { NONE }
}

struct Selection<'r> {
    rows: &'r [Row<'r>],
    is_shown: Vec<bool>,
    used: usize,
    room: usize,
    /// The maximum size of a gap mark.
    mark: usize,
}

impl<'r> Selection<'r> {
    fn new(all: &'r Rows<'r, '_>) -> Selection<'r> {
        let rows = &all.rows;
        let widest = rows.iter().filter(|row| row.gap != Gap::Silent);
        let mark = widest
            .map(|row| row.gap.word().len())
            .max()
            .map_or(0, |n| n + mark_of(rows.len(), Gap::Silent).len() + 1);
        Selection { rows, is_shown: vec![false; rows.len()], used: mark, room: all.options.room, mark }
    }

    /// Shows a row if it fits, accounting for the gap that it splits, shortens or closes.
    fn show(&mut self, i: usize, limit: usize) -> bool {
        if self.is_shown[i] {
            return true;
        }
        let is_hidden = |i: Option<&bool>| usize::from(i == Some(&false));
        let before = i.checked_sub(1).and_then(|before| self.is_shown.get(before));
        let n_gaps = is_hidden(before) + is_hidden(self.is_shown.get(i + 1));
        let used = self.used + self.rows[i].text.len() + 1 + n_gaps * self.mark;
        let used = used.saturating_sub(self.mark);
        if used > limit {
            return false;
        }
        self.used = used;
        self.is_shown[i] = true;
        true
    }

    fn by_weight(&mut self) {
        let mut notable: Vec<(bool, f32, u32)> = Vec::new();
        for (i, row) in self.rows.iter().enumerate().filter(|(_, row)| row.weight >= NOTABLE) {
            let is_must = row.weight >= MUST;
            // A long error is as important as a short one.
            let length = if is_must { 1 } else { row.text.len() + 24 };
            notable.push((is_must, row.weight / length as f32, i as u32));
        }
        let order = |a: &(bool, f32, u32), b: &(bool, f32, u32)| {
            b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2))
        };
        // At most one row per byte can be shown.
        let n_most = self.room.max(1);
        if notable.len() > n_most {
            notable.select_nth_unstable_by(n_most, order);
            notable.truncate(n_most);
        }
        notable.sort_unstable_by(order);
        for (_, _, i) in notable {
            self.show(i as usize, self.room);
        }
    }

    fn by_position(&mut self) {
        let two_thirds = self.used + self.room.saturating_sub(self.used) * 2 / 3;
        for (limit, is_forward) in [(two_thirds, true), (self.room, false)] {
            for i in 0..self.rows.len() {
                let i = if is_forward { i } else { self.rows.len() - 1 - i };
                let is_worth_it = self.rows[i].weight > NONE;
                if is_worth_it && !self.show(i, limit) {
                    break;
                }
            }
        }
    }

    fn print(&self) -> String {
        let mut out = String::with_capacity(self.used.min(self.room) + 64);
        let mut i = 0;
        while i < self.rows.len() {
            if self.is_shown[i] {
                out.push_str(&self.rows[i].text);
                out.push('\n');
                i += 1;
                continue;
            }
            let n_hidden = self.is_shown[i..].iter().take_while(|is_shown| !**is_shown).count();
            print_gap(&self.rows[i..i + n_hidden], &mut out);
            i += n_hidden;
        }
        out.truncate(out.trim_end().len());
        out
    }
}

/// Prints the mark of a gap, or its rows if they are shorter than the mark.
fn print_gap(hidden: &[Row<'_>], out: &mut String) {
    let counted = || hidden.iter().filter(|row| row.gap != Gap::Silent);
    let filled = || counted().filter(|row| !row.text.is_empty());
    let first = filled().next().map_or(Gap::Line, |row| row.gap);
    let gap = if filled().all(|row| row.gap == first) { first } else { Gap::Line };
    let n_counted = if gap == Gap::Line { counted().count() } else { filled().count() };
    if n_counted == 0 {
        return;
    }
    let mark = mark_of(n_counted, gap);
    let n_bytes: usize = counted().take(mark.len()).map(|row| row.text.len() + 1).sum();
    if n_bytes <= mark.len() && n_counted <= mark.len() {
        for row in filled() {
            out.push_str(&row.text);
            out.push('\n');
        }
        if filled().next().is_none() {
            out.push('\n');
        }
        return;
    }
    out.push_str(&mark);
    out.push('\n');
}

fn mark_of(n: usize, gap: Gap) -> String {
    let word = gap.word();
    let word = if n == 1 { word.strip_suffix('s').unwrap_or(word) } else { word };
    format!("… {n} {word}")
}

impl Gap {
    fn word(self) -> &'static str {
        match self {
            Gap::Line => "lines",
            Gap::Alike => "alike",
            Gap::Passed => "passed",
            Gap::Changed => "changed",
            Gap::Item => "items",
            Gap::Row => "rows",
            Gap::Hit => "hits",
            Gap::Silent => "",
        }
    }
}

/// Cuts a long line around its most valuable part. Returns the value of that part.
fn cut(line: &str, longest: usize, options: &CondenseOptions<'_>) -> (String, f32) {
    const CHUNK: usize = 64;
    let mut chunks: Vec<(usize, f32)> = Vec::new();
    let mut at = 0;
    while at < line.len() {
        let chunk = head(&line[at..], CHUNK);
        let end =
            chunk.rfind([' ', ',', ';']).filter(|end| *end >= CHUNK / 2).map_or(chunk.len(), |end| end + 1);
        let chunk = &chunk[..end.max(1)];
        let alarm = if severity_of(chunk) == Severity::Error { SHAPE } else { NONE };
        chunks.push((at, value_of(chunk, options) + alarm));
        at += chunk.len();
    }
    let n_window = (longest * 2 / 3 / CHUNK).max(1);
    let mut best = (NONE, 0);
    let mut sum = NONE;
    for (i, (_, value)) in chunks.iter().enumerate() {
        sum += value;
        if let Some((_, removed)) = i.checked_sub(n_window).map(|removed| chunks[removed]) {
            sum -= removed;
        }
        if sum > best.0 + 0.001 {
            best = (sum, (i + 1).saturating_sub(n_window));
        }
    }
    let most = chunks.iter().map(|(_, value)| *value).fold(NONE, f32::max);
    let start = chunks.get(best.1).map_or(0, |(at, _)| *at);
    let is_at_start = start < longest / 3;
    let room = longest.saturating_sub(2 * "…".len());
    let text = if is_at_start {
        let end = tail(line, room / 4);
        format!("{}…{end}", head(line, room - end.len()))
    } else {
        let front = head(line, room / 5);
        let part = head(&line[start..], room - front.len());
        let mark = if start + part.len() < line.len() { "…" } else { "" };
        format!("{front}…{part}{mark}")
    };
    (text, most)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::text::condense::ContentKind;
    use crate::text::condense::check::check;

    #[test]
    fn cuts_a_long_line_around_a_name_in_use() {
        let text = {
            let words = "some words that say nothing ".repeat(60);
            format!("first\n{words}the_name_in_use {words}\nlast\n")
        };
        check(
            ContentKind::Log,
            &text,
            300,
            &["the_name_in_use"],
            &expect![[r#"
            first
            some words that say nothing …that say nothing the_name_in_use some words that say nothing some words that say nothing some words that say nothin…
            last
        "#]],
        );
    }
}
