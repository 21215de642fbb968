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
use crate::message::{CoapMessage, OptionNumber};

/// Security contexts by the IDs of their peers. Finding one costs the same for one and for a million. They may be replaced
/// while endpoints use the keyring.
#[derive(Debug, Default)]
pub struct Keyring(RwLock<Names>);

/// Contexts by their names.
#[derive(Debug, Default)]
struct Names {
    contexts: HashMap<Name, Arc<Context>>,
    /// The only context with an ID, for requests that leave the ID context out; `None` for an ID that several have.
    by_kid: HashMap<Vec<u8>, Option<Arc<Context>>>,
}

/// ID of a peer and ID context.
type Name = (Vec<u8>, Option<Vec<u8>>);

/// Two contexts have the same peer ID and the same ID context, so that requests could not be told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SameName {
    /// The ID that both have as the peer's.
    pub recipient_id: Vec<u8>,
}

impl fmt::Display for SameName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("two OSCORE contexts have the recipient_id \"")?;
        self.recipient_id.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))?;
        formatter.write_str("\" and the same id_context; give each peer its own")
    }
}

impl std::error::Error for SameName {}

impl Keyring {
    /// A keyring of these contexts.
    ///
    /// # Errors
    /// When two have the same peer ID and ID context.
    pub fn new(contexts: impl IntoIterator<Item = Arc<Context>>) -> Result<Keyring, SameName> {
        Ok(Keyring(RwLock::new(Names::new(contexts)?)))
    }

    /// Replaces the contexts. Those that are in it no more are retired: their requests are refused, and observations that were
    /// registered with them end.
    ///
    /// # Errors
    /// As [`Keyring::new`]; the ones before hold then.
    pub fn replace(&self, contexts: impl IntoIterator<Item = Arc<Context>>) -> Result<(), SameName> {
        let names = Names::new(contexts)?;
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *held, names);
        let stays = |name: &Name, context| held.contexts.get(name).is_some_and(|other| Arc::ptr_eq(context, other));
        before.contexts.iter().filter(|(name, context)| !stays(name, context)).for_each(|(_, gone)| gone.retire());
        Ok(())
    }

    fn find(&self, kid: &[u8], kid_context: Option<&[u8]>) -> Option<Arc<Context>> {
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let exact = names.contexts.get(&(kid.to_vec(), kid_context.map(<[u8]>::to_vec)));
        let only = || names.by_kid.get(kid).and_then(Option::as_ref).filter(|_| kid_context.is_none());
        exact.or_else(only).cloned()
    }

    /// Takes the protection off a request that has an OSCORE option.
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
    fn new(contexts: impl IntoIterator<Item = Arc<Context>>) -> Result<Names, SameName> {
        let mut names = Names::default();
        for context in contexts {
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
                return Err(SameName { recipient_id: before.recipient_id().to_vec() });
            }
        }
        Ok(names)
    }
}
