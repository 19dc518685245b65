//! A program that is started for us, and ended with all that it started.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::provider::error::{MemoryError, excerpt};

/// So much of what it complained about is kept.
const LONGEST_WORDS: usize = 400;

/// How long its last words are waited for.
const MOMENT: Duration = Duration::from_millis(200);

/// A program that runs.
pub(crate) struct ChildProgram {
    child: Child,
    /// The end of what it said on stderr.
    said: Arc<Mutex<String>>,
    /// Who listens to that.
    listener: Option<JoinHandle<()>>,
}

/// A program that was started, with its ends.
pub(crate) struct StartedProgram {
    pub(crate) program: ChildProgram,
    pub(crate) output: ChildStdout,
    pub(crate) input: ChildStdin,
}

impl ChildProgram {
    /// Starts it.
    pub(crate) fn start(
        program: &str,
        arguments: &[String],
        environment: &[(String, String)],
    ) -> Result<StartedProgram, MemoryError> {
        let mut command = Command::new(program);
        command.args(arguments).envs(environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // Ctrl-C is for us: it gets the rest of its work first.
        #[cfg(unix)]
        command.process_group(0);
        let failed = |error: std::io::Error| {
            MemoryError::Unreachable(format!("{program} could not be started: {error}"))
        };
        let mut child = command.spawn().map_err(failed)?;
        let said = Arc::new(Mutex::new(String::new()));
        let listener = child.stderr.take().map(|errors| tokio::spawn(listen(errors, Arc::clone(&said))));
        let (Some(output), Some(input)) = (child.stdout.take(), child.stdin.take()) else {
            return Err(MemoryError::Unreachable(format!("{program} has no stdin or stdout")));
        };
        Ok(StartedProgram { program: ChildProgram { child, said, listener }, output, input })
    }

    /// Why it did not do what it should, with its own last words if it had any.
    pub(crate) async fn last_words(&mut self, why: &str) -> String {
        // One that has just ended may not have been heard to the end.
        if let Some(listener) = self.listener.take() {
            let _ = tokio::time::timeout(MOMENT, listener).await;
        }
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let said = said.trim();
        if said.is_empty() { excerpt(why) } else { excerpt(&format!("it said: {said}; {why}")) }
    }

    /// Waits for its end, and ends it if that does not come. Its stdin is closed by now.
    pub(crate) async fn end(mut self, most: Duration) {
        let _ = tokio::time::timeout(most, self.child.wait()).await;
    }
}

impl Drop for ChildProgram {
    fn drop(&mut self) {
        let is_running = matches!(self.child.try_wait(), Ok(None));
        #[cfg(unix)]
        if let Some(id) = self.child.id().filter(|_| is_running) {
            // What it started goes with it. The system's own program does that: there is no call without unsafe code.
            let mut kill = std::process::Command::new("kill");
            kill.args(["-KILL", "--", &format!("-{id}")]).stdout(Stdio::null()).stderr(Stdio::null());
            let _ = kill.status();
        }
        if is_running {
            let _ = self.child.start_kill();
        }
    }
}

/// Keeps the end of what a program complains about.
async fn listen(mut errors: ChildStderr, said: Arc<Mutex<String>>) {
    let mut buffer = [0; 1024];
    while let Ok(n) = errors.read(&mut buffer).await {
        if n == 0 {
            return;
        }
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.push_str(&String::from_utf8_lossy(&buffer[..n]));
        let start = said.ceil_char_boundary(said.len().saturating_sub(LONGEST_WORDS));
        said.drain(..start);
    }
}
