//! The local store: the resources of this thing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

use thalweg_base::time::Instant;

use crate::identity::Caller;
use crate::link_format::WebLink;
use crate::resource::{ResourceError, ResourceRepresentation, SensingReport};

/// A resource, which clients read and write by its path.
pub trait Resource: Send + Sync {
    /// Its path, without the slash in front: `sensors/thermal_zone0/temperature`.
    fn path(&self) -> &str;

    /// Its link for discovery: its target and attributes (RFC 6690, RFC 7252 §7.2.1).
    fn link(&self) -> WebLink;

    /// Whether a request to it may have to wait, so that it must not run where others wait behind it.
    fn blocks(&self) -> bool;

    /// Its present state.
    ///
    /// # Errors
    /// The reason why there is none, for the client.
    fn get(&self, request: &Get<'_>) -> Result<ResourceRepresentation, ResourceError>;

    /// Changes its state.
    ///
    /// # Errors
    /// The reason why it did not change, for the client.
    fn put(&self, request: &Put<'_>) -> Result<(), ResourceError>;

    /// Its present state for a client, whose rights count where it has states of others in it. By default it is the same for all.
    ///
    /// # Errors
    /// As [`get`](Self::get), and when `caller` may not read all that is in it.
    fn get_for(&self, request: &Get<'_>, _caller: Option<&Caller>) -> Result<ResourceRepresentation, ResourceError> {
        self.get(request)
    }

    /// Changes its state for a client, whose rights count where that changes others. By default it is the same for all.
    ///
    /// # Errors
    /// As [`put`](Self::put), and when `caller` may not change all of them; none is changed then.
    fn put_for(&self, request: &Put<'_>, _caller: Option<&Caller>) -> Result<(), ResourceError> {
        self.put(request)
    }

    /// Whether it can ever have a state to read. By default it can.
    fn has_state(&self) -> bool {
        true
    }

    /// Deletes its state, or the parts of it that the query names. By default a resource cannot be deleted.
    ///
    /// # Errors
    /// The reason why it is still there, for the client.
    fn delete(&self, _queries: &[&str]) -> Result<(), ResourceError> {
        Err(ResourceError::NotAllowed(format!("/{} cannot be deleted", self.path())))
    }

    /// Whether there is something that the query names, for If-Match and If-None-Match. By default there is.
    fn exists(&self, _queries: &[&str]) -> bool {
        true
    }

    /// Whether requests to a group of hosts reach it. By default they do not.
    fn answers_groups(&self) -> bool {
        false
    }

    /// Gives it the receiver of its changes. Called once, when it is put into a store. By default it never changes by itself.
    fn attach(&self, _watcher: Weak<dyn Watcher>) {}

    /// Tells it whether anybody observes it.
    fn set_observed(&self, _observed: bool) {}

    /// The effects of adaptive sensing. By default there is none.
    fn sensing(&self) -> Option<SensingReport> {
        None
    }

    /// Whether [`handle_timeout`](Self::handle_timeout) may ever have something to do. By default it may.
    fn is_timed(&self) -> bool {
        true
    }

    /// Carries out due work, and returns the time of the next. By default there is none.
    fn handle_timeout(&self, _now: Instant) -> Option<Instant> {
        None
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Get<'a> {
    /// The only format that is accepted; any if none.
    pub accept: Option<u16>,
    /// The query, part by part: `name=value`.
    pub queries: &'a [&'a str],
}

/// What is told.
#[derive(Clone, Copy, Debug)]
pub struct Put<'a> {
    /// The payload's format, if the sender said.
    pub content_format: Option<u16>,
    /// The payload.
    pub payload: &'a [u8],
    /// The query, part by part: `name=value`.
    pub queries: &'a [&'a str],
}

/// Whom a resource informs.
pub trait Watcher: Send + Sync {
    /// The resource's state is another.
    fn handle_change(&self, path: &str);

