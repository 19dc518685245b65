//! How far something is that takes a while: a line on stderr for a person at a terminal, gone when it ends.

use std::io::{self, IsTerminal as _};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::commands::Say;

/// What takes no longer than this is not told.
const SOON: Duration = Duration::from_millis(500);
/// How often the line is drawn.
const TICK: Duration = Duration::from_millis(200);

/// A line that tells how far something is. It goes with this value.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Who shows the line when it is time; it is over when nobody holds the other end.
    shower: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// The progress of something that has so many parts. Where no person would see it, it shows nothing.
    pub(crate) fn new(doing: &str, n_all: u64, say: Say) -> Progress {
        if say.is_quiet || !io::stderr().is_terminal() {
            return Progress { bar: ProgressBar::hidden(), shower: None };
        }
        Progress::on(ProgressDrawTarget::stderr(), SOON, doing, n_all)
    }

    fn on(target: ProgressDrawTarget, soon: Duration, doing: &str, n_all: u64) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(n_all), ProgressDrawTarget::hidden());
        let look = format!("{doing} {{bar:32}} {{percent:>3}} %  {{elapsed}} (another {{eta}})");
        bar.set_style(ProgressStyle::with_template(&look).unwrap_or_else(|_| ProgressStyle::default_bar()));
        let (end, ended) = mpsc::channel();
        let shown = bar.clone();
        let shower = thread::spawn(move || {
            if ended.recv_timeout(soon) == Err(RecvTimeoutError::Timeout) {
                shown.set_draw_target(target);
                shown.enable_steady_tick(TICK);
            }
        });
        Progress { bar, shower: Some((end, shower)) }
    }

    /// Tells that so many more parts are done.
    pub(crate) fn add(&self, n: u64) {
        self.bar.inc(n);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((end, shower)) = self.shower.take() {
            drop(end);
            // Were it still to show the line, nobody would take that away. One that fell over shows nothing.
            let _ = shower.join();
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

    /// A terminal that tells what is written to it.
    #[derive(Debug)]
    struct Told(Sender<String>);

    impl Told {
        fn tell(&self, what: &str) -> io::Result<()> {
            self.0.send(what.to_owned()).map_err(io::Error::other)
        }
    }

    impl TermLike for Told {
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
            self.tell(line)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.tell(text)
        }
        fn clear_line(&self) -> io::Result<()> {
            self.tell("(cleared)")
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn progress(soon: Duration) -> (Progress, Receiver<String>) {
        let (told, hears) = mpsc::channel();
        let target = ProgressDrawTarget::term_like(Box::new(Told(told)));
        (Progress::on(target, soon, "folding", 4), hears)
    }

    #[test]
    fn what_ends_soon_is_not_told() {
        let (progress, hears) = progress(Duration::from_secs(3600));
        progress.add(4);
        drop(progress);
        assert_eq!(hears.into_iter().collect::<String>(), "");
    }

    #[test]
    fn what_takes_longer_is_told_and_the_line_goes_with_it() {
        let (progress, hears) = progress(Duration::ZERO);
        progress.add(1);
        let mut written = std::iter::from_fn(|| hears.recv_timeout(Duration::from_secs(60)).ok());
        let shown = written.find(|written| written.contains("folding")).expect("a line is drawn");
        assert!(shown.contains("% "), "{shown}");
        drop(progress);
        let rest: Vec<String> = hears.into_iter().filter(|written| !written.trim().is_empty()).collect();
        assert_eq!(rest.last().map(String::as_str), Some("(cleared)"), "{rest:?}");
    }
}
