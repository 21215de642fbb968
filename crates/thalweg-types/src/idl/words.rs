//! The words and signs of an IDL text, read one after the other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::IdlError;

/// A text without comments and preprocessor lines, and how far it was read.
#[derive(Clone, Default)]
pub(super) struct Words {
    words: Arc<[Word]>,
    position: usize,
    depth: usize,
}

/// A word or sign, with its place.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub text: Arc<str>,
    pub file: Option<Arc<str>>,
    pub line: usize,
    pub column: usize,
}

/// Where included files are looked for, and those that were read.
#[derive(Default)]
pub(super) struct Files {
    pub folders: Vec<PathBuf>,
    pub read: BTreeSet<PathBuf>,
}

/// Most bytes of a text and all its includes; chosen by us, far above any set of types in use.
const TEXT_BYTES_MAX: usize = 16 << 20;
/// Deepest nesting of types and expressions, chosen for the stack of a thread.
const NESTING_MAX: usize = 64;

impl Words {
    /// All of `text`, of which nothing is read yet; its includes are passed over.
    pub(super) fn of(text: &str) -> Result<Words, IdlError> {
        let mut words = Vec::new();
        scan(text, None, &mut words, &mut |_, _| Ok(()))?;
        Ok(Words { words: words.into(), position: 0, depth: 0 })
    }

    /// All of a file and of those that it includes, each once.
    pub(super) fn of_file(path: &Path, files: &mut Files) -> Result<Words, IdlError> {
        let mut words = Vec::new();
        let mut bytes = 0;
        scan_file(path, files, &mut words, &mut bytes)?;
        Ok(Words { words: words.into(), position: 0, depth: 0 })
    }

    /// These words alone.
    pub(super) fn of_part(words: &[Word]) -> Words {
        Words { words: words.into(), position: 0, depth: 0 }
    }

    /// The next word, which stays there.
    pub(super) fn peek(&self) -> Option<&str> {
        self.words.get(self.position).map(|word| &*word.text)
    }

    /// The word behind the next one.
    pub(super) fn peek_second(&self) -> Option<&str> {
        self.words.get(self.position + 1).map(|word| &*word.text)
    }

    /// Reads a word; `expected` says for the error what it was to be.
    pub(super) fn next(&mut self, expected: &str) -> Result<Arc<str>, IdlError> {
        self.next_word(expected).map(|word| word.text)
    }

    /// Reads a word with its place.
    pub(super) fn next_word(&mut self, expected: &str) -> Result<Word, IdlError> {
        let found = self.words.get(self.position).cloned();
        let found = found.ok_or_else(|| self.error(format!("expected {expected}, found the end")))?;
        self.position += 1;
        Ok(found)
    }

    /// Reads this word and no other.
    pub(super) fn take(&mut self, expected: &str) -> Result<(), IdlError> {
        let found = self.next(&format!("{expected:?}"))?;
        if &*found == expected {
            return Ok(());
        }
        Err(self.error_before(format!("expected {expected:?}, found {found:?}")))
    }

    /// Reads this word if it is there.
    pub(super) fn try_take(&mut self, expected: &str) -> bool {
        let is_there = self.peek() == Some(expected);
        self.position += usize::from(is_there);
        is_there
    }

    /// Reads a name.
    pub(super) fn identifier(&mut self) -> Result<String, IdlError> {
        let word = self.next("a name")?;
        let is_name = word.starts_with(|first: char| first.is_alphabetic() || first == '_');
        // An underscore in front lets a keyword be a name (IDL 4.2 §7.2.3.2).
        let plain = word.strip_prefix('_').filter(|rest| !rest.is_empty()).unwrap_or(&word);
        if is_name { Ok(plain.to_owned()) } else { Err(self.error_before(format!("{word:?} is no name"))) }
    }

    /// Reads a name with the scopes in front of it.
    pub(super) fn scoped_name(&mut self) -> Result<String, IdlError> {
        let is_global = self.try_take("::");
        let mut name = if is_global { "::".to_owned() } else { String::new() };
        name.push_str(&self.identifier()?);
        while self.try_take("::") {
            name.push_str("::");
            name.push_str(&self.identifier()?);
        }
        Ok(name)
    }

    /// Notes that what is read next is part of something of the same kind.
    pub(super) fn descend(&mut self) -> Result<(), IdlError> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(self.error(format!("more than {NESTING_MAX} levels of nesting")));
        }
        Ok(())
    }

    pub(super) fn ascend(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// An error at what comes next.
    pub(super) fn error(&self, problem: String) -> IdlError {
        error_at(self.words.get(self.position).or(self.words.last()), problem)
    }

    /// An error at the last token.
    pub(super) fn error_before(&self, problem: String) -> IdlError {
        error_at(self.words.get(self.position.saturating_sub(1)), problem)
    }
}

/// An error at a word.
pub(super) fn error_at(word: Option<&Word>, problem: String) -> IdlError {
    let (line, column) = word.map_or((1, 1), |word| (word.line, word.column));
    IdlError { file: word.and_then(|word| word.file.as_deref().map(str::to_owned)), line, column, problem }
}

