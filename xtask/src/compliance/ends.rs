//! What the programs of a case print, and what they come to by it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;

/// What a program came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A publisher was matched, a subscriber has printed samples.
    Fine,
    /// It was told of incompatible QoS.
    Incompatible,
    /// It was told of a missed deadline.
    DeadlineMissed,
    /// Nobody was matched, nothing came.
    Alone,
    /// It saw an instance without writers.
    WithoutWriters,
    /// It saw an instance that was disposed.
    Disposed,
    /// It says that it does not support what it is asked for.
    NotOffered,
}

/// A sample as it is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintedSample {
    /// Its key.
    pub color: String,
    /// Its size.
    pub size: i64,
    /// The last octet behind the members, where there are any.
    pub last_octet: Option<u8>,
}

impl End {
    /// In words for a table.
    pub fn words(self) -> &'static str {
        match self {
            End::Fine => "match",
            End::Incompatible => "incompatible",
            End::DeadlineMissed => "deadline missed",
            End::Alone => "no match",
            End::WithoutWriters => "no writers",
            End::Disposed => "disposed",
            End::NotOffered => "not offered",
        }
    }
}

impl PrintedSample {
    /// Reads a line: topic, color, x, y, the size in brackets, and perhaps an octet in braces.
    pub fn read(line: &str) -> Option<PrintedSample> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, color, _, _, size, rest @ ..] = words.as_slice() else { return None };
        let size = size.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?;
        let octet = |word: &&str| word.strip_prefix('{')?.strip_suffix('}')?.parse().ok();
        Some(PrintedSample { color: (*color).to_owned(), size, last_octet: rest.first().and_then(octet) })
    }
}

/// A line that decides, whatever is expected.
fn news(line: &str) -> Option<End> {
    let all = [
        ("not supported", End::NotOffered),
        ("failed to create", End::NotOffered),
        ("incompatible_qos()", End::Incompatible),
        ("deadline_missed()", End::DeadlineMissed),
        ("NOT_ALIVE_NO_WRITERS", End::WithoutWriters),
        ("NOT_ALIVE_DISPOSED", End::Disposed),
        ("on_publication_matched()", End::Fine),
    ];
    all.into_iter().find(|(words, _)| line.contains(words)).map(|(_, end)| end)
}

/// A program of a case that runs; it ends with this.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    /// Starts the shapes program with these options, of which `'` holds words together.
    pub fn start(program: &Path, domain: u32, role: &str, options: &str) -> Outcome<Running> {
        let mut command = Command::new(program);
        if program.file_stem().is_some_and(|name| name == "thalweg") {
            command.arg("shapes");
        }
        command.args([role, "-d", &domain.to_string()]).args(words(options));
        if !options.contains("-t ") {
            command.args(["-t", "Square"]);
        }
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = started.map_err(|error| format!("{}: {error}", program.display()))?;
        let output = child.stdout.take().ok_or("a program without output")?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.take_while(|line| sender.send(line.clone()).is_ok()).count()
        });
        Ok(Running { child, lines })
    }

    /// Reads until the program comes to `expected`, to something else that cannot become it, or to nothing within `patience`. Up to
    /// `count` samples are waited for; zero where samples say nothing, as those that a publisher prints.
    pub fn come_to(&self, expected: End, count: usize, patience: Duration) -> (End, Vec<PrintedSample>) {
        let (deadline, mut samples, mut end) = (Instant::now() + patience, Vec::new(), End::Alone);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = match self.lines.recv_timeout(left) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return (end, samples),
            };
            if let Some(sample) = PrintedSample::read(&line) {
                if count == 0 {
                    continue;
                }
                samples.push(sample);
                end = if end == End::Alone { End::Fine } else { end };
                if expected == End::Fine && samples.len() >= count {
                    return (End::Fine, samples);
                }
                continue;
            }
            match news(&line) {
                Some(End::NotOffered) => return (End::NotOffered, samples),
                // What a match or a sample may be followed by is waited for.
                Some(found) if found == expected && (found != End::Fine || count == 0) => return (found, samples),
                Some(End::Incompatible) => return (End::Incompatible, samples),
                Some(End::Fine) => end = End::Fine,
                Some(_) | None => {}
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn words(options: &str) -> Vec<String> {
    let parts = options.split('\'').enumerate();
    let split = |(index, part): (usize, &str)| match index % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    };
    parts.flat_map(split).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_told_from_what_is_said_of_it() {
        let sample = |color: &str, size, last_octet| Some(PrintedSample { color: color.to_owned(), size, last_octet });
        assert_eq!(PrintedSample::read("Square     RED        012 034 [20]"), sample("RED", 20, None));
        assert_eq!(PrintedSample::read("Square     RED1       012 034 [7] {255}"), sample("RED1", 7, Some(255)));
        assert_eq!(PrintedSample::read("Square     RED        NOT_ALIVE_DISPOSED_INSTANCE_STATE"), None);
        assert_eq!(news("on_offered_incompatible_qos() topic: 'Square'"), Some(End::Incompatible));
    }

    #[test]
    fn quotes_hold_words_together() {
        assert_eq!(words("-b --cft 'shapesize <= 10' -r"), ["-b", "--cft", "shapesize <= 10", "-r"]);
    }
}
