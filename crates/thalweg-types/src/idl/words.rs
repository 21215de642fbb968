//! The words and signs of an IDL text, read one after the other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::preprocessor::{Macro, NESTING_MAX as MACROS_MAX, Preprocessor};
use super::{IdlError, Reading};
use crate::docs::documentation;

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
    /// What the comments in front of it say.
    pub docs: Option<Arc<str>>,
}

/// Most bytes of a text and all its includes; chosen by us, far above any set of types in use.
const TEXT_BYTES_MAX: usize = 16 << 20;
/// Deepest nesting of types and expressions, chosen for the stack of a thread.
const NESTING_MAX: usize = 64;

impl Words {
    /// All of `text`, of which nothing is read yet; its includes are passed over.
    pub(super) fn of(text: &str, reading: &Reading) -> Result<Words, IdlError> {
        let mut scan = Scan::new(reading)?;
        scan.file(text, None)?;
        Ok(scan.finish())
    }

    /// All of a file and of those that it includes, each once.
    pub(super) fn of_file(path: &Path, reading: &Reading) -> Result<Words, IdlError> {
        let mut scan = Scan::new(reading)?;
        scan.path(path)?;
        Ok(scan.finish())
    }

    /// These words alone.
    pub(super) fn of_part(words: &[Word]) -> Words {
        Words { words: words.into(), position: 0, depth: 0 }
    }

    /// The next word, which stays there.
    pub(super) fn peek(&self) -> Option<&str> {
        self.words.get(self.position).map(|word| &*word.text)
    }

