//! Network namespaces: hosts of our own, in which tests send what they like and reach nobody else.

use std::process::Command;

use crate::Outcome;
use crate::workspace::{has, is_root, output};

/// Prefix of the names of all our namespaces; the process that made one follows.
pub const PREFIX: &str = "thalweg-";

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

/// Removes the namespaces whose makers are gone: a test that was killed cannot do it itself.
pub fn remove_abandoned() {
    let Ok(list) = output(Command::new("ip").args(["netns", "list"])) else { return };
    for name in list.lines().filter_map(|line| line.split_whitespace().next()) {
        let Some(maker) = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()) else { continue };
        if std::path::Path::new("/proc").join(maker).exists() {
            continue;
        }
        if let Err(reason) = output(Command::new("ip").args(["netns", "delete", name])) {
            eprintln!("{reason}");
        }
    }
}

/// A network namespace with a loopback interface, and a link if it is one of a pair; removed when dropped.
pub struct Host {
    name: String,
}

impl Host {
    /// The interface of a host that has a link.
    pub const LINK: &str = "eth0";

    /// Makes the namespace; `role` ends its name.
    pub fn new(role: &str) -> Outcome<Host> {
        let host = Host { name: format!("{PREFIX}{}-{role}", std::process::id()) };
        output(Command::new("ip").args(["netns", "add", &host.name]))?;
        output(Command::new("ip").args(["-n", &host.name, "link", "set", "lo", "up"]))?;
        Ok(host)
    }

    /// Two hosts with a link between them, `eth0` on both.
    pub fn pair(mtu: u32) -> Outcome<(Host, Host)> {
        let (left, right) = (Host::new("left")?, Host::new("right")?);
        let (link, mtu) = (Host::LINK, mtu.to_string());
        let ends = [&["link", "add", link, "netns", &left.name, "type", "veth"][..], &["peer", "name", link]].concat();
        output(Command::new("ip").args(ends).args(["netns", &right.name]))?;
        for (host, address) in [(&left, "10.77.0.1/24"), (&right, "10.77.0.2/24")] {
            let run = |words: &[&str]| output(Command::new("ip").args(["-n", &host.name]).args(words)).map(drop);
            run(&["address", "add", address, "dev", link])?;
            run(&["link", "set", link, "mtu", &mtu, "up"])?;
        }
        Ok((left, right))
    }

    /// The same command on this host.
    pub fn command(&self, command: &Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.name]).arg(command.get_program()).args(command.get_args());
        inside
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Err(reason) = output(Command::new("ip").args(["netns", "delete", &self.name])) {
            eprintln!("{reason}");
        }
    }
}
