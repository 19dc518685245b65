//! Checks that the texts of sessions and events are UTF-8. A repair replaces damaged bytes by U+FFFD.

use super::Examination;
use crate::database::sql::SqlValue;
use crate::store::StoreError;

/// Tables with the key and the texts of a row.
const TABLES: [(&str, &str, &[&str]); 2] = [
    (
        "sessions",
        "key",
        &["id", "source", "format", "model", "title", "goal", "parent", "relation", "root", "end_reason"],
    ),
    ("events", "number", &["kind", "body"]),
];

pub(super) fn check(examination: &mut Examination<'_>) -> Result<(), StoreError> {
    for (table, key, columns) in TABLES {
        let names = columns.join(", ");
        let select = format!("SELECT {key}, {names} FROM {table} WHERE {key} > $1 ORDER BY {key} LIMIT 256");
        let mut last = i64::MIN;
        loop {
            let rows = examination.sql.query(&select, &[SqlValue::Int(last)])?;
            if rows.is_empty() {
                break;
            }
            for mut row in rows {
                last = row.int()?;
                for column in columns {
                    let Some(text) = row.opt_readable_text()?.filter(|text| text.is_damaged) else {
                        continue;
                    };
                    let statement = format!("UPDATE {table} SET {column} = $1 WHERE {key} = $2");
                    let values = [SqlValue::Json(&text.text), SqlValue::Int(last)];
                    let location = format!("row {last} of {table}");
                    let damage = format!("its {column} is not UTF-8; a repair replaces the damaged bytes");
                    examination.repair_with(location, damage, &statement, &values)?;
                }
            }
        }
    }
    Ok(())
}
