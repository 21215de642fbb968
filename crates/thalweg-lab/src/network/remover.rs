//! Removes namespaces when their maker is gone without having done it: killed, or ended by a second Ctrl-C.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::error::LabError;

/// A process that outlives this one and removes namespaces then; dropping it ends it and removes nothing.
#[derive(Debug)]
pub(super) struct Remover {
    shell: Child,
    /// Its end is the end of this process.
    life: Option<ChildStdin>,
}

impl Remover {
    /// Watches over namespaces with these names, those that are still to be made included.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(names: &[String]) -> Result<Remover, LabError> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "sh"]).args(names);
        // A Ctrl-C at the terminal goes to the whole foreground group, and this one is to outlive it.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let source = |source| LabError::NotStarted { process: "remover of hosts".to_owned(), source };
        let mut shell = command.spawn().map_err(source)?;
        let life = shell.stdin.take();
        Ok(Remover { shell, life })
    }
}

impl Drop for Remover {
    fn drop(&mut self) {
        // If the message does not arrive, it removes namespaces that are gone already.
        let _ = self.life.take().map(|mut life| life.write_all(b"well\n"));
        let _ = self.shell.wait();
    }
}

/// Ends at a word; at the end of the input it removes the namespaces, and once more what a command that was under way made meanwhile.
const SCRIPT: &str = "trap '' INT TERM HUP; read -r word && exit; \
    for pause in 1 0; do for name; do ip netns delete \"$name\"; done; sleep $pause; done";
