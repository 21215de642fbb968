//! What requests have to prove before they reach a handler.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::identity::{AccessRules, Caller, depth_of, is_root, unescaped};
use crate::message::{CoapRequest, Response};
use crate::oscore::Refusal;

/// Which requests are refused before anything looks at them; may be replaced while a server runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardRules {
    /// Paths that require protected requests (OSCORE, RFC 8613), with all paths below them; `/` for all, also those that name
    /// another server. They have no escapes: a `%` stands for itself.
    pub protected: Vec<String>,
    /// Which clients may do what.
    pub access: AccessRules,
}

impl GuardRules {
    fn is_empty(&self) -> bool {
        self.protected.is_empty() && self.access.is_empty()
    }

    /// The answer to a request that must not reach a handler.
    pub(crate) fn refuse(&self, request: &CoapRequest<'_>, caller: &Caller) -> Option<Response> {
        if caller.oscore.is_none() && self.needs_protection(request) {
            return Some(Refusal::Unprotected.response());
        }
        self.access.refuse(request, caller)
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
pub(crate) struct Guard {
    /// A request has to pass all of them: one, but in the middle of a change.
    rules: RwLock<Vec<Arc<GuardRules>>>,
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
    pub(crate) fn set(&self, rules: GuardRules) {
        self.change(|held| *held = vec![Arc::new(rules)]);
    }

    /// Puts rules in force beside those before, until some are [`set`](Self::set): while what they are about changes, a request
    /// has to pass both.
    pub(crate) fn add(&self, rules: GuardRules) {
        self.change(|held| held.push(Arc::new(rules)));
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Arc<GuardRules>>)) {
        let mut held = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut held);
        self.is_open.store(held.iter().all(|rules| rules.is_empty()), Ordering::Relaxed);
    }

    /// The rules; in the middle of a change the new ones.
    pub(crate) fn rules(&self) -> Arc<GuardRules> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).last().cloned().unwrap_or_default()
    }

    /// All rules that a request has to pass now.
    pub(crate) fn in_force(&self) -> Vec<Arc<GuardRules>> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps the rules as they are while `run` runs.
    #[cfg(test)]
    pub(crate) fn hold<T>(&self, run: impl FnOnce() -> T) -> T {
        let _held = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        run()
    }

    /// The answer to a request that must not reach a handler.
    #[inline]
    pub(crate) fn refuse(&self, request: &CoapRequest<'_>, caller: &Caller) -> Option<Response> {
        if self.is_open.load(Ordering::Relaxed) { None } else { self.refuse_by_rules(request, caller) }
    }

    fn refuse_by_rules(&self, request: &CoapRequest<'_>, caller: &Caller) -> Option<Response> {
        let held = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        held.iter().find_map(|rules| rules.refuse(request, caller))
    }

    /// Whether an unprotected request has to be refused. Allocates nothing.
    pub(super) fn needs_protection(&self, request: &CoapRequest<'_>) -> bool {
        if self.is_open.load(Ordering::Relaxed) {
            return false;
        }
        let held = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        held.iter().any(|rules| rules.needs_protection(request))
    }

    /// Whether the target of a link, with escapes or without, requires protected requests.
    pub(super) fn protects_path(&self, target: &str) -> bool {
        let rules = self.rules();
        let protects = |path: &str| rules.protects(|| std::iter::once(path));
        protects(target) || unescaped(target).is_some_and(|path| protects(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Transport;
    use crate::interaction::routes::Routes;
    use crate::message::RequestBuf;

    #[test]
    fn in_the_middle_of_a_change_a_request_passes_both_rules_or_none() {
        let rules = |protected: &[&str], access: &str| GuardRules {
            protected: protected.iter().map(|path| (*path).to_owned()).collect(),
            access: AccessRules::new([access.parse().unwrap()]),
        };
        let caller = Caller::anonymous("192.0.2.1:5683".parse().unwrap(), Transport::Udp);
        let guard = Guard::default();
        let open = || {
            let is_open = |path: &&str| guard.refuse(&RequestBuf::get(path).view(), &caller).is_none();
            ["/a", "/b", "/c", "/d"].into_iter().filter(is_open).collect::<String>()
        };
        assert_eq!(open(), "/a/b/c/d");
        guard.set(rules(&["a"], "/b any none"));
        assert_eq!(open(), "/c/d");
        guard.add(rules(&["c"], "/b any any"));
        assert_eq!(open(), "/d");
        assert!(["/a", "/c"].iter().all(|path| guard.needs_protection(&RequestBuf::get(path).view())));
        guard.set(rules(&["c"], "/b any any"));
        assert_eq!(open(), "/a/b/d");
        guard.set(GuardRules::default());
        assert_eq!(open(), "/a/b/c/d");
    }

    #[test]
    fn a_protected_path_may_be_written_with_escapes_and_its_link_as_well() {
        let routes = Routes::new().protect("/a%20b").protect("/50%25");
        let needs = |path: &str| routes.needs_protection(&RequestBuf::get(path).view());
        assert!(needs("/a%20b/c") && needs("/50%25") && !needs("/a"));
        let guard = Guard::default();
        guard.set(GuardRules { protected: vec!["/a b".to_owned()], ..GuardRules::default() });
        assert!(guard.protects_path("/a%20b") && guard.protects_path("/a b/c") && !guard.protects_path("/a"));
    }
}
