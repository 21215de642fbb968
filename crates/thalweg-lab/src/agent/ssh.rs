//! The user's `ssh`: starts the agent on another machine, and tells why it could not.

use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use super::error::AgentError;
use super::pipe::{Incoming, Outgoing};
use super::session::{HELLO, PROTOCOL, VERSION};
use crate::error::LabError;
use crate::process::{ChildProcess, Stop};
use crate::scenario::SshMachine;

/// The program that reaches other machines, with options of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshCommand {
    program: String,
    options: Vec<String>,
}

impl SshCommand {
    /// A program and its options with blanks between them, such as `ssh -F file`; `None` without a program.
    pub fn parse(text: &str) -> Option<SshCommand> {
        let mut words = text.split_whitespace().map(str::to_owned);
        Some(SshCommand { program: words.next()?, options: words.collect() })
    }

    /// Starts the agent of `machine`.
    fn command(&self, machine: &SshMachine) -> Command {
        let mut command = Command::new(&self.program);
        // The user's options come first, and of two options ssh takes the first.
        command.args(&self.options).args(OPTIONS.split_whitespace()).args([
            "--",
            &machine.destination,
            &agent_command(machine),
        ]);
        command
    }
}

impl Default for SshCommand {
    fn default() -> SshCommand {
        SshCommand { program: "ssh".to_owned(), options: Vec::new() }
    }
}

/// The line for the shell of the other machine.
fn agent_command(machine: &SshMachine) -> String {
    let program = quoted(machine.program.as_deref().unwrap_or("thalweg"));
    let peers = machine.peer_dir.iter().map(|folder| format!(" --peer-dir {}", quoted(folder)));
    format!("{program} lab agent --stdio{}", peers.collect::<String>())
}

