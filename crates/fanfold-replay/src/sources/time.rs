//! Parses timestamps such as `2026-03-01T12:00:00.5Z`.

use serde_json::Value;

/// Seconds since 1970; `None` if the value is not a UTC timestamp.
pub(super) fn seconds(value: &Value) -> Option<f64> {
    let text = value.as_str()?.strip_suffix('Z')?;
    let (date, time) = text.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.splitn(3, ':').map(|part| part.parse::<f64>().ok());
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    // Days since 1970, counted in years that begin in March, so that the leap day comes last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (153 * month + 2) / 5
        + day
        - 1
        - 719_468;
    Some(days as f64 * 86_400.0 + hour * 3_600.0 + minute * 60.0 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_become_seconds() {
        let check = |text: &str, expected: Option<f64>| assert_eq!(seconds(&Value::from(text)), expected);
        check("1970-01-01T00:00:00Z", Some(0.0));
        check("2000-03-01T00:00:01.5Z", Some(951_868_801.5));
        check("2024-02-29T12:00:00.000Z", Some(1_709_208_000.0));
        check("yesterday", None);
    }
}
