//! A child process: in a group of its own, ended in every case, its last words kept.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use thalweg_host::{kill_group, spawn_on};
use thalweg_lab_station::lock;

/// A child process; dropping it ends it with everything that it started, and waits until it is gone.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    child: Child,
    last_words: LastWords,
    /// Ends when its standard error does.
    listening: Option<JoinHandle<()>>,
}

impl ChildProcess {
    /// Starts a process by this command, on these logical CPUs or without any on those of this thread; also its standard input and output.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn spawn(command: &mut Command, cpus: &[usize]) -> io::Result<(ChildProcess, ChildStdin, ChildStdout)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A Ctrl-C at the terminal goes to the whole foreground group; the parent alone decides when its children end.
        command.process_group(0);
        let mut child = spawn_on(command, cpus)?;
        let last_words = LastWords::default();
        let listening = child.stderr.take().map(|stderr| {
            let words = last_words.clone();
            std::thread::spawn(move || words.keep(stderr))
        });
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let process = ChildProcess { child, last_words, listening };
        let (input, output) = input.zip(output).ok_or_else(|| io::Error::other("it has no pipes"))?;
        Ok((process, input, output))
    }

    /// The system's number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, where it does within `patience`.
    pub(crate) fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(PAUSE),
                _ => return None,
            }
        }
    }

    /// Waits for the rest of its standard error; a process that it started may keep the pipe open for ever.
    pub(crate) fn await_words(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        while self.listening.as_ref().is_some_and(|thread| !thread.is_finished()) && Instant::now() < deadline {
            std::thread::sleep(PAUSE);
        }
    }

    /// The latest lines of its standard error in one.
    pub(crate) fn last_words(&self) -> String {
        self.remarks().join(" / ")
    }

    /// The latest lines of its standard error.
    pub(crate) fn remarks(&self) -> Vec<String> {
        lock(&self.last_words.0).iter().cloned().collect()
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // What a process started is in its group, also when the process itself is gone.
        kill_group(self.child.id());
        // The wait cannot fail for a child of ours; if it does there is nothing left to end.
        let _ = self.child.wait();
    }
}

/// Lets `shell`, a command of `/bin/sh`, become `program` with these words, which ends with all that it started when the input of the
/// shell does: the system closes that also where the process that holds its other end dies without a word. The program itself has no input.
pub(crate) fn tie_to_input(shell: &mut Command, program: &str, words: impl IntoIterator<Item = impl AsRef<OsStr>>) {
    shell.args(["-c", TIED, "sh", program]).args(words);
}

/// The latest lines of a process's standard error.
#[derive(Clone, Debug, Default)]
struct LastWords(Arc<Mutex<VecDeque<String>>>);

impl LastWords {
    /// Reads to the end.
    fn keep(&self, stderr: impl Read) {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let mut lines = lock(&self.0);
            if lines.len() == WORDS_MAX {
                lines.pop_front();
            }
            lines.push_back(line);
        }
    }
}

/// Lines of standard error kept of each process: a panic message and its surroundings.
const WORDS_MAX: usize = 12;
/// What waits holds neither output of the program, whose end is to be noticed; it ends its own process group.
const TIED: &str = "exec 3<&0 </dev/null; (read -r _ <&3; kill -9 0) >/dev/null 2>&1 & exec 3<&-; exec \"$@\"";
const PAUSE: Duration = Duration::from_millis(5);
