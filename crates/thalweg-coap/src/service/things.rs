//! The API of applications: resources of this and of other things.

use std::sync::Arc;
use std::time::Duration;

use crate::device::{Unit, Value};
use crate::message::{Code, ETag, RequestBuf, content_format};
use crate::resource::{
    Clock, Get, LocalStore, NetworkStoreCounters, Property, Put, RemoteKey, RemoteName, Resource, ResourceError,
    ResourceRepresentation, StoreError,
};
use crate::service::observation::Observation;
use crate::service::remote::{Network, Remote, RemoteObservation, with_host};
use crate::service::{NameError, ResourceName};

/// The resources that an application can reach. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Things {
    local: LocalStore,
    network: Network,
    clock: ClockOf,
    patience: Duration,
}

/// A clock that needs no debug text.
#[derive(Clone)]
struct ClockOf(Clock);

impl std::fmt::Debug for ClockOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

impl Things {
    /// Resources of this thing in `local`, and others that `remote` reaches. Of their answers `store_bytes_max` bytes are
    /// kept. A request waits 93 s at the longest, as CoAP's own do (MAX_TRANSMIT_WAIT, RFC 7252 §4.8.2).
    pub fn new(local: LocalStore, remote: Arc<dyn Remote>, store_bytes_max: usize, clock: Clock) -> Things {
        let network = Network::new(remote, store_bytes_max, Arc::clone(&clock));
        Things { local, network, clock: ClockOf(clock), patience: TRANSMIT_WAIT }
    }

