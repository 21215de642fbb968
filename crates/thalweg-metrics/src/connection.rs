//! One client of the server: a request, its answer, and the end.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::Instant;

use mio::net::TcpStream;

/// A connection that never waits.
pub struct Connection {
    stream: TcpStream,
    until: Instant,
    state: State,
}

enum State {
    /// What came of the request's head.
    Asking(Vec<u8>),
    /// The answer, and how much of it has left.
    Answering(Vec<u8>, usize),
    /// How much came after the answer: bytes that are not read would take the answer back from the client.
    Ending(usize),
}

/// Whether a connection goes on.
pub enum Progress {
    /// It waits for its client.
    Waits,
    /// It is over.
    Over,
}

impl Connection {
    /// A client that has to be done by `until`.
    pub fn new(stream: TcpStream, until: Instant) -> Connection {
        Connection { stream, until, state: State::Asking(Vec::new()) }
    }

    /// When the client is given up.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// Reads and writes as much as there is; `exposition` gives the text.
    ///
    /// # Errors
    /// When the client has gone.
    pub fn advance(&mut self, exposition: &mut dyn FnMut() -> Option<String>) -> io::Result<Progress> {
        loop {
            let done = match &mut self.state {
                State::Asking(head) => match read_head(&mut self.stream, head) {
                    Ok(is_whole) => {
                        let answer = answer_to(is_whole.then_some(&head[..]), exposition);
                        self.state = State::Answering(answer, 0);
                        Ok(Progress::Waits)
                    }
                    Err(error) => Err(error),
                },
                State::Answering(answer, sent) => match self.stream.write(&answer[*sent..]) {
                    Ok(0) => return Ok(Progress::Over),
                    Ok(count) => {
                        *sent += count;
                        if *sent == answer.len() {
                            self.stream.shutdown(Shutdown::Write)?;
                            self.state = State::Ending(0);
                        }
                        Ok(Progress::Waits)
                    }
                    Err(error) => Err(error),
                },
                State::Ending(ignored) => {
                    let mut part = [0; 4096];
                    self.stream.read(&mut part).map(|count| {
                        *ignored += count;
                        if count == 0 || *ignored > IGNORED_BYTES_MAX { Progress::Over } else { Progress::Waits }
                    })
                }
            };
            match done {
                Ok(Progress::Waits) => {}
                Ok(Progress::Over) => return Ok(Progress::Over),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Progress::Waits),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Reads the lines up to the empty one; false when they are too many.
fn read_head(stream: &mut TcpStream, head: &mut Vec<u8>) -> io::Result<bool> {
    let mut part = [0; 1024];
    loop {
        let count = stream.read(&mut part)?;
        // An end may lie across two parts.
        let from = head.len().saturating_sub(3);
        head.extend_from_slice(&part[..count]);
        let new = &head[from..];
        if count == 0 || new.windows(4).any(|end| end == b"\r\n\r\n") || new.windows(2).any(|end| end == b"\n\n") {
            return Ok(true);
        }
        if head.len() > HEAD_BYTES_MAX {
            return Ok(false);
        }
    }
}

fn answer_to(head: Option<&[u8]>, exposition: &mut dyn FnMut() -> Option<String>) -> Vec<u8> {
    let Some(head) = head else {
        return answer("431 Request Header Fields Too Large", TEXT, "too long\n");
    };
    let head = String::from_utf8_lossy(head);
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    match (method, target.split('?').next().unwrap_or_default()) {
        ("GET", "/metrics") => match exposition() {
            Some(text) => answer("200 OK", OPEN_METRICS, &text),
            None => answer("503 Service Unavailable", TEXT, "nothing to tell\n"),
        },
        ("GET", _) => answer("404 Not Found", TEXT, "there is /metrics only\n"),
        _ => answer("405 Method Not Allowed", TEXT, "GET only\n"),
    }
}

fn answer(status: &str, format: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let allow = if status.starts_with("405") { "Allow: GET\r\n" } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {format}\r\nContent-Length: {length}\r\n{allow}Connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

const TEXT: &str = "text/plain";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Longer than any scraper's request line and headers.
const HEAD_BYTES_MAX: usize = 8192;
/// Bytes behind a request that are read and ignored, chosen by us: a request that is eight times too long still gets its answer.
const IGNORED_BYTES_MAX: usize = 65_536;