    /// The resource has something to do at another time than it said.
    fn handle_reschedule(&self);
}

/// Hears which resource has changed; called without a lock on whatever thread changed it.
pub type ChangeListener = Arc<dyn Fn(&str) + Send + Sync>;

/// The resources of this thing by path. A clone is the same store.
#[derive(Clone, Default)]
pub struct LocalStore {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    resources: RwLock<BTreeMap<String, Arc<dyn Resource>>>,
    /// Those that have something to do by themselves.
    timed: RwLock<BTreeMap<String, Arc<dyn Resource>>>,
    listeners: Mutex<Vec<(u64, ChangeListener)>>,
    /// Paths that changed while changes are held back.
    held: Mutex<Option<BTreeSet<String>>>,
    /// Numbers of observers of a path, in this thing and on the network.
    observers: Mutex<BTreeMap<String, Observers>>,
    /// Counts reschedulings and changes of the set, for the thread that waits for the next deadline.
    rescheduled: Mutex<u64>,
    wake: Condvar,
}

#[derive(Clone, Default)]
struct Observers {
    own: usize,
    /// The event loops that have clients which observe.
    network: BTreeSet<usize>,
}

/// Tells changes that were held back when it is dropped, each path once.
#[must_use = "it ends when it is dropped"]
pub struct HeldChanges {
    shared: Arc<Shared>,
}

impl Drop for HeldChanges {
    fn drop(&mut self) {
        let held = locked(&self.shared.held).take();
        held.unwrap_or_default().iter().for_each(|path| self.shared.handle_change(path));
    }
}

/// Ends with itself what [`LocalStore::on_change`] or [`LocalStore::observe`] began.
#[must_use = "it ends when it is dropped"]
pub struct WatchGuard {
    shared: Weak<Shared>,
    listener: u64,
    /// The path that is observed, if one is.
    observed: Option<String>,
}

/// Why a resource cannot be put into the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The path is taken.
    Taken(String),
    /// The path is empty, or has an empty part.
    BadPath(String),
    /// The store is full.
    Full,
}

impl LocalStore {
    /// A store without resources.
    pub fn new() -> LocalStore {
        LocalStore::default()
    }

    /// Makes a resource reachable.
    ///
    /// # Errors
    /// When its path cannot be used, or the store is full, with 16,384 resources.
    pub fn insert(&self, resource: Arc<dyn Resource>) -> Result<(), StoreError> {
        let path = resource.path().to_owned();
        if path.split('/').any(str::is_empty) || path.len() > PATH_MAX_BYTES {
            return Err(StoreError::BadPath(path));
        }
        {
            let mut resources = self.shared.resources.write().unwrap_or_else(PoisonError::into_inner);
            if resources.len() >= RESOURCES_MAX {
                return Err(StoreError::Full);
            }
            if resources.contains_key(&path) {
                return Err(StoreError::Taken(path));
            }
            resources.insert(path.clone(), Arc::clone(&resource));
        }
        if resource.is_timed() {
            self.timed().insert(path.clone(), Arc::clone(&resource));
        }
        let watcher: Arc<dyn Watcher> = Arc::clone(&self.shared) as Arc<dyn Watcher>;
        resource.attach(Arc::downgrade(&watcher));
        // Its place may have observers from a resource that was there before.
        if self.shared.is_observed(&path) {
            self.shared.tell_observed(&path, &*resource);
            self.shared.handle_change(&path);
        }
        self.shared.handle_reschedule();
        Ok(())
    }

    /// Takes a resource away; false when there was none. Its observers are told that it is gone.
    pub fn remove(&self, path: &str) -> bool {
        let removed = self.shared.resources.write().unwrap_or_else(PoisonError::into_inner).remove(path);
        self.timed().remove(path);
        if removed.is_some() {
            self.shared.handle_change(path);
        }
        self.shared.handle_reschedule();
        removed.is_some()
    }

