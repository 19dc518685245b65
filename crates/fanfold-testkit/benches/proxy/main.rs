//! Measures a proxy between agents and a provider; this program is both the agents and the provider.
//!
//! ```text
//! proxy latency --upstream-port U --port P --bytes N --requests N    direct requests and requests through P in turn
//! proxy streams --upstream-port U --port P --streams N --seconds S   parallel streams
//! proxy memory  --upstream-port U --port P --requests N --pid PID    memory of process PID during requests
//! ```
//! The proxy listens on port P and forwards to port U. Each command prints a line of JSON;
//! `cargo xtask bench proxy` runs all of them and makes tables.

#![allow(clippy::print_stdout, reason = "the measurements are the data")]

mod latency; // direct and proxied requests in turn
mod load; //    parallel streams, and memory during many requests

use std::collections::BTreeMap;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let Some((measurement, rest)) = arguments.split_first() else {
        eprintln!("the measurement is missing\n\nhint: run `cargo xtask bench proxy`");
        return;
    };
    let options = Options::parse(rest);
    let result = match measurement.as_str() {
        "latency" => latency::run(&options),
        "streams" => load::streams(&options),
        "memory" => load::memory(&options),
        _ => Err(format!("unknown measurement `{measurement}`: use latency, streams or memory")),
    };
    match result {
        Ok(line) => println!("{line}"),
        Err(why) => {
            eprintln!("{why}");
            std::process::exit(1);
        }
    }
}

/// The options of a measurement: numbers by name.
struct Options(BTreeMap<String, u64>);

impl Options {
    fn parse(arguments: &[String]) -> Options {
        let pairs = arguments.chunks(2).filter_map(|pair| {
            let name = pair[0].strip_prefix("--")?;
            Some((name.to_owned(), pair.get(1)?.parse().ok()?))
        });
        Options(pairs.collect())
    }

    fn get(&self, name: &str) -> Result<u64, String> {
        self.0.get(name).copied().ok_or_else(|| format!("--{name} is missing"))
    }

    fn port(&self, name: &str) -> Result<u16, String> {
        u16::try_from(self.get(name)?).map_err(|_| format!("--{name} is not a port"))
    }
}

/// The percentile of sorted values, for a `share` from 0 to 1.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}

fn ms(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