    /// The same, with requests that wait no longer than this.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Things {
        self.patience = patience;
        self
    }

    /// The present state of a resource, in the format that it prefers.
    ///
    /// # Errors
    /// [`ResourceError::BadRequest`] when `name` names nothing; else why there is no answer.
    pub fn request(&self, name: &str) -> Result<ResourceRepresentation, ResourceError> {
        self.request_as(name, None)
    }

    /// The present state of a resource in a format.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn request_as(&self, name: &str, accept: Option<u16>) -> Result<ResourceRepresentation, ResourceError> {
        match parsed(name)? {
            ResourceName::Own(path) => self.get_own(&path, accept),
            ResourceName::Other(name) => {
                let (representation, _) = self.network.get(&RemoteKey { name, accept }, None, self.patience)?;
                // For a proxy the network lets them pass (RFC 7252 §5.4.1).
                let mut numbers = representation.options.iter().map(|(number, _)| *number);
                match numbers.find(|number| number.is_critical()) {
                    None => Ok(representation),
                    Some(number) => Err(ResourceError::BadAnswer(format!("the answer's {number} is not understood"))),
                }
            }
        }
    }

    /// The present value of a resource and the symbol of its unit.
    ///
    /// # Errors
    /// As [`request`](Self::request), and when the representation holds no value.
    pub fn value(&self, name: &str) -> Result<(Value, String), ResourceError> {
        match self.request_as(name, Some(content_format::CBOR)) {
            // Some things have text alone.
            Err(error) if matches!(error.code(), Code::NOT_ACCEPTABLE | Code::BAD_OPTION) => {
                let told = self.request(name)?;
                if told.content_format == Some(content_format::TEXT) { told.value() } else { Err(error) }
            }
            outcome => outcome?.value(),
        }
    }

    /// The present state of a resource of another thing, and the tag that the other gave it: for those who ask on behalf of
    /// others.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn relay(
        &self,
        name: &RemoteName,
        accept: Option<u16>,
    ) -> Result<(ResourceRepresentation, Option<ETag>), ResourceError> {
        self.network.get(&RemoteKey { name: name.clone(), accept }, None, self.patience)
    }

    /// The same with this Hop-Limit (RFC 8768), for proxies.
    pub(crate) fn relay_within(
        &self,
        name: &RemoteName,
        accept: Option<u16>,
        hops: u8,
    ) -> Result<(ResourceRepresentation, Option<ETag>), ResourceError> {
        self.network.get(&RemoteKey { name: name.clone(), accept }, Some(hops), self.patience)
    }

    /// Forgets what is known of a resource of another thing: something may have changed it.
    pub fn forget(&self, name: &RemoteName) {
        self.network.forget(name);
    }

    /// The same for later. What is returned does not keep the way to other things open.
    pub(crate) fn forgetter(&self, name: &RemoteName) -> impl Fn() + Send + Sync + use<> {
        self.network.forgetter(name)
    }

    /// Observes a resource of another thing: `listener` gets its state now and after each change, on the thread that drives
    /// all things, so it must not block. The network store does not keep these states.
    pub fn watch(
        &self,
        name: &RemoteName,
        mut listener: impl FnMut(Result<ResourceRepresentation, ResourceError>) + Send + 'static,
    ) -> Box<dyn RemoteObservation> {
        let key = RemoteKey { name: name.clone(), accept: None };
        self.network.watch(&key, move |outcome| listener(outcome.map(|(representation, _)| representation)))
    }

    /// Tells a resource something.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn control(&self, name: &str, content_format: u16, payload: &[u8]) -> Result<(), ResourceError> {
        self.tell(name, Some(content_format), payload)
    }

    /// The same by a payload that may be in a format that nobody names.
    pub(crate) fn tell(&self, name: &str, content_format: Option<u16>, payload: &[u8]) -> Result<(), ResourceError> {
        match parsed(name)? {
            ResourceName::Own(path) => {
                let (path, query) = path.split_once('?').unwrap_or((&path, ""));
                let queries: Vec<&str> = query.split('&').filter(|part| !part.is_empty()).collect();
                let put = Put { content_format, payload, queries: &queries };
                self.local.find(path)?.put(&put)
            }
            ResourceName::Other(name) => {
                let request = RequestBuf::put(&format!("/{}", name.path), payload);
                let request = content_format.into_iter().fold(request, RequestBuf::with_content_format);
                self.network.put(&name, with_host(&name, request), self.patience)
            }
        }
    }

    /// Drives an actuator to a value.
    ///
    /// # Errors
    /// As [`control`](Self::control).
    pub fn set(&self, name: &str, value: &Value) -> Result<(), ResourceError> {
        self.control(name, content_format::TEXT, value.to_string().as_bytes())
    }

    /// Makes a resource of this thing whose values the application pushes; clients may keep each for `max_age`. It is gone
    /// when the publication is dropped.
    ///
    /// # Errors
    /// When the path is taken or cannot be used.
    pub fn publish(
        &self,
        path: &str,
        quantity: &str,
        unit: Unit,
        max_age: Duration,
    ) -> Result<PublishedResource, StoreError> {
        let path = path.trim_start_matches('/');
        let property = Property::pushed(path, quantity, unit, max_age, Arc::clone(&self.clock.0));
        self.local.insert(Arc::new(property.clone()))?;
        Ok(PublishedResource { property, store: self.local.clone() })
    }

    /// Observes a resource: its state now and after each change.
    ///
    /// # Errors
    /// As [`request`](Self::request), as far as that shows at once; later failures are reported by the observation.
    pub fn observe(&self, name: &str) -> Result<Observation, ResourceError> {
        match parsed(name)? {
            ResourceName::Own(path) => Observation::of_own(self.local.clone(), &path),
            ResourceName::Other(name) => Ok(Observation::of_other(&self.network, &RemoteKey { name, accept: None })),
        }
    }

    /// The resources of this thing.
    pub fn local(&self) -> &LocalStore {
        &self.local
    }

    /// Counts of requests to other things, by the kind of their answer.
    pub fn counters(&self) -> NetworkStoreCounters {
        self.network.counters()
    }

    fn get_own(&self, path: &str, accept: Option<u16>) -> Result<ResourceRepresentation, ResourceError> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let queries: Vec<&str> = query.split('&').filter(|part| !part.is_empty()).collect();
        self.local.find(path)?.get(&Get { accept, queries: &queries })
    }
}

/// A resource that an application publishes.
#[derive(Debug)]
pub struct PublishedResource {
    property: Property,
    store: LocalStore,
}

impl PublishedResource {
    /// Publishes a value; observers hear of it unless it is the one before.
    pub fn push(&self, value: Value) {
        self.property.push(value);
    }
}

impl Drop for PublishedResource {
    fn drop(&mut self) {
        self.store.remove(self.property.path());
    }
}

fn parsed(name: &str) -> Result<ResourceName, ResourceError> {
    name.parse().map_err(|error: NameError| ResourceError::BadRequest(error.to_string()))
}

/// MAX_TRANSMIT_WAIT.
const TRANSMIT_WAIT: Duration = Duration::from_secs(93);
