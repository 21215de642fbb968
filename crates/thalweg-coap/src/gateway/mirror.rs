//! Resources of other things, served here as they were last told.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use thalweg_base::time::Instant;

use crate::device::Unit;
use crate::link_format::WebLink;
use crate::message::{Code, content_format};
use crate::proxy::escaped;
use crate::resource::representation::{READING_FORMATS, of_value};
use crate::resource::{Clock, Get, Put, RemoteName, Resource, ResourceError, ResourceRepresentation, Watcher};
use crate::service::{RemoteObservation, Things};

/// A resource of another thing that is observed there and served here: one observation there for any number of clients
/// here, and none of them waits for the other thing while it is told anew in time.
pub(super) struct Mirror {
    path: String,
    name: RemoteName,
    things: Things,
    state: Arc<MirrorState>,
    _observation: Box<dyn RemoteObservation>,
}

/// The last state, shared with the observation.
pub(super) struct MirrorState {
    path: String,
    clock: Clock,
    latest: Mutex<Latest>,
    watcher: OnceLock<Weak<dyn Watcher>>,
    /// Formats of readings that the thing does not have, as it said since it was away last; they are made of what it has.
    lacking: Mutex<BTreeSet<u16>>,
    /// Forgets what is kept of the resource in other formats, and of its queries.
    forget: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
enum Latest {
    #[default]
    Nothing,
    Told(ResourceRepresentation, Instant),
    /// The thing was told something since it told this.
    Outdated(ResourceRepresentation),
    Failed(ResourceError),
}

impl Mirror {
    /// Observes `name` and serves it as `path`.
    pub(super) fn start(path: String, name: RemoteName, things: &Things, clock: Clock) -> Mirror {
        let forget = Box::new(things.forgetter(&name));
        let (latest, watcher, lacking) = (Mutex::default(), OnceLock::new(), Mutex::default());
        let state = Arc::new(MirrorState { path: path.clone(), clock, latest, watcher, lacking, forget });
        let told = Arc::downgrade(&state);
        let observation = things.watch(&name, move |outcome| {
            if let Some(state) = told.upgrade() {
                state.handle_news(outcome);
            }
        });
        Mirror { path, name, things: things.clone().with_patience(PATIENCE), state, _observation: observation }
    }

    /// The state as the thing has it: what it was last told if that serves, else the thing's answer.
    fn find(&self, request: &Get<'_>) -> Result<ResourceRepresentation, ResourceError> {
        let now = (self.state.clock)();
        {
            let latest = self.state.latest.lock().unwrap_or_else(PoisonError::into_inner);
            match &*latest {
                Latest::Told(state, told) => {
                    let fits = request.accept.is_none_or(|format| Some(format) == state.content_format);
                    let rest = fresh_for(state, *told, now);
                    if fits && request.queries.is_empty() && !rest.is_zero() {
                        return Ok(ResourceRepresentation { max_age: rest.min(state.max_age), ..state.clone() });
                    }
                }
                // The observation tries again by itself; clients need not wait for a thing that is away.
                Latest::Failed(error @ ResourceError::NoAnswer(_)) => return Err(error.clone()),
                Latest::Nothing | Latest::Outdated(_) | Latest::Failed(_) => {}
            }
        }
        let name = RemoteName { path: format!("{}{}", self.name.path, query_of(request.queries)), ..self.name.clone() };
        self.things.relay(&name, request.accept).map(|(representation, _)| representation)
    }

    /// The state as a reading in `format`, made of plain text.
    fn make(&self, format: u16, queries: &[&str]) -> Result<ResourceRepresentation, ResourceError> {
        let state = self.find(&Get { accept: None, queries })?;
        if state.content_format != Some(content_format::TEXT) {
            // A pack or a document may hold more than one reading.
            return Err(ResourceError::NotAcceptable);
        }
        let (value, symbol) = state.value().map_err(|_| ResourceError::NotAcceptable)?;
        let unit = Unit::new(&symbol).unwrap_or(Unit::NONE);
        let payload = of_value(format, &self.path, &value, unit).map_err(|_| ResourceError::NotAcceptable)?;
        Ok(ResourceRepresentation::new(format, payload, state.max_age))
    }
}

impl MirrorState {
    fn handle_news(&self, outcome: Result<ResourceRepresentation, ResourceError>) {
        let latest = match outcome {
            Ok(representation) => Latest::Told(representation, (self.clock)()),
            Err(error) => {
                // It may come back as another one.
                self.lacking().clear();
                Latest::Failed(error)
            }
        };
        let changed = {
            let mut known = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
            let changed = match (&*known, &latest) {
                (Latest::Told(old, _) | Latest::Outdated(old), Latest::Told(new, _)) => {
                    (&old.payload, old.content_format) != (&new.payload, new.content_format)
                }
                // The last state serves while it is fresh; clients are told when they ask.
                (Latest::Told(..) | Latest::Outdated(_), Latest::Failed(_)) => false,
                _ => true,
            };
            let is_fresh = |known: &Latest| match known {
                Latest::Told(old, at) => !fresh_for(old, *at, (self.clock)()).is_zero(),
                Latest::Nothing | Latest::Outdated(_) | Latest::Failed(_) => false,
            };
            if !matches!(latest, Latest::Failed(_)) || !is_fresh(&known) {
                *known = latest;
            }
            changed
        };
        if changed {
            (self.forget)();
        }
        if let Some(watcher) = self.watcher.get().and_then(Weak::upgrade).filter(|_| changed) {
            watcher.handle_change(&self.path);
        }
    }

