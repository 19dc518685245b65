//! Provider errors about the length of a request.
//!
//! Two bytes select the status and how full the window is; the body follows.

use fanfold_wire::reply::{Cause, PromptFill, refusal, too_much_output};

const STATUSES: [u16; 10] = [200, 400, 401, 413, 422, 429, 500, 502, 503, 529];

/// Parses an error. Panics if the result is impossible.
pub fn check(data: &[u8]) {
    let Some(([status, filled], body)) = data.split_first_chunk::<2>() else { return };
    let status = STATUSES[usize::from(*status) % STATUSES.len()];
    let filled = PromptFill::new(u64::from(*filled) * 100, 10_000);
    let parsed = refusal(status, body, filled);
    assert!(parsed.is_none() || !matches!(status, 401 | 529), "{status} is never about length");
    if let Some(parsed) = parsed {
        let room = parsed.room();
        assert!(room.is_none_or(|room| parsed.limit.is_some_and(|limit| room <= limit)), "{parsed:?}");
        assert!(room.is_none() || parsed.cause != Cause::Body, "a body has no limit in tokens: {parsed:?}");
    }
    // The fullness of the window only matters for errors without a message.
    let by_words = refusal(status, body, PromptFill::UNKNOWN);
    assert!(by_words.is_none() || by_words == refusal(status, body, PromptFill::FULL));
    let _ = too_much_output(status, body);
}
