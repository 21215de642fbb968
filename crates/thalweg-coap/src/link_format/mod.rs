//! The CoRE link format: lists of links with attributes (RFC 6690).

mod reference;

use std::fmt::Write;

pub(crate) use reference::{UriReference, resolve};

/// One link: `</sensors/temp>;rt="temperature";ct=0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebLink {
    /// The target of the link: a URI reference, usually a path.
    pub target: String,
    /// Names and values in order; a name without value stands alone.
    pub attributes: Vec<(String, Option<String>)>,
}

/// Why a text is no link format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkError {
    /// Offset in bytes from the beginning.
    pub offset: usize,
    /// The expected content.
    pub expected: &'static str,
}

impl std::fmt::Display for LinkError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "byte {}: expected {}", self.offset, self.expected)
    }
}

impl std::error::Error for LinkError {}

impl WebLink {
    /// A link without attributes.
    pub fn new(target: impl Into<String>) -> WebLink {
        WebLink { target: target.into(), attributes: Vec::new() }
    }

    /// Adds an attribute with a value.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> WebLink {
        self.attributes.push((name.into(), Some(value.into())));
        self
    }

    /// Adds an attribute without value, such as `obs`.
    pub fn with_flag(mut self, name: impl Into<String>) -> WebLink {
        self.attributes.push((name.into(), None));
        self
    }

    /// The value of the first attribute with this name; empty for one without value.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_deref().unwrap_or_default())
    }

    /// Whether the link passes one argument of a query to `/.well-known/core`: `href=/a*`, `rt=light`, `obs`
    /// (RFC 6690 §4.1). A value that ends with `*` asks for a prefix; `rt`, `if`, `rel`, `rev` and `ct` hold several
    /// values, one of which is enough. An argument without `=` asks that the attribute is there.
    pub fn matches(&self, argument: &str) -> bool {
        let Some((name, pattern)) = argument.split_once('=') else {
            return self.attribute(argument).is_some();
        };
        let passes = |value: &str| match pattern.strip_suffix('*') {
            Some(prefix) => value.starts_with(prefix),
            None => value == pattern,
        };
        if name == "href" {
            return passes(&self.target);
        }
        let mut values = self.attributes.iter().filter(|(found, _)| found == name);
        values.any(|(_, value)| {
            let value = value.as_deref().unwrap_or_default();
            passes(value) || (LISTS.contains(&name) && value.split(' ').any(passes))
        })
    }
}

/// Attributes whose value is a list with spaces between its members (RFC 6690 §2, RFC 7252 §7.2.1).
const LISTS: [&str; 5] = ["rt", "if", "rel", "rev", "ct"];

/// Whether a text can be the name of an attribute, so that it is read again as it was written.
pub(crate) fn is_attribute_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(ends_name)
}

fn ends_name(character: char) -> bool {
    matches!(character, '=' | ';' | ',' | '<' | '>' | '"') || character.is_whitespace()
}

/// Writes links; gives the text for `/.well-known/core`.
///
/// Values are quoted unless they are numbers, as RFC 6690 §2 wants it for `rt` and `if` and allows it for the rest.
pub fn encode<'a>(links: impl IntoIterator<Item = &'a WebLink>) -> String {
    let mut text = String::new();
    for link in links {
        if !text.is_empty() {
            text.push(',');
        }
        write!(text, "<{}>", link.target).expect("a string takes all");
        for (name, value) in &link.attributes {
            text.push(';');
            text.push_str(name);
            if let Some(value) = value {
                encode_value(value, &mut text);
            }
        }
    }
    text
}

fn encode_value(value: &str, text: &mut String) {
    text.push('=');
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        text.push_str(value);
        return;
    }
    text.push('"');
    for character in value.chars() {
        if matches!(character, '"' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
    text.push('"');
}

/// Reads links.
///
/// # Errors
/// The place at which the text is not in link format.
pub fn parse(text: &str) -> Result<Vec<WebLink>, LinkError> {
    let mut cursor = Cursor { text, position: 0 };
    let mut links = Vec::new();
    cursor.skip_spaces();
    while !cursor.is_at_end() {
        if !links.is_empty() {
            cursor.take(",", "',' between links")?;
            cursor.skip_spaces();
        }
        links.push(cursor.link()?);
        cursor.skip_spaces();
    }
    Ok(links)
}

struct Cursor<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Cursor<'a> {
    fn link(&mut self) -> Result<WebLink, LinkError> {
        self.take("<", "'<' before a target")?;
        let target = self.until(|character| character == '>');
        self.take(">", "'>' after a target")?;
        let mut link = WebLink::new(target);
        self.skip_spaces();
        while self.try_take(";") {
            self.skip_spaces();
            link.attributes.push(self.attribute()?);
            self.skip_spaces();
        }
        Ok(link)
    }

    fn attribute(&mut self) -> Result<(String, Option<String>), LinkError> {
        let name = self.until(ends_name);
        if name.is_empty() {
            return Err(self.expected("name of an attribute"));
        }
        let name = name.to_owned();
        if !self.try_take("=") {
            return Ok((name, None));
        }
        let value = if self.try_take("\"") { self.quoted()? } else { self.plain()? };
        Ok((name, Some(value)))
    }

    fn plain(&mut self) -> Result<String, LinkError> {
        let value = self.until(|character| matches!(character, ';' | ',' | '"') || character.is_whitespace());
        if value.is_empty() { Err(self.expected("value of an attribute")) } else { Ok(value.to_owned()) }
    }

    /// The text after an opening quote, up to and with the closing one.
    fn quoted(&mut self) -> Result<String, LinkError> {
        let mut value = String::new();
        loop {
            value.push_str(self.until(|character| matches!(character, '"' | '\\')));
            if self.try_take("\"") {
                return Ok(value);
            }
            self.try_take("\\");
            let escaped = self.rest().chars().next().ok_or(self.expected("closing '\"'"))?;
            value.push(escaped);
            self.position += escaped.len_utf8();
        }
    }

    fn until(&mut self, ends: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let len = rest.find(ends).unwrap_or(rest.len());
        self.position += len;
        &rest[..len]
    }

    fn skip_spaces(&mut self) {
        self.until(|character| !character.is_whitespace());
    }

    fn take(&mut self, what: &str, expected: &'static str) -> Result<(), LinkError> {
        if self.try_take(what) { Ok(()) } else { Err(self.expected(expected)) }
    }

    fn try_take(&mut self, what: &str) -> bool {
        let found = self.rest().starts_with(what);
        if found {
            self.position += what.len();
        }
        found
    }

    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn is_at_end(&self) -> bool {
        self.rest().is_empty()
    }

    fn expected(&self, expected: &'static str) -> LinkError {
        LinkError { offset: self.position, expected }
    }
}

#[cfg(test)]
mod tests;