/// One word of a shell; a home folder at its beginning stays one.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./:@%+=,-".contains(&byte);
    match word.strip_prefix("~/") {
        Some(rest) => format!("~/{}", quoted(rest)),
        None if !word.is_empty() && word.bytes().all(is_plain) => word.to_owned(),
        None => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A running `ssh` to one machine; dropping it ends it, with a proxy that it started.
#[derive(Debug)]
pub(super) struct Ssh {
    process: ChildProcess,
    /// How long an end may still be waited for.
    patience: Duration,
}

impl Ssh {
    /// Starts the agent of `machine`.
    ///
    /// # Errors
    /// The program cannot be started.
    pub(super) fn start(ssh: &SshCommand, machine: &SshMachine) -> Result<(Ssh, Outgoing, Incoming), LabError> {
        let spawned = ChildProcess::spawn(&mut ssh.command(machine), &[]);
        let (process, to, from) =
            spawned.map_err(|source| AgentError::NoSsh { program: ssh.program.clone(), source })?;
        Ok((Ssh { process, patience: END_PATIENCE }, Outgoing::new(to), Incoming::new(from)))
    }

    /// How it ended and what was said on its standard error; nothing while it runs. Only the first call waits a moment for its end.
    pub(super) fn await_end(&mut self) -> Option<(ExitStatus, String)> {
        let patience = std::mem::take(&mut self.patience);
        let status = self.process.wait(patience)?;
        self.process.await_words(END_PATIENCE);
        Some((status, self.process.last_words()))
    }

    /// Gives the agent time to end its workers and itself, after its input was closed.
    pub(super) fn finish(&mut self) {
        self.process.wait(EXIT_PATIENCE);
    }
}

/// Waits for the agent's first line, on which it tells its version. Lines before it are those of the shell that started it.
///
/// # Errors
/// The agent was not started, or is of another version; the text has the last words of `ssh`.
pub(super) fn await_agent(name: &str, incoming: &Incoming, ssh: Option<&mut Ssh>, stop: &Stop) -> Result<(), LabError> {
    let deadline = Instant::now() + FIRST_PATIENCE;
    let mut before: Vec<String> = Vec::new();
    loop {
        if stop.is_requested() {
            return Err(LabError::Interrupted);
        }
        let line = match incoming.line(LOOK_PERIOD) {
            Ok(Some(line)) => String::from_utf8_lossy(&line).into_owned(),
            Ok(None) if Instant::now() < deadline => continue,
            Ok(None) => {
                let words = ssh.map_or_else(String::new, |ssh| ssh.process.last_words());
                let (seconds, said) = (FIRST_PATIENCE.as_secs(), said(&before, &words));
                return Err(AgentError::Mute { machine: name.to_owned(), seconds, said }.into());
            }
            Err(_) => return Err(no_agent(name, &before, ssh.and_then(Ssh::await_end)).into()),
        };
        match line.strip_prefix(HELLO).map(|rest| rest.split_whitespace().collect::<Vec<_>>()).as_deref() {
            Some([protocol, version]) if *protocol == PROTOCOL.to_string() && *version == VERSION => return Ok(()),
            Some([protocol, version, ..]) => {
                let [machine, protocol, version] = [name, protocol, version].map(str::to_owned);
                return Err(AgentError::OtherVersion { machine, version, protocol }.into());
            }
            _ if before.len() < BEFORE_MAX => before.push(line.chars().take(BEFORE_WIDTH).collect()),
            _ => {}
        }
    }
}

/// Why there is no agent on `machine` although `ssh` was started.
fn no_agent(machine: &str, before: &[String], end: Option<(ExitStatus, String)>) -> AgentError {
    let machine = machine.to_owned();
    let Some((status, words)) = end else { return AgentError::Closed { machine, said: said(before, "") } };
    let said = said(before, &words);
    match status.code() {
        Some(SSH_FAILED) => AgentError::Unreachable { machine, said },
        Some(NOT_FOUND | NOT_EXECUTABLE) => AgentError::NoProgram { machine, said },
        _ => AgentError::EndedAtOnce { machine, status: status.to_string(), said },
    }
}

/// What was said before the agent was heard.
fn said(before: &[String], words: &str) -> String {
    let all: Vec<&str> = before.iter().map(String::as_str).chain([words]).filter(|text| !text.is_empty()).collect();
    if all.is_empty() { String::new() } else { format!(": {}", all.join(" / ")) }
}

/// No terminal, nobody who could answer a question, and nothing but the agent's pipes; a shared connection of the user's is used, but none
/// is begun that would stay behind. A machine that stopped answering is noticed within 20 s, also after the death of this process.
const OPTIONS: &str = "-T -x -a -oBatchMode=yes -oControlMaster=no -oClearAllForwardings=yes -oRemoteCommand=none \
                       -oConnectTimeout=15 -oServerAliveInterval=5 -oServerAliveCountMax=4";
/// Exit codes of `ssh` itself and of the shell on the other side.
const SSH_FAILED: i32 = 255;
const NOT_FOUND: i32 = 127;
const NOT_EXECUTABLE: i32 = 126;
/// Longer than `ssh` waits for a connection, with the login after it.
const FIRST_PATIENCE: Duration = Duration::from_secs(40);
/// How long an agent may take to end its workers after its input ended.
const EXIT_PATIENCE: Duration = Duration::from_secs(5);
/// How long `ssh` may take to end after its output, and its last words after it.
const END_PATIENCE: Duration = Duration::from_secs(5);
const LOOK_PERIOD: Duration = Duration::from_millis(50);
/// Lines of a talkative shell that an error shows, and their length.
const BEFORE_MAX: usize = 8;
const BEFORE_WIDTH: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(program: Option<&str>, peer_dir: Option<&str>) -> SshMachine {
        let own = |text: &str| text.to_owned();
        SshMachine {
            destination: "user@lab2".to_owned(),
            address: None,
            program: program.map(own),
            peer_dir: peer_dir.map(own),
        }
    }

    #[test]
    fn the_shell_of_the_other_machine_gets_each_word_as_one() {
        let check = |program, peer_dir, expect: &str| assert_eq!(agent_command(&machine(program, peer_dir)), expect);
        check(None, None, "thalweg lab agent --stdio");
        check(Some("~/.cargo/bin/thalweg"), None, "~/.cargo/bin/thalweg lab agent --stdio");
        check(Some("/opt/x y;reboot"), Some("~/it's"), "'/opt/x y;reboot' lab agent --stdio --peer-dir ~/'it'\\''s'");
    }

    #[test]
    fn options_of_the_user_come_first_and_none_follow_the_destination() {
        let ssh = SshCommand::parse(" ssh  -F file ").expect("a program");
        let command = ssh.command(&machine(None, None));
        let words: Vec<&str> = command.get_args().filter_map(|word| word.to_str()).collect();
        assert_eq!((command.get_program().to_str(), &words[..3]), (Some("ssh"), &["-F", "file", "-T"][..]));
        assert_eq!(words[words.len() - 3..], ["--", "user@lab2", "thalweg lab agent --stdio"]);
        assert_eq!(SshCommand::parse("  "), None);
    }
}
