//! Patches: which files, which places, and the changed lines.
//!
//! ```text
//! diff --git a/x.rs b/x.rs        diff --git a/x.rs b/x.rs
//! index 1..2 100644               … 3 lines
//! --- a/x.rs                      @@ -1,9 +1,9 @@ fn main
//! +++ b/x.rs                  ->  … 3 lines
//! @@ -1,9 +1,9 @@ fn main         -    old()
//!  (3 lines)                      +    new()
//! -    old()
//! +    new()
//! ```

use super::Wish;
use super::lines::{FRAME, NONE, PLAIN, Rows, SHAPE};

pub(super) fn condense(text: &str, wish: &Wish<'_>) -> String {
    let mut rows = Rows::new(wish);
    let is_git = text.starts_with("diff --git ") || text.contains("\ndiff --git ");
    let mut is_generated = false;
    for line in text.split('\n') {
        if line.starts_with("diff --git ") {
            is_generated = GENERATED.iter().any(|name| line.contains(name));
            rows.push(line, FRAME * 2.0);
            continue;
        }
        let is_name = line.starts_with("+++ ") || line.starts_with("--- ");
        let weight = match line.as_bytes().first() {
            _ if is_name => {
                if is_git || line.starts_with("--- ") {
                    NONE
                } else {
                    FRAME * 2.0
                }
            }
            _ if line.starts_with("@@") => FRAME / 2.0,
            _ if is_generated || is_bare(line) => PLAIN / 10.0,
            Some(b'+' | b'-') => SHAPE,
            _ if line.starts_with("index ") || line.starts_with("\\ No newline") => NONE,
            Some(b' ') => PLAIN,
            _ => SHAPE,
        };
        rows.push(line, weight);
    }
    rows.choose()
}

const GENERATED: [&str; 7] =
    [".lock", "package-lock.json", "pnpm-lock.yaml", "go.sum", ".min.js", ".snap", ".svg"];

/// Whether a changed line is a bracket or nothing.
fn is_bare(line: &str) -> bool {
    line.get(1..).unwrap_or_default().trim().len() <= 2
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::condense::Kind;
    use crate::condense::check::check;

    #[test]
    fn files_places_and_changes_stay() {
        let text = {
            let context = " same line of code here\n".repeat(20);
            format!(
                "diff --git a/x.rs b/x.rs\nindex 1..2 100644\n--- a/x.rs\n+++ b/x.rs\n@@ -1,9 +1,9 @@ fn main\n{context}-    old();\n+    new();\n{context}@@ -80,2 +80,2 @@ fn more\n{context}+    more();\n"
            )
        };
        check(
            Kind::Diff,
            &text,
            240,
            &[],
            &expect![[r#"
            diff --git a/x.rs b/x.rs
            … 3 lines
            @@ -1,9 +1,9 @@ fn main
             same line of code here
             same line of code here
            … 18 lines
            -    old();
            +    new();
            … 20 lines
            @@ -80,2 +80,2 @@ fn more
            … 19 lines
             same line of code here
            +    more();
        "#]],
        );
    }
}
