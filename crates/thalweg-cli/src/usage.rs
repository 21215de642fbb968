//! Words on the command line that a command does not know.

use std::ffi::OsString;

use clap::error::ErrorKind;

use crate::outcome::remark;

/// Tells the user what is wrong with the command line, and which options the command has if it does not have one of them; returns the exit
/// code. Help and version, which end the program as well, go to standard output.
pub fn explain(error: &clap::Error, command: &clap::Command, words: impl Iterator<Item = OsString>) -> u8 {
    // A closed pipe is no reason to say more.
    let _ = error.print();
    if error.kind() == ErrorKind::UnknownArgument {
        remark(options_of(command, words));
    }
    u8::try_from(error.exit_code()).unwrap_or(2)
}

/// The options of the command that `words`, without the program's own name, lead to.
fn options_of(command: &clap::Command, words: impl Iterator<Item = OsString>) -> String {
    let (mut found, mut path) = (command, command.get_name().to_owned());
    for word in words {
        let Some(sub_command) = found.find_subcommand(&word) else { break };
        found = sub_command;
        path.push_str(&format!(" {}", sub_command.get_name()));
    }
    let options = found.get_arguments().filter(|argument| !argument.is_hide_set());
    let names: Vec<String> = options.filter_map(|argument| Some(format!("--{}", argument.get_long()?))).collect();
    if names.is_empty() {
        return format!("`{path}` has no options of its own.");
    }
    format!("Options of `{path}`: {}.", names.join(", "))
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::*;

    #[test]
    fn options_are_those_of_the_command_that_was_meant() {
        let secret = Arg::new("secret").long("secret").hide(true);
        let run = Command::new("run").arg(Arg::new("file")).arg(Arg::new("out").long("out")).arg(secret);
        let command = Command::new("lab").subcommand(run.subcommand(Command::new("small")));
        let check = |words: &[&str], expect: &str| {
            assert_eq!(options_of(&command, words.iter().map(OsString::from)), expect, "{words:?}");
        };
        check(&["run", "x.toml", "--quick"], "Options of `lab run`: --out.");
        check(&["run", "--quick", "small"], "Options of `lab run`: --out.");
        check(&["run", "small", "--out"], "`lab run small` has no options of its own.");
    }
}
