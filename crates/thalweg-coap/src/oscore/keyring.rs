//! The security contexts of a server, found by `kid` and `kid context` of a request.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use super::Refusal;
use super::association::{ServerAssociation, Verified};
use super::classes;
use super::context::Context;
use super::header::OscoreHeader;
use super::owners::{Hex, IdOwners, SharedId};
use crate::message::{CoapMessage, OptionNumber};

/// Security contexts by the IDs of their peers. Finding one costs the same for one and for a million. They may be replaced
/// while endpoints use the keyring.
#[derive(Debug, Default)]
pub struct Keyring(RwLock<Names>);

/// Contexts by their names.
#[derive(Debug, Default)]
pub(super) struct Names {
    contexts: HashMap<Name, Arc<Context>>,
    /// The only context with an ID, for requests that leave the ID context out; `None` for an ID that several have.
    by_kid: HashMap<Vec<u8>, Option<Arc<Context>>>,
}

/// ID of a peer and ID context.
type Name = (Vec<u8>, Option<Vec<u8>>);

/// Why contexts cannot be used beside each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyringError {
    /// Two have the same peer ID and the same ID context, so that requests could not be told apart.
    SameName {
        /// The ID that both have as the peer's.
        recipient_id: Vec<u8>,
    },
    /// Two would use the same nonces with one key.
    SharedId(SharedId),
}

impl fmt::Display for KeyringError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyringError::SameName { recipient_id } => {
                let id = Hex(recipient_id);
                write!(formatter, "two OSCORE contexts have the recipient_id \"{id}\" and the same id_context; ")?;
                formatter.write_str("give each peer its own")
            }
            KeyringError::SharedId(error) => fmt::Display::fmt(error, formatter),
        }
    }
}

impl std::error::Error for KeyringError {}

impl Keyring {
    /// A keyring of these contexts.
    ///
    /// # Errors
    /// When two have the same peer ID and ID context, or one master secret, master salt, ID context and ID (RFC 8613 §3.3).
    pub fn new(contexts: impl IntoIterator<Item = Arc<Context>>) -> Result<Keyring, KeyringError> {
        Ok(Keyring(RwLock::new(Names::new(contexts)?)))
    }

    /// Replaces the contexts. Those that are in it no more are retired: their requests are refused, and observations that were
    /// registered with them end.
    ///
    /// # Errors
    /// As [`Keyring::new`]; the ones before hold then.
    pub fn replace(&self, contexts: impl IntoIterator<Item = Arc<Context>>) -> Result<(), KeyringError> {
        self.set(Names::new(contexts)?);
        Ok(())
    }

    /// Replaces the contexts by some that may be used beside each other.
    pub(super) fn set(&self, names: Names) {
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *held, names);
        let stays = |name: &Name, context| held.contexts.get(name).is_some_and(|other| Arc::ptr_eq(context, other));
        before.contexts.iter().filter(|(name, context)| !stays(name, context)).for_each(|(_, gone)| gone.retire());
    }

    fn find(&self, kid: &[u8], kid_context: Option<&[u8]>) -> Option<Arc<Context>> {
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let exact = names.contexts.get(&(kid.to_vec(), kid_context.map(<[u8]>::to_vec)));
        let only = || names.by_kid.get(kid).and_then(Option::as_ref).filter(|_| kid_context.is_none());
        exact.or_else(only).cloned()
    }

    /// Takes the protection off a request that has an OSCORE option. Of its readable options Uri-Host, Uri-Port and Hop-Limit
    /// count at most, and where nothing encrypted says otherwise.
    ///
    /// # Errors
    /// Why it is not believed; [`Refusal::response`] is the answer.
    pub fn verify(&self, message: &CoapMessage<'_>) -> Result<Verified, Refusal> {
        classes::check_outer(message.options)?;
        let value = message.options.value(OptionNumber::OSCORE).ok_or(Refusal::Unprotected)?;
        let header = OscoreHeader::parse(value).ok_or(Refusal::Malformed)?;
        let (Some(kid), Some(partial_iv)) = (header.kid, header.partial_iv) else { return Err(Refusal::Malformed) };
        let context = self.find(kid, header.kid_context).ok_or(Refusal::UnknownContext)?;
        let (request, age) = context.open_request(partial_iv, message)?;
        if !request.view().code.is_request() {
            return Err(Refusal::Malformed);
        }
        Ok(Verified { request, association: ServerAssociation::new(&context, partial_iv, age), age })
    }
}

impl Names {
    /// Contexts that may be used beside each other.
    pub(super) fn new(contexts: impl IntoIterator<Item = Arc<Context>>) -> Result<Names, KeyringError> {
        let (mut names, mut owners) = (Names::default(), IdOwners::default());
        for context in contexts {
            owners.add(&context, None).map_err(KeyringError::SharedId)?;
            let kid = context.recipient_id().to_vec();
            let name = (kid.clone(), context.id_context().map(<[u8]>::to_vec));
            match names.by_kid.entry(kid) {
                Entry::Vacant(entry) => {
                    entry.insert(Some(Arc::clone(&context)));
                }
                Entry::Occupied(mut entry) => {
                    entry.insert(None);
                }
            }
            if let Some(before) = names.contexts.insert(name, context) {
                return Err(KeyringError::SameName { recipient_id: before.recipient_id().to_vec() });
            }
        }
        Ok(names)
    }
}
