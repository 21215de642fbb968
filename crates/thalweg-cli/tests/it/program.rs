//! A started `thalweg` that is always ended, and what it said.

use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a step may take on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A folder of one test, removed at its end.
pub struct TestFolder(PathBuf);

impl TestFolder {
    pub fn new() -> TestFolder {
        let path = std::env::temp_dir().join(format!("thalweg-{}", tag()));
        std::fs::create_dir_all(&path).expect("a folder");
        TestFolder(path)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).expect("written");
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("text").to_owned()
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A domain tag that keeps this test apart from every other one and from everybody else on the host.
pub fn tag() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The program with these arguments, its streams piped.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program to its end.
#[track_caller]
pub fn run(arguments: &[&str]) -> Said {
    Running::start(command(arguments)).finish()
}

/// What an ended program said.
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Said {
    /// Fails unless the exit code is `code` and nothing panicked.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Said {
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// A running program; dropping it kills it.
pub struct Running {
    child: Child,
}

impl Running {
    #[track_caller]
    pub fn start(mut command: Command) -> Running {
        Running { child: command.spawn().expect("the program starts") }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Takes standard output away; dropping what is returned closes the pipe.
    pub fn stdout(&mut self) -> BufReader<ChildStdout> {
        BufReader::new(self.child.stdout.take().expect("piped"))
    }

    /// Takes standard input away; dropping what is returned ends it.
    pub fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("piped")
    }

    /// Takes standard error away.
    pub fn stderr(&mut self) -> BufReader<ChildStderr> {
        BufReader::new(self.child.stderr.take().expect("piped"))
    }

    #[track_caller]
    pub fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    /// Waits until the program ends by itself.
    #[track_caller]
    pub fn finish(self) -> Said {
        self.finish_within(PATIENCE)
    }

    /// The same for a program that takes long.
    #[track_caller]
    pub fn finish_within(mut self, patience: Duration) -> Said {
        let (stdout, stderr) = (self.child.stdout.take(), self.child.stderr.take());
        let stdout = std::thread::spawn(move || read(stdout));
        let stderr = std::thread::spawn(move || read(stderr));
        let deadline = Instant::now() + patience;
        let status = loop {
            match self.child.try_wait().expect("our child") {
                Some(status) => break status,
                None if Instant::now() > deadline => {
                    drop(self);
                    let (stdout, stderr) = (stdout.join().expect("read"), stderr.join().expect("read"));
                    panic!("still running after {patience:?}\nstdout:\n{stdout}\nstderr:\n{stderr}");
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        Said { code: status.code(), stdout: stdout.join().expect("read"), stderr: stderr.join().expect("read") }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal such as `INT` to a process.
#[track_caller]
pub fn signal(process: u32, name: &str) {
    let Output { status, .. } =
        Command::new("kill").args([&format!("-{name}"), &process.to_string()]).output().expect("kill");
    assert!(status.success(), "no SIG{name} to {process}");
}

fn read(stream: Option<impl Read>) -> String {
    let mut text = String::new();
    if let Some(mut stream) = stream {
        stream.read_to_string(&mut text).expect("text");
    }
    text
}
