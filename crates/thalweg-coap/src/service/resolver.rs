//! Host names of other things and their addresses.

use std::collections::HashMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::time::Duration;

use thalweg_base::time::Instant;

use crate::resource::ResourceError;
use crate::scheduler::thread_pool::{ThreadGroup, ThreadPoolManager};
use crate::service::client::{Order, Shared};

/// Finds addresses without holding anybody up: the system's resolver may take seconds.
pub(super) struct Resolver {
    shared: Arc<Shared>,
    threads: Arc<ThreadPoolManager>,
    known: HashMap<String, (SocketAddr, Instant)>,
    questions: Option<SyncSender<String>>,
}

/// What is known of an address.
pub(super) enum Found {
    Address(SocketAddr),
    /// [`Order::Resolved`] comes.
    Asked,
    /// Too many are asked for.
    Refused(ResourceError),
}

impl Resolver {
    pub(super) fn new(shared: Arc<Shared>, threads: Arc<ThreadPoolManager>) -> Resolver {
        Resolver { shared, threads, known: HashMap::new(), questions: None }
    }

    /// The address of a thing, `host:port`.
    pub(super) fn find(&mut self, now: Instant, thing: &str) -> Found {
        if let Ok(address) = thing.parse() {
            return Found::Address(address);
        }
        if let Some((address, until)) = self.known.get(thing)
            && now < *until
        {
            return Found::Address(*address);
        }
        match self.ask(thing) {
            Ok(()) => Found::Asked,
            Err(error) => Found::Refused(error),
        }
    }

    /// Remembers what was found.
    pub(super) fn handle_found(&mut self, now: Instant, thing: &str, address: SocketAddr) {
        if self.known.len() >= NAMES_MAX {
            self.known.retain(|_, (_, until)| now < *until);
        }
        if self.known.len() < NAMES_MAX {
            self.known.insert(thing.to_owned(), (address, now + REMEMBERED));
        }
    }

    fn ask(&mut self, thing: &str) -> Result<(), ResourceError> {
        // A thread that ended takes no question; there may be one to start anew.
        for _ in 0..2 {
            let questions = match &self.questions {
                Some(questions) => questions,
                None => {
                    let started =
                        self.start().map_err(|error| unavailable(format!("no thread resolves names: {error}")))?;
                    self.questions.insert(started)
                }
            };
            match questions.try_send(thing.to_owned()) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(_)) => return Err(unavailable("too many host names wait already".to_owned())),
                Err(TrySendError::Disconnected(_)) => self.questions = None,
            }
        }
        Err(unavailable("no thread resolves names".to_owned()))
    }

    fn start(&self) -> std::io::Result<SyncSender<String>> {
        let (sender, questions) = mpsc::sync_channel::<String>(QUESTIONS_MAX);
        let shared = Arc::clone(&self.shared);
        self.threads.spawn(ThreadGroup::Interaction, "resolver", move || {
            while let Ok(thing) = questions.recv_timeout(IDLE_MAX) {
                let outcome = resolve(&thing);
                shared.submit(Order::Resolved { thing, outcome });
            }
        })?;
        Ok(sender)
    }
}

fn resolve(thing: &str) -> Result<SocketAddr, ResourceError> {
    let unknown = |reason: String| ResourceError::NoAnswer(format!("{thing} is no host to reach: {reason}"));
    let mut addresses = thing.to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
    addresses.next().ok_or_else(|| unknown("the resolver knows no address".to_owned()))
}

fn unavailable(reason: String) -> ResourceError {
    ResourceError::Unavailable(reason, Duration::from_secs(1))
}

/// Names that are remembered.
const NAMES_MAX: usize = 16_384;
/// Time for which an address is used without asking again; the system's resolver does not tell how long it holds.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Names that may wait for the resolver.
const QUESTIONS_MAX: usize = 16_384;
/// After this time without a question its thread ends.
const IDLE_MAX: Duration = Duration::from_secs(10);
