//! JSON: keeps field names and short values, condenses long strings according to their kind, and keeps the first
//! items of lists and those in use.
//!
//! Identifying fields come first: ids, names, paths, states. A small object takes one line; nulls, empty strings and
//! links are dropped first. An error, a failed `exit_code` and `"ok": false` are always kept.
//!
//! In 460 bytes:
//!
//! ```text
//! {"id": "W2378156", "status": "pending", "placed_at": "2024-05-15T10:12:09Z", "gift_note": null, "coupon": "",
//!  "self_url": "https://shop.example/api/v2/orders/W2378156?expand=items,customer,payments",
//!  "customer": {"id": "sara_doe_496", "name": "Sara Doe", "email": "sara.doe@example.com", "is_member": true},
//!  "items": [{"sku": "K-1101", "name": "kettle", "price": 3499, "in_stock": true},
//!   {"sku": "T-0420", "name": "teapot", "price": 2250, "in_stock": false},
//!   {"sku": "C-0007", "name": "cup, blue", "price": 450, "in_stock": true},
//!   {"sku": "C-0008", "name": "cup, green", "price": 450, "in_stock": true},
//!   {"sku": "S-0300", "name": "spoon", "price": 190, "in_stock": true}],
//!  "payment": {"ok": false, "error": "card declined: insufficient funds", "attempts": 2, "provider": null}}
//! ->
//! id: W2378156
//! status: pending
//! placed_at: 2024-05-15T10:12:09Z
//! customer: id: sara_doe_496, name: Sara Doe, email: sara.doe@example.com, is_member: true
//! items: 5 items of {sku, name, price, in_stock}
//! - sku: K-1101, name: kettle, price: 3499, in_stock: true
//! - sku: T-0420, name: teapot, price: 2250, in_stock: false
//! … 3 items
//! payment.ok: false
//! payment.error: card declined: insufficient funds
//! payment.attempts: 2
//! … 1 field
//! ```

use serde_json::Value;

use crate::text::condense::lines::{FRAME, Gap, MUST, NONE, PLAIN, Rows, SHAPE};
use crate::text::condense::severity::{head, tail};
use crate::text::condense::{CondenseOptions, Condenser, ContentKind, DEEPEST, Sample, condense_within, log};

pub(crate) const CONDENSER: Condenser = Condenser {
    kind: ContentKind::Json,
    detects: |sample| is_json(sample),
    condense: |text, options, depth| {
        condense(text, options, depth).unwrap_or_else(|| log::condense(text, options))
    },
    has_errors: true,
    suits_line_choice: false,
    may_be_code: false,
};

/// Returns whether a text is in brackets and begins with a value.
fn is_json(sample: &Sample<'_>) -> bool {
    let first = sample.start.chars().next();
    let last = sample.text.trim_ascii_end().chars().next_back();
    let closes = matches!((first, last), (Some('{'), Some('}')) | (Some('['), Some(']')));
    let second = sample.start.get(1..).unwrap_or_default().trim_ascii_start().chars().next();
    closes && matches!(second, Some('"' | '{' | '[' | '}' | ']' | '-' | '0'..='9' | 't' | 'f' | 'n'))
}

/// Condenses JSON. Returns `None` if the text does not parse.
fn condense(text: &str, options: &CondenseOptions<'_>, depth: usize) -> Option<String> {
    condense_if(text, options, depth, |_| true)
}

/// Condenses JSON that contains long strings of the configured kind. Returns `None` for other JSON.
pub(crate) fn condense_wrapped(text: &str, options: &CondenseOptions<'_>, depth: usize) -> Option<String> {
    condense_if(text, options, depth, |parts| !parts.texts.is_empty())
}

