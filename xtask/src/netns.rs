//! Network namespaces: hosts of our own, in which tests send what they like and reach nobody else.

use std::process::Command;

use thalweg_host::{Namespace, NamespaceError};

use crate::Outcome;
use crate::workspace::{has, is_root, output};

/// Whether this process can make network namespaces, or the reason why not.
pub fn available() -> Outcome {
    if !is_root() {
        return Err("network namespaces need root".to_owned());
    }
    for program in ["ip", "unshare"] {
        if !has(program) {
            return Err(format!("{program} is not installed (Debian: iproute2, util-linux)"));
        }
    }
    output(Command::new("unshare").args(["--net", "ip", "link", "set", "lo", "up"])).map(drop)
}

/// The same command on a host of its own that has nothing but a loopback interface.
pub fn isolated(command: &Command) -> Command {
    let mut inside = Command::new("unshare");
    inside.args(["--net", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]);
    inside.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => inside.env(name, value),
            None => inside.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        inside.current_dir(folder);
    }
    inside
}

/// A network namespace with a loopback interface; removed when dropped.
pub struct Host(Namespace);

impl Host {
    /// Makes the namespace; `role` ends its name.
    pub fn new(role: &str) -> Outcome<Host> {
        Namespace::new(role).map(Host).map_err(told)
    }

    /// The same command on this host.
    pub fn command(&self, command: &Command) -> Command {
        let mut inside = self.0.command(command.get_program());
        inside.args(command.get_args()).envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        inside
    }
}

fn told(error: NamespaceError) -> String {
    error.to_string()
}
