//! `coap run` in a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{ChildStderr, ChildStdout};
use std::time::Instant;

use crate::program::{PATIENCE, Running, command};

/// A gateway that runs.
pub struct GatewayProcess {
    pub running: Running,
    pub output: BufReader<ChildStdout>,
    pub errors: BufReader<ChildStderr>,
    /// The URIs that it told at its start, in their order.
    pub uris: Vec<String>,
}

impl GatewayProcess {
    /// Starts it by a file, and waits until it has told so many addresses.
    #[track_caller]
    pub fn start(file: &str, addresses: usize) -> GatewayProcess {
        let mut running = Running::start(command(&["coap", "run", file]));
        let (mut output, errors) = (running.stdout(), running.stderr());
        let mut uri = || {
            let mut line = String::new();
            output.read_line(&mut line).expect("a line");
            let (_, uri) = line.trim().split_once(' ').expect("what is there, and its address");
            uri.to_owned()
        };
        let uris = (0..addresses).map(|_| uri()).collect();
        GatewayProcess { running, output, errors, uris }
    }

    /// Has the file read again, which has to succeed.
    #[track_caller]
    pub fn reload(&mut self) {
        self.running.signal("HUP");
        wait_for_line(&mut self.output, "reloaded");
    }

    #[track_caller]
    pub fn end(self) {
        self.running.signal("INT");
        self.running.finish().expect_code(0);
    }
}

/// Reads lines until one has this in it.
#[track_caller]
pub fn wait_for_line(lines: &mut impl BufRead, part: &str) -> String {
    let start = Instant::now();
    let mut line = String::new();
    while start.elapsed() < PATIENCE {
        line.clear();
        if lines.read_line(&mut line).expect("a line") == 0 {
            break;
        }
        if line.contains(part) {
            return line;
        }
    }
    panic!("{part:?} was not said; the last line was {line:?}");
}
