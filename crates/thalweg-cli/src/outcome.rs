//! The end of a command: exit codes, and errors with a remedy.

use std::fmt::Display;
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
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Writes one line of output and flushes it, so that the reader of a pipe sees it at once.
///
/// # Errors
/// [`Failure::ClosedPipe`] when the reader closed the pipe, [`Failure::Failed`] for other reasons, such as a full disk.
pub fn print_line(text: impl Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
        _ => Failure::Failed(format!("standard output cannot be written: {error}; check where it is redirected to")),
    })
}
