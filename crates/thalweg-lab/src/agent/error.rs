//! Why another machine does not take part.

use std::io::{Error as IoError, ErrorKind};
use std::net::IpAddr;

use thiserror::Error;

use super::session::{PROTOCOL, VERSION};

/// A failure of an agent, or on the way to one; the text names the machine, the failure and a remedy.
#[derive(Debug, Error)]
pub enum AgentError {
    #[error("{program} cannot be started: {source}{}", advice(source))]
    NoSsh { program: String, source: IoError },
    #[error("ssh to {machine} closed its output before an agent answered{said}")]
    Closed { machine: String, said: String },
    #[error(
        "ssh does not reach {machine}{said}; `ssh -o BatchMode=yes {machine} true` has to end well without a question: store the host's key \
         and yours first"
    )]
    Unreachable { machine: String, said: String },
    #[error(
        "thalweg cannot be started on {machine}{said}; install it where the shell there finds it, or name its path by program = \"…\""
    )]
    NoProgram { machine: String, said: String },
    #[error("the agent on {machine} ended at once ({status}){said}; `thalweg --version` there has to say {VERSION}")]
    EndedAtOnce { machine: String, status: String, said: String },
    #[error("no agent was heard of on {machine} for {seconds} s{said}")]
    Mute { machine: String, seconds: u64, said: String },
    #[error(
        "the agent on {machine} is Thalweg {version} with protocol {protocol}, and this is {VERSION} with protocol {PROTOCOL}: install one \
         version on all machines, or name the program there by program = \"…\""
    )]
    OtherVersion { machine: String, version: String, protocol: String },
    #[error("the agent on {machine} was lost at once: {reason}")]
    LostAtOnce { machine: String, reason: String },
    #[error(
        "the address of {machine} is unknown, since SSH_CONNECTION does not tell it there: name its address on the measured link by \
         {{ ssh = {machine:?}, address = \"…\" }}"
    )]
    NoAddress { machine: String },
    #[error("no way leads to {address}, the address of {machine}: {source}; name another one by address = \"…\"")]
    NoWay { machine: String, address: IpAddr, source: IoError },
    #[error(
        "the agent on {machine} was lost: {reason}; its run does not count. See that ssh reaches that machine, and resume"
    )]
    Lost { machine: String, reason: String },
    /// It answers that it cannot do something, or what nobody understands.
    #[error("the agent on {machine} {reason}")]
    Refused { machine: String, reason: String },
    #[error("the agent on {machine} offers a file {file:?} that is none of its own")]
    ForeignFile { machine: String, file: String },
    #[error(
        "{peer} is not set up on {machine}: run `thalweg lab peers install {peer}` there, or name the folder of its program there by \
         peer_dir = \"…\""
    )]
    NoPeer { machine: String, peer: String },
    #[error(
        "the clock of {machine} answered {answered} of {asked} questions, too few to compare it: let UDP between both machines through, as the \
         run itself needs it, name the address on their link by address = \"…\", or see why that machine stands still"
    )]
    ClockUnknown { machine: String, answered: usize, asked: u64 },
    /// What this agent itself ends of.
    #[error("this agent ended: {0}")]
    Ended(String),
}

fn advice(error: &IoError) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound => {
            "; install OpenSSH's client (Debian: openssh-client), or name another command with --ssh"
        }
        _ => "",
    }
}
