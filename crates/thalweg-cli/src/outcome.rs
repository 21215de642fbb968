//! The end of a command: exit codes, and errors with a remedy.

use std::fmt::{self, Display, Write as _};
use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;

/// The reason why a command did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// Something went wrong; the text is for the user. Exit code 1.
    Failed(String),
    /// The command line cannot be carried out as given. Exit code 2, as for errors that the parser finds.
    Usage(String),
    /// A wait ended without result. Exit code 3.
    TimedOut(String),
    /// Ctrl-C or SIGTERM came before the work was done. Exit code 130.
    Interrupted,
    /// The reader of our output closed the pipe. Exit code 0, without a message.
    ClosedPipe,
}

impl Failure {
    /// A failure in the words of its cause.
    pub fn from_cause(cause: impl Display) -> Failure {
        Failure::Failed(cause.to_string())
    }

    /// Tells the user on standard error and gives the exit code.
    pub fn report(self) -> ExitCode {
        let (text, code) = match self {
            Failure::Failed(text) => (text, 1),
            Failure::Usage(text) => (text, 2),
            Failure::TimedOut(text) => (text, 3),
            Failure::Interrupted => ("interrupted before the work was done".to_owned(), 130),
            Failure::ClosedPipe => return ExitCode::SUCCESS,
        };
        remark(format_args!("error: {text}"));
        ExitCode::from(code)
    }
}

/// Exit codes, for the end of `--help`.
pub const EXIT_CODES: &str = "Exit codes: 0 done (also when the reader of our output closes the pipe); 1 failed, standard error says \
    why; 2 wrong usage; 3 timed out; 130 interrupted before the work was done.";

/// Prints a result as one JSON object, or as text.
///
/// # Errors
/// As [`print_line`].
pub fn print_either(json: bool, result: &impl Serialize, text: impl Display) -> Result<(), Failure> {
    if json { print_line(serde_json::to_string_pretty(result).map_err(Failure::from_cause)?) } else { print_line(text) }
}

/// Tells where a file of results is: behind the text, and on standard error where JSON has standard output for itself.
///
/// # Errors
/// As [`print_line`].
pub fn print_place(json: bool, place: impl Display) -> Result<(), Failure> {
    if json {
        remark(place);
        return Ok(());
    }
    print_line(place)
}

/// Writes a line for the user on standard error; a closed standard error is ignored.
pub fn remark(text: impl Display) {
    // In one piece: several programs may share it.
    let _ = io::stderr().lock().write_all(format!("{}\n", Shown(text)).as_bytes());
}

/// Writes one line of output and flushes it, so that the reader of a pipe sees it at once.
///
/// # Errors
/// [`Failure::ClosedPipe`] when the reader closed the pipe, [`Failure::Failed`] for other reasons, such as a full disk.
pub fn print_line(text: impl Display) -> Result<(), Failure> {
    let mut lines = Lines::default();
    lines.push(text);
    lines.print()
}

/// Lines of output that leave in one system call.
#[derive(Default)]
pub struct Lines(String);

impl Lines {
    /// Adds a line.
    pub fn push(&mut self, text: impl Display) {
        // Writing to a string fails only where `text` does.
        let _ = writeln!(self.0, "{}", Shown(text));
    }

    /// Writes the lines and flushes them.
    ///
    /// # Errors
    /// As [`print_line`].
    pub fn print(&mut self) -> Result<(), Failure> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        let written = out.write_all(self.0.as_bytes()).and_then(|()| out.flush());
        self.0.clear();
        written.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => {
                Failure::Failed(format!("standard output cannot be written: {error}; check where it is redirected to"))
            }
        })
    }
}

/// Text in which letters that command a terminal are escaped: names of topics and contents of samples come from strangers.
pub struct Shown<T>(pub T);

impl<T: Display> Display for Shown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping { to: f, is_escaped: is_command }, "{}", self.0)
    }
}

/// As [`Shown`], for what is part of a line: ends of lines and tabs are escaped too, so that no name of a stranger forges a line.
pub struct InLine<T>(pub T);

impl<T: Display> Display for InLine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping { to: f, is_escaped: char::is_control }, "{}", self.0)
    }
}

/// Adds a line to a text; what strangers named stays in it.
pub fn push_line(out: &mut String, text: impl Display) {
    // Writing to a string fails only where `text` does.
    let _ = writeln!(out, "{}", InLine(text));
}

struct Escaping<'a, 'b> {
    to: &'a mut fmt::Formatter<'b>,
    is_escaped: fn(char) -> bool,
}

impl fmt::Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((place, letter)) = rest.char_indices().find(|(_, letter)| (self.is_escaped)(*letter)) {
            self.to.write_str(&rest[..place])?;
            // As JSON has it, in which these letters may stand as they are.
            write!(self.to, "\\u{:04x}", u32::from(letter))?;
            rest = &rest[place + letter.len_utf8()..];
        }
        self.to.write_str(rest)
    }
}

/// Control letters but those that stand in texts.
fn is_command(letter: char) -> bool {
    letter.is_control() && !matches!(letter, '\n' | '\r' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_shown_commands_the_terminal() {
        let name = "a\u{1b}]0;title\u{7}\u{9b}2Jb\tc\n\u{e9}";
        assert_eq!(Shown(name).to_string(), "a\\u001b]0;title\\u0007\\u009b2Jb\tc\n\u{e9}");
        let json = serde_json::to_string("a\u{7f}b\u{9b}").expect("JSON");
        let shown = Shown(&json).to_string();
        assert!(
            shown.is_ascii() && serde_json::from_str::<String>(&shown).expect("JSON") == "a\u{7f}b\u{9b}",
            "{shown}"
        );
    }

    #[test]
    fn a_name_in_a_line_stays_in_it() {
        let name = "a\nb\r\tc\u{1b}\u{85}\u{e9} \"";
        assert_eq!(InLine(name).to_string(), "a\\u000ab\\u000d\\u0009c\\u001b\\u0085\u{e9} \"");
        assert_eq!(Shown(InLine(name)).to_string(), InLine(name).to_string());
    }
}
