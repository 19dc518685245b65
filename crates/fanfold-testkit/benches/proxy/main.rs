//! Measures what stands between an agent and its provider, with the provider and the agents in here.
//!
//! ```text
//! proxy latency --upstream-port U --port P --bytes N --requests N    a direct call and one through P, in turn
//! proxy streams --upstream-port U --port P --streams N --seconds S   so many streams at once
//! proxy memory  --upstream-port U --port P --requests N --pid PID    what a program holds while requests pass
//! ```
//! Whoever listens at P sends on to U. One line of JSON each; `cargo xtask bench proxy` runs all of it and makes tables.

#![allow(clippy::print_stdout, reason = "the measurements are the data")]

mod followed; // a conversation that grows by a step with each request
mod latency; //  direct and proxied, in turn
mod load; //     many streams at once, and many requests

use std::collections::BTreeMap;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let Some((what, rest)) = arguments.split_first() else {
        eprintln!("nothing to measure was named; see `cargo xtask bench proxy`");
        return;
    };
    let options = Options::read(rest);
    let done = match what.as_str() {
        "latency" => latency::run(&options),
        "streams" => load::streams(&options),
        "memory" => load::memory(&options),
        _ => Err(format!("there is no measurement `{what}`")),
    };
    match done {
        Ok(line) => println!("{line}"),
        Err(why) => {
            eprintln!("{why}");
            std::process::exit(1);
        }
    }
}

/// The options of a measurement: numbers by their names.
struct Options(BTreeMap<String, u64>);

impl Options {
    fn read(arguments: &[String]) -> Options {
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
        u16::try_from(self.get(name)?).map_err(|_| format!("--{name} is no port"))
    }
}

/// The value below which a share of all lie, in milliseconds.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}

fn ms(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
