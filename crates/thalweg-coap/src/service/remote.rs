//! Requests to other things, collapsed and cached.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::message::{Code, ETag, OptionNumber, RequestBuf, Response};
use crate::resource::{
    Clock, Fetched, FlightId, NetworkStore, NetworkStoreCounters, RemoteAnswer, RemoteAsked, RemoteKey, RemoteName,
    ResourceError, ResourceRepresentation, Tagged,
};

/// Takes the answer to one request.
pub type ResponseCompletion = Box<dyn FnOnce(Result<Response, ResourceError>) + Send>;

/// Takes the notifications of an observed resource, and why there are none for now: a failed observation is registered anew.
pub type ResponseListener = Box<dyn FnMut(Result<Response, ResourceError>) + Send>;

/// Reaches other things: a CoAP client.
pub trait Remote: Send + Sync {
    /// Sends a request and returns at once; `completion` is called exactly once, on any thread.
    fn request(&self, thing: &str, request: RequestBuf, completion: ResponseCompletion);

    /// Whether requests to a thing are protected with keys of this side, which not everybody may use.
    fn is_protected(&self, _thing: &str) -> bool {
        false
    }

    /// Registers for notifications, which `listener` gets until the observation is dropped.
    fn observe(&self, thing: &str, request: RequestBuf, listener: ResponseListener) -> Box<dyn RemoteObservation>;
}

/// A registration at another thing; it ends when this is dropped.
pub trait RemoteObservation: Send + Sync {}

type Waiter = SyncSender<Result<Tagged, ResourceError>>;

/// The network store and the way to other things.
#[derive(Clone)]
pub(super) struct Network {
    remote: Arc<dyn Remote>,
    known: RemoteKnowledge,
}

/// What is known of other things. Answers that are under way hold this alone: the way to the things may go before they come.
#[derive(Clone)]
struct RemoteKnowledge {
    store: Arc<Mutex<NetworkStore<Waiter>>>,
    clock: Clock,
}

impl Network {
    pub(super) fn new(remote: Arc<dyn Remote>, store_bytes_max: usize, clock: Clock) -> Network {
        Network {
            remote,
            known: RemoteKnowledge { store: Arc::new(Mutex::new(NetworkStore::new(store_bytes_max))), clock },
        }
    }

    /// A representation: from the store while it is fresh, else from the one request that is under way. `hops` is the Hop-Limit
    /// with which the request of a client goes on (RFC 8768).
    pub(super) fn get(&self, key: &RemoteKey, hops: Option<u8>, patience: Duration) -> Result<Tagged, ResourceError> {
        let (sender, answer) = mpsc::sync_channel(1);
        let asked = {
            let mut store = self.known.store();
            store.handle_relayed((self.known.clock)(), key, hops, || sender)
        };
        match asked {
            RemoteAsked::Known(known) => return Ok(known),
            RemoteAsked::Joined => {}
            RemoteAsked::Refused => {
                let reason = "too many requests to other things are under way".to_owned();
                return Err(ResourceError::Unavailable(reason, Duration::from_secs(1)));
            }
            RemoteAsked::Begin { flight, etag } => {
                // A proxy may wait for the same answer.
                let mut request = get_request(key).forwarded();
                if let Some(etag) = etag {
                    request = request.with_option(OptionNumber::ETAG, &etag);
                }
                if let Some(hops) = hops {
                    request = request.with_option(OptionNumber::HOP_LIMIT, &[hops]);
                }
                let (known, answered) = (self.known.clone(), key.clone());
                let completion = move |outcome| known.handle_answer(flight, &answered.name, outcome);
                self.remote.request(&key.name.thing, request, Box::new(completion));
            }
        }
        match answer.recv_timeout(patience) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Err(no_answer(&key.name)),
        }
    }

    /// Sends a request that changes state, and drops the stored representations of its resource.
    pub(super) fn put(&self, name: &RemoteName, request: RequestBuf, patience: Duration) -> Result<(), ResourceError> {
        let (sender, answer) = mpsc::sync_channel(1);
        let (known, changed) = (self.known.clone(), name.clone());
        let completion = move |outcome| {
            known.store().handle_action(&changed);
            // The receiver is gone when it took too long.
            let _ = sender.send(outcome);
        };
        self.remote.request(&name.thing, request, Box::new(completion));
        let outcome = answer.recv_timeout(patience).unwrap_or_else(|_| Err(no_answer(name)));
        let response = outcome?;
        if response.code.is_success() { Ok(()) } else { Err(refused(name, &response)) }
    }

    /// Registers for notifications; they are kept in the store as well.
    pub(super) fn observe(
        &self,
        key: &RemoteKey,
        mut listener: impl FnMut(Result<ResourceRepresentation, ResourceError>) + Send + 'static,
    ) -> Box<dyn RemoteObservation> {
        let (known, observed) = (self.known.clone(), key.clone());
        self.watch(key, move |outcome| {
            let told = outcome.map(|(representation, etag)| {
                let now = (known.clock)();
                known.store().handle_notification(now, &observed, representation.clone(), etag);
                representation
            });
            listener(told);
        })
    }

    /// Registers for notifications, which the listener alone keeps, with their tags.
    pub(super) fn watch(
        &self,
        key: &RemoteKey,
        mut listener: impl FnMut(Result<(ResourceRepresentation, Option<ETag>), ResourceError>) + Send + 'static,
    ) -> Box<dyn RemoteObservation> {
        let observed = key.name.clone();
        let notified = move |outcome: Result<Response, ResourceError>| {
            listener(outcome.and_then(|response| {
                if response.code != Code::CONTENT {
                    return Err(refused(&observed, &response));
                }
                let etag = response.etag;
                Ok((representation(response), etag))
            }));
        };
        self.remote.observe(&key.name.thing, get_request(key), Box::new(notified))
    }

    pub(super) fn forget(&self, name: &RemoteName) {
        self.known.store().handle_action(name);
    }

    pub(super) fn forgetter(&self, name: &RemoteName) -> impl Fn() + Send + Sync + use<> {
        let (store, name) = (Arc::clone(&self.known.store), name.clone());
        move || store.lock().unwrap_or_else(PoisonError::into_inner).handle_action(&name)
    }

    pub(super) fn counters(&self) -> NetworkStoreCounters {
        self.known.store().counters()
    }
}