    /// What the comments in front of the next word say.
    pub(super) fn docs(&self) -> Option<Arc<str>> {
        self.words.get(self.position)?.docs.clone()
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

/// A text and all that it includes, on their way to words.
struct Scan<'a> {
    reading: &'a Reading,
    preprocessor: Preprocessor,
    words: Vec<Word>,
    /// Files that were read.
    read: BTreeSet<PathBuf>,
    /// Bytes of all texts.
    bytes: usize,
    /// Macros that were replaced, and the words that they stand for.
    expanded: usize,
    /// Comments in front of the next word.
    docs: Vec<String>,
    /// Brackets `<` that are open in the definition that is being read.
    brackets: i32,
}

/// Most words that macros may stand for in all, with those that are macros; chosen by us, for those that stand for several of others.
const EXPANDED_MAX: usize = 1 << 20;

impl<'a> Scan<'a> {
    fn new(reading: &'a Reading) -> Result<Scan<'a>, IdlError> {
        let preprocessor = Preprocessor::with(&reading.defines).map_err(|problem| error_at(None, problem))?;
        let (words, read) = (Vec::new(), BTreeSet::new());
        Ok(Scan { reading, preprocessor, words, read, bytes: 0, expanded: 0, docs: Vec::new(), brackets: 0 })
    }

    fn finish(self) -> Words {
        Words { words: self.words.into(), position: 0, depth: 0 }
    }

    fn path(&mut self, path: &Path) -> Result<(), IdlError> {
        let known = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if !self.read.insert(known) {
            return Ok(());
        }
        let text = std::fs::read_to_string(path).map_err(|error| IdlError {
            file: Some(path.to_string_lossy().into_owned()),
            line: 1,
            column: 1,
            problem: error.to_string(),
        })?;
        self.file(&text, Some(path))
    }

    fn include(&mut self, included: &str, path: &Path, place: &Word) -> Result<(), IdlError> {
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let candidates = std::iter::once(&folder).chain(&self.reading.folders).map(|folder| folder.join(included));
        match candidates.into_iter().find(|candidate| candidate.is_file()) {
            Some(found) => self.path(&found),
            None => {
                let problem = format!("the included file {included:?} is nowhere; name its folder");
                Err(error_at(Some(place), problem))
            }
        }
    }

    /// Reads a text, which comes from `path` if from any.
    fn file(&mut self, text: &str, path: Option<&Path>) -> Result<(), IdlError> {
        let file: Option<Arc<str>> = path.map(|path| path.to_string_lossy().into());
        let outer = self.preprocessor.begin_file();
        self.docs.clear();
        self.bytes += text.len();
        if self.bytes > TEXT_BYTES_MAX {
            let problem = format!("more than {TEXT_BYTES_MAX} bytes of text, includes counted");
            return Err(IdlError { file: file.map(|file| file.to_string()), line: 1, column: 1, problem });
        }
        let (mut line, mut line_start, mut at) = (1, 0, 0);
        let mut is_line_start = true;
        let place = |line, column| Word { text: "".into(), file: file.clone(), line, column, docs: None };
        while let Some(first) = text[at..].chars().next() {
            let rest = &text[at..];
            let here = || place(line, at - line_start + 1);
            let is_directive = first == '#' && is_line_start;
            let is_skipped = self.preprocessor.skips();
            let length = match is_directive {
                true => directive_length(rest),
                false if is_skipped && comment_length(rest).is_none() => match first {
                    '"' | '\'' => quoted_on_line(rest, first).unwrap_or(1),
                    _ => first.len_utf8(),
                },
                false => piece_length(rest).map_err(|what| error_at(Some(&here()), format!("a {what} without end")))?,
            };
            let piece = &rest[..length];
            if is_directive {
                let included = self.preprocessor.handle(piece).map_err(|problem| error_at(Some(&here()), problem))?;
                if let (Some(included), Some(path)) = (included, path) {
                    self.include(&included, path, &here())?;
                }
            } else if !is_skipped && is_blank(piece) {
                self.docs.extend(documentation(piece));
            } else if !is_skipped {
                self.push(piece, &here(), &mut Vec::new())?;
            }
            is_line_start = first == '\n' || (is_line_start && first.is_whitespace());
            if let Some(last) = piece.rfind('\n') {
                line += piece.matches('\n').count();
                line_start = at + last + 1;
            }
            at += length;
        }
        self.docs.clear();
        let ended = self.preprocessor.end_file(outer);
        ended.map_err(|problem| error_at(Some(&place(line, at - line_start + 1)), problem))
    }

    /// Adds a word, or those that it stands for; `hidden` are the macros whose text it comes from.
    fn push(&mut self, piece: &str, place: &Word, hidden: &mut Vec<String>) -> Result<(), IdlError> {
        let meaning = self.preprocessor.find(piece).filter(|_| !hidden.iter().any(|hidden| hidden == piece)).cloned();
        self.expanded += usize::from(meaning.is_some() || !hidden.is_empty());
        if self.expanded > EXPANDED_MAX {
            return Err(error_at(Some(place), format!("macros stand for more than {EXPANDED_MAX} words")));
        }
        match meaning {
            Some(Macro::Text(text)) => {
                if hidden.len() >= MACROS_MAX {
                    return Err(error_at(Some(place), format!("more than {MACROS_MAX} macros within each other")));
                }
                hidden.push(piece.to_owned());
                let mut rest = &*text;
                while !rest.is_empty() {
                    let length = piece_length(rest);
                    let length = length.map_err(|what| error_at(Some(place), format!("a {what} without end")))?;
                    if !is_blank(&rest[..length]) {
                        self.push(&rest[..length], place, hidden)?;
                    }
                    rest = &rest[length..];
                }
                hidden.pop();
                return Ok(());
            }
            Some(Macro::WithParameters) => {
                let problem = format!("the macro {piece} has parameters, which is not supported");
                return Err(error_at(Some(place), problem));
            }
            None => {}
        }
        // `sequence<sequence<long>>` ends two types; where fewer brackets are open, it is an operator.
        if piece == ">>" && self.brackets >= 2 {
            self.add(">", place);
            self.add(">", place);
        } else {
            self.add(piece, place);
        }
        Ok(())
    }

    fn add(&mut self, text: &str, place: &Word) {
        match text {
            ";" | "{" | "}" => self.brackets = 0,
            "<" => self.brackets += 1,
            ">" => self.brackets -= 1,
            _ => {}
        }
        let docs = std::mem::take(&mut self.docs);
        let docs = (!docs.is_empty()).then(|| docs.join("\n").into());
        self.words.push(Word { text: text.into(), docs, ..place.clone() });
    }
}

/// The length of the word, sign, comment or blank that a text begins with, or what has no end.
fn piece_length(rest: &str) -> Result<usize, &'static str> {
    let first = rest.chars().next().unwrap_or_default();
    if let Some(length) = comment_length(rest) {
        return length.ok_or("comment");
    }
    if first == '"' || first == '\'' {
        return quoted_length(rest, first).ok_or("text");
    }
    if is_word(first) {
        return Ok(word_length(rest));
    }
    let is_double = ["::", "<<", ">>"].iter().any(|sign| rest.starts_with(sign));
    Ok(if is_double { 2 } else { first.len_utf8() })
}

/// The length of the comment that a text begins with, if it begins with one and that ends.
fn comment_length(rest: &str) -> Option<Option<usize>> {
    if rest.starts_with("//") {
        return Some(Some(rest.find('\n').unwrap_or(rest.len())));
    }
    rest.starts_with("/*").then(|| rest.find("*/").map(|end| end + 2))
}

/// Whether a piece is a comment or space.
fn is_blank(piece: &str) -> bool {
    piece.starts_with(char::is_whitespace) || piece.starts_with("//") || piece.starts_with("/*")
}

/// The length of a preprocessor line, with those that a backslash or a comment continues it on.
fn directive_length(rest: &str) -> usize {
    let mut length = 0;
    while let Some(first) = rest[length..].chars().next().filter(|first| *first != '\n') {
        let here = &rest[length..];
        length += match first {
            '\\' => continuation_length(here).unwrap_or(1),
            '/' if here.starts_with("//") => line_length(here),
            '/' if here.starts_with("/*") => here.find("*/").map_or(here.len(), |end| end + 2),
            '"' | '\'' => quoted_on_line(here, first).unwrap_or(1),
            _ => first.len_utf8(),
        };
    }
    length
}

/// The length of a line without its end, with those that a backslash continues it on.
fn line_length(rest: &str) -> usize {
    let is_end = |(at, sign): &(usize, char)| {
        *sign == '\n' && !rest[..*at].strip_suffix('\r').unwrap_or(&rest[..*at]).ends_with('\\')
    };
    rest.char_indices().find(is_end).map_or(rest.len(), |(at, _)| at)
}

/// The length of a backslash that continues a line, with that line's end.
fn continuation_length(rest: &str) -> Option<usize> {
    ["\\\n", "\\\r\n"].into_iter().find(|end| rest.starts_with(end)).map(str::len)
}

/// The length of the quoted text that a text begins with, if it ends on its line: an apostrophe in the words of an `#error` opens nothing.
pub(super) fn quoted_on_line(rest: &str, quote: char) -> Option<usize> {
    quoted_length(&rest[..line_length(rest)], quote)
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