fn condense_if(
    text: &str,
    options: &CondenseOptions<'_>,
    depth: usize,
    is_fit: impl FnOnce(&Fields<'_>) -> bool,
) -> Option<String> {
    if depth >= DEEPEST {
        return None;
    }
    let value: Value = serde_json::from_str(text).ok()?;
    let mut parts = Fields::default();
    flatten(&value, "", 0, &mut parts);
    is_fit(&parts).then(|| parts.print(options, depth))
}

const LONG_TEXT: usize = 240;
const SHORT_ITEM: usize = 60;
const DEEPEST_FIELD: usize = 12;
/// The room for the number of hidden fields.
const FIELDS_LEFT: usize = 20;

/// The short fields in order, and the long strings.
#[derive(Default)]
struct Fields<'v> {
    rows: Vec<(String, f32, Gap)>,
    texts: Vec<(String, &'v str)>,
}

impl Fields<'_> {
    fn push(&mut self, row: String, weight: f32, gap: Gap) {
        self.rows.push((row, weight, gap));
    }

    fn print_rows(&self, options: &CondenseOptions<'_>) -> String {
        let visible: Vec<&str> =
            self.rows.iter().filter(|(_, weight, _)| *weight > NONE).map(|(row, ..)| row.as_str()).collect();
        let n_bytes: usize = visible.iter().map(|row| row.len() + 1).sum();
        if n_bytes <= options.room {
            return visible.join("\n");
        }
        let inner = CondenseOptions { room: options.room.saturating_sub(FIELDS_LEFT), ..*options };
        let mut rows = Rows::new(&inner);
        for (row, weight, gap) in &self.rows {
            rows.push(row, *weight);
            rows.gap(*gap);
        }
        let is_field = |gap: &Gap| *gap == Gap::Silent;
        let n_fields = self.rows.iter().filter(|(_, weight, gap)| is_field(gap) && *weight > NONE).count();
        let out = rows.choose();
        let n_shown = out.lines().filter(|line| !line.starts_with(['-', '…'])).count();
        match n_fields.saturating_sub(n_shown) {
            0 => out,
            1 => format!("{out}\n… 1 field"),
            n => format!("{out}\n… {n} fields"),
        }
    }

    fn print(&self, options: &CondenseOptions<'_>, depth: usize) -> String {
        let room = if self.texts.is_empty() { options.room } else { options.room / 2 };
        let mut out = self.print_rows(&CondenseOptions { room, ..*options });
        let mut n_left: usize = self.texts.iter().map(|(_, text)| text.len()).sum();
        for (path, text) in &self.texts {
            let left = options.room.saturating_sub(out.len());
            let room = (left as u128 * text.len() as u128 / n_left.max(1) as u128) as usize;
            n_left -= text.len();
            let room = room.saturating_sub(path.len() + 3);
            if room < 40 {
                continue;
            }
            // A configured kind `Json` does not apply to the strings inside.
            let kind = options.kind.filter(|kind| *kind != ContentKind::Json);
            let inner = CondenseOptions { room, kind, ..*options };
            let body = condense_within(text, &inner, depth + 1);
            let label = if path.is_empty() { String::new() } else { format!("{path}:\n") };
            let line_end = if out.is_empty() { "" } else { "\n" };
            out.push_str(&format!("{line_end}{label}{body}"));
        }
        out
    }
}

fn flatten<'v>(value: &'v Value, path: &str, depth: usize, parts: &mut Fields<'v>) {
    let named = |shown: &str| if path.is_empty() { shown.to_owned() } else { format!("{path}: {shown}") };
    match value {
        Value::String(text) if text.len() > LONG_TEXT || text.contains('\n') => {
            parts.texts.push((path.to_owned(), text));
        }
        Value::String(text) => {
            let weight = match () {
                () if text.is_empty() => NONE,
                () if is_error_field(path) => MUST,
                () if is_name_field(path) => SHAPE * 2.0,
                // Most API responses contain many links.
                () if text.starts_with("http") => PLAIN,
                () => SHAPE,
            };
            parts.push(named(text), weight, Gap::Silent);
        }
        Value::Number(number) => {
            let is_failure = is_exit_field(path) && number.as_i64() != Some(0);
            let weight = match () {
                () if is_failure => MUST,
                () if number.as_i64() == Some(0) && !is_exit_field(path) => PLAIN,
                () if is_name_field(path) => SHAPE * 2.0,
                () => SHAPE,
            };
            parts.push(named(&number.to_string()), weight, Gap::Silent);
        }
        Value::Bool(flag) => {
            let is_failure =
                matches!((last_name(path), flag), ("success" | "ok", false) | ("isError" | "is_error", true));
            let weight = if is_failure { MUST } else { SHAPE / 2.0 };
            parts.push(named(&flag.to_string()), weight, Gap::Silent);
        }
        Value::Null => parts.push(named("null"), NONE, Gap::Silent),
        Value::Array(items) => list(items, path, depth, parts),
        Value::Object(map) => {
            if depth > DEEPEST_FIELD {
                parts.push(named(&compact(value)), PLAIN, Gap::Silent);
                return;
            }
            // A small object inside a larger one takes one line.
            if !path.is_empty()
                && map.len() > 1
                && map.values().all(is_small)
                && !map.keys().any(|name| is_error_field(name))
            {
                let is_named = map.keys().any(|name| is_name_field(name));
                parts.push(named(&compact(value)), if is_named { FRAME } else { SHAPE }, Gap::Silent);
                return;
            }
            for (name, field) in map {
                // Keys can be very long; limit the path to a line.
                let (above, name) = (tail(path, 160), head(name, 80));
                let below = if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") };
                flatten(field, &below, depth + 1, parts);
            }
        }
    }
}

