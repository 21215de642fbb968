//! Errors of encoding and decoding, with their place.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// Why a payload is not a value of the type: the offset where decoding stopped, and what should have stood there.
///
/// Display reads `24: expected 4 bytes of u32 (ShapeType.x)`. Offsets count from the first byte of the payload, its
/// encapsulation header included. The error is one pointer wide, so that the way that succeeds stays in registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError(Box<DecodeFailure>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct DecodeFailure {
    offset: usize,
    expected: Cow<'static, str>,
    place: Option<Place>,
}

impl DecodeError {
    /// An error at `offset`, where `expected` should have stood.
    #[cold]
    pub fn new(offset: usize, expected: impl Into<Cow<'static, str>>) -> Self {
        DecodeError(Box::new(DecodeFailure { offset, expected: expected.into(), place: None }))
    }

    /// The same error, known to have happened in this member; the innermost member that is named stays.
    #[cold]
    #[must_use]
    pub fn in_member(mut self, type_name: &'static str, member: &'static str) -> Self {
        self.0.place.get_or_insert(Place { type_name, member });
        self
    }

    /// Offset at which decoding stopped: bytes from the start of the payload.
    pub fn offset(&self) -> usize {
        self.0.offset
    }

    /// The expected content at the offset.
    pub fn expected(&self) -> &str {
        &self.0.expected
    }

    /// The innermost type and member that was being decoded, if one was.
    pub fn place(&self) -> Option<(&'static str, &'static str)> {
        self.0.place.map(|place| (place.type_name, place.member))
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}", self.0.offset, self.0.expected)?;
        fmt_place(self.0.place, f)
    }
}

impl Error for DecodeError {}

/// Why a value cannot be written: a bound that it exceeds, or something that its wire type cannot hold.
///
/// Display reads `pose.position[2]: a number is needed, not "far"`, with the path of the value where it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodeError(Box<EncodeFailure>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct EncodeFailure {
    /// The way to the value from the sample; empty where it is not known.
    path: String,
    problem: Cow<'static, str>,
    place: Option<Place>,
}

impl EncodeError {
    /// An error with a sentence about the value that cannot be written.
    #[cold]
    pub fn new(problem: impl Into<Cow<'static, str>>) -> Self {
        EncodeError(Box::new(EncodeFailure { path: String::new(), problem: problem.into(), place: None }))
    }

    /// The same error, known to have happened in this member; the innermost member that is named stays.
    #[cold]
    #[must_use]
    pub fn in_member(mut self, type_name: &'static str, member: &'static str) -> Self {
        self.0.place.get_or_insert(Place { type_name, member });
        self
    }

    /// The same error, of a value below the member of this name.
    #[cold]
    #[must_use]
    pub fn below_member(mut self, name: &str) -> Self {
        self.put_before(name);
        self
    }

    /// The same error, of a value below the element of this index, from 0.
    #[cold]
    #[must_use]
    pub fn below_element(mut self, index: usize) -> Self {
        self.put_before(&format!("[{index}]"));
        self
    }

    fn put_before(&mut self, step: &str) {
        let dot = if self.0.path.is_empty() || self.0.path.starts_with('[') { "" } else { "." };
        self.0.path = format!("{step}{dot}{}", self.0.path);
    }

    /// The way to the value from the sample, such as `pose.position[2]`; empty where it is the sample, or not known.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// The value that cannot be written, as a sentence.
    pub fn problem(&self) -> &str {
        &self.0.problem
    }

    /// The innermost type and member that was being encoded, if one was.
    pub fn place(&self) -> Option<(&'static str, &'static str)> {
        self.0.place.map(|place| (place.type_name, place.member))
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.path.is_empty() {
            write!(f, "{}: ", self.0.path)?;
        }
        f.write_str(&self.0.problem)?;
        fmt_place(self.0.place, f)
    }
}

impl Error for EncodeError {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    type_name: &'static str,
    member: &'static str,
}

fn fmt_place(place: Option<Place>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match place {
        Some(Place { type_name, member }) => write!(f, " ({type_name}.{member})"),
        None => Ok(()),
    }
}
