//! The words and signs of an IDL text, read one after the other.

use super::IdlError;

/// A text without comments and preprocessor lines, and how far it was read.
pub(super) struct Words<'a> {
    words: Vec<Word<'a>>,
    position: usize,
}

struct Word<'a> {
    line: usize,
    text: &'a str,
}

impl<'a> Words<'a> {
    /// All of `text`, of which nothing is read yet.
    pub(super) fn of(text: &'a str) -> Result<Words<'a>, IdlError> {
        let mut words = Vec::new();
        let mut line = 1;
        let mut rest = text;
        let mut is_line_start = true;
        let endless = |line, what| IdlError { line, problem: format!("a {what} without end") };
        while let Some(first) = rest.chars().next() {
            let length = if rest.starts_with("//") || (first == '#' && is_line_start) {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map(|end| end + 2).ok_or_else(|| endless(line, "comment"))?
            } else if first == '"' {
                rest[1..].find('"').map(|end| end + 2).ok_or_else(|| endless(line, "text"))?
            } else if is_word(first) {
                rest.find(|character| !is_word(character)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            let (piece, after) = rest.split_at(length);
            let is_text =
                !first.is_whitespace() && !piece.starts_with("//") && !piece.starts_with("/*") && first != '#';
            if is_text {
                words.push(Word { line, text: piece });
            }
            is_line_start = first == '\n' || (is_line_start && first.is_whitespace());
            line += piece.matches('\n').count();
            rest = after;
        }
        Ok(Words { words, position: 0 })
    }

    /// The next word, which stays there.
    pub(super) fn peek(&self) -> Option<&'a str> {
        self.words.get(self.position).map(|word| word.text)
    }

    /// Reads a word; `expected` says for the error what it was to be.
    pub(super) fn next(&mut self, expected: &str) -> Result<&'a str, IdlError> {
        let found = self.peek().ok_or_else(|| self.error(format!("expected {expected}, found the end")))?;
        self.position += 1;
        Ok(found)
    }

    /// The word that was read last.
    pub(super) fn last(&self) -> &'a str {
        self.words.get(self.position.wrapping_sub(1)).map_or("", |word| word.text)
    }

    /// Reads this word and no other.
    pub(super) fn take(&mut self, expected: &str) -> Result<(), IdlError> {
        let found = self.next(expected)?;
        if found == expected {
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
        let plain = word.strip_prefix('_').filter(|rest| !rest.is_empty()).unwrap_or(word);
        if is_name { Ok(plain.to_owned()) } else { Err(self.error_before(format!("{word:?} is no name"))) }
    }

    /// An error at what comes next.
    pub(super) fn error(&self, problem: String) -> IdlError {
        let word = self.words.get(self.position).or(self.words.last());
        IdlError { line: word.map_or(1, |word| word.line), problem }
    }

    /// An error at the last token.
    pub(super) fn error_before(&self, problem: String) -> IdlError {
        let word = self.words.get(self.position.saturating_sub(1));
        IdlError { line: word.map_or(1, |word| word.line), problem }
    }

    /// An error at what was read last, which this reader does not support.
    pub(super) fn refused(&self, what: &str) -> IdlError {
        self.error_before(format!("{what} is not supported here; use structures, enumerations, sequences and arrays"))
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}
