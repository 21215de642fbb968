//! The commands that documents show are commands of this program.

use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use crate::Program;

/// A `thalweg` command of a document.
struct Shown {
    place: String,
    words: Vec<String>,
    /// Whether it stands in a code block, complete, and not in a sentence.
    is_complete: bool,
}

/// The documents that show commands: those of the repository's root, `docs` with its folders, and `peers`. Pages that the lab
/// wrote name the commands of their time.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["", "docs", "docs/decisions", "docs/results", "peers"].map(|folder| root.join(folder));
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).expect("the folder is in the repository"));
    let paths = entries.map(|entry| entry.expect("a readable entry").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// The commands in the code blocks and in the inline code of a document.
fn commands(place: &str, text: &str) -> Vec<Shown> {
    let mut shown = Vec::new();
    let mut language = None;
    for (index, line) in text.lines().enumerate() {
        let place = format!("{place}:{}", index + 1);
        if let Some(rest) = line.trim_start().strip_prefix("```") {
            language = if language.is_some() { None } else { Some(rest.to_owned()) };
            continue;
        }
        let is_shell = language.as_ref().is_some_and(|language| ["", "sh"].contains(&language.as_str()));
        if is_shell || (language.is_none() && line.starts_with("    thalweg ")) {
            shown.extend(calls(line).map(|words| Shown { place: place.clone(), words, is_complete: true }));
        } else if language.is_none() {
            let inline = line.split('`').skip(1).step_by(2).flat_map(calls);
            shown.extend(inline.map(|words| Shown { place: place.clone(), words, is_complete: false }));
        }
    }
    shown
}

/// The words of each `thalweg` call in a line of shell, without those after a comment, a pipe or another command.
fn calls(line: &str) -> impl Iterator<Item = Vec<String>> {
    let words = shell_words(line);
    let starts: Vec<usize> = (0..words.len())
        .filter(|&at| {
            words[at] == "thalweg"
                && words.get(at + 1).is_some_and(|next| next.starts_with(|letter: char| letter.is_ascii_lowercase()))
        })
        .filter(|&at| at == 0 || is_before_program(&words[at - 1]))
        .collect();
    starts.into_iter().map(move |start| {
        let ends =
            |word: &&String| !(["&", ";", "|", ">", "…", "…`"].contains(&word.as_str()) || word.starts_with('#'));
        words[start..].iter().take_while(ends).cloned().collect()
    })
}

/// Whether a word may stand in front of the program: another command's end, or a program that starts it.
fn is_before_program(word: &str) -> bool {
    ["&", ";", "|", "$", "sudo"].contains(&word)
        || word.starts_with("--tool=")
        || word.parse::<u8>().is_ok()
        || word == "-g"
}

/// Words of a line of shell; quotes group them, `;` and `)` are words of their own.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in line.chars() {
        let last = words.last_mut().expect("there is a word at any time");
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => last.push(character),
            (None, '\'' | '"') => quote = Some(character),
            (None, ' ') => words.push(String::new()),
            (None, ';') => words.extend([";".to_owned(), String::new()]),
            (None, _) => last.push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a command is followed by one of its sub-commands and by nothing else.
fn takes_words_alone(command: &clap::Command) -> bool {
    command.has_subcommands() && command.get_positionals().next().is_none()
}

/// Why a command would be refused: a sub-command or an option that is not there or, of a complete one, its values.
fn complaint(shown: &Shown) -> Option<String> {
    let mut command = Program::command();
    command.build();
    for word in &shown.words[1..] {
        let word = word.trim_end_matches([',', '.', ':']);
        if let Some(option) = word.strip_prefix("--") {
            let name = option.split('=').next().unwrap_or(option);
            let is_known = command.get_arguments().any(|argument| argument.get_long() == Some(name));
            if !(is_known || name == "help") {
                return Some(format!("{} has no option --{name}", command.get_name()));
            }
        } else if let Some(child) = command.find_subcommand(word) {
            command = child.clone();
        } else if takes_words_alone(&command) && word.chars().all(|letter| letter.is_ascii_lowercase()) {
            return Some(format!("{} has no command {word}", command.get_name()));
        }
    }
    let error = Program::try_parse_from(&shown.words).err().filter(|_| shown.is_complete)?;
    let is_placeholder = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) => {
            value.starts_with('$') || (!value.is_empty() && value.chars().all(|letter| letter.is_ascii_uppercase()))
        }
        _ => false,
    };
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    (!is_placeholder && !is_help).then(|| error.to_string())
}

#[test]
fn every_command_that_a_document_shows_is_understood() {
    let mut complaints = Vec::new();
    let mut count = 0;
    for path in documents() {
        let text = std::fs::read_to_string(&path).expect("a readable document");
        if text.contains("this page is generated by `thalweg lab page`") {
            continue;
        }
        let shown = commands(&path.file_name().unwrap_or_default().to_string_lossy(), &text);
        count += shown.len();
        complaints.extend(
            shown.iter().filter_map(|shown| {
                Some(format!("{}: {:?}: {}", shown.place, shown.words.join(" "), complaint(shown)?))
            }),
        );
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(count > 100, "only {count} commands were found: the documents are read wrongly");
}

#[test]
fn a_command_that_is_not_there_is_named() {
    #[track_caller]
    fn check(text: &str, expect: &str) {
        let complaints: Vec<String> = commands("x.md", text).iter().filter_map(complaint).collect();
        let found = complaints.join("; ");
        assert!(if expect.is_empty() { found.is_empty() } else { found.contains(expect) }, "{text}: {found}");
    }
    check("```sh\nthalweg pub chatter hello --rate 2   # a comment --with dashes\n```\n", "");
    check("```sh\nthalweg pub chatter hello --speed 2\n```\n", "pub has no option --speed");
    check("```sh\nsudo thalweg lab walk paper2\n```\n", "lab has no command walk");
    check("```sh\nthalweg sub chatter & thalweg pub chatter --rate fast\n```\n", "'fast'");
    check("```sh\nthalweg pub chatter --rate HZ\n```\n", "");
    check("see `thalweg why TOPIC --jason`.\n", "why has no option --jason");
    check("`thalweg coap serve | get | put`, `thalweg doctor [TOPIC]` and `thalweg sub --json`\n", "");
    check("```text\nthalweg nothing\n```\n", "");
}
