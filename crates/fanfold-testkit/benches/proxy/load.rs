//! Parallel streams for some time, and many requests while the memory of the proxy is sampled.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fanfold_testkit::clients::http::HttpClient;
use fanfold_testkit::fakes::upstream::{ConstantReply, Upstream};
use fanfold_testkit::generators::growing_conversation::{GrowingConversation, HEADERS, PATH};
use serde_json::json;

use super::latency::check_response;
use super::{Options, ms, percentile};

/// Runs streams of about a second in succession on every connection.
pub(crate) fn streams(options: &Options) -> Result<String, String> {
    let (n_streams, seconds) = (options.get("streams")?, options.get("seconds")?);
    let port = options.port("port")?;
    let reply = ConstantReply::new(20, Duration::from_millis(40));
    let _upstream =
        Upstream::start_constant(options.port("upstream-port")?, reply).map_err(|error| error.to_string())?;
    let until = Instant::now() + Duration::from_secs(seconds);
    let (n_done, failures, firsts) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for seed in 0..n_streams {
            let (n_done, failures, firsts) = (&n_done, &failures, &firsts);
            scope.spawn(move || {
                let mut client = HttpClient::new(port);
                let mut conversation = GrowingConversation::new(seed + 1_000, 16_000, true);
                while Instant::now() < until {
                    match check_response(client.post(PATH, &HEADERS, &conversation.body())) {
                        Ok(response) => {
                            n_done.fetch_add(1, Ordering::Relaxed);
                            locked(firsts).push(ms(response.first_byte));
                        }
                        Err(why) => locked(failures).push(why),
                    }
                    conversation.add_step(800);
                }
            });
        }
    });
    let mut firsts = firsts.into_inner().unwrap_or_default();
    firsts.sort_by(f64::total_cmp);
    let failures = failures.into_inner().unwrap_or_default();
    Ok(json!({ "streams": n_streams, "seconds": seconds, "done": n_done.into_inner(), "failed": failures.len(),
        "why": failures.first(), "first_p50": percentile(&firsts, 0.5), "first_p99": percentile(&firsts, 0.99) })
    .to_string())
}

/// Sends conversations of twenty steps on four connections, and samples the memory of a process fifty times.
pub(crate) fn memory(options: &Options) -> Result<String, String> {
    const N_CONNECTIONS: u64 = 4;
    const N_STEPS: usize = 20;
    let (n_requests, pid) = (options.get("requests")?, options.get("pid")?);
    let port = options.port("port")?;
    let reply = ConstantReply::new(5, Duration::ZERO);
    let _upstream =
        Upstream::start_constant(options.port("upstream-port")?, reply).map_err(|error| error.to_string())?;
    let started = Instant::now();
    let every = (n_requests / 50).max(1) as usize;
    let (n_done, failures, curve) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for connection in 0..N_CONNECTIONS {
            let (n_done, failures, curve) = (&n_done, &failures, &curve);
            scope.spawn(move || {
                let mut client = HttpClient::new(port);
                let mut seed = connection;
                while (n_done.load(Ordering::Relaxed) as u64) < n_requests {
                    seed += N_CONNECTIONS;
                    let mut conversation = GrowingConversation::new(seed + 10_000_000, 4_000, false);
                    for _ in 0..N_STEPS {
                        if let Err(why) = check_response(client.post(PATH, &HEADERS, &conversation.body())) {
                            locked(failures).push(why);
                        }
                        conversation.add_step(500);
                        let n = n_done.fetch_add(1, Ordering::Relaxed) + 1;
                        if n.is_multiple_of(every) {
                            locked(curve).push((n, resident_kb(pid)));
                        }
                    }
                }
            });
        }
    });
    let mut curve = curve.into_inner().unwrap_or_default();
    curve.sort_unstable();
    let failures = failures.into_inner().unwrap_or_default();
    Ok(json!({ "n": n_done.into_inner(), "seconds": started.elapsed().as_secs_f64(), "failed": failures.len(),
        "why": failures.first(), "curve_kb": curve })
    .to_string())
}

/// The resident memory of a process in kB; `None` if it does not exist.
fn resident_kb(pid: u64) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
