//! Folders of the workspace, and running programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::Outcome;

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Cargo's build folder: `CARGO_TARGET_DIR`, or `target` in the repository.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |path| root().join(path))
}

/// Whether missing programs are failures, because no user can install them.
pub fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// Whether this process may install packages and create network namespaces.
pub fn is_root() -> bool {
    output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Whether the program can be started at all.
pub fn has(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

/// A `cargo` command in the repository.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(root());
    command
}

/// Runs the program with its output going to ours; an error says which program failed.
pub fn run(command: &mut Command) -> Outcome {
    let status = command.stdin(Stdio::null()).status().map_err(|error| format!("{}: {error}", name(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{} failed: {status}", name(command))) }
}

/// Runs the program and returns its output; an error has its standard error.
pub fn output(command: &mut Command) -> Outcome<String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{}: {error}", name(command)))?;
    said(command, &output)
}

/// As [`output`], of a program that is killed and an error when it takes longer than `limit`.
pub fn output_within(command: &mut Command, limit: Duration) -> Outcome<String> {
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = started.map_err(|error| format!("{}: {error}", name(command)))?;
    let id = child.id();
    let (sender, ended) = mpsc::channel();
    // Started here and only awaited there: some programs end with the thread that started them.
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    match ended.recv_timeout(limit) {
        Ok(Ok(output)) => said(command, &output),
        Ok(Err(error)) => Err(format!("{}: {error}", name(command))),
        Err(_) => {
            output(Command::new("kill").args(["-KILL", &id.to_string()]))?;
            Err(format!("{} did not end within {} s and was killed", name(command), limit.as_secs()))
        }
    }
}

/// The output of a program, or the reason of its failure.
fn said(command: &Command, output: &Output) -> Outcome<String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let tail = said.lines().rev().take(5).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n");
    Err(format!("{} failed: {}\n{tail}", name(command), output.status))
}

fn name(command: &Command) -> String {
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).take(6).collect();
    format!("{} {}", command.get_program().to_string_lossy(), arguments.join(" "))
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::output_within;

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        let reason = output_within(Command::new("sleep").arg("1000"), Duration::from_millis(10));
        let reason = reason.expect_err("it sleeps");
        assert!(reason.starts_with("sleep 1000 did not end"), "{reason}");
        assert_eq!(output_within(Command::new("echo").arg("word"), Duration::from_secs(60)), Ok("word\n".to_owned()));
        assert!(output_within(&mut Command::new("false"), Duration::from_secs(60)).is_err());
    }
}
