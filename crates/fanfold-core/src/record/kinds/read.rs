//! Files with code: definitions with their line numbers. Everything else can be read again.
//!
//! ```text
//! call    bash {"command":"sed -n 40,60p src/pool.py"}
//! result  import threading
//!         
//!         class Pool:
//!             """Keeps connections open."""
//!             def __init__(self, size):
//!                 self.size = size
//!                 self.idle = []
//!         
//!             def take(self):
//!                 if self.idle:
//!                     return self.idle.pop()
//!                 return self.connect()
//! ->
//! #1 read src/pool.py 40-60
//!     …42
//!     class Pool:
//!         """Keeps connections open."""
//!         def __init__(self, size):
//!             self.size = size
//!             self.idle = []
//!         def take(self):
//!             if self.idle:
//!                 return self.idle.pop()
//!             return self.connect()
//! ```

use crate::facts::results::ResultLine;
use crate::record::kinds::LineValue;
use crate::text::condense::is_definition;

pub(super) fn values(lines: &[ResultLine<'_>]) -> Vec<LineValue> {
    let value = |line: &ResultLine<'_>| match is_definition(line.text) {
        true => LineValue::new(if indentation(line.text) <= 4 { 0.8 } else { 0.4 }, 1.2),
        false => LineValue::code(0.7),
    };
    lines.iter().map(value).collect()
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}
