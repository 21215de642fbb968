//! Keys, nonces and authenticated encryption (RFC 8613 §3.2.1, §5.2, §5.4; AES-CCM by RFC 9053 §4.2).

use std::fmt;

use aes::Aes128;
use ccm::aead::inout::InOutBuf;
use ccm::aead::{AeadInOut, KeyInit};
use ccm::consts::{U8, U13};
use hkdf::Hkdf;
use minicbor::Encoder;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::ContextParameters;
use super::partial_iv::PartialIv;

/// AES-CCM-16-64-128: a key of 16 bytes, a nonce of 13, a tag of 8.
type AesCcm = ccm::Ccm<Aes128, U8, U13>;

const KEY_LEN: usize = 16;
const NONCE_LEN: usize = 13;
/// Bytes that protection adds to a plaintext.
pub(super) const TAG_LEN: usize = 8;
/// The number of AES-CCM-16-64-128 (RFC 9053 §4.2).
const ALGORITHM: u8 = 10;
/// Version of OSCORE in the authenticated data.
const VERSION: u8 = 1;

/// Bytes of an ID at most: the room in the nonce.
pub(super) const ID_LEN_MAX: usize = NONCE_LEN - 6;

/// The purpose of a derived key.
#[derive(Clone, Copy)]
pub(super) struct Sealed<'a> {
    /// Whose Partial IV the nonce is made of.
    pub id: &'a [u8],
    pub partial_iv: PartialIv,
    /// The request that the message is, or answers.
    pub request: RequestName<'a>,
}

/// The request's part of the authenticated data.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestName<'a> {
    pub kid: &'a [u8],
    pub partial_iv: PartialIv,
}

/// The derived keys. They are wiped when they are dropped.
pub(super) struct Keys {
    sender: AesCcm,
    recipient: AesCcm,
    common_iv: Zeroizing<[u8; NONCE_LEN]>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Keys")
    }
}

impl Keys {
    pub fn derive(parameters: &ContextParameters) -> Keys {
        let cipher = |id: &[u8]| {
            let mut key = Zeroizing::new([0; KEY_LEN]);
            expand(parameters, id, "Key", &mut *key);
            AesCcm::new((&*key).into())
        };
        let mut common_iv = Zeroizing::new([0; NONCE_LEN]);
        expand(parameters, &[], "IV", &mut *common_iv);
        Keys { sender: cipher(parameters.sender_id()), recipient: cipher(parameters.recipient_id()), common_iv }
    }

    /// Encrypts a plaintext in place and appends the tag.
    pub fn seal(&self, sealed: &Sealed<'_>, plaintext: &mut Vec<u8>) {
        let (nonce, aad) = (self.nonce(sealed), authenticated(&sealed.request));
        let tag = self.sender.encrypt_inout_detached(&nonce.into(), &aad, InOutBuf::from(plaintext.as_mut_slice()));
        let tag = tag.expect("CoAP messages are shorter than the 64 KiB that this nonce length allows");
        plaintext.extend_from_slice(&tag);
    }

    /// Decrypts a ciphertext with its tag; `None` when it was not sealed so with these keys.
    pub fn open(&self, sealed: &Sealed<'_>, ciphertext: &[u8]) -> Option<Vec<u8>> {
        let (text, tag) = ciphertext.split_last_chunk::<TAG_LEN>()?;
        let (nonce, aad) = (self.nonce(sealed), authenticated(&sealed.request));
        let mut plaintext = text.to_vec();
        let buffer = InOutBuf::from(plaintext.as_mut_slice());
        self.recipient.decrypt_inout_detached(&nonce.into(), &aad, buffer, tag.into()).ok()?;
        Some(plaintext)
    }

    /// Length of the ID, ID and Partial IV, each padded, and the common IV over it.
    pub(super) fn nonce(&self, sealed: &Sealed<'_>) -> [u8; NONCE_LEN] {
        let mut nonce = [0; NONCE_LEN];
        nonce[0] = sealed.id.len() as u8; // At most ID_LEN_MAX.
        nonce[1 + ID_LEN_MAX - sealed.id.len()..][..sealed.id.len()].copy_from_slice(sealed.id);
        nonce[1 + ID_LEN_MAX..].copy_from_slice(&sealed.partial_iv.padded());
        nonce.iter_mut().zip(self.common_iv.iter()).for_each(|(byte, common)| *byte ^= common);
        nonce
    }
}

/// The same for all contexts with one master secret, master salt and ID context, and for no others. It tells nothing about a key.
pub(super) type CommonName = [u8; 16];

/// The name of what a context has in common with others.
pub(super) fn common_name(parameters: &ContextParameters) -> CommonName {
    let mut name = [0; 16];
    expand(parameters, &[], "Name", &mut name);
    name
}

/// Derives the value of one purpose from the master secret, as long as `out`.
pub(super) fn expand(parameters: &ContextParameters, id: &[u8], purpose: &str, out: &mut [u8]) {
    let info = info(id, parameters.id_context(), purpose, out.len() as u8); // At most 16.
    let master = Hkdf::<Sha256>::new(Some(parameters.master_salt()), parameters.master_secret());
    master.expand(&info, out).expect("HKDF-SHA-256 gives up to 8160 bytes");
}

/// The info structure of the key derivation.
pub(super) fn info(id: &[u8], id_context: Option<&[u8]>, purpose: &str, len: u8) -> Vec<u8> {
    encode(|encoder| {
        encoder.array(5)?.bytes(id)?;
        match id_context {
            Some(id_context) => encoder.bytes(id_context)?,
            None => encoder.null()?,
        };
        encoder.u8(ALGORITHM)?.str(purpose)?.u8(len)?;
        Ok(())
    })
}

/// The authenticated data of a message. There are no options of class I, so the last item is empty.
pub(super) fn authenticated(request: &RequestName<'_>) -> Vec<u8> {
    let external = encode(|encoder| {
        encoder.array(5)?.u8(VERSION)?.array(1)?.u8(ALGORITHM)?.bytes(request.kid)?;
        let partial_iv = request.partial_iv;
        encoder.bytes(&partial_iv.padded()[partial_iv.start()..])?.bytes(&[])?;
        Ok(())
    });
    encode(|encoder| {
        encoder.array(3)?.str("Encrypt0")?.bytes(&[])?.bytes(&external)?;
        Ok(())
    })
}

type EncodeError = minicbor::encode::Error<std::convert::Infallible>;

fn encode(write: impl FnOnce(&mut Encoder<&mut Vec<u8>>) -> Result<(), EncodeError>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut Encoder::new(&mut bytes)).expect("a vector takes every item");
    bytes
}
