//! Parameters that two ends agree on before they communicate (RFC 8613 §3.2).

use std::fmt;

use zeroize::Zeroizing;

use super::keys::ID_LEN_MAX;
use super::replay::ReplayWindow;

/// The input of a security context. The algorithms are those that every implementation has: AES-CCM-16-64-128 and
/// HKDF with SHA-256.
#[derive(Clone, PartialEq, Eq)]
pub struct ContextParameters {
    master_secret: Zeroizing<Vec<u8>>,
    master_salt: Vec<u8>,
    sender_id: Vec<u8>,
    recipient_id: Vec<u8>,
    id_context: Option<Vec<u8>>,
    replay_window: u32,
}

/// Secrets shorter than this could be guessed; all examples of RFC 8613 have this length.
pub const SECRET_LEN_MIN: usize = 16;
const REPLAY_WINDOW: u32 = 32;
/// The room in the option.
const ID_CONTEXT_LEN_MAX: usize = 255;

/// Why parameters cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterError {
    /// The master secret is too short.
    ShortSecret,
    /// An ID is too long for the nonce.
    LongId,
    /// Both ends have the same ID, and with it the same key and nonces.
    EqualIds,
    /// The ID context is too long for the option.
    LongIdContext,
    /// The replay window has another size than 1 to 64.
    ReplayWindow,
}

impl fmt::Display for ParameterError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterError::ShortSecret => write!(formatter, "master_secret needs at least {SECRET_LEN_MIN} bytes"),
            ParameterError::LongId => {
                write!(formatter, "sender_id and recipient_id may have {ID_LEN_MAX} bytes at most")
            }
            ParameterError::EqualIds => formatter.write_str(
                "sender_id and recipient_id must differ; what is one at this end is the other at the peer's",
            ),
            ParameterError::LongIdContext => {
                write!(formatter, "id_context may have {ID_CONTEXT_LEN_MAX} bytes at most")
            }
            ParameterError::ReplayWindow => {
                write!(formatter, "replay_window is a size from 1 to {}", ReplayWindow::SIZE_MAX)
            }
        }
    }
}

impl std::error::Error for ParameterError {}

impl ContextParameters {
    /// Parameters without salt and ID context, with a replay window of 32.
    ///
    /// # Errors
    /// When the secret is too short, an ID too long, or both IDs are the same.
    pub fn new(
        master_secret: &[u8],
        sender_id: &[u8],
        recipient_id: &[u8],
    ) -> Result<ContextParameters, ParameterError> {
        if master_secret.len() < SECRET_LEN_MIN {
            return Err(ParameterError::ShortSecret);
        }
        if sender_id.len().max(recipient_id.len()) > ID_LEN_MAX {
            return Err(ParameterError::LongId);
        }
        if sender_id == recipient_id {
            return Err(ParameterError::EqualIds);
        }
        Ok(ContextParameters {
            master_secret: Zeroizing::new(master_secret.to_vec()),
            master_salt: Vec::new(),
            sender_id: sender_id.to_vec(),
            recipient_id: recipient_id.to_vec(),
            id_context: None,
            replay_window: REPLAY_WINDOW,
        })
    }

    /// The same with a salt.
    #[must_use]
    pub fn with_salt(mut self, master_salt: &[u8]) -> ContextParameters {
        self.master_salt = master_salt.to_vec();
        self
    }

    /// The same with an ID context, which tells contexts with the same IDs apart and is sent with each request.
    ///
    /// # Errors
    /// When it is longer than 255 bytes.
    pub fn with_id_context(mut self, id_context: &[u8]) -> Result<ContextParameters, ParameterError> {
        if id_context.len() > ID_CONTEXT_LEN_MAX {
            return Err(ParameterError::LongIdContext);
        }
        self.id_context = Some(id_context.to_vec());
        Ok(self)
    }

    /// The same with another size of the replay window, 1 to 64: so far a request may be overtaken by others of its client.
    ///
    /// # Errors
    /// When the size is out of range.
    pub fn with_replay_window(mut self, size: u32) -> Result<ContextParameters, ParameterError> {
        if !(1..=ReplayWindow::SIZE_MAX).contains(&size) {
            return Err(ParameterError::ReplayWindow);
        }
        self.replay_window = size;
        Ok(self)
    }

    /// This end's ID.
    pub fn sender_id(&self) -> &[u8] {
        &self.sender_id
    }

    /// The peer's ID.
    pub fn recipient_id(&self) -> &[u8] {
        &self.recipient_id
    }

    /// The ID context, which distinguishes contexts with the same IDs.
    pub fn id_context(&self) -> Option<&[u8]> {
        self.id_context.as_deref()
    }

    pub(super) fn master_secret(&self) -> &[u8] {
        &self.master_secret
    }

    pub(super) fn master_salt(&self) -> &[u8] {
        &self.master_salt
    }

    pub(super) fn replay_window(&self) -> u32 {
        self.replay_window
    }
}

impl fmt::Debug for ContextParameters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ContextParameters { sender_id, recipient_id, id_context, .. } = self;
        write!(formatter, "Parameters {{ sender_id: {sender_id:02x?}, recipient_id: {recipient_id:02x?}")?;
        write!(formatter, ", id_context: {id_context:02x?}, .. }}")
    }
}
