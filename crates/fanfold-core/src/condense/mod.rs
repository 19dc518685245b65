//! Long texts made short by what they are.

pub(crate) mod signs; // lines that say that something went wrong

/// What is wanted of a condensed text.
pub struct Wish<'a> {
    /// How many bytes it may have at most.
    pub room: usize,
    /// How much later work may need a line.
    pub value: &'a dyn Fn(&str) -> f32,
}

/// Temporary.
pub fn condense(text: &str, wish: &Wish<'_>) -> Option<String> {
    if text.len() <= wish.room * 2 { return None; }
    let mut lines: Vec<(usize, f32, &str)> = Vec::new();
    crate::segment::each_line(text, &mut |at, line| lines.push((at, (wish.value)(line) / (line.len() as f32 + 12.0), "")));
    let mut all: Vec<(usize, &str)> = Vec::new();
    let mut k = Vec::new();
    crate::segment::each_line(text, &mut |at, line| k.push((at, line.to_owned())));
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by(|&a, &b| lines[b].1.total_cmp(&lines[a].1).then(a.cmp(&b)));
    let mut left = wish.room; let mut chosen = Vec::new();
    for i in order { if k[i].1.len() < left { left -= k[i].1.len() + 1; chosen.push(i); } }
    chosen.sort_unstable();
    let _ = &mut all;
    Some(chosen.iter().map(|&i| k[i].1.as_str()).collect::<Vec<_>>().join("\n"))
}
