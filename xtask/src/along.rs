//! Whether one measure moves along with another.

use serde_json::Value;

use crate::replayed::number;

/// A change of `old` that is more than chance.
const MUCH: f64 = 0.01;

/// `old` and `copied` of a row.
pub(crate) fn both(row: &Value) -> Option<(f64, f64)> {
    Some((number(row, "/shares/old")?, number(row, "/shares/copied")?))
}

/// How far one follows the other on a straight line: 1 for all the way, 0 for not at all.
pub(crate) fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let n = pairs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|pair| of(pair.0 - x, pair.1 - y)).sum::<f64>();
    sum(&|x, y| x * y) / (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt()
}

/// Of the named rows that move the one by much, the names of those that move the other the same way, and of those that do not.
pub(crate) fn followers<'a>(
    whole: (f64, f64),
    rows: &[(&'a str, (f64, f64))],
) -> (Vec<&'a str>, Vec<&'a str>) {
    let change = |row: &(f64, f64)| (row.0 - whole.0, row.1 - whole.1);
    let moved = rows.iter().filter(|(_, row)| change(row).0.abs() >= MUCH);
    let (with, against): (Vec<_>, Vec<_>) = moved.partition(|(_, row)| change(row).0 * change(row).1 > 0.0);
    let names = |rows: Vec<&(&'a str, _)>| rows.into_iter().map(|(name, _)| *name).collect();
    (names(with), names(against))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_is_told_from_what_does_not() {
        assert!((correlation(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]) - 1.0).abs() < 1e-9);
        assert!((correlation(&[(0.0, 5.0), (1.0, 3.0), (2.0, 1.0)]) + 1.0).abs() < 1e-9);
        assert!(correlation(&[(0.0, 1.0), (1.0, 0.0), (2.0, 1.0)]).abs() < 1e-9);
        let rows = [("a", (0.5, 0.2)), ("b", (0.499, 0.9)), ("c", (0.7, 0.2)), ("d", (0.6, 0.4))];
        assert_eq!(followers((0.5, 0.3), &rows), (vec!["d"], vec!["c"]));
    }
}
