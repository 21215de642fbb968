//! Folders of the workspace, and running programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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
