//! Network namespaces: hosts of our own on this machine, by iproute2.

use std::error::Error;
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::files::HostFiles;

/// A network namespace of this process; removed with everything in it when dropped.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

/// The reason why a namespace could not be made or changed; the text names the command, its answer and a remedy.
#[derive(Debug)]
pub enum NamespaceError {
    /// This process is not root.
    NotRoot,
    /// The program is not installed.
    Missing(String),
    /// The program could not be started.
    NotStarted(String, io::Error),
    /// The command failed.
    Refused {
        /// With its words.
        command: String,
        /// Its words on stderr.
        answer: String,
        /// What to do; may be empty.
        advice: String,
    },
}

/// Whether this process is root, which alone may make network namespaces.
pub fn may_make_namespaces() -> bool {
    rustix::process::geteuid().is_root()
}

impl Namespace {
    /// Makes it with a loopback interface; `role` ends its name.
    ///
    /// # Errors
    /// iproute2 is not installed, the right to administer networks is missing, or a namespace of this name exists.
    pub fn new(role: &str) -> Result<Namespace, NamespaceError> {
        let name = Namespace::name_of(role);
        run("ip", &["netns", "add", &name])?;
        let namespace = Namespace { name };
        namespace.link("set lo up")?;
        Ok(namespace)
    }

    /// The name of this process's namespace with this role.
    pub fn name_of(role: &str) -> String {
        format!("{PREFIX}{}-{role}", std::process::id())
    }

    /// Its name, as `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command that runs inside.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// Runs `ip` inside with these words.
    ///
    /// # Errors
    /// The command fails.
    pub fn ip(&self, words: &str) -> Result<(), NamespaceError> {
        run("ip", &[&["-n", &self.name][..], &words.split(' ').collect::<Vec<_>>()].concat()).map(drop)
    }

    /// Runs `ip link` inside with these words.
    ///
    /// # Errors
    /// The command fails.
    pub fn link(&self, words: &str) -> Result<(), NamespaceError> {
        self.ip(&format!("link {words}"))
    }

    /// Runs `tc` inside with these words; returns its output.
    ///
    /// # Errors
    /// The command fails.
    pub fn tc(&self, words: &str) -> Result<String, NamespaceError> {
        run("tc", &[&["-n", &self.name][..], &words.split(' ').collect::<Vec<_>>()].concat())
    }

    /// Removes namespaces of this form whose makers are gone: killed, they could not do it themselves.
    pub fn remove_abandoned() {
        let Ok(list) = run("ip", &["netns", "list"]) else { return };
        let files = HostFiles::here();
        for name in abandoned(&list, |maker| files.has_process(maker)) {
            // Another process may be doing the same.
            let _ = run("ip", &["netns", "delete", name]);
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // `remove_abandoned` removes namespaces that cannot be removed now.
        let _ = run("ip", &["netns", "delete", &self.name]);
    }
}

fn abandoned(list: &str, lives: impl Fn(u32) -> bool) -> Vec<&str> {
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    let maker = |name: &str| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok();
    names.filter(|name| maker(name).is_some_and(|maker| !lives(maker))).collect()
}

/// A process that outlives this one and removes namespaces then: killed, or ended by a second Ctrl-C, their maker cannot do it. Dropping
/// it ends it and removes nothing.
#[derive(Debug)]
pub struct NamespaceRemover {
    shell: Child,
    /// Its end is the end of this process.
    life: Option<ChildStdin>,
}

impl NamespaceRemover {
    /// Watches over namespaces with these names, those that are still to be made included.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(names: &[String]) -> io::Result<NamespaceRemover> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "sh"]).args(names);
        // A Ctrl-C at the terminal goes to the whole foreground group, and this one is to outlive it.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut shell = command.spawn()?;
        let life = shell.stdin.take();
        Ok(NamespaceRemover { shell, life })
    }
}

impl Drop for NamespaceRemover {
    fn drop(&mut self) {
        // If the message does not arrive, it removes namespaces that are gone already.
        let _ = self.life.take().map(|mut life| life.write_all(b"well\n"));
        let _ = self.shell.wait();
    }
}

