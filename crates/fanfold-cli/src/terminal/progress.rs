//! A progress bar on stderr, removed when the work ends.

use std::io::{self, IsTerminal as _};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal::Reporter;

/// No bar is shown for work that ends within this time.
const DELAY: Duration = Duration::from_millis(500);
/// How often the bar is redrawn.
const TICK: Duration = Duration::from_millis(200);

/// A progress bar, removed on drop.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// The thread that shows the bar after the delay; it ends when the sender is dropped.
    timer: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// A bar for work of `n_all` parts. Without a terminal, or with `--quiet`, it shows nothing.
    pub(crate) fn new(label: &str, n_all: u64, reporter: Reporter) -> Progress {
        if reporter.is_quiet || !io::stderr().is_terminal() {
            return Progress { bar: ProgressBar::hidden(), timer: None };
        }
        Progress::with_target(ProgressDrawTarget::stderr(), DELAY, label, n_all)
    }

    fn with_target(target: ProgressDrawTarget, delay: Duration, label: &str, n_all: u64) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(n_all), ProgressDrawTarget::hidden());
        let template = format!("{label} {{bar:32}} {{percent:>3}} %  {{elapsed}} (another {{eta}})");
        bar.set_style(
            ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        let (end, ended) = mpsc::channel();
        let shown = bar.clone();
        let timer = thread::spawn(move || {
            if ended.recv_timeout(delay) == Err(RecvTimeoutError::Timeout) {
                shown.set_draw_target(target);
                shown.enable_steady_tick(TICK);
            }
        });
        Progress { bar, timer: Some((end, timer)) }
    }

    /// Marks `n` more parts as done.
    pub(crate) fn add(&self, n: u64) {
        self.bar.inc(n);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((end, timer)) = self.timer.take() {
            drop(end);
            // Wait for the thread, so that it cannot show the bar after it was cleared.
            let _ = timer.join();
        }
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc::Receiver;

    use indicatif::TermLike;

    use super::*;

    /// A terminal that sends what is written to a channel.
    #[derive(Debug)]
    struct ChannelTerminal(Sender<String>);

    impl ChannelTerminal {
        fn send(&self, text: &str) -> io::Result<()> {
            self.0.send(text.to_owned()).map_err(io::Error::other)
        }
    }

    impl TermLike for ChannelTerminal {
        fn width(&self) -> u16 {
            100
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, line: &str) -> io::Result<()> {
            self.send(line)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.send(text)
        }
        fn clear_line(&self) -> io::Result<()> {
            self.send("(cleared)")
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn progress(delay: Duration) -> (Progress, Receiver<String>) {
        let (sender, receiver) = mpsc::channel();
        let target = ProgressDrawTarget::term_like(Box::new(ChannelTerminal(sender)));
        (Progress::with_target(target, delay, "folding", 4), receiver)
    }

    #[test]
    fn short_work_shows_no_bar() {
        let (progress, receiver) = progress(Duration::from_secs(3600));
        progress.add(4);
        drop(progress);
        assert_eq!(receiver.into_iter().collect::<String>(), "");
    }

    #[test]
    fn long_work_shows_a_bar_and_clears_it() {
        let (progress, receiver) = progress(Duration::ZERO);
        progress.add(1);
        let mut written = std::iter::from_fn(|| receiver.recv_timeout(Duration::from_secs(60)).ok());
        let shown = written.find(|written| written.contains("folding")).expect("a line is drawn");
        assert!(shown.contains("% "), "{shown}");
        drop(progress);
        let rest: Vec<String> = receiver.into_iter().filter(|written| !written.trim().is_empty()).collect();
        assert_eq!(rest.last().map(String::as_str), Some("(cleared)"), "{rest:?}");
    }
}
