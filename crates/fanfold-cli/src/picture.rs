//! Sizes as pictures: what fills the window before and after, and how it grew.

use std::fmt::Write as _;

use anstyle::Style;
use fanfold_core::{Item, Tokens, Transcript, View, recount};
use fanfold_engine::{Followed, Sizes};

use crate::terminal::{paint, style};

/// What a part of a view is made of. The letter stands for it where there is no colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    Tools,
    Verbatim,
    Condensed,
    Stubs,
    Digest,
    Tail,
}

impl Share {
    const ALL: [Share; 6] =
        [Share::Tools, Share::Verbatim, Share::Condensed, Share::Stubs, Share::Digest, Share::Tail];

    fn look(self) -> (&'static str, char, Style) {
        match self {
            Share::Tools => ("tools", '▒', style::DIM),
            Share::Verbatim => ("verbatim", '█', style::VERBATIM),
            Share::Condensed => ("condensed", '▓', style::CONDENSED),
            Share::Stubs => ("stubs", '▞', style::STUB),
            Share::Digest => ("digest", '░', style::DIGEST),
            Share::Tail => ("tail", '■', style::TAIL),
        }
    }
}

/// The passes whose folds keep a good part of the text.
const CONDENSING: [&str; 4] = ["condense", "squeeze", "arguments", "truncate"];

/// The context before and after, against the window, and how it grew.
pub(crate) fn before_and_after(followed: &Followed, view: &View, width: usize) -> String {
    let transcript = followed.session.transcript();
    let room = followed.session.budget().room();
    let before =
        vec![(Share::Tools, transcript.tools()), (Share::Verbatim, transcript.total() - transcript.tools())];
    let after = shares(followed, view);
    let most = transcript.total().max(room).max(view.tokens);
    let bar_width = width.saturating_sub(LABEL + 10);
    let scale = Scale { most, width: bar_width };
    let mut out = String::new();
    let _ = writeln!(out, "{:<LABEL$}{} {}", "before", scale.bar(&before), transcript.total());
    let _ = writeln!(out, "{:<LABEL$}{} {}", "after", scale.bar(&after), view.tokens);
    let mark = scale.cells(room).saturating_sub(1);
    let _ = writeln!(out, "{:<LABEL$}{}{} {}", "room", " ".repeat(mark), paint(style::BOLD, "▲"), room);
    let legend: Vec<String> = Share::ALL
        .into_iter()
        .filter_map(|share| {
            let tokens: Tokens = after.iter().filter(|(other, _)| *other == share).map(|(_, n)| *n).sum();
            let (name, sign, look) = share.look();
            (tokens > Tokens::ZERO).then(|| format!("{} {name} {tokens}", paint(look, sign)))
        })
        .collect();
    let _ = writeln!(out, "{:<LABEL$}{}", "", legend.join("  "));
    if let Some(course) = &followed.course {
        out.push_str(&growth(course, room, bar_width));
    }
    out
}

/// The width of the words before a bar.
const LABEL: usize = 8;

/// What the parts of a view cost, in the order in which they are drawn.
fn shares(followed: &Followed, view: &View) -> Vec<(Share, Tokens)> {
    let session = &*followed.session;
    let transcript = session.transcript();
    let tail_from =
        view.items.iter().rposition(|item| !matches!(item, Item::Whole(_))).map_or(0, |at| at + 1);
    let mut sums = Share::ALL.map(|share| (share, Tokens::ZERO));
    sums[0].1 = transcript.tools();
    for (i, item) in view.items.iter().enumerate() {
        let share = match item {
            Item::Whole(_) if i >= tail_from => Share::Tail,
            Item::Whole(_) => Share::Verbatim,
            Item::Note { .. } => Share::Digest,
            Item::Edited(_, edits) => {
                let is_condensed = edits.iter().any(|edit| {
                    session.ledger().fold_at(edit.place).is_some_and(|fold| CONDENSING.contains(&fold.pass))
                });
                if is_condensed { Share::Condensed } else { Share::Stubs }
            }
        };
        let at = Share::ALL.iter().position(|other| *other == share).unwrap_or_default();
        sums[at].1 += cost(followed, transcript, item);
    }
    // Where nothing is folded, everything is verbatim and there is no tail to speak of.
    if view.is_untouched() {
        let tail = sums[5].1;
        sums[1].1 += tail;
        sums[5].1 = Tokens::ZERO;
    }
    sums.to_vec()
}

fn cost(followed: &Followed, transcript: &Transcript, item: &Item) -> Tokens {
    let alone = View { items: vec![item.clone()], ..View::default() };
    recount(transcript, &alone, followed.session.counter()) - transcript.tools()
}

/// Tokens to columns.
struct Scale {
    most: Tokens,
    width: usize,
}

impl Scale {
    fn cells(&self, tokens: Tokens) -> usize {
        let cells = u128::from(tokens.0) * self.width as u128 / u128::from(self.most.0.max(1));
        cells as usize
    }

    /// A bar as long as the sum of its parts. A part that is there is seen.
    fn bar(&self, parts: &[(Share, Tokens)]) -> String {
        let mut out = String::new();
        let (mut sum, mut drawn) = (Tokens::ZERO, 0);
        for (share, tokens) in parts {
            sum += *tokens;
            let wanted = self.cells(sum).saturating_sub(drawn);
            let n_cells = if *tokens > Tokens::ZERO { wanted.max(1) } else { 0 };
            let (_, sign, look) = share.look();
            if n_cells > 0 {
                out.push_str(&paint(look, sign.to_string().repeat(n_cells)));
            }
            drawn += n_cells;
        }
        out
    }
}

/// The view's size over time, with each fold marked below.
fn growth(course: &[Sizes], room: Tokens, width: usize) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    if course.len() < 2 {
        return String::new();
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
    let mut out = String::new();
    let _ = writeln!(out, "{:<LABEL$}{line} of {room}", "growth");
    if n_marked > 0 {
        let _ = writeln!(out, "{:<LABEL$}{} {n_marked}", "folds", paint(style::DIGEST, marks));
    }
    out
}