/// Runs a command of iproute2; returns its output.
fn run(program: &str, words: &[&str]) -> Result<String, NamespaceError> {
    let mut command = Command::new(program);
    // A Ctrl-C at the terminal goes to the whole foreground group, and half a step cannot be undone.
    command.args(words).process_group(0);
    let output = command.output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => NamespaceError::Missing(program.to_owned()),
        _ => NamespaceError::NotStarted(program.to_owned(), error),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let answer = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let advice = advice(&answer, words);
    Err(NamespaceError::Refused { command: format!("{program} {}", words.join(" ")), answer, advice })
}

/// Remedies for the usual reasons.
fn advice(said: &str, words: &[&str]) -> String {
    if said.contains("File exists") && words.contains(&"netns") {
        let name = words.last().unwrap_or(&"");
        return format!("remove the namespace with `ip netns delete {name}`");
    }
    let kinds = [
        ("veth", "CONFIG_VETH"),
        ("bridge", "CONFIG_BRIDGE"),
        ("tbf", "CONFIG_NET_SCH_TBF"),
        ("htb", "CONFIG_NET_SCH_HTB"),
        ("u32", "CONFIG_NET_CLS_U32"),
    ];
    let lacking = ["Unknown device type", "not supported", "qdisc kind is unknown", "No such file"];
    match kinds.into_iter().find(|(kind, _)| words.contains(kind)) {
        Some((kind, option)) if lacking.iter().any(|part| said.contains(part)) => {
            format!("this kernel has no {kind} ({option}), without which hosts cannot be joined like this")
        }
        _ if said.contains("Operation not permitted") => {
            "the right to administer networks (CAP_NET_ADMIN, CAP_SYS_ADMIN) is needed".to_owned()
        }
        _ => String::new(),
    }
}

/// Prefix of the names of all namespaces of this project; the process that made one follows.
const PREFIX: &str = "thalweg-";
/// Ends at a word; at the end of the input it removes the namespaces, and once more what a command that was under way made meanwhile.
const SCRIPT: &str = "trap '' INT TERM HUP; read -r word && exit; \
    for pause in 1 0; do for name; do ip netns delete \"$name\"; done; sleep $pause; done";

impl fmt::Display for NamespaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NamespaceError::NotRoot => f.write_str(
                "hosts need root, which alone may make network namespaces: run this with sudo, or measure on this host without `hosts`",
            ),
            NamespaceError::Missing(program) => {
                write!(f, "hosts need the program {program}, which is not installed (Debian: iproute2)")
            }
            NamespaceError::NotStarted(program, source) => write!(f, "{program} could not be started: {source}"),
            NamespaceError::Refused { command, answer, advice } => {
                let separator = if advice.is_empty() { "" } else { "; " };
                write!(f, "`{command}` failed: {answer}{separator}{advice}")
            }
        }
    }
}

impl Error for NamespaceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            NamespaceError::NotStarted(_, source) => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_namespaces_of_dead_processes_are_abandoned() {
        let list = "thalweg-7-lab0-1 (id: 3)\nthalweg-8-lab0-switch\nthalweg-x-1\nother-7-1\n";
        assert_eq!(abandoned(list, |maker| maker == 8), ["thalweg-7-lab0-1"]);
    }

    #[track_caller]
    fn check(said: &str, words: &[&str], expect: &str) {
        let advice = advice(said, words);
        assert!(if expect.is_empty() { advice.is_empty() } else { advice.contains(expect) }, "{advice}");
    }

    #[test]
    fn usual_failures_come_with_what_to_do() {
        check("Cannot create namespace file: File exists", &["netns", "add", "x"], "`ip netns delete x`");
        check("Error: Unknown device type.", &["link", "add", "type", "bridge"], "CONFIG_BRIDGE");
        check("Error: Specified qdisc kind is unknown.", &["qdisc", "add", "tbf"], "CONFIG_NET_SCH_TBF");
        check("RTNETLINK answers: Operation not permitted", &["link", "set", "lo", "up"], "CAP_NET_ADMIN");
        check("Device \"x\" does not exist.", &["link", "set", "x", "up"], "");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run("no-such-program-of-iproute2", &[]).expect_err("there is none").to_string();
        assert!(error.contains("no-such-program-of-iproute2, which is not installed (Debian: iproute2)"), "{error}");
    }
}
