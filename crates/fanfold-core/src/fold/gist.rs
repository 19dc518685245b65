//! Shortens a large result to its most valuable lines, as a record would show them.

use crate::facts::results::{result_lines, unwrap_result};
use crate::fold::draft::Draft;
use crate::model::tokens::Tokens;
use crate::model::transcript::CallId;
use crate::record::choice::{choose, likely};
use crate::record::layout::detail_lines;
use crate::record::pieces::{Piece, PieceCollector, PieceKind};
use crate::select::analysis::Analysis;
use crate::select::edited_lines::EditedLines;

/// The lines around an edited one that count like it.
const AROUND: usize = 2;

/// The most valuable lines of a call's result in about `max_tokens` tokens, if any line has a value.
pub(crate) fn gist(
    draft: &mut Draft<'_>,
    call: CallId,
    max_tokens: Tokens,
    edited: &EditedLines,
) -> Option<String> {
    let relevance = draft.relevance_without(call.step);
    let facts = draft.analysis.facts(draft.transcript, &draft.policy.tools, call.step)?;
    let result = draft.transcript.call(call).result.as_ref()?;
    let text = unwrap_result(result.body.as_str());
    let facts = facts.calls.get(usize::from(call.call))?;
    let lines = result_lines(&text, facts.first_line);
    let Analysis { lexicon, values, .. } = &mut *draft.analysis;
    let mut collector = PieceCollector::new(lexicon, &relevance);
    collector.add_lines(0, call.call, facts, &text, &lines);
    let mut pieces = collector.pieces;
    let is_edited: Vec<bool> = pieces.iter().map(|piece| edited.contains(piece.text)).collect();
    // A name in many lines does not tell them apart.
    const MAX_NAMED: usize = 5;
    let is_named: Vec<bool> = pieces.iter().map(|piece| relevance.is_named(piece.text)).collect();
    let is_telling = is_named.iter().filter(|is_named| **is_named).count() <= MAX_NAMED;
    for (i, piece) in pieces.iter_mut().enumerate() {
        let around = i.saturating_sub(AROUND)..(i + AROUND + 1).min(is_edited.len());
        let chance = match () {
            () if is_named[i] && is_telling => NAMED,
            () if is_edited[around].contains(&true) => EDITED,
            () => 0.0,
        };
        piece.score += chance / likely(PieceKind::Line);
    }
    let atoms = pieces.iter().map(|piece| &piece.atoms[..]);
    let values = values.compute(lexicon, atoms, &relevance, std::iter::empty());
    let mut best = choose(&pieces, values, draft.counter, max_tokens.0 as usize);
    best.sort_by(|one, other| other.ratio.total_cmp(&one.ratio).then(one.piece.cmp(&other.piece)));
    while !best.is_empty() {
        let mut chosen: Vec<usize> = best.iter().map(|chosen| chosen.piece).collect();
        chosen.sort_unstable();
        let chosen: Vec<&Piece<'_>> = chosen.into_iter().map(|i| &pieces[i]).collect();
        let shown = detail_lines(&chosen, "").join("\n");
        let mut over = (draft.counter.count(&shown) - max_tokens).0 as usize;
        if over == 0 {
            return Some(shown);
        }
        while let Some(worst) = best.pop_if(|_| over > 0) {
            over = over.saturating_sub(worst.tokens);
        }
    }
    None
}

/// The probability of use of a line with a name that the user mentioned last, and of a line that the agent edited.
const NAMED: f32 = 1.0;
const EDITED: f32 = 0.3;
