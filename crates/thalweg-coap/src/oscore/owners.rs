//! Which context has which IDs: a second one with the same would use nonces that were used (RFC 8613 §3.3).

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use super::context::Context;
use super::keys::CommonName;

/// Contexts by their IDs. The IDs of a context that nobody uses any more are free.
#[derive(Debug, Default)]
pub(super) struct IdOwners(HashMap<(CommonName, Vec<u8>), Vec<Owner>>);

/// A context that has an ID, and the file that it was read from.
#[derive(Clone, Debug)]
struct Owner {
    context: Weak<Context>,
    file: Option<PathBuf>,
}

impl IdOwners {
    /// Makes a context the owner of both its IDs. The two ends of one pair have the same.
    ///
    /// # Errors
    /// When another context has one of them; nothing changes then.
    pub fn add(&mut self, context: &Arc<Context>, file: Option<&Path>) -> Result<(), SharedId> {
        let keys = [context.sender_id(), context.recipient_id()].map(|id| (*context.common_name(), id.to_vec()));
        for key in &keys {
            for owner in self.0.get(key).into_iter().flatten() {
                let Some(other) = owner.context.upgrade() else { continue };
                if !Arc::ptr_eq(&other, context) && !is_other_end(&other, context) {
                    let contexts = [ContextName::of(&other, owner.file.as_deref()), ContextName::of(context, file)];
                    return Err(SharedId { id: key.1.clone(), contexts: Box::new(contexts) });
                }
            }
        }
        for key in keys {
            let owners = self.0.entry(key).or_default();
            owners.retain(|owner| owner.context.upgrade().is_some_and(|other| !Arc::ptr_eq(&other, context)));
            owners.push(Owner { context: Arc::downgrade(context), file: file.map(Path::to_owned) });
        }
        Ok(())
    }

    /// Forgets contexts that nobody uses any more, so that reading files again and again takes no memory.
    pub fn forget_unused(&mut self) {
        self.0.retain(|_, owners| {
            owners.retain(|owner| owner.context.strong_count() > 0);
            !owners.is_empty()
        });
    }
}

/// Whether two contexts are the two ends of one pair, which one process may have both.
fn is_other_end(one: &Context, other: &Context) -> bool {
    one.sender_id() == other.recipient_id() && one.recipient_id() == other.sender_id()
}

/// Two contexts with one master secret, master salt and ID context have an ID in common, and with it a key: they would use the
/// same nonces with it, which gives messages away (RFC 8613 §3.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedId {
    /// The ID that both have.
    pub id: Vec<u8>,
    contexts: Box<[ContextName; 2]>,
}

/// How a context is called in an error.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ContextName {
    sender_id: Vec<u8>,
    recipient_id: Vec<u8>,
    file: Option<PathBuf>,
}

impl ContextName {
    fn of(context: &Context, file: Option<&Path>) -> ContextName {
        ContextName {
            sender_id: context.sender_id().to_vec(),
            recipient_id: context.recipient_id().to_vec(),
            file: file.map(Path::to_owned),
        }
    }
}

impl fmt::Display for ContextName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "sender_id \"{}\" and recipient_id \"{}\"", Hex(&self.sender_id), Hex(&self.recipient_id))?;
        match &self.file {
            Some(file) => write!(formatter, " in {}", file.display()),
            None => Ok(()),
        }
    }
}

impl fmt::Display for SharedId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, other] = &*self.contexts;
        write!(formatter, "two OSCORE contexts with the same master_secret, master_salt and id_context have the ID ")?;
        write!(formatter, "\"{}\", the one of {one} and the one of {other}, so that ", Hex(&self.id))?;
        formatter.write_str("nonces would be used twice; give each of them IDs or a master_secret of its own")
    }
}

impl std::error::Error for SharedId {}

/// Bytes as hexadecimal digits, as files have them.
pub(super) struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}