    /// What was told before counts no more: requests, and conditions of the next change, ask the thing until it tells anew.
    fn outdate(&self) {
        let mut known = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        *known = match std::mem::take(&mut *known) {
            Latest::Told(old, _) => Latest::Outdated(old),
            other => other,
        };
    }

    fn lacking(&self) -> MutexGuard<'_, BTreeSet<u16>> {
        self.lacking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a state is good: what its thing said, and as much again for the notification that renews it.
fn fresh_for(state: &ResourceRepresentation, told: Instant, now: Instant) -> Duration {
    (told + state.max_age.saturating_mul(2).max(FRESH_MIN)).since(now)
}

impl Resource for Mirror {
    fn path(&self) -> &str {
        &self.path
    }

    fn link(&self) -> WebLink {
        WebLink::new(format!("/{}", self.path)).with_flag("obs")
    }

    fn blocks(&self) -> bool {
        true
    }

    /// A thing may have its readings as text alone; services, packs and topics want them in other formats.
    fn get(&self, request: &Get<'_>) -> Result<ResourceRepresentation, ResourceError> {
        let format = request.accept.filter(|format| READING_FORMATS.contains(format));
        let Some(format) = format else { return self.find(request) };
        let is_lacking = request.queries.is_empty() && self.state.lacking().contains(&format);
        if is_lacking {
            return self.make(format, request.queries);
        }
        let refusal = match self.find(request) {
            Err(error) if matches!(error.code(), Code::NOT_ACCEPTABLE | Code::BAD_OPTION) => error,
            outcome => return outcome,
        };
        let made = self.make(format, request.queries).map_err(|_| refusal)?;
        if request.queries.is_empty() {
            self.state.lacking().insert(format);
        }
        Ok(made)
    }

    fn put(&self, request: &Put<'_>) -> Result<(), ResourceError> {
        let name = format!("coap://{}/{}{}", self.name.thing, self.name.path, query_of(request.queries));
        let told = self.things.tell(&name, request.content_format, request.payload);
        // Whatever the answer: a lost one is that of a change as well.
        self.state.outdate();
        told
    }

    fn attach(&self, watcher: Weak<dyn Watcher>) {
        // It is put into one store.
        let _ = self.state.watcher.set(watcher);
    }

    fn is_timed(&self) -> bool {
        false
    }
}

/// The arguments of a query behind a question mark, escaped; empty for none.
fn query_of(queries: &[&str]) -> String {
    let arguments: Vec<String> = queries.iter().map(|argument| escaped(argument)).collect();
    if arguments.is_empty() { String::new() } else { format!("?{}", arguments.join("&")) }
}

impl fmt::Debug for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mirror({} of {})", self.path, self.name.thing)
    }
}

/// A thing that says Max-Age 0 is observed all the same.
const FRESH_MIN: Duration = Duration::from_secs(1);
/// A client here gets an error after this time; the thing may have gone away.
const PATIENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Heard(Mutex<Vec<&'static str>>);

    impl Heard {
        fn note(&self, what: &'static str) {
            self.0.lock().expect("nobody panics").push(what);
        }
    }

    impl Watcher for Heard {
        fn handle_change(&self, _path: &str) {
            self.note("told");
        }

        fn handle_reschedule(&self) {}
    }

    #[test]
    fn what_is_kept_in_other_formats_is_forgotten_before_observers_are_told() {
        let heard = Arc::new(Heard::default());
        let forgets = Arc::clone(&heard);
        let state = MirrorState {
            path: "t".to_owned(),
            clock: Arc::new(|| Instant::ZERO),
            latest: Mutex::default(),
            watcher: OnceLock::new(),
            lacking: Mutex::default(),
            forget: Box::new(move || forgets.note("forgotten")),
        };
        let told: Arc<dyn Watcher> = Arc::<Heard>::clone(&heard);
        assert!(state.watcher.set(Arc::downgrade(&told)).is_ok());
        let news = |text: &str| Ok(ResourceRepresentation::new(0, text.into(), Duration::from_secs(60)));
        for (text, expected) in [("true", 2), ("true", 2), ("false", 4)] {
            state.handle_news(news(text));
            let heard = heard.0.lock().expect("nobody panics").clone();
            assert_eq!(heard, ["forgotten", "told", "forgotten", "told"][..expected], "{text}");
        }
    }
}
