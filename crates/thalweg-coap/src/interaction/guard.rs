//! What requests have to prove before they reach a handler.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::identity::{AccessRules, Caller, depth_of, is_root};
use crate::message::{CoapRequest, Response};
use crate::oscore::Refusal;

/// Which requests are refused before anything looks at them; may be replaced while a server runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardRules {
    /// Paths that require protected requests (OSCORE, RFC 8613), with all paths below them; `/` for all, also those that name
    /// another server.
    pub protected: Vec<String>,
    /// Which clients may do what.
    pub access: AccessRules,
}

impl GuardRules {
    fn is_empty(&self) -> bool {
        self.protected.is_empty() && self.access.is_empty()
    }

    /// Whether a request must be protected.
    fn needs_protection(&self, request: &CoapRequest<'_>) -> bool {
        match request.is_for_proxy() {
            true => self.protected.iter().any(|path| is_root(path)),
            false => self.protects(|| request.path_segments()),
        }
    }

    fn protects<'a, S: Iterator<Item = &'a str>>(&self, segments: impl Fn() -> S) -> bool {
        self.protected.iter().any(|path| depth_of(segments(), path).is_some())
    }
}

/// The rules in force.
#[derive(Debug)]
pub(super) struct Guard {
    rules: RwLock<Arc<GuardRules>>,
    /// Whether there are no rules, so that most servers need no lock for a request.
    is_open: AtomicBool,
}

impl Default for Guard {
    fn default() -> Guard {
        Guard { rules: RwLock::default(), is_open: AtomicBool::new(true) }
    }
}

impl Guard {
    /// Replaces the rules.
    pub(super) fn set(&self, rules: GuardRules) {
        let mut held = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        self.is_open.store(rules.is_empty(), Ordering::Relaxed);
        *held = Arc::new(rules);
    }

    /// The rules.
    pub(super) fn rules(&self) -> Arc<GuardRules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The answer to a request that must not reach a handler.
    #[inline]
    pub(super) fn refuse(&self, request: &CoapRequest<'_>, caller: &Caller) -> Option<Response> {
        if self.is_open.load(Ordering::Relaxed) { None } else { self.refuse_by_rules(request, caller) }
    }

    fn refuse_by_rules(&self, request: &CoapRequest<'_>, caller: &Caller) -> Option<Response> {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        if caller.oscore.is_none() && rules.needs_protection(request) {
            return Some(Refusal::Unprotected.response());
        }
        rules.access.refuse(request, caller)
    }

    /// Whether an unprotected request has to be refused. Allocates nothing.
    pub(super) fn needs_protection(&self, request: &CoapRequest<'_>) -> bool {
        let is_open = self.is_open.load(Ordering::Relaxed);
        !is_open && self.rules.read().unwrap_or_else(PoisonError::into_inner).needs_protection(request)
    }

    /// Whether a path requires protected requests.
    pub(super) fn protects_path(&self, path: &str) -> bool {
        self.rules().protects(|| std::iter::once(path))
    }
}
