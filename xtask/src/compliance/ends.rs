//! What the programs of a case print, and what they come to by it.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::netns::Host;
use crate::workspace::target;

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

/// A shapes program, ours or another vendor's.
pub struct ShapesProgram<'a> {
    /// What starts it, in front of its options.
    words: Vec<OsString>,
    host: Option<&'a Host>,
    is_ours: bool,
}

impl<'a> ShapesProgram<'a> {
    /// One that runs on this machine.
    pub fn here(words: Vec<OsString>) -> ShapesProgram<'static> {
        ShapesProgram { words, host: None, is_ours: false }
    }

    /// One that runs on a host of our own.
    pub fn on(host: &'a Host, words: Vec<OsString>) -> ShapesProgram<'a> {
        ShapesProgram { words, host: Some(host), is_ours: false }
    }

    /// The same as ours: what it does not offer with others is a failure.
    pub fn ours(self) -> ShapesProgram<'a> {
        ShapesProgram { is_ours: true, ..self }
    }

    /// Whether it is ours.
    pub fn is_ours(&self) -> bool {
        self.is_ours
    }

    /// Its words, to be shown.
    pub fn name(&self) -> String {
        self.words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.words.first().map_or_else(Default::default, OsString::as_os_str));
        command.args(self.words.iter().skip(1));
        command.env("XDG_STATE_HOME", state_folder());
        match self.host {
            Some(host) => host.command(&command),
            None => command,
        }
    }
}

/// Where PERSISTENT shapes of ours are kept.
pub fn state_folder() -> PathBuf {
    target().join("shapes")
}

/// The number of the policy that a line names as incompatible.
fn policy_of(line: &str) -> Option<u32> {
    let (_, told) = line.split_once("incompatible_qos()")?;
    let digits = told.rsplit_once(" : ")?.1.split(|letter: char| !letter.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// A program of a case that runs; it ends with this.
pub struct Running {
    child: RefCell<Child>,
    lines: Receiver<String>,
    /// The policy that it was last told to be incompatible.
    policy: Cell<Option<u32>>,
    has_endpoint: Cell<bool>,
}

impl Running {
    /// Starts the shapes program with these options, of which `'` holds words together.
    pub fn start(program: &ShapesProgram<'_>, domain: u32, role: &str, options: &str) -> Outcome<Running> {
        let mut command = program.command();
        command.args([role, "-d", &domain.to_string()]).args(words(options));
        if !options.contains("-t ") {
            command.args(["-t", "Square"]);
        }
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = started.map_err(|error| format!("{}: {error}", program.name()))?;
        let output = child.stdout.take().ok_or("a program without output")?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.take_while(|line| sender.send(line.clone()).is_ok()).count()
        });
        Ok(Running { child: RefCell::new(child), lines, policy: Cell::new(None), has_endpoint: Cell::new(false) })
    }

    /// Whether it has ended with a failure: it lacks what it was asked for.
    pub fn has_failed(&self) -> bool {
        matches!(self.child.borrow_mut().try_wait(), Ok(Some(status)) if !status.success())
    }

    /// Whether it has said that it makes its endpoint, and runs.
    pub fn is_there(&self) -> bool {
        self.has_endpoint.get() && matches!(self.child.borrow_mut().try_wait(), Ok(None))
    }

    /// The number of the policy by which it does not fit its partner, as it was told.
    pub fn policy(&self) -> Option<u32> {
        self.policy.get()
    }

    /// Reads until the program comes to `expected`, to something else that cannot become it, or to nothing within `patience` or until
    /// its `partner` has failed. Up to `count` samples are waited for; zero where samples say nothing, as those that a publisher prints.
    pub fn come_to(
        &self,
        expected: End,
        count: usize,
        patience: Duration,
        partner: Option<&Running>,
    ) -> (End, Vec<PrintedSample>) {
        let (deadline, mut samples, mut end) = (Instant::now() + patience, Vec::new(), End::Alone);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = match self.lines.recv_timeout(left.min(GLANCE)) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) if left > GLANCE && !partner.is_some_and(Running::has_failed) => {
                    continue;
                }
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
            self.policy.set(policy_of(&line).or(self.policy.get()));
            self.has_endpoint
                .set(self.has_endpoint.get() || line.starts_with("Create writer") || line.starts_with("Create reader"));
            // Instances end with their writer as well.
            if matches!(expected, End::WithoutWriters | End::Disposed) && line.contains("matched writers 0 ") {
                return (end, samples);
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
        let child = self.child.get_mut();
        _ = child.kill();
        _ = child.wait();
    }
}

/// How often a program that says nothing makes one look at its partner.
const GLANCE: Duration = Duration::from_millis(200);

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
        let line = "on_offered_incompatible_qos() topic: 'Square'  type: 'ShapeType' : 11 (RELIABILITY)";
        assert_eq!((news(line), policy_of(line)), (Some(End::Incompatible), Some(11)));
        assert_eq!(policy_of("on_offered_deadline_missed() topic: 'Square'  type: 'ShapeType' : (total = 3)"), None);
    }

    #[test]
    fn quotes_hold_words_together() {
        assert_eq!(words("-b --cft 'shapesize <= 10' -r"), ["-b", "--cft", "shapesize <= 10", "-r"]);
    }
}
