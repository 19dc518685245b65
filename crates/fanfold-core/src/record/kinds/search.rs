//! Searches: a few hits are kept as a whole. Of many hits the outcome line has the number for each file, and only
//! definitions are worth a line.
//!
//! ```text
//! call    bash {"command":"grep -rn requeue src"}
//! result  src/retry.py:61:def requeue(job):
//!         src/worker.py:10:    requeue(job)
//! call    bash {"command":"grep -rn claim src"}
//! result  src/retry.py:5:claim = None
//!         src/retry.py:6:    claim.release()
//!         src/retry.py:7:    claim.take()
//!         src/retry.py:8:    claim.wait()
//!         src/retry.py:9:    claim.drop()
//!         src/worker.py:20:    claim.take()
//!         src/worker.py:30:    claim.drop()
//!         src/pool.py:3:def claim(job):
//!         src/pool.py:4:    return job.claim
//! ->
//! #1 bash `grep -rn requeue src` → 2 lines
//!     src/retry.py:61:def requeue(job):
//!     src/worker.py:10:    requeue(job)
//! #2 bash `grep -rn claim src` → 9 hits: src/retry.py 5, src/worker.py 2, src/pool.py 2
//!     …
//!     src/retry.py:6:    claim.release()
//!     src/retry.py:7:    claim.take()
//!     src/retry.py:8:    claim.wait()
//!     src/retry.py:9:    claim.drop()
//!     src/worker.py:20:    claim.take()
//!     src/worker.py:30:    claim.drop()
//!     src/pool.py:3:def claim(job):
//!     src/pool.py:4:    return job.claim
//! ```

use crate::facts::results::{ResultLine, hit_of};
use crate::record::kinds::LineValue;
use crate::text::condense::is_definition;

pub(super) fn values(lines: &[ResultLine<'_>]) -> Vec<LineValue> {
    let value = |line: &ResultLine<'_>| match hit_of(line.text) {
        Some((_, text)) if is_definition(text) => LineValue::new(0.8, 1.0),
        _ => LineValue::new(0.0, 0.5),
    };
    lines.iter().map(value).collect()
}
