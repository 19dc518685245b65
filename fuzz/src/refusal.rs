//! Errors of any provider, read for a refusal for length.
//!
//! Two bytes choose the status and how full the window is; then comes the body.

use fanfold_wire::reply::{Cause, Filled, refusal, too_much_output};

const STATUSES: [u16; 10] = [200, 400, 401, 413, 422, 429, 500, 502, 503, 529];

/// Reads an error. Panics where a refusal can't be one.
pub fn check(data: &[u8]) {
    let Some(([status, filled], body)) = data.split_first_chunk::<2>() else { return };
    let status = STATUSES[usize::from(*status) % STATUSES.len()];
    let filled = Filled::of(u64::from(*filled) * 100, 10_000);
    let told = refusal(status, body, filled);
    assert!(told.is_none() || !matches!(status, 401 | 529), "{status} is about something else");
    if let Some(told) = told {
        let room = told.room();
        assert!(room.is_none_or(|room| told.limit.is_some_and(|limit| room <= limit)), "{told:?}");
        assert!(room.is_none() || told.cause != Cause::Body, "a body has no limit in tokens: {told:?}");
    }
    // How full the window is decides only about an answer without a word.
    let by_words = refusal(status, body, Filled::NOTHING);
    assert!(by_words.is_none() || by_words == refusal(status, body, Filled::ALL));
    let _ = too_much_output(status, body);
}
