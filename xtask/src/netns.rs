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

/// A network namespace with a loopback interface, and a link if it is one of a pair; removed when dropped.
pub struct Host(Namespace);

impl Host {
    /// The interface of a host that has a link.
    pub const LINK: &str = "eth0";

    /// Makes the namespace; `role` ends its name.
    pub fn new(role: &str) -> Outcome<Host> {
        Namespace::new(role).map(Host).map_err(told)
    }

    /// Two hosts with a link between them, `eth0` on both.
    pub fn pair(mtu: u32) -> Outcome<(Host, Host)> {
        let (left, right) = (Host::new("left")?, Host::new("right")?);
        let link = Host::LINK;
        left.0.link(&format!("add {link} type veth peer name {link} netns {}", right.0.name())).map_err(told)?;
        for (host, address) in [(&left, "10.77.0.1/24"), (&right, "10.77.0.2/24")] {
            host.0.ip(&format!("address add {address} dev {link}")).map_err(told)?;
            host.0.link(&format!("set {link} mtu {mtu} up")).map_err(told)?;
        }
        Ok((left, right))
    }

    /// The same command on this host.
    pub fn command(&self, command: &Command) -> Command {
        let mut inside = self.0.command(command.get_program());
        inside.args(command.get_args());
        inside
    }
}

fn told(error: NamespaceError) -> String {
    error.to_string()
}
