//! To whom a registration belongs (RFC 9176 §7).

use std::net::IpAddr;
use std::sync::Arc;

use super::DirectoryError;
use crate::endpoint::{Peer, PeerHost};
use crate::identity::{Caller, SessionIdentity};

/// What a directory remembers of the client that made a registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Registrant {
    /// The program that holds the directory.
    Program,
    /// A client that proved nothing, and its address, which may be forged over UDP.
    Address(IpAddr),
    /// What a client proved.
    Proved { session: Option<Arc<SessionIdentity>>, oscore: Option<OscoreName> },
}

/// The name of an OSCORE context: of two with the same, one is the successor of the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OscoreName {
    recipient_id: Vec<u8>,
    id_context: Option<Vec<u8>>,
}

impl Registrant {
    pub(super) fn of(caller: Option<&Caller>) -> Registrant {
        let Some(caller) = caller else { return Registrant::Program };
        if !caller.is_known() {
            return Registrant::Address(caller.address.ip().to_canonical());
        }
        let oscore = caller.oscore.as_ref().map(|context| OscoreName {
            recipient_id: context.recipient_id().to_vec(),
            id_context: context.id_context().map(<[u8]>::to_vec),
        });
        Registrant::Proved { session: caller.session.clone(), oscore }
    }

    /// Whether `client` may register in place of this one while its registration lasts: who proves all that this one proved
    /// (RFC 9176 §7.5), and instead of an address, any proof.
    ///
    /// # Errors
    /// That it may not.
    pub(super) fn admit(&self, client: &Registrant) -> Result<(), DirectoryError> {
        let is_admitted = match (self, client) {
            (
                Registrant::Proved { session, oscore },
                Registrant::Proved { session: session_now, oscore: oscore_now },
            ) => (session.is_none() || session == session_now) && (oscore.is_none() || oscore == oscore_now),
            (Registrant::Proved { .. }, Registrant::Address(_)) => return Err(DirectoryError::Unauthorized),
            (Registrant::Address(_), Registrant::Proved { .. }) => true,
            (one, other) => one == other,
        };
        if is_admitted { Ok(()) } else { Err(DirectoryError::Forbidden) }
    }

    /// The same of a client that knows the location of the registration, which stands for the address: that may change (RFC
    /// 9176 §8.2).
    ///
    /// # Errors
    /// As [`admit`](Self::admit).
    pub(super) fn admit_at_location(&self, client: &Registrant) -> Result<(), DirectoryError> {
        match self {
            Registrant::Proved { .. } => self.admit(client),
            Registrant::Program | Registrant::Address(_) => Ok(()),
        }
    }

    /// Who is remembered after `client` was admitted: what was proved first is never asked for less or more.
    pub(super) fn followed_by(&self, client: Registrant) -> Registrant {
        match self {
            Registrant::Proved { .. } | Registrant::Program => self.clone(),
            Registrant::Address(_) => client,
        }
    }

    /// The host of a client that proved nothing.
    pub(super) fn host(&self) -> Option<PeerHost> {
        match self {
            Registrant::Address(ip) => Some(Peer::from((*ip, 0)).host()),
            Registrant::Program | Registrant::Proved { .. } => None,
        }
    }

    /// Bytes that it keeps in memory, beside itself.
    pub(super) fn bytes(&self) -> usize {
        let Registrant::Proved { session, oscore } = self else { return 0 };
        let session = session.as_ref().map_or(0, |identity| match &**identity {
            SessionIdentity::PresharedKey(identity) => identity.len(),
            SessionIdentity::Certificate { subject } => subject.len(),
        });
        let oscore =
            oscore.as_ref().map_or(0, |name| name.recipient_id.len() + name.id_context.as_ref().map_or(0, Vec::len));
        session + oscore
    }
}
