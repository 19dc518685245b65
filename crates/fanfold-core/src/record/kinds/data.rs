//! Tools of unknown kind: JSON, tables and other data. The lines that name something come first.
//!
//! ```text
//! call    get_reservation {"id":"OBUT9V"}
//! result  {"reservation_id": "OBUT9V", "origin": "IAH", "destination": "DEN", "cabin": "economy", "flight_type": "round_trip", "insurance": "no", "created_at": "2024-05-10T11:36:51", "bags": 1, "payment": "gift_card_7480005"}
//! call    find_tools {"query":"read a table"}
//! result  matched:
//!         - name: excel_read
//!           description: reads a file and converts it while preserving structure
//!           input:
//!             path: the path to the file that is to be read
//!             headers: whether to include headers in the output
//!         - name: docx_to_pdf
//!           description: converts documents while preserving their layout
//!           input:
//!             path: the path to the document that is to be converted
//!             target: where the output should be saved
//! ->
//! #1 get_reservation(id=OBUT9V) → 215 characters
//!     {"reservation_id": "OBUT9V", "origin": "IAH", "destination": "DEN", "cabin": "economy", "flight_type": "round_trip", "insurance": "no", "created_at": "2024-05-10T11:36:51", "bags": 1, "payment": "gift_card_7480005"}
//! #2 find_tools `read a table` → 11 lines
//!     …
//!     - name: excel_read …
//!     - name: docx_to_pdf …
//! ```

use std::sync::LazyLock;

use regex::Regex;

use crate::facts::results::ResultLine;
use crate::record::kinds::LineValue;

pub(super) fn values(lines: &[ResultLine<'_>]) -> Vec<LineValue> {
    let value = |line: &ResultLine<'_>| {
        let is_name = !line.continues && NAME.is_match(line.text) && line.text.len() < 120;
        let score = match () {
            () if is_name => 4.0,
            () if has_numbers(line.text) => 2.0,
            () => 0.1,
        };
        LineValue::new(score, 1.0)
    };
    lines.iter().map(value).collect()
}

/// Returns whether a line has several numbers, as a row of a table has.
fn has_numbers(line: &str) -> bool {
    let runs = line.as_bytes().chunk_by(|one, next| one.is_ascii_digit() == next.is_ascii_digit());
    runs.filter(|run| run[0].is_ascii_digit()).take(3).count() == 3
}

static NAME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"^\s*(?:- )?"?(?:\w*name|title|id|status|error|message|price|total|result|url|path)"?\s*[:=]"#,
    )
    .expect("a pattern")
});
