//! A child process, which is killed together with all processes that it started.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::provider::error::{MemoryError, excerpt};

/// Number of bytes of its stderr that are kept.
const MAX_STDERR_BYTES: usize = 400;

/// How long to wait for the rest of its stderr after an error.
const STDERR_TIMEOUT: Duration = Duration::from_millis(200);

/// A running child process.
pub(crate) struct ChildProgram {
    child: Child,
    /// The end of its stderr.
    stderr: Arc<Mutex<String>>,
    /// The task that reads its stderr.
    stderr_reader: Option<JoinHandle<()>>,
}

/// A child process with its pipes.
pub(crate) struct PipedProgram {
    pub(crate) program: ChildProgram,
    pub(crate) output: ChildStdout,
    pub(crate) input: ChildStdin,
}

impl ChildProgram {
    /// Starts a program.
    pub(crate) fn start(
        program: &str,
        arguments: &[String],
        environment: &[(String, String)],
    ) -> Result<PipedProgram, MemoryError> {
        let mut command = Command::new(program);
        command.args(arguments).envs(environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // In its own process group it gets no Ctrl-C, so that queued work can still be written.
        #[cfg(unix)]
        command.process_group(0);
        let failed =
            |error: std::io::Error| MemoryError::Unreachable(format!("cannot start {program}: {error}"));
        let mut child = command.spawn().map_err(failed)?;
        let stderr = Arc::new(Mutex::new(String::new()));
        let stderr_reader =
            child.stderr.take().map(|errors| tokio::spawn(read_stderr(errors, Arc::clone(&stderr))));
        let (Some(output), Some(input)) = (child.stdout.take(), child.stdin.take()) else {
            return Err(MemoryError::Unreachable(format!("{program} has no stdin or stdout")));
        };
        Ok(PipedProgram { program: ChildProgram { child, stderr, stderr_reader }, output, input })
    }

    /// An error message with the end of the program's stderr, if it wrote any.
    pub(crate) async fn failure_message(&mut self, why: &str) -> String {
        // A program that has just ended may have written more than was read.
        if let Some(stderr_reader) = self.stderr_reader.take() {
            let _ = tokio::time::timeout(STDERR_TIMEOUT, stderr_reader).await;
        }
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let stderr = stderr.trim();
        if stderr.is_empty() { excerpt(why) } else { excerpt(&format!("stderr: {stderr}; {why}")) }
    }

    /// Waits until the program exits, and kills it after `max_wait`. Its stdin must be closed.
    pub(crate) async fn end(mut self, max_wait: Duration) {
        let _ = tokio::time::timeout(max_wait, self.child.wait()).await;
    }
}

impl Drop for ChildProgram {
    fn drop(&mut self) {
        let is_running = matches!(self.child.try_wait(), Ok(None));
        #[cfg(unix)]
        if let Some(id) = self.child.id().filter(|_| is_running) {
            // Kill the whole process group. This takes an external program, since a system call would need unsafe code.
            let mut kill = std::process::Command::new("kill");
            kill.args(["-KILL", "--", &format!("-{id}")]).stdout(Stdio::null()).stderr(Stdio::null());
            let _ = kill.status();
        }
        if is_running {
            let _ = self.child.start_kill();
        }
    }
}

/// Reads stderr and keeps its end.
async fn read_stderr(mut errors: ChildStderr, stderr: Arc<Mutex<String>>) {
    let mut buffer = [0; 1024];
    while let Ok(n) = errors.read(&mut buffer).await {
        if n == 0 {
            return;
        }
        let mut stderr = stderr.lock().unwrap_or_else(PoisonError::into_inner);
        stderr.push_str(&String::from_utf8_lossy(&buffer[..n]));
        let start = stderr.ceil_char_boundary(stderr.len().saturating_sub(MAX_STDERR_BYTES));
        stderr.drain(..start);
    }
}
