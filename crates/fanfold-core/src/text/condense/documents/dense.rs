//! Encoded and minified data: how much there is of it, its beginning and its end, and what of it is in use.
//!
//! In 120 bytes:
//!
//! ```text
//! iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJgggiVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJgggiVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJgggiVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNgGAWjYBSMglEwCgAAAABJRU5ErkJgggiVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII==
//! ->
//! iVBORw0KGgoAAAANSUhEUgAAAAEAAAABC…ORK5CYII==
//! … 465 bytes in all
//! ```

use crate::model::tokens::thousands;
use crate::text::condense::Wish;
use crate::text::condense::lines::{NONE, Rows};

pub(crate) fn condense(text: &str, wish: &Wish<'_>) -> String {
    let size = format!("… {} bytes in all", thousands(text.len() as u64));
    let room = wish.room.saturating_sub(size.len() + 1);
    let inner = Wish { room, ..*wish };
    let mut parts = Rows::new(&inner);
    for line in text.split('\n') {
        // Minified code falls into statements, which can be valued one by one; base64 into nothing.
        let mut rest = line;
        while rest.len() > PIECE {
            let end = rest.as_bytes()[PIECE / 2..PIECE].iter().position(|b| matches!(b, b';' | b'}' | b','));
            let Some(end) = end else { break };
            parts.push(&rest[..=PIECE / 2 + end], NONE);
            rest = &rest[PIECE / 2 + end + 1..];
        }
        parts.push(rest, NONE);
    }
    parts.frame(1, 1);
    format!("{}\n{size}", parts.choose())
}

const PIECE: usize = 320;

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::text::condense::Kind;
    use crate::text::condense::check::check;

    #[test]
    fn the_size_and_the_ends_stay() {
        let text = "iVBORw0KGgoAAAANSUhEUgAA".repeat(200);
        check(
            Kind::Dense,
            &text,
            200,
            &[],
            &expect![[r#"
            iVBORw0KGgoAAAANSUhEUgAAiVBORw0KGgoAAAANSUhEUgAAiVBORw0KGgoAAA…Rw0KGgoAAAANSUhEUgAA
            … 4,800 bytes in all
        "#]],
        );
    }
}
