//! Plots the results of a replay as SVG: recall against tokens and against cost, a pair of panels for each source.
//!
//! Each policy is a line with a dot for each window. The plot has a transparent background and follows the colour
//! scheme of the page.

use std::fmt::Write as _;

use fanfold_replay::{ReplayOptions, ReplayOutcome, ReplayRow, rows};

const PANEL: (f64, f64) = (300.0, 190.0);
const MARGIN: (f64, f64) = (52.0, 44.0);
const GAP: f64 = 26.0;
const TOP: f64 = 34.0;

/// Colours that are distinguishable on light and dark backgrounds, used in turn.
const COLOURS: [&str; 6] = ["#0a7d6c", "#b3541e", "#5b62c9", "#a33a7f", "#7a7f1d", "#3f87b5"];

/// The horizontal axis of a panel.
struct Axis {
    name: &'static str,
    value: fn(&ReplayRow) -> Option<f64>,
    format: fn(f64) -> String,
}

const AXES: [Axis; 2] = [
    Axis {
        name: "tokens a call under pressure",
        value: |row| row.shares.tokens_pressed,
        format: |tokens| format!("{:.0}k", tokens / 1000.0),
    },
    Axis {
        name: "cost, as a share of the cost without folding",
        value: |row| row.shares.cost,
        format: |share| format!("{:.0}%", 100.0 * share),
    },
];

/// The whole plot.
pub(super) fn svg(terms: &ReplayOptions, outcomes: &[ReplayOutcome]) -> String {
    let mut sources: Vec<&str> = outcomes.iter().map(|outcome| outcome.source.as_str()).collect();
    sources.sort_unstable();
    sources.dedup();
    let mut panels = vec![("all".to_owned(), rows(outcomes, |_| true))];
    if sources.len() > 1 {
        let panel = |source: &&str| (source.to_string(), rows(outcomes, |outcome| outcome.source == *source));
        panels.extend(sources.iter().map(panel));
    }
    let cell = (PANEL.0 + MARGIN.0 + GAP, PANEL.1 + MARGIN.1 + GAP);
    let (width, height) = (2.0 * cell.0 + GAP, TOP + panels.len() as f64 * cell.1 + GAP);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"11\">\n\
         <title>Recall of what later replies needed, against tokens and cost</title>\n\
         <style>text {{ fill: #333 }} .axis {{ stroke: #888; fill: none }} .grid {{ stroke: #8884; fill: none }}\n\
         @media (prefers-color-scheme: dark) {{ text {{ fill: #ddd }} }}</style>\n"
    );
    legend(&mut out, terms);
    for (n, (source, rows)) in panels.iter().enumerate() {
        for (i, axis) in AXES.iter().enumerate() {
            let at = (MARGIN.0 + i as f64 * cell.0, TOP + GAP + n as f64 * cell.1);
            panel(&mut out, at, (source, axis), (terms, rows));
        }
    }
    out.push_str("</svg>\n");
    out
}

fn legend(out: &mut String, terms: &ReplayOptions) {
    let mut x = MARGIN.0;
    for (i, policy) in terms.policies.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let _ = writeln!(
            out,
            "<circle cx=\"{x:.0}\" cy=\"18\" r=\"4\" fill=\"{colour}\"/><text x=\"{:.0}\" y=\"22\">{}</text>",
            x + 9.0,
            escaped(policy.name)
        );
        x += 40.0 + 7.0 * policy.name.len() as f64;
    }
}

/// The frame of a panel: the point at its top left, and the largest value on its horizontal axis.
struct PlotFrame {
    at: (f64, f64),
    max: f64,
}

impl PlotFrame {
    fn position(&self, x: f64, y: f64) -> (f64, f64) {
        (self.at.0 + x / self.max * PANEL.0, self.at.1 + (1.0 - y) * PANEL.1)
    }
}

/// A row with its position on both axes.
type Point<'a> = (&'a ReplayRow, f64, f64);

fn panel(
    out: &mut String,
    at: (f64, f64),
    (source, axis): (&str, &Axis),
    (terms, rows): (&ReplayOptions, &[ReplayRow]),
) {
    let points: Vec<Point<'_>> =
        rows.iter().filter_map(|row| Some((row, (axis.value)(row)?, row.shares.old?))).collect();
    let max = points.iter().map(|(_, x, _)| *x).fold(0.0, f64::max);
    let frame = PlotFrame { at, max: if max > 0.0 { max * 1.08 } else { 1.0 } };
    let _ = writeln!(
        out,
        "<text x=\"{:.0}\" y=\"{:.0}\" font-weight=\"600\">{}: recall of old atoms</text>",
        at.0,
        at.1 - 8.0,
        escaped(source)
    );
    draw_axes(out, &frame, axis);
    for (i, policy) in terms.policies.iter().enumerate() {
        let of_policy = points.iter().filter(|(row, ..)| row.policy == i);
        draw_line(out, &frame, (policy.name, COLOURS[i % COLOURS.len()]), of_policy);
    }
}

/// Draws the grid with its numbers, the axes and the name of the horizontal one.
fn draw_axes(out: &mut String, frame: &PlotFrame, axis: &Axis) {
    let at = frame.at;
    let (right, bottom) = (at.0 + PANEL.0, at.1 + PANEL.1);
    for step in 0..=4 {
        let share = f64::from(step) / 4.0;
        let (_, y) = frame.position(0.0, share);
        let (x, _) = frame.position(frame.max * share, 0.0);
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{:.1} {y:.1}H{right:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{share:.2}</text>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            at.0,
            at.0 - 6.0,
            y + 4.0,
            bottom + 15.0,
            (axis.format)(frame.max * share)
        );
    }
    let _ = writeln!(
        out,
        "<path class=\"axis\" d=\"M{:.1} {:.1}V{bottom:.1}H{right:.1}\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        at.0,
        at.1,
        at.0 + PANEL.0 / 2.0,
        bottom + 30.0,
        axis.name
    );
}

/// Draws the dots of a policy and a line through them.
fn draw_line<'a>(
    out: &mut String,
    frame: &PlotFrame,
    (policy, colour): (&str, &str),
    points: impl Iterator<Item = &'a Point<'a>>,
) {
    let mut line = String::new();
    for (row, x, y) in points {
        let (x, y) = frame.position(*x, *y);
        let _ = write!(line, "{}{x:.1} {y:.1}", if line.is_empty() { 'M' } else { 'L' });
        let _ = writeln!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"><title>{} at {}: {:.3}</title></circle>",
            escaped(policy),
            row.window,
            row.shares.old.unwrap_or_default()
        );
    }
    if !line.is_empty() {
        let _ = writeln!(out, "<path d=\"{line}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>");
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