fn scan_file(path: &Path, files: &mut Files, words: &mut Vec<Word>, bytes: &mut usize) -> Result<(), IdlError> {
    let file: Arc<str> = path.to_string_lossy().into();
    let unreadable = |problem: String| IdlError { file: Some(file.to_string()), line: 1, column: 1, problem };
    let known = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if !files.read.insert(known) {
        return Ok(());
    }
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    *bytes += text.len();
    if *bytes > TEXT_BYTES_MAX {
        return Err(unreadable(format!("more than {TEXT_BYTES_MAX} bytes of text, includes counted")));
    }
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    scan(&text, Some(&file), words, &mut |line, words| {
        let Some(included) = included_name(line) else { return Ok(()) };
        let candidates = std::iter::once(&folder).chain(&files.folders).map(|folder| folder.join(included));
        match candidates.into_iter().find(|candidate| candidate.is_file()) {
            Some(found) => scan_file(&found, files, words, bytes),
            None => Err(unreadable(format!("the included file {included:?} is nowhere; name its folder"))),
        }
    })
}

/// The name in `#include "name"` or `#include <name>`.
fn included_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
    let end = if rest.starts_with('<') { '>' } else { '"' };
    let name = rest.get(1..)?;
    name.find(end).map(|length| &name[..length])
}

/// Called for each preprocessor line, with the words so far.
type OnLine<'a> = dyn FnMut(&str, &mut Vec<Word>) -> Result<(), IdlError> + 'a;

fn scan(
    text: &str,
    file: Option<&Arc<str>>,
    words: &mut Vec<Word>,
    preprocess: &mut OnLine<'_>,
) -> Result<(), IdlError> {
    if text.len() > TEXT_BYTES_MAX {
        let problem = format!("more than {TEXT_BYTES_MAX} bytes of text");
        return Err(IdlError { file: file.map(|file| file.to_string()), line: 1, column: 1, problem });
    }
    let (mut line, mut line_start, mut at) = (1, 0, 0);
    let mut is_line_start = true;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let place = |text: &str| Word { text: text.into(), file: file.cloned(), line, column: at - line_start + 1 };
        let endless = |what| error_at(Some(&place("")), format!("a {what} without end"));
        let is_directive = first == '#' && is_line_start;
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if is_directive {
            directive_length(rest)
        } else if rest.starts_with("/*") {
            rest.find("*/").map(|end| end + 2).ok_or_else(|| endless("comment"))?
        } else if first == '"' || first == '\'' {
            quoted_length(rest, first).ok_or_else(|| endless("text"))?
        } else if is_word(first) {
            word_length(rest)
        } else if ["::", "<<", ">>"].iter().any(|sign| rest.starts_with(sign)) {
            2
        } else {
            first.len_utf8()
        };
        let piece = &rest[..length];
        if is_directive {
            preprocess(piece, words)?;
        } else if !first.is_whitespace() && !piece.starts_with("//") && !piece.starts_with("/*") {
            // `sequence<sequence<long>>` ends two types.
            if piece == ">>" && !is_shift(words) {
                words.push(place(">"));
                words.push(place(">"));
            } else {
                words.push(place(piece));
            }
        }
        is_line_start = first == '\n' || (is_line_start && first.is_whitespace());
        if let Some(last) = piece.rfind('\n') {
            line += piece.matches('\n').count();
            line_start = at + last + 1;
        }
        at += length;
    }
    Ok(())
}

/// Whether `>>` behind these words is an operator: no bracket is open in this definition.
fn is_shift(words: &[Word]) -> bool {
    let statement = words.iter().rev().take_while(|word| ![";", "{", "}"].contains(&&*word.text));
    let open: i32 = statement
        .map(|word| match &*word.text {
            "<" => 1,
            ">" => -1,
            _ => 0,
        })
        .sum();
    open < 2
}

/// A preprocessor line, with those that a backslash continues it on.
fn directive_length(rest: &str) -> usize {
    let mut length = 0;
    for line in rest.split_inclusive('\n') {
        length += line.len();
        if !line.trim_end_matches(['\n', '\r']).ends_with('\\') {
            break;
        }
    }
    length - usize::from(rest[..length].ends_with('\n'))
}

fn quoted_length(rest: &str, quote: char) -> Option<usize> {
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => drop(characters.next()),
            _ if character == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// A name, or a number with its fraction and exponent.
fn word_length(rest: &str) -> usize {
    let is_number = rest.starts_with(|first: char| first.is_ascii_digit());
    let mut previous = ' ';
    let end = rest.find(|character: char| {
        let is_sign = matches!(character, '+' | '-') && matches!(previous, 'e' | 'E') && !rest.starts_with("0x");
        let goes_on = is_word(character) || (is_number && (character == '.' || is_sign));
        previous = character;
        !goes_on
    });
    end.unwrap_or(rest.len())
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}
