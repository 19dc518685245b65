//! Charts of sizes: the view before and after folding, and its growth.

use anstyle::Style;
use fanfold_core::{Item, Tokens, Transcript, View, recount};
use fanfold_engine::{FoldedConversation, Sizes};

use crate::terminal::{Text, paint, style, text};

/// A part of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Tools,
    Verbatim,
    Condensed,
    Stubs,
    Record,
    Tail,
}

impl Part {
    const ALL: [Part; 6] =
        [Part::Tools, Part::Verbatim, Part::Condensed, Part::Stubs, Part::Record, Part::Tail];

    /// The name, the character of the bar, and its style.
    fn appearance(self) -> (&'static str, char, Style) {
        match self {
            Part::Tools => ("tools", '▒', style::DIM),
            Part::Verbatim => ("verbatim", '█', style::VERBATIM),
            Part::Condensed => ("condensed", '▓', style::CONDENSED),
            Part::Stubs => ("stubs", '▞', style::STUB),
            Part::Record => ("record", '░', style::RECORD),
            Part::Tail => ("tail", '■', style::TAIL),
        }
    }
}

/// The passes that condense texts.
const CONDENSING: [&str; 4] = ["condense", "squeeze", "arguments", "truncate"];

/// The view before and after folding against the room, and its growth.
pub(crate) fn before_and_after(followed: &FoldedConversation, view: &View, width: usize) -> Text {
    let transcript = followed.session.transcript();
    let room = followed.session.budget().room();
    let before =
        vec![(Part::Tools, transcript.tools()), (Part::Verbatim, transcript.total() - transcript.tools())];
    let after = parts(followed, view);
    let max = transcript.total().max(room).max(view.tokens);
    let bar_width = width.saturating_sub(LABEL + 10);
    let scale = Scale { max, width: bar_width };
    let label = |label: &str| format!("{label:<LABEL$}");
    let mut out = Text::default();
    out.push_line(text![label("before"), scale.bar(&before), format!(" {}", transcript.total())]);
    out.push_line(text![label("after"), scale.bar(&after), format!(" {}", view.tokens)]);
    let mark = " ".repeat(scale.cells(room).saturating_sub(1));
    out.push_line(text![label("room"), mark, paint(style::BOLD, "▲"), format!(" {room}")]);
    out.push(label(""));
    let mut separator = "";
    for part in Part::ALL {
        let tokens: Tokens = after.iter().filter(|(other, _)| *other == part).map(|(_, n)| *n).sum();
        let (name, sign, style) = part.appearance();
        if tokens > Tokens::ZERO {
            out.push(text![separator, paint(style, sign), format!(" {name} {tokens}")]);
            separator = "  ";
        }
    }
    out.push("\n");
    if let Some(course) = &followed.size_history {
        out.push(growth(course, room, bar_width));
    }
    out
}

/// The width of the label before a bar.
const LABEL: usize = 8;

/// The sizes of the parts of a view, in drawing order.
fn parts(followed: &FoldedConversation, view: &View) -> Vec<(Part, Tokens)> {
    let session = &*followed.session;
    let transcript = session.transcript();
    let tail_from =
        view.items.iter().rposition(|item| !matches!(item, Item::Whole(_))).map_or(0, |at| at + 1);
    let mut sums = Part::ALL.map(|part| (part, Tokens::ZERO));
    sums[0].1 = transcript.tools();
    for (i, item) in view.items.iter().enumerate() {
        let part = match item {
            Item::Whole(_) if i >= tail_from => Part::Tail,
            Item::Whole(_) => Part::Verbatim,
            Item::Note { .. } => Part::Record,
            Item::Edited(_, edits) => {
                let is_condensed = edits.iter().any(|edit| {
                    session.ledger().fold_at(edit.place).is_some_and(|fold| CONDENSING.contains(&fold.pass))
                });
                if is_condensed { Part::Condensed } else { Part::Stubs }
            }
        };
        let at = Part::ALL.iter().position(|other| *other == part).unwrap_or_default();
        sums[at].1 += cost(followed, transcript, item);
    }
    // Without folds there is no tail.
    if view.is_untouched() {
        let tail = sums[5].1;
        sums[1].1 += tail;
        sums[5].1 = Tokens::ZERO;
    }
    sums.to_vec()
}

fn cost(followed: &FoldedConversation, transcript: &Transcript, item: &Item) -> Tokens {
    let alone = View { items: vec![item.clone()], ..View::default() };
    recount(transcript, &alone, followed.session.counter()) - transcript.tools()
}

/// Tokens to columns.
struct Scale {
    max: Tokens,
    width: usize,
}

impl Scale {
    fn cells(&self, tokens: Tokens) -> usize {
        let cells = u128::from(tokens.0) * self.width as u128 / u128::from(self.max.0.max(1));
        cells as usize
    }

    /// A bar of parts. Each part with tokens gets at least one cell.
    fn bar(&self, parts: &[(Part, Tokens)]) -> Text {
        let mut out = Text::default();
        let (mut sum, mut drawn) = (Tokens::ZERO, 0);
        for (part, tokens) in parts {
            sum += *tokens;
            let n_missing = self.cells(sum).saturating_sub(drawn);
            let n_cells = if *tokens > Tokens::ZERO { n_missing.max(1) } else { 0 };
            let (_, sign, style) = part.appearance();
            if n_cells > 0 {
                out.push(paint(style, sign.to_string().repeat(n_cells)));
            }
            drawn += n_cells;
        }
        out
    }
}

/// The size of the view over time, with folds marked below.
fn growth(course: &[Sizes], room: Tokens, width: usize) -> Text {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    if course.len() < 2 {
        return Text::default();
    }
    let columns = width.min(course.len());
    let (mut line, mut marks) = (String::new(), String::new());
    let mut n_marked = 0;
    for column in 0..columns {
        let from = column * course.len() / columns;
        let to = ((column + 1) * course.len() / columns).max(from + 1);
        let fullest = course[from..to].iter().map(|sizes| sizes.view).max().unwrap_or_default();
        let level = u128::from(fullest.0) * 7 / u128::from(room.0.max(1));
        line.push(STEPS[level.min(7) as usize]);
        let n_folds = course[to - 1].n_folds;
        marks.push(if n_folds > n_marked { '▲' } else { ' ' });
        n_marked = n_folds;
    }
    let mut out = Text::from(format!("{:<LABEL$}{line} of {room}\n", "growth"));
    if n_marked > 0 {
        let label = format!("{:<LABEL$}", "folds");
        out.push_line(text![label, paint(style::RECORD, marks), format!(" {n_marked}")]);
    }
    out
}
