//! Figures of a running gateway: as resources below `/.thalweg`, and as OpenMetrics over HTTP.
//!
//! They are read when somebody asks; nothing is counted twice for them.

mod document;
mod http;
mod open_metrics;
mod resources;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock, Weak};

use thalweg_host::{HostFiles, Task, TaskStat};

use crate::endpoint::Counters;
use crate::interaction::server::{Server, ServerSnapshot};
use crate::resource::{LocalStore, NetworkStoreCounters, SensingReport};
use crate::scheduler::thread_pool::ThreadGroup;
use crate::service::{CoapRemote, Things};

pub use document::to_document;
pub use http::serve_metrics;
pub use open_metrics::to_open_metrics;
pub use resources::{METRICS_PATH, STATISTICS_PATH, add_resources};
pub use thalweg_metrics::MetricsServer;

/// Everything that is told, at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The server's loops, protocol and pools.
    pub server: ServerSnapshot,
    /// The threads that run, by name.
    pub threads: Vec<ThreadFigures>,
    /// Requests to other things, by the kind of their answer.
    pub network: NetworkStoreCounters,
    /// The protocol towards other things.
    pub remote: Counters,
    /// The effects of adaptive sensing, by path.
    pub sensing: Vec<(String, SensingReport)>,
}

/// One thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadFigures {
    /// Its name, as `/proc` shows it.
    pub name: String,
    /// Its group; `None` for one that the scheduler does not know.
    pub group: Option<ThreadGroup>,
    /// Its nice value, as the system has it.
    pub nice: i32,
    /// Its processor time in seconds, in steps of 10 ms.
    pub processor_s: f64,
}

/// Reads the figures of a server and what belongs to it. The server may be put in later, since its routes come first.
#[derive(Clone, Default)]
pub struct FigureSource {
    parts: Arc<OnceLock<Parts>>,
}

struct Parts {
    server: Weak<Server>,
    things: Option<Things>,
    remote: Option<Weak<CoapRemote>>,
    store: LocalStore,
}

impl FigureSource {
    /// A source without a server, which has no figures.
    pub fn new() -> FigureSource {
        FigureSource::default()
    }

    /// Puts in whose figures they are, the first time.
    pub fn set(
        &self,
        server: &Arc<Server>,
        store: &LocalStore,
        things: Option<&Things>,
        remote: Option<&Arc<CoapRemote>>,
    ) {
        let (server, remote) = (Arc::downgrade(server), remote.map(Arc::downgrade));
        let parts = Parts { server, things: things.cloned(), remote, store: store.clone() };
        // A second call would tell of another server; the first one stays.
        let _ = self.parts.set(parts);
    }

    /// The figures now; `None` while there is no server, or when it has ended.
    pub fn read(&self) -> Option<Figures> {
        let parts = self.parts.get()?;
        let server = parts.server.upgrade()?;
        Some(Figures {
            threads: threads(&server.scheduler().manager().members()),
            server: server.snapshot(),
            network: parts.things.as_ref().map(Things::counters).unwrap_or_default(),
            remote: parts.remote.as_ref().and_then(Weak::upgrade).map(|remote| remote.counters()).unwrap_or_default(),
            sensing: parts.store.sensing(),
        })
    }
}

/// The threads of this process.
fn threads(members: &[(String, ThreadGroup)]) -> Vec<ThreadFigures> {
    let files = HostFiles::here();
    let of = |number: u32| {
        let stat = TaskStat::read(&files, Task::Thread(number))?;
        let group = members.iter().find(|(name, _)| *name == stat.name).map(|(_, group)| *group);
        let processor_s = stat.cpu().as_secs_f64();
        Some(ThreadFigures { group, nice: stat.nice, processor_s, name: stat.name })
    };
    files.threads().into_iter().filter_map(of).collect()
}