impl RemoteKnowledge {
    fn handle_answer(&self, flight: FlightId, name: &RemoteName, outcome: Result<Response, ResourceError>) {
        let fetched = outcome.and_then(|response| match response.code {
            Code::CONTENT => {
                let etag = response.etag;
                Ok(Fetched::Content(representation(response), etag))
            }
            Code::VALID => Ok(Fetched::Valid(max_age(&response), response.options)),
            _ => Err(refused(name, &response)),
        });
        let RemoteAnswer { waiters, outcome } = {
            let mut store = self.store();
            store.handle_answer((self.clock)(), flight, fetched)
        };
        for waiter in waiters {
            // The receiver is gone when the answer came too late for it.
            let _ = waiter.try_send(outcome.clone());
        }
    }

    fn store(&self) -> std::sync::MutexGuard<'_, NetworkStore<Waiter>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Network({:?})", self.counters())
    }
}

/// A request with the name by which the other thing is known, if it is known by a name (RFC 7252 §6.4).
pub(crate) fn with_host(name: &RemoteName, request: RequestBuf) -> RequestBuf {
    let host = name.thing.rsplit_once(':').map_or(name.thing.as_str(), |(host, _)| host);
    // An address with a zone is only read together with its port.
    let is_address =
        host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() || name.thing.parse::<SocketAddr>().is_ok();
    if is_address { request } else { request.with_option(OptionNumber::URI_HOST, host.as_bytes()) }
}

fn get_request(key: &RemoteKey) -> RequestBuf {
    let request = with_host(&key.name, RequestBuf::get(&format!("/{}", key.name.path)));
    match key.accept {
        Some(format) => request.with_accept(format),
        None => request,
    }
}

fn representation(response: Response) -> ResourceRepresentation {
    let max_age = max_age(&response);
    let Response { content_format, options, payload, .. } = response;
    ResourceRepresentation { content_format, payload: payload.into_vec(), max_age, options }
}

/// Time for which a response stays fresh; 60 s unless it says (RFC 7252 §5.10.5).
fn max_age(response: &Response) -> Duration {
    Duration::from_secs(u64::from(response.max_age.unwrap_or(60)))
}

fn no_answer(name: &RemoteName) -> ResourceError {
    ResourceError::NoAnswer(format!("{} gave no answer about /{}; is it running and reachable?", name.thing, name.path))
}

fn refused(name: &RemoteName, response: &Response) -> ResourceError {
    let text = String::from_utf8_lossy(&response.payload);
    if response.code == Code::HOP_LIMIT_REACHED {
        return ResourceError::HopLimitReached(text.into_owned());
    }
    let reason = format!("{} answered {:?} to /{} {text}", name.thing, response.code, name.path);
    ResourceError::Answered(Arc::new(response.clone()), reason.trim_end().to_owned())
}
