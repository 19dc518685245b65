//! The tables of docs/benchmarks.md.

use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use super::ProxyFigures;

const PAGE: &str = "docs/benchmarks.md";
const BEGIN: &str = "<!-- begin: cargo xtask bench proxy --write -->";
/// Upper limits of the added time: p50 and p99 in milliseconds, by body size.
const TARGETS: [(u64, f64, f64); 3] = [(20_000, 1.0, 3.0), (400_000, 3.0, 10.0), (4_000_000, 20.0, 50.0)];

pub(super) fn write(root: &Path, tables: &str) -> anyhow::Result<()> {
    crate::page::write_table(&root.join(PAGE), BEGIN, tables)
}

/// All tables, one below the other.
pub(super) fn tables(measured: &[ProxyFigures], streams: &Value, memory: &Value) -> anyhow::Result<String> {
    let mut text = String::from(
        "| proxy | body | requests | failed | direct, first byte p50 | through, first byte p50 / p99 | added p50 | added p99 \
         | target | added, whole answer p50 / p99 | a new conversation | of ours, p50 |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let ours: Vec<f64> = measured
        .iter()
        .take(1)
        .flat_map(|measured| measured.latencies.as_deref().unwrap_or_default())
        .map(|line| added(line, "first_p50"))
        .collect();
    for (n, ProxyFigures { name, latencies }) in measured.iter().enumerate() {
        let lines = match latencies {
            Ok(lines) => lines,
            Err(why) => {
                text.push_str(&format!("| {name} | not measured: {} | | | | | | | | | | |\n", one_line(why)));
                continue;
            }
        };
        for (i, line) in lines.iter().enumerate() {
            let bytes = line["bytes"].as_u64().context("a line lacks its size")?;
            let target = TARGETS.iter().find(|(size, ..)| *size == bytes && n == 0);
            let target = target.map_or(String::new(), |(_, p50, p99)| format!("{p50} / {p99} ms"));
            let (p50, p99) = (added(line, "first_p50"), added(line, "first_p99"));
            let ratio = ours
                .get(i)
                .filter(|_| n > 0)
                .map_or(String::new(), |ours| format!("{:.0}×", p50 / ours.max(0.01)));
            text.push_str(&format!(
                "| {name} | {} | {} | {} | {:.2} ms | {:.2} / {:.2} ms | **{p50:.2} ms** | **{p99:.2} ms** | {target} | \
                 {:.2} / {:.2} ms | {:.2} ms | {ratio} |\n",
                size(bytes),
                line["n"],
                line["failed"],
                figure(&line["direct"], "first_p50"),
                figure(&line["proxied"], "first_p50"),
                figure(&line["proxied"], "first_p99"),
                added(line, "whole_p50"),
                added(line, "whole_p99"),
                figure(&line["begun"], "first_p50"),
            ));
        }
    }
    text.push_str(&format!(
        "\n{} streams at once for {} s: {} answered whole, {} failed{}; first byte p50 {:.1} ms, p99 {:.1} ms.\n",
        streams["streams"],
        streams["seconds"],
        streams["done"],
        streams["failed"],
        why(streams),
        figure(streams, "first_p50"),
        figure(streams, "first_p99"),
    ));
    text.push_str(&memory_lines(memory)?);
    Ok(text)
}

/// The time added to a direct call. The 99th percentile is also compared with the direct median, so that slow
/// direct calls do not improve the figure.
fn added(line: &Value, name: &str) -> f64 {
    let direct = name.replace("p99", "p50");
    figure(&line["proxied"], name) - figure(&line["direct"], &direct)
}

fn memory_lines(memory: &Value) -> anyhow::Result<String> {
    let curve = memory["curve_kb"].as_array().context("the memory figures lack a curve")?;
    let mb: Vec<f64> = curve.iter().map(|point| point[1].as_f64().unwrap_or(f64::NAN) / 1024.0).collect();
    let mean = |from: usize, to: usize| {
        let some =
            &mb[mb.len() * from / 100..(mb.len() * to / 100).max(mb.len() * from / 100 + 1).min(mb.len())];
        some.iter().sum::<f64>() / some.len() as f64
    };
    let points: Vec<String> = [0, 10, 25, 50, 75, 95].map(|at| format!("{:.0}", mean(at, at + 5))).into();
    Ok(format!(
        "\nMemory over {} requests in {:.0} s, {} failed{}: {} MB at the beginning, a tenth, a quarter, half, three quarters and \
         the end; at most {:.0} MB.\n",
        memory["n"],
        figure(memory, "seconds"),
        memory["failed"],
        why(memory),
        points.join(", "),
        mb.iter().copied().fold(0.0, f64::max),
    ))
}

fn figure(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or(f64::NAN)
}

fn why(value: &Value) -> String {
    value["why"].as_str().map_or(String::new(), |why| format!(" ({})", one_line(why)))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "/").chars().take(200).collect()
}

fn size(bytes: u64) -> String {
    if bytes >= 1_000_000 { format!("{} MB", bytes / 1_000_000) } else { format!("{} kB", bytes / 1_000) }
}
