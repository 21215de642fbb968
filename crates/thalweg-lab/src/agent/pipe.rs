//! Messages on a pair of pipes, one of JSON a line in either direction.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The way out; closed when dropped.
pub(super) struct Outgoing(Option<Box<dyn Write + Send>>);

/// The way in.
#[derive(Debug)]
pub(super) struct Incoming {
    lines: Receiver<Result<Vec<u8>, String>>,
}

impl Outgoing {
    pub(super) fn new(stream: impl Write + Send + 'static) -> Outgoing {
        Outgoing(Some(Box::new(stream)))
    }

    /// Says something to the other side. Where `ssh` is stuck between both, it ends by itself and this way with it.
    ///
    /// # Errors
    /// The other side is gone.
    pub(super) fn say(&mut self, message: &impl Serialize) -> Result<(), String> {
        let line = serde_json::to_vec(message).map_err(|error| error.to_string())?;
        if line.len() > LINE_MAX {
            return Err(format!("a message of {} bytes is longer than the {LINE_MAX} allowed", line.len()));
        }
        self.write(line)
    }

    /// The same with a line as it is.
    pub(super) fn write(&mut self, mut line: Vec<u8>) -> Result<(), String> {
        line.push(b'\n');
        let stream = self.0.as_mut().ok_or(CLOSED)?;
        stream.write_all(&line).and_then(|()| stream.flush()).map_err(|_| CLOSED.to_owned())
    }

    /// Ends the way out.
    pub(super) fn close(&mut self) {
        self.0 = None;
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outgoing(…)")
    }
}

impl Incoming {
    pub(super) fn new(stream: impl Read + Send + 'static) -> Incoming {
        let (heard, lines) = sync_channel(LINES_MAX);
        std::thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            while let Some(line) = next_line(&mut stream).transpose() {
                let is_last = line.is_err();
                if heard.send(line).is_err() || is_last {
                    return;
                }
            }
        });
        Incoming { lines }
    }

    /// The other side's next message, if one comes within `patience`.
    ///
    /// # Errors
    /// It is gone, or says something that is no message.
    pub(super) fn hear<T: DeserializeOwned>(&self, patience: Duration) -> Result<Option<T>, String> {
        let Some(line) = self.line(patience)? else { return Ok(None) };
        serde_json::from_slice(&line).map(Some).map_err(|error| format!("a message is not understood: {error}"))
    }

    /// The same with a line as it is.
    pub(super) fn line(&self, patience: Duration) -> Result<Option<Vec<u8>>, String> {
        match self.lines.recv_timeout(patience) {
            Ok(line) => line.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(CLOSED.to_owned()),
        }
    }
}

/// The next whole line without its end; `None` after the last.
fn next_line(stream: &mut impl BufRead) -> Result<Option<Vec<u8>>, String> {
    let mut line = Vec::new();
    let most = LINE_MAX as u64 + 1;
    stream.take(most).read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
    match line.pop() {
        Some(b'\n') => Ok(Some(line)),
        Some(_) if line.len() == LINE_MAX => Err(format!("a message is longer than the {LINE_MAX} bytes allowed")),
        // A message that was cut off with its sender is none.
        Some(_) | None => Ok(None),
    }
}

/// The reason when the other side ended in peace or died.
pub(super) const CLOSED: &str = "it closed the connection";
/// Longest message: a part of a file as JSON, in which a line's end takes two bytes, with room.
const LINE_MAX: usize = 4 << 20;
/// Messages that may wait to be heard.
const LINES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    #[test]
    fn lines_are_messages_and_a_line_that_was_cut_off_is_none() {
        let incoming = Incoming::new(&b"\"one\"\n[2]\n\"thr"[..]);
        assert_eq!(incoming.hear::<String>(PATIENCE), Ok(Some("one".to_owned())));
        assert_eq!(incoming.hear::<Vec<u8>>(PATIENCE), Ok(Some(vec![2])));
        assert_eq!(incoming.hear::<String>(PATIENCE), Err(CLOSED.to_owned()));
        let incoming = Incoming::new(&b"{\n"[..]);
        assert!(incoming.hear::<String>(PATIENCE).is_err_and(|reason| reason.contains("not understood")));
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_the_memory() {
        let incoming = Incoming::new(std::io::repeat(b'x'));
        let reason = incoming.line(PATIENCE).expect_err("endless");
        assert!(reason.contains("longer than the 4194304 bytes allowed"), "{reason}");
        assert!(Outgoing::new(std::io::sink()).say(&"x".repeat(LINE_MAX)).is_err());
    }
}
