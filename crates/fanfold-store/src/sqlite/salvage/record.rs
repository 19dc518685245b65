//! Decodes records: the rows of tables and the entries of indexes, as SQLite writes them to a page.

use crate::database::sql::Cell;

/// Reads a variable-length integer at an offset. Returns it and the offset after it.
pub(super) fn varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut number = 0;
    for i in 0..8 {
        let byte = *bytes.get(at + i)?;
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((number, at + i + 1));
        }
    }
    // The ninth byte has eight bits.
    Some((number << 8 | u64::from(*bytes.get(at + 8)?), at + 9))
}

/// Decodes a record. The end of its last column may be missing. Bytes of texts that are not UTF-8 become U+FFFD.
pub(super) fn decode(record: &[u8]) -> Option<Vec<Cell>> {
    let (header_len, mut at) = varint(record, 0)?;
    let header_len = usize::try_from(header_len).ok()?;
    let header = record.get(..header_len)?;
    let mut values = record.get(header_len..)?;
    let mut cells = Vec::new();
    while at < header_len {
        let (kind, next) = varint(header, at)?;
        at = next;
        let len = value_len(kind)?;
        let is_last = at >= header_len;
        if len > values.len() && !(is_last && kind >= 12) {
            return None;
        }
        let (value, rest) = values.split_at(len.min(values.len()));
        cells.push(value_of(kind, value));
        values = rest;
    }
    Some(cells)
}

/// Returns the length of a value of a kind.
fn value_len(kind: u64) -> Option<usize> {
    match kind {
        0 | 8 | 9 => Some(0),
        1..=4 => usize::try_from(kind).ok(),
        5 => Some(6),
        6 | 7 => Some(8),
        10 | 11 => None,
        _ => usize::try_from((kind - 12) / 2).ok(),
    }
}

fn value_of(kind: u64, value: &[u8]) -> Cell {
    match kind {
        1..=6 => {
            let is_negative = value.first().is_some_and(|first| first & 0x80 != 0);
            let start = if is_negative { -1 } else { 0 };
            Cell::Int(value.iter().fold(start, |number, byte| number << 8 | i64::from(*byte)))
        }
        8 | 9 => Cell::Int(i64::from(kind == 9)),
        // No column has floating-point numbers.
        0 | 7 | 10 | 11 => Cell::Null,
        _ if kind.is_multiple_of(2) => Cell::Bytes(value.to_vec()),
        _ => Cell::Text(String::from_utf8_lossy(value).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_length_integers_are_read() {
        assert_eq!(varint(&[0x7f], 0), Some((127, 1)));
        assert_eq!(varint(&[0, 0x81, 0x00], 1), Some((128, 3)));
        assert_eq!(varint(&[0xff; 9], 0), Some((u64::MAX, 9)));
        assert_eq!(varint(&[0x80], 0), None);
    }

    #[test]
    fn record_may_end_within_its_last_column() {
        // NULL, -2, a text of 3 bytes.
        let record = [4, 0, 1, 19, 0xfe, b'a', b'b', b'c'];
        let show = |bytes: &[u8]| decode(bytes).map(|cells| format!("{cells:?}"));
        assert_eq!(show(&record).as_deref(), Some(r#"[Null, Int(-2), Text("abc")]"#));
        assert_eq!(show(&record[..6]).as_deref(), Some(r#"[Null, Int(-2), Text("a")]"#));
        assert_eq!(show(&record[..4]), None);
        assert_eq!(show(&[200, 1]), None);
    }
}
