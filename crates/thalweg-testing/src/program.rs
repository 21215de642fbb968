//! A program under test: started, listened to line by line, and ended whatever happens.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long a step of a test may take before it counts as failed, on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// A running program and what it has said so far.
pub struct Program {
    name: String,
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Program {
    /// Starts the program; it dies with the test, also when the test is killed.
    #[track_caller]
    pub fn start(name: &str, command: &Command) -> Program {
        Program::start_with(name, command, Stdio::null())
    }

    /// As [`Program::start`], for a program that runs until its standard input ends: [`Program::finish`] ends it.
    #[track_caller]
    pub fn start_with_input(name: &str, command: &Command) -> Program {
        Program::start_with(name, command, Stdio::piped())
    }

    #[track_caller]
    fn start_with(name: &str, command: &Command, input: Stdio) -> Program {
        let mut guarded = Command::new("setpriv");
        guarded.args(["--pdeathsig", "KILL", "--"]).arg(command.get_program()).args(command.get_args());
        for (variable, value) in command.get_envs() {
            guarded.env(variable, value.unwrap_or_default());
        }
        guarded.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = guarded.spawn().expect("setpriv (util-linux) is installed");
        let (sender, lines) = channel();
        listen(child.stdout.take(), "", sender.clone());
        listen(child.stderr.take(), "! ", sender);
        Program { name: name.to_owned(), child, lines, seen: Vec::new() }
    }

    /// Writes a line to the standard input of a program that was started with one.
    #[track_caller]
    pub fn tell(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("the program has an input");
        writeln!(input, "{line}").expect("the program listens");
    }

    /// The next line that it says within this time.
    pub fn next_line(&mut self, time: Duration) -> Option<String> {
        let line = self.lines.recv_timeout(time).ok()?;
        self.seen.push(line.clone());
        Some(line)
    }

    /// The system's number of it.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the next line that fits.
    #[track_caller]
    pub fn expect(&mut self, what: &str, mut fits: impl FnMut(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if fits(&line) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    panic!("{}: no {what} within {PATIENCE:?}\n{}", self.name, self.said())
                }
                Err(RecvTimeoutError::Disconnected) => panic!("{}: ended without {what}\n{}", self.name, self.said()),
            }
        }
    }

    /// Waits for the next line that contains the text.
    #[track_caller]
    pub fn expect_text(&mut self, text: &str) -> String {
        self.expect(text, |line| line.contains(text))
    }

    /// Waits until the program ends by itself; returns all it said.
    #[track_caller]
    pub fn finish(mut self) -> Said {
        drop(self.child.stdin.take());
        let end = Instant::now() + PATIENCE;
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            self.seen.push(line);
        }
        let status = loop {
            match self.child.try_wait().expect("the child is ours") {
                Some(status) => break status,
                None if Instant::now() > end => {
                    panic!("{}: still running after {PATIENCE:?}\n{}", self.name, self.said())
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        Said { name: self.name.clone(), status, lines: std::mem::take(&mut self.seen) }
    }

    /// Asks the program to end as Ctrl-C does, and waits for that.
    #[track_caller]
    pub fn interrupt(self) -> Said {
        self.signal("INT");
        self.finish()
    }

    /// As [`interrupt`](Self::interrupt), by somebody who does not wait for the first to take effect.
    pub fn interrupt_twice(self) -> Said {
        self.signal("INT");
        self.signal("INT");
        self.finish()
    }

    /// Ends the program without a chance to say good-bye.
    pub fn kill(self) {
        self.signal("KILL");
    }

    /// Stops the program where it is; [`Program::resume`] lets it go on.
    pub fn suspend(&self) {
        self.signal("STOP");
    }

    /// Lets a suspended program go on.
    pub fn resume(&self) {
        self.signal("CONT");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([&format!("-{signal}"), &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "{}: no {signal} could be sent", self.name);
    }

    fn said(&self) -> String {
        self.seen.iter().rev().take(40).rev().map(|line| format!("    {line}\n")).collect()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(pipe: Option<impl Read + Send + 'static>, mark: &'static str, sender: Sender<String>) {
    let pipe = pipe.expect("the stream is piped");
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if sender.send(format!("{mark}{line}")).is_err() {
                return;
            }
        }
    });
}

/// What an ended program said.
pub struct Said {
    name: String,
    /// How it ended.
    pub status: ExitStatus,
    /// Its lines of output; those of standard error begin with `! `.
    pub lines: Vec<String>,
}

impl Said {
    /// Fails unless the program ended well.
    #[track_caller]
    pub fn well(self) -> Said {
        assert!(self.status.success(), "{}: {}\n{}", self.name, self.status, self.lines.join("\n"));
        self
    }

    /// The lines that are JSON objects.
    pub fn objects(&self) -> impl Iterator<Item = Value> {
        self.lines.iter().filter(|line| line.starts_with('{')).filter_map(|line| serde_json::from_str(line).ok())
    }
}
