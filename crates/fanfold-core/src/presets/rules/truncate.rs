//! Cuts long outputs to their first ten and last five lines. (`rules`)
//!
//! ```text
//! call    read a
//! result  one
//!         two
//!         three
//!         four
//!         five
//!         six
//!         seven
//!         eight
//!         nine
//!         ten
//!         and a few more words
//!         and a few more words
//!         and a few more words
//!         twelve
//!         thirteen
//!         fourteen
//!         fifteen
//!         sixteen
//! ->
//! call    read a
//! result  one
//!         two
//!         three
//!         four
//!         five
//!         six
//!         seven
//!         eight
//!         nine
//!         ten
//!         [...truncated 3 lines, #1.1...]
//!         twelve
//!         thirteen
//!         fourteen
//!         fifteen
//!         sixteen
//! ```

use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::model::tokens::Tokens;

pub(crate) const PASS: Pass = Pass { name: "truncate", run };

const FIRST: usize = 10;
const LAST: usize = 5;
/// The maximum size, because lines can be long.
const MOST: usize = 2_000;

fn run(draft: &mut Draft<'_>, _target: Tokens) {
    for (place, text) in draft.results() {
        if text.chars().count() <= draft.policy.long_result_chars {
            continue;
        }
        let lines: Vec<_> = text.split('\n').collect();
        let (head, n, tail) = if lines.len() > FIRST + LAST {
            let cut = lines.len() - FIRST - LAST;
            (lines[..FIRST].join("\n"), cut, lines[lines.len() - LAST..].join("\n"))
        } else {
            (text.to_owned(), 0, String::new())
        };
        let head = &head[..head.floor_char_boundary(MOST * 3 / 5)];
        let tail = &tail[tail.ceil_char_boundary(tail.len().saturating_sub(MOST * 3 / 10))..];
        draft.fold_to(place, |tag| format!("{head}\n[...truncated {n} lines, {tag}...]\n{tail}"));
    }
}