    /// Holds back all changes until the result is dropped, so that a resource may be replaced by another one of its path
    /// without its observers being told that it is gone.
    pub fn hold_changes(&self) -> HeldChanges {
        locked(&self.shared.held).get_or_insert_default();
        HeldChanges { shared: Arc::clone(&self.shared) }
    }

    /// The resource of this path, without the slash in front.
    ///
    /// # Errors
    /// [`ResourceError::NotFound`].
    pub fn find(&self, path: &str) -> Result<Arc<dyn Resource>, ResourceError> {
        let resources = self.shared.resources.read().unwrap_or_else(PoisonError::into_inner);
        resources.get(path).cloned().ok_or_else(|| ResourceError::NotFound(path.to_owned()))
    }

    /// The resources, in the order of the paths.
    pub fn links(&self) -> Vec<WebLink> {
        self.all().iter().map(|resource| resource.link()).collect()
    }

    /// The effects of adaptive sensing on each resource that has it, by path.
    pub fn sensing(&self) -> Vec<(String, SensingReport)> {
        let of = |resource: &Arc<dyn Resource>| Some((resource.path().to_owned(), resource.sensing()?));
        self.all().iter().filter_map(of).collect()
    }

    /// The paths of all resources, in order.
    pub fn paths(&self) -> Vec<String> {
        self.shared.resources.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// Calls `listener` with the path of each resource that changes, until the watch is dropped.
    pub fn on_change(&self, listener: ChangeListener) -> WatchGuard {
        WatchGuard {
            shared: Arc::downgrade(&self.shared),
            listener: self.shared.add_listener(listener),
            observed: None,
        }
    }

    /// Observes a resource: it is sampled without requests, and `listener` is called when it changes, until the watch is
    /// dropped.
    ///
    /// # Errors
    /// [`ResourceError::NotFound`].
    pub fn observe(
        &self,
        path: &str,
        listener: impl Fn() + Send + Sync + 'static,
    ) -> Result<WatchGuard, ResourceError> {
        self.find(path)?;
        let wanted = path.to_owned();
        let of_path = move |changed: &str| {
            if changed == wanted {
                listener();
            }
        };
        let listener = self.shared.add_listener(Arc::new(of_path));
        self.shared.change_observers(path, |observers| observers.own += 1);
        Ok(WatchGuard { shared: Arc::downgrade(&self.shared), listener, observed: Some(path.to_owned()) })
    }

    /// Says how many clients of the event loop `home` observe a resource now.
    pub fn set_network_observers(&self, home: usize, path: &str, count: usize) {
        self.shared.change_observers(path, |observers| {
            if count == 0 {
                observers.network.remove(&home);
            } else {
                observers.network.insert(home);
            }
        });
    }

    /// Samples due properties and answers requests whose device is overdue; returns the time of the next call.
    pub fn handle_timeout(&self, now: Instant) -> Option<Instant> {
        let timed: Vec<Arc<dyn Resource>> = self.timed().values().cloned().collect();
        timed.iter().filter_map(|resource| resource.handle_timeout(now)).min()
    }

    /// Resources that may have something to do by themselves.
    pub(super) fn timed_count(&self) -> usize {
        self.shared.timed.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn timed(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<String, Arc<dyn Resource>>> {
        self.shared.timed.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something may be due earlier than at the last [`handle_timeout`](Self::handle_timeout), or for this time.
    /// `seen` is the result of the last call, at first 0.
    pub(super) fn wait_rescheduled(&self, seen: u64, timeout: Duration) -> u64 {
        let count = locked(&self.shared.rescheduled);
        let waited = self.shared.wake.wait_timeout_while(count, timeout, |count| *count == seen);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Ends a [`wait_rescheduled`](Self::wait_rescheduled).
    pub(super) fn wake(&self) {
        self.shared.handle_reschedule();
    }

    fn all(&self) -> Vec<Arc<dyn Resource>> {
        self.shared.resources.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

impl Shared {
    fn add_listener(&self, listener: ChangeListener) -> u64 {
        let mut listeners = locked(&self.listeners);
        let id = listeners.last().map_or(0, |(last, _)| last + 1);
        listeners.push((id, listener));
        id
    }

    fn change_observers(&self, path: &str, change: impl FnOnce(&mut Observers)) {
        {
            let mut all = locked(&self.observers);
            let observers = all.entry(path.to_owned()).or_default();
            change(observers);
            if observers.own == 0 && observers.network.is_empty() {
                all.remove(path);
            }
        }
        let resources = self.resources.read().unwrap_or_else(PoisonError::into_inner);
        let resource = resources.get(path).cloned();
        drop(resources);
        if let Some(resource) = resource {
            self.tell_observed(path, &*resource);
        }
    }

    fn is_observed(&self, path: &str) -> bool {
        locked(&self.observers).contains_key(path)
    }

    /// Tells a resource whether it is observed, and again if that has changed by then: another thread may have been overtaken with
    /// the newer state, or have overtaken this one.
    fn tell_observed(&self, path: &str, resource: &dyn Resource) {
        loop {
            let is_observed = self.is_observed(path);
            resource.set_observed(is_observed);
            if self.is_observed(path) == is_observed {
                return;
            }
        }
    }
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        locked(&shared.listeners).retain(|(id, _)| *id != self.listener);
        if let Some(path) = &self.observed {
            shared.change_observers(path, |observers| observers.own = observers.own.saturating_sub(1));
        }
    }
}

impl Watcher for Shared {
    fn handle_change(&self, path: &str) {
        if let Some(held) = &mut *locked(&self.held) {
            held.insert(path.to_owned());
            return;
        }
        let listeners = locked(&self.listeners).clone();
        listeners.iter().for_each(|(_, listener)| listener(path));
    }

    fn handle_reschedule(&self) {
        *locked(&self.rescheduled) += 1;
        self.wake.notify_all();
    }
}

impl fmt::Debug for WatchGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watch({:?})", self.observed)
    }
}

impl fmt::Debug for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalStore({} resources)", self.all().len())
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Taken(path) => write!(f, "there is a resource /{path} already; choose another path"),
            StoreError::BadPath(path) => {
                write!(f, "/{path} is no path for a resource; use 1 to {PATH_MAX_BYTES} bytes without empty parts")
            }
            StoreError::Full => write!(f, "the store holds {RESOURCES_MAX} resources, which is its limit"),
        }
    }
}

impl std::error::Error for StoreError {}

/// A link with the attributes that all resources have: title, resource type, interface and content formats.
pub(crate) fn link_of(path: &str, title: &str, resource_type: &str, interface: &str, formats: &[u16]) -> WebLink {
    let formats: Vec<String> = formats.iter().map(u16::to_string).collect();
    let formats = formats.join(" ");
    let attributes = [("title", title), ("rt", resource_type), ("if", interface), ("ct", formats.as_str())];
    let present = attributes.into_iter().filter(|(_, value)| !value.is_empty());
    present.fold(WebLink::new(format!("/{}", escaped(path))), |link, (name, value)| link.with(name, value))
}

/// A path as a URI has it: everything but unreserved characters, sub-delimiters, `:`, `@` and `/` is escaped (RFC 3986 §3.3).
fn escaped(path: &str) -> String {
    let escape = |byte: u8| {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte);
        if is_plain { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    path.bytes().map(escape).collect()
}

/// A lock whose holders cannot leave half a change behind, so that a panic elsewhere is no reason to stop.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Most resources of a thing; chosen by us: those of 10,000 other things, and `/.well-known/core` stays below a body's 2 MiB.
const RESOURCES_MAX: usize = 16_384;
/// The longest path; its parts travel as options of at most 255 bytes (RFC 7252 §5.10).
const PATH_MAX_BYTES: usize = 255;
