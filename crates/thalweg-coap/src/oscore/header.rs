//! The value of the OSCORE option: the unencrypted part of a COSE object, compressed (RFC 8613 §6.1).

use super::partial_iv::{LEN_MAX, PartialIv};

/// The parameters in the value of an OSCORE option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OscoreHeader<'a> {
    /// The sender's sequence number. Always there in a request; in a response only if it is not protected with the nonce
    /// of its request.
    pub partial_iv: Option<PartialIv>,
    /// Which of several security contexts with the same `kid` is meant.
    pub kid_context: Option<&'a [u8]>,
    /// The sender's ID. Always there in a request.
    pub kid: Option<&'a [u8]>,
}

/// The lowest three bits of the first byte: length of the Partial IV.
const LEN_MASK: u8 = 0x07;
const KID: u8 = 0x08;
const KID_CONTEXT: u8 = 0x10;
const RESERVED: u8 = 0xe0;

impl<'a> OscoreHeader<'a> {
    /// Reads an option's value; `None` when it has not the form of RFC 8613 §6.1.
    pub fn parse(value: &'a [u8]) -> Option<OscoreHeader<'a>> {
        let Some((&flags, rest)) = value.split_first() else { return Some(OscoreHeader::default()) };
        let len = usize::from(flags & LEN_MASK);
        // A first byte of zero would say nothing: then the value has no bytes.
        if flags & RESERVED != 0 || flags == 0 || len > LEN_MAX {
            return None;
        }
        let (partial_iv, rest) = rest.split_at_checked(len)?;
        let partial_iv = if len > 0 { Some(PartialIv::parse(partial_iv)?) } else { None };
        let (kid_context, rest) = if flags & KID_CONTEXT != 0 {
            let (len, rest) = rest.split_first()?;
            let (kid_context, rest) = rest.split_at_checked(usize::from(*len))?;
            (Some(kid_context), rest)
        } else {
            (None, rest)
        };
        let kid = (flags & KID != 0).then_some(rest);
        (kid.is_some() || rest.is_empty()).then_some(OscoreHeader { partial_iv, kid_context, kid })
    }

    /// The option's value.
    ///
    /// # Panics
    /// When the kid context is longer than 255 bytes; those of [`ContextParameters`](super::ContextParameters) are not.
    pub fn encode(&self) -> Vec<u8> {
        let mut flags = 0;
        let mut value = vec![0];
        if let Some(partial_iv) = self.partial_iv {
            let bytes = &partial_iv.padded()[partial_iv.start()..];
            flags |= bytes.len() as u8; // At most five.
            value.extend_from_slice(bytes);
        }
        if let Some(kid_context) = self.kid_context {
            flags |= KID_CONTEXT;
            value.push(u8::try_from(kid_context.len()).expect("ID contexts have 255 bytes at most"));
            value.extend_from_slice(kid_context);
        }
        if let Some(kid) = self.kid {
            flags |= KID;
            value.extend_from_slice(kid);
        }
        if flags == 0 {
            return Vec::new();
        }
        value[0] = flags;
        value
    }
}
