//! The tables of a replay.

use fanfold_replay::{Row, Terms};

/// One row for each policy and window.
pub(crate) fn table(terms: &Terms, rows: &[Row]) -> String {
    let mut out = format!(
        "{:<10} {:>7} {:>5} {:>6} {:>6} {:>5} {:>5} {:>8} {:>7} {:>8} {:>8} {:>6} {:>6} {:>6} {:>13} {:>6} {:>6} {:>9} {:>6} {:>6} {:>6} {:>8} {:>6}\n",
        "policy",
        "window",
        "runs",
        "calls",
        "press",
        "over",
        "inval",
        "tok/call",
        "peak",
        "billA/M",
        "billO/M",
        "rewr%",
        "recall",
        "old",
        "95% int.",
        "bare",
        "early",
        "tool-only",
        "lines",
        "recov",
        "suff",
        "old-suff",
        "user"
    );
    for row in rows {
        let (sums, shares) = (&row.sums, &row.shares);
        let interval =
            shares.old_interval.map_or("-".to_owned(), |(low, high)| format!("[{low:.3},{high:.3}]"));
        out.push_str(&format!(
            "{:<10} {:>7} {:>5} {:>6} {:>6} {:>5} {:>5} {:>8.0} {:>7} {:>8.2} {:>8.2} {:>6.1} {:>6} {:>6} {:>13} {:>6} {:>6} {:>9} {:>6} {:>6} {:>6} {:>8} {:>6}\n",
            terms.policies[row.policy].name,
            row.window,
            row.trajectories,
            sums.calls,
            sums.pressed.calls,
            sums.over,
            sums.invalid,
            shares.tokens_pressed.unwrap_or_default(),
            sums.peak,
            sums.billed_a / 1e6,
            sums.billed_o / 1e6,
            100.0 * shares.rewrite_rate.unwrap_or_default(),
            three(shares.recall),
            three(shares.old),
            interval,
            three(shares.old_bare),
            three(shares.early_old),
            three(shares.tool_only),
            three(shares.lines),
            three(shares.old_rec),
            three(shares.suff),
            three(shares.old_suff),
            three(shares.user),
        ));
    }
    out
}

fn three(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{share:.3}"))
}
