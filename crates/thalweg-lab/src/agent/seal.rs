//! Messages that carry a number and a proof: neither altered nor repeated ones are taken.

use std::fmt;

use super::key::{AgentKey, TAG_BYTES};

/// Numbers and signs the messages of one side.
#[derive(Debug)]
pub struct Sealer {
    key: AgentKey,
    next: u64,
}

/// Accepts the other side's messages, each once and in its order.
#[derive(Debug)]
pub struct Opener {
    key: AgentKey,
    next: u64,
}

/// Why a message is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    /// The message does not come from a holder of this connection's key.
    Forged,
    /// It was said, but not now: it was repeated, or others before it are missing.
    OutOfTurn {
        /// Its number.
        number: u64,
        /// The number that was due.
        expected: u64,
    },
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SealError::Forged => f.write_str("a message came that was altered or forged on the way"),
            SealError::OutOfTurn { number, expected } => {
                write!(
                    f,
                    "message {number} came in place of message {expected}: an attacker on the path repeats messages"
                )
            }
        }
    }
}

impl Sealer {
    pub(super) fn new(key: AgentKey) -> Sealer {
        Sealer { key, next: 0 }
    }

    /// `content` with the next number and the proof.
    pub fn seal(&mut self, content: &[u8]) -> Vec<u8> {
        let number = self.next.to_be_bytes();
        self.next += 1;
        let tag = self.key.tag(PURPOSE, &[&number, content]);
        [&number[..], content, &tag].concat()
    }
}

impl Opener {
    pub(super) fn new(key: AgentKey) -> Opener {
        Opener { key, next: 0 }
    }

    /// The sealed content.
    ///
    /// # Errors
    /// It was altered, forged or repeated.
    pub fn open(&mut self, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let (number, rest) = sealed.split_first_chunk::<8>().ok_or(SealError::Forged)?;
        let (content, tag) = rest.split_last_chunk::<TAG_BYTES>().ok_or(SealError::Forged)?;
        if !self.key.verifies(PURPOSE, &[number, content], tag) {
            return Err(SealError::Forged);
        }
        let number = u64::from_be_bytes(*number);
        if number != self.next {
            return Err(SealError::OutOfTurn { number, expected: self.next });
        }
        self.next += 1;
        Ok(content.to_vec())
    }
}

/// Both ends of one direction, with a key of its own; for tests of what takes messages.
///
/// # Errors
/// The kernel gives no random numbers.
pub fn pair() -> Result<(Sealer, Opener), crate::LabError> {
    let key = AgentKey::random()?;
    Ok((Sealer::new(key.clone()), Opener::new(key)))
}

/// Bytes that a seal adds to its content.
pub(super) const SEAL_BYTES: usize = 8 + TAG_BYTES;
const PURPOSE: &str = "message";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_opened_once_and_in_order() {
        let (mut sealer, mut opener) = pair().expect("a key");
        let (one, two) = (sealer.seal(b"one"), sealer.seal(b"two"));
        assert_eq!(opener.open(&two), Err(SealError::OutOfTurn { number: 1, expected: 0 }));
        assert_eq!(opener.open(&one).as_deref(), Ok(&b"one"[..]));
        assert_eq!(opener.open(&one), Err(SealError::OutOfTurn { number: 0, expected: 1 }), "repeated");
        assert_eq!(opener.open(&two).as_deref(), Ok(&b"two"[..]));
    }

    #[test]
    fn no_altered_bit_is_taken() {
        let (mut sealer, mut opener) = pair().expect("a key");
        let sealed = sealer.seal(b"start");
        for bit in 0..8 * sealed.len() {
            let mut altered = sealed.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(opener.open(&altered), Err(SealError::Forged), "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert_eq!(opener.open(&sealed[..length]), Err(SealError::Forged), "{length} bytes");
        }
        assert!(opener.open(&sealed).is_ok());
    }

    #[test]
    fn what_was_said_in_another_connection_is_forged_here() {
        let (mut sealer, _) = pair().expect("a key");
        let (_, mut opener) = pair().expect("another key");
        assert_eq!(opener.open(&sealer.seal(b"one")), Err(SealError::Forged));
    }
}
