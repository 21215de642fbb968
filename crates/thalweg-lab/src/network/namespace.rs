//! A network namespace of this process.

use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::error::LabError;

/// A network namespace; removed with everything in it when dropped.
#[derive(Debug)]
pub(super) struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes it with a loopback interface; `role` ends its name.
    pub(super) fn new(role: &str) -> Result<Namespace, LabError> {
        let name = name_of(role);
        run("ip", &["netns", "add", &name])?;
        let namespace = Namespace { name };
        namespace.link("set lo up")?;
        Ok(namespace)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// `ip` inside with these words.
    pub(super) fn ip(&self, words: &str) -> Result<(), LabError> {
        run("ip", &[&["-n", &self.name][..], &words.split(' ').collect::<Vec<_>>()].concat()).map(drop)
    }

    /// `ip link` inside with these words.
    pub(super) fn link(&self, words: &str) -> Result<(), LabError> {
        self.ip(&format!("link {words}"))
    }

    /// Runs `tc` inside with these words; returns its output.
    pub(super) fn tc(&self, words: &str) -> Result<String, LabError> {
        run("tc", &[&["-n", &self.name][..], &words.split(' ').collect::<Vec<_>>()].concat())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The next run with hosts removes namespaces that cannot be removed now.
        let _ = run("ip", &["netns", "delete", &self.name]);
    }
}

/// The name of this process's namespace with this role.
pub(super) fn name_of(role: &str) -> String {
    format!("{PREFIX}{}-{role}", std::process::id())
}

/// Removes namespaces of this form whose makers are gone: killed, they could not do it themselves.
pub(super) fn remove_abandoned() {
    let Ok(list) = run("ip", &["netns", "list"]) else { return };
    for name in abandoned(&list, |maker| Path::new("/proc").join(maker).exists()) {
        // Another process may be doing the same.
        let _ = run("ip", &["netns", "delete", name]);
    }
}

fn abandoned(list: &str, lives: impl Fn(&str) -> bool) -> Vec<&str> {
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    let maker = |name: &&str| {
        let maker = name.strip_prefix(PREFIX)?.split('-').next()?;
        Some(maker.parse::<u32>().is_ok() && !lives(maker))
    };
    names.filter(|name| maker(name).unwrap_or(false)).collect()
}

/// Runs a command of iproute2; returns its output.
fn run(program: &str, words: &[&str]) -> Result<String, LabError> {
    let mut command = Command::new(program);
    // A Ctrl-C at the terminal goes to the whole foreground group, and half a step cannot be undone.
    command.args(words).process_group(0);
    let output = command.output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            LabError::Here(format!("hosts need the program {program}, which is not installed (Debian: iproute2)"))
        }
        _ => LabError::Here(format!("{program} could not be started: {error}")),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LabError::Here(format!("`{program} {}` failed: {said}{}", words.join(" "), advice(&said, words))))
}

/// Remedies for the usual reasons.
fn advice(said: &str, words: &[&str]) -> String {
    if said.contains("File exists") && words.contains(&"netns") {
        let name = words.last().unwrap_or(&"");
        return format!("; remove the namespace with `ip netns delete {name}`");
    }
    let kinds = [("veth", "CONFIG_VETH"), ("bridge", "CONFIG_BRIDGE"), ("tbf", "CONFIG_NET_SCH_TBF")];
    let lacking = ["Unknown device type", "not supported", "qdisc kind is unknown", "No such file"];
    match kinds.into_iter().find(|(kind, _)| words.contains(kind)) {
        Some((kind, option)) if lacking.iter().any(|part| said.contains(part)) => {
            format!("; this kernel has no {kind} ({option}), without which hosts cannot be joined like this")
        }
        _ if said.contains("Operation not permitted") => {
            "; the right to administer networks (CAP_NET_ADMIN, CAP_SYS_ADMIN) is needed".to_owned()
        }
        _ => String::new(),
    }
}

/// Prefix of the names of all namespaces of this project; the process that made one follows.
const PREFIX: &str = "thalweg-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_namespaces_of_dead_processes_are_abandoned() {
        let list = "thalweg-7-lab0-1 (id: 3)\nthalweg-8-lab0-switch\nthalweg-x-1\nother-7-1\n";
        assert_eq!(abandoned(list, |maker| maker == "8"), ["thalweg-7-lab0-1"]);
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
