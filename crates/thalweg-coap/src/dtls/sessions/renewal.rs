//! Other credentials while sessions and handshakes go on.

use thalweg_base::time::Instant;

use super::{Entry, Over, Sessions};
use crate::credentials::Credentials;
use crate::dtls::DtlsError;
use crate::identity::SessionIdentity;

impl Sessions {
    /// Takes other credentials. Sessions whose client could not begin one now end: those of a pre-shared key that is gone or
    /// another one, and those of certificates where others are believed. Handshakes go on under the same condition: a key is
    /// looked up among the new ones, and a client that cannot go on is told so.
    ///
    /// # Errors
    /// As [`Sessions::new`]; the ones before hold then.
    pub fn set_credentials(&mut self, now: Instant, credentials: &Credentials) -> Result<(), DtlsError> {
        let trust = credentials.trust.clone();
        let side = self.side.renewed(
            &credentials.keys,
            credentials.certificate.as_ref(),
            trust.is_some(),
            self.limits.handshake_max,
        )?;
        let before = std::mem::replace(&mut self.side, side);
        let is_other_trust = std::mem::replace(&mut self.trust, trust) != self.trust;
        let is_gone = |entry: &Entry| match entry.identity.as_deref() {
            Some(SessionIdentity::PresharedKey(identity)) => before.key(identity) != self.side.key(identity),
            None if entry.stage.is_handshake() && entry.association.is_preshared() => false,
            Some(SessionIdentity::Certificate { .. }) | None => is_other_trust,
        };
        let gone: Vec<u64> = self.entries.iter().filter(|(_, entry)| is_gone(entry)).map(|(id, _)| id).collect();
        for id in gone {
            match self.entries.get(id).map(|entry| entry.stage.is_handshake()) {
                Some(true) => self.end(id, &Over::Failed),
                Some(false) => self.retire(now, id),
                None => {}
            }
        }
        Ok(())
    }
}
