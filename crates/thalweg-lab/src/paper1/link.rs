//! A link of 1 Gbit/s between two hosts on one machine: two network namespaces, a pair of virtual interfaces, token bucket filters (tbf).

use std::process::Command;

use crate::error::LabError;

/// Two network namespaces with a link between them; removed when dropped.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) sender: String,
    pub(super) receiver: String,
}

impl Link {
    /// Makes the namespaces and the link.
    ///
    /// # Errors
    /// This process is not root, `ip` or `tc` is missing, or the kernel cannot do it; the text says which.
    pub(super) fn new() -> Result<Link, LabError> {
        let id = std::process::id();
        // The development tasks remove namespaces of this form whose makers are gone.
        let link = Link { sender: format!("thalweg-{id}-paper1-a"), receiver: format!("thalweg-{id}-paper1-b") };
        for name in [&link.sender, &link.receiver] {
            run(&["ip", "netns", "add", name])?;
            run(&["ip", "-n", name, "link", "set", "lo", "up"])?;
        }
        let (a, b) = (&link.sender, &link.receiver);
        run(&["ip", "link", "add", INTERFACE, "netns", a, "type", "veth", "peer", "name", INTERFACE, "netns", b])?;
        for (name, address) in [(a, "10.77.1.1/24"), (b, "10.77.1.2/24")] {
            run(&["ip", "-n", name, "address", "add", address, "dev", INTERFACE])?;
            run(&["ip", "-n", name, "link", "set", INTERFACE, "up"])?;
            let limit = ["tbf", "rate", RATE, "burst", BURST, "latency", LATENCY];
            run(&[&["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", INTERFACE, "root"][..], &limit].concat())?;
        }
        Ok(link)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for name in [&self.sender, &self.receiver] {
            // What cannot be removed now is removed by the next run of the development tasks.
            let _ = run(&["ip", "netns", "delete", name]);
        }
    }
}

fn run(words: &[&str]) -> Result<(), LabError> {
    let failed = |reason: String| LabError::Here(format!("`{}` failed: {reason}", words.join(" ")));
    let output = Command::new(words[0]).args(&words[1..]).output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// Bits a second of the link.
pub(super) const BITS_PER_SECOND: f64 = 1e9;
const INTERFACE: &str = "paper1";
const RATE: &str = "1gbit";
/// Two milliseconds at the full rate: what the kernel's timer needs to keep it.
const BURST: &str = "256kb";
/// What a switch's queue holds at most.
const LATENCY: &str = "50ms";
