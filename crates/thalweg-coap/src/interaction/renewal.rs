//! Credentials that are replaced while loops use them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::credentials::Credentials;

/// Where a server leaves new credentials for a loop.
#[derive(Debug)]
pub(super) struct CredentialRenewal {
    version: AtomicU64,
    latest: Mutex<Credentials>,
}

impl CredentialRenewal {
    /// Begins with the credentials that the loop has.
    pub(super) fn new(credentials: Credentials) -> Arc<CredentialRenewal> {
        Arc::new(CredentialRenewal { version: AtomicU64::new(0), latest: Mutex::new(credentials) })
    }

    /// Leaves credentials for the loop, unless it has the same; true when it has to look.
    pub(super) fn renew(&self, credentials: &Credentials) -> bool {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if *latest == *credentials {
            return false;
        }
        latest.clone_from(credentials);
        self.version.fetch_add(1, Ordering::Release);
        true
    }
}

/// A loop's end of it.
#[derive(Debug)]
pub(super) struct RenewalReader {
    renewal: Arc<CredentialRenewal>,
    seen: u64,
}

impl RenewalReader {
    pub(super) fn new(renewal: &Arc<CredentialRenewal>) -> RenewalReader {
        RenewalReader { renewal: Arc::clone(renewal), seen: 0 }
    }

    /// Credentials that are new since the last call; costs one load where there are none.
    pub(super) fn poll(&mut self) -> Option<Credentials> {
        let version = self.renewal.version.load(Ordering::Acquire);
        if version == self.seen {
            return None;
        }
        self.seen = version;
        Some(self.renewal.latest.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}
