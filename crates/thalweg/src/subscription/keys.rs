//! The instances of a raw topic's samples: computed by the application's function, on a thread of the reader that waits for them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use thalweg_cdr as cdr;
use thalweg_rtps::participant::KeyOf;
use thalweg_rtps::reader::{Identified, KeyRequest};
use thalweg_rtps::shared::debug_assert_none_held;
use thalweg_rtps::types::KeyHash;
use thalweg_transport::clock;

use super::ReaderCell;
use crate::runtime::RuntimeState;

/// Most samples of one writer whose keys are computed before the reader is told.
const BATCH_MAX: usize = 64;
/// Longest wait of the first of them for the others, plus the duration of one call.
const BATCH_FOR: Duration = Duration::from_micros(200);

/// The work of a reader's key thread.
pub(super) struct Keys {
    state: Arc<RuntimeState>,
    cell: Arc<ReaderCell>,
    key_of: KeyOf,
    /// Whether a panic of the function was logged.
    has_panicked: AtomicBool,
}

impl Keys {
    pub(super) fn new(state: Arc<RuntimeState>, cell: Arc<ReaderCell>, key_of: KeyOf) -> Keys {
        Keys { state, cell, key_of, has_panicked: AtomicBool::new(false) }
    }

    /// Starts the thread. It ends by itself once the reader is closed and a call under way has returned; no thread waits for it,
    /// since the application's function may take long.
    pub(super) fn start(self) -> std::io::Result<()> {
        thread::Builder::new().name("thalweg-keys".into()).spawn(move || self.run()).map(drop)
    }

    fn run(self) {
        let (mut requests, mut answers) = (Vec::new(), Vec::new());
        while self.cell.wait_for_keys(BATCH_MAX, &mut requests) {
            let mut since = clock::now();
            for request in requests.drain(..) {
                let KeyRequest { writer, sequence, .. } = request;
                answers.push(Identified { writer, sequence, instance: self.instance_of(&request) });
                let now = clock::now();
                if now.since(since) > BATCH_FOR {
                    self.tell(&mut answers);
                    since = now;
                }
            }
            self.tell(&mut answers);
        }
    }

    /// Calls the function, with no lock held. A panic in it is an answer as well: there is no key.
    fn instance_of(&self, request: &KeyRequest) -> Option<KeyHash> {
        if request.content.len() < cdr::ENCAPSULATION_BYTES {
            return None;
        }
        debug_assert_none_held();
        let computed = catch_unwind(AssertUnwindSafe(|| (self.key_of)(&request.content, request.content_kind)));
        computed.unwrap_or_else(|_| {
            if !self.has_panicked.swap(true, Ordering::Relaxed) {
                let topic = &self.cell.topic.name;
                tracing::error!("the key function of topic {topic:?} panicked; such samples have no key");
            }
            None
        })
    }

    fn tell(&self, answers: &mut Vec<Identified>) {
        if answers.is_empty() {
            return;
        }
        let (outcome, arm) = self.cell.reader.lock().handle_keys(clock::now(), answers.drain(..));
        self.state.rearm(self.cell.guid().entity, arm);
        if outcome.data_available {
            self.state.announce_data(&self.cell);
        }
    }
}