/// Flattens a list: a single item, or a few with long strings, like fields; otherwise a count and one line per item.
fn list<'v>(items: &'v [Value], path: &str, depth: usize, parts: &mut Fields<'v>) {
    if let [only] = items {
        flatten(only, path, depth + 1, parts);
        return;
    }
    let holds_long_text = |item: &Value| match item {
        Value::Object(map) => {
            map.values().any(|field| field.as_str().is_some_and(|text| text.len() > 4 * LONG_TEXT))
        }
        Value::String(text) => text.len() > LONG_TEXT,
        _ => false,
    };
    if items.len() <= 8 && depth <= DEEPEST_FIELD && items.iter().any(holds_long_text) {
        for (i, item) in items.iter().enumerate() {
            flatten(item, &format!("{path}[{i}]"), depth + 1, parts);
        }
        return;
    }
    let keys = match items.first() {
        Some(Value::Object(map)) => {
            let names: Vec<&str> = map.keys().take(12).map(String::as_str).collect();
            format!(" of {{{}}}", names.join(", "))
        }
        _ => String::new(),
    };
    let label = if path.is_empty() { String::new() } else { format!("{path}: ") };
    parts.push(format!("{label}{} items{keys}", items.len()), FRAME, Gap::Silent);
    let are_short = items.iter().all(|item| match item {
        Value::String(text) => text.len() <= SHORT_ITEM,
        Value::Number(_) | Value::Bool(_) | Value::Null => true,
        Value::Array(_) | Value::Object(_) => false,
    });
    let mut n_lines = 0;
    for item in items {
        let shown = compact(item);
        match parts.rows.last_mut() {
            Some((row, ..)) if are_short && n_lines > 0 && row.len() + shown.len() < 2 * SHORT_ITEM => {
                row.push_str(", ");
                row.push_str(&shown);
            }
            _ => {
                parts.push(format!("- {shown}"), if n_lines < 3 { SHAPE } else { PLAIN }, Gap::Item);
                n_lines += 1;
            }
        }
    }
}

/// Prints a value on one line.
fn compact(value: &Value) -> String {
    match value {
        Value::String(text) => text.replace('\n', " "),
        Value::Object(map) => {
            let fields: Vec<String> = map
                .iter()
                .filter(|(_, field)| !field.is_null() && field.as_str() != Some(""))
                .map(|(name, field)| match field {
                    Value::String(text) => format!("{name}: {}", head(text, 2_000).replace('\n', " ")),
                    other => format!("{name}: {other}"),
                })
                .collect();
            fields.join(", ")
        }
        other => other.to_string(),
    }
}

/// Returns whether a value is short enough for a line shared with others.
fn is_small(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() <= SHORT_ITEM && !text.contains('\n'),
        Value::Number(_) | Value::Bool(_) | Value::Null => true,
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// Returns whether a field identifies an object or gives its state.
fn is_name_field(path: &str) -> bool {
    let name = last_name(path);
    let is_id = name.ends_with("_id") || name.ends_with("Id");
    is_id
        || matches!(
            name,
            "id" | "name"
                | "path"
                | "file"
                | "title"
                | "key"
                | "number"
                | "status"
                | "state"
                | "type"
                | "login"
        )
}

fn last_name(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

fn is_error_field(path: &str) -> bool {
    matches!(last_name(path), "error" | "stderr" | "message" | "reason" | "exception" | "errors")
}

fn is_exit_field(path: &str) -> bool {
    matches!(
        last_name(path),
        "exit_code" | "exitCode" | "returncode" | "return_code" | "status_code" | "code"
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::text::condense::ContentKind;
    use crate::text::condense::check::check;

    #[test]
    fn condenses_strings_and_keeps_short_fields() {
        let text = {
            let output: String = (0..60).map(|i| format!("10:00:{i:02} got {i} jobs\n")).collect();
            serde_json::json!({"output": output + "error: no space left\n", "exit_code": 1, "error": null})
                .to_string()
        };
        check(
            ContentKind::Json,
            &text,
            200,
            &[],
            &expect![[r#"
            exit_code: 1
            output:
            10:00:00 got 0 jobs
            10:00:01 got 1 jobs
            … 56 alike
            10:00:58 got 58 jobs
            10:00:59 got 59 jobs
            error: no space left
        "#]],
        );
    }

    #[test]
    fn keeps_first_items_and_items_in_use() {
        let text = {
            let items: Vec<_> = (0..50)
                .map(|i| serde_json::json!({"id": i, "name": format!("item{i}"), "note": null}))
                .collect();
            serde_json::json!({"total": 50, "items": items}).to_string()
        };
        check(
            ContentKind::Json,
            &text,
            200,
            &["item37"],
            &expect![[r#"
                total: 50
                items: 50 items of {id, name, note}
                - id: 0, name: item0
                - id: 1, name: item1
                - id: 2, name: item2
                … 34 items
                - id: 37, name: item37
                … 12 items
            "#]],
        );
    }
}
