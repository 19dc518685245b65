//! Lists of files: a short one is kept as a whole, and a long one is never sampled.
//!
//! ```text
//! call    bash {"command":"ls src"}
//! result  lib.rs
//!         main.rs
//! call    bash {"command":"ls tests"}
//! result  a.rs
//!         b.rs
//!         c.rs
//!         d.rs
//!         e.rs
//!         f.rs
//!         g.rs
//!         h.rs
//!         i.rs
//!         j.rs
//!         k.rs
//! ->
//! #1 bash `ls src` → 2 lines
//!     lib.rs
//!     main.rs
//! #2 bash `ls tests` → 11 lines
//! ```

use crate::facts::results::ResultLine;
use crate::record::kinds::LineValue;

pub(super) fn values(lines: &[ResultLine<'_>]) -> Vec<LineValue> {
    vec![LineValue::NONE; lines.len()]
}
