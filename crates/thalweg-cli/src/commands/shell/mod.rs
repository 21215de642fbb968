//! `thalweg completions` and `thalweg man`: what a shell and `man` know of the command line, made of the command line itself.

mod topics;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::outcome::{Failure, print_line};

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!("thalweg completions bash", "thalweg completions fish"))]
/// Prints a script that lets a shell complete commands, options and their values. Bash, zsh and fish complete names of topics as well,
/// for which they listen to the domain of --domain and --domain-tag for 0.8 s. For bash, put it in
/// ~/.local/share/bash-completion/completions/thalweg; for zsh, as _thalweg in a folder of fpath; for fish, in
/// ~/.config/fish/completions/thalweg.fish.
pub struct CompletionsOptions {
    /// The shell.
    pub shell: Shell,
}

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!("thalweg man", "thalweg man topic echo"))]
/// Prints the manual page of a command for `man -l -`, or writes those of all commands.
pub struct ManOptions {
    /// The command, such as topic echo (without one: thalweg itself).
    pub command: Vec<String>,

    /// Write the pages of all commands into FOLDER, such as thalweg-topic-echo.1 (default: print one page).
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    pub all: Option<PathBuf>,
}

/// Prints the script of a shell.
///
/// # Errors
/// When output cannot be written.
pub fn completions(options: &CompletionsOptions, program: &Command) -> Result<(), Failure> {
    // The generators complete hidden commands, too.
    let visible = program.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let mut shown = Command::new("thalweg").version(env!("CARGO_PKG_VERSION")).subcommands(visible);
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut shown, "thalweg", &mut script);
    let script = String::from_utf8_lossy(&script);
    let script = script.trim_end();
    let taking = topics::Taking::of(program);
    match options.shell {
        Shell::Bash => print_line(format!("{script}\n\n{}", taking.in_bash())),
        Shell::Fish => print_line(format!("{script}\n\n{}", taking.in_fish())),
        Shell::Zsh => print_line(topics::in_zsh(script)),
        _ => print_line(script),
    }
}

/// Prints or writes manual pages.
///
/// # Errors
/// There is no such command, or a page cannot be written.
pub fn man(options: &ManOptions, program: &Command) -> Result<(), Failure> {
    if let Some(folder) = &options.all {
        std::fs::create_dir_all(folder).map_err(|error| unwritten(folder, &error))?;
        return write_pages(program, "thalweg", folder);
    }
    let mut found = program;
    let mut name = "thalweg".to_owned();
    for word in &options.command {
        let named = |command: &&Command| command.get_name() == word && !command.is_hide_set();
        let Some(inner) = found.get_subcommands().find(named) else {
            let known: Vec<&str> =
                found.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name).collect();
            let known = if known.is_empty() { "no commands".to_owned() } else { known.join(", ") };
            return Err(Failure::Usage(format!("{name} has no command {word:?}; it has {known}")));
        };
        found = inner;
        name = format!("{name}-{word}");
    }
    let text = page(found, &name).map_err(Failure::from_cause)?;
    print_line(String::from_utf8_lossy(&text).trim_end())
}

fn write_pages(command: &Command, name: &str, folder: &std::path::Path) -> Result<(), Failure> {
    let path = folder.join(format!("{name}.1"));
    let written = page(command, name).and_then(|text| std::fs::File::create(&path)?.write_all(&text));
    written.map_err(|error| unwritten(&path, &error))?;
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        write_pages(inner, &format!("{name}-{}", inner.get_name()), folder)?;
    }
    Ok(())
}

fn page(command: &Command, name: &str) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let version = env!("CARGO_PKG_VERSION");
    let named = command.clone().name(name.to_owned()).display_name(name.to_owned()).version(version);
    let named = named.bin_name(name.replace('-', " "));
    // References to sub-commands have their whole name; `help` has no page.
    clap_mangen::Man::new(named.disable_help_subcommand(true)).render(&mut text)?;
    Ok(text)
}

fn unwritten(path: &std::path::Path, error: &io::Error) -> Failure {
    Failure::Failed(format!("{} cannot be written: {error}; name another folder with --all", path.display()))
}
