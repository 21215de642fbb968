//! Requests to observe whose handlers work: what changes meanwhile may be missing in their answers.

use std::collections::HashMap;

use crate::message::RequestBuf;

/// The requests, by resource.
#[derive(Debug, Default)]
pub(super) struct PendingRegistrations(HashMap<String, PendingPath>);

/// Those of one resource.
#[derive(Debug, Default)]
struct PendingPath {
    open: usize,
    /// Changes since the first of them was asked.
    changes: u64,
}

/// A request to observe.
#[derive(Debug)]
pub(super) struct PendingRegistration {
    pub request: RequestBuf,
    pub path: String,
    /// Those of its resource before its handler was asked.
    changes: u64,
    /// Whether its resource changed since: the client is to be told of a newer state than the handler may have seen (RFC 7641 §1.3).
    pub is_outdated: bool,
}

impl PendingRegistration {
    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.request.capacity() + self.path.capacity()
    }
}

impl PendingRegistrations {
    /// A handler is asked.
    pub fn begin(&mut self, request: RequestBuf) -> Box<PendingRegistration> {
        let path = request.view().path();
        let of_path = self.0.entry(path.clone()).or_default();
        of_path.open += 1;
        Box::new(PendingRegistration { request, path, changes: of_path.changes, is_outdated: false })
    }

    /// A resource changed.
    pub fn note_change(&mut self, path: &str) {
        if let Some(of_path) = self.0.get_mut(path) {
            of_path.changes += 1;
        }
    }

    /// The handler is done.
    pub fn end(&mut self, registration: &mut PendingRegistration) {
        let Some(of_path) = self.0.get_mut(&registration.path) else { return };
        registration.is_outdated = of_path.changes > registration.changes;
        of_path.open -= 1;
        if of_path.open == 0 {
            self.0.remove(&registration.path);
        }
    }
}
