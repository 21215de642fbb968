//! A view that runs.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};

use thalweg::DomainParticipant;
use thalweg_recording::TopicSelection;
use thalweg_recording::type_search::TypeSource;

use crate::server::ViewServer;
use crate::switchboard::{Switchboard, SwitchboardOptions, ViewSummary};
use crate::topics::ViewedTopics;
use crate::visitors::Visitors;

/// What is shown, and to whom.
#[derive(Clone, Debug)]
pub struct ViewOptions {
    /// Where clients connect; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The name of the connection that clients show.
    pub name: String,
    /// Pages that may connect.
    pub visitors: Visitors,
    /// The topics.
    pub topics: TopicSelection,
    /// Samples of an instance that later clients get, of writers that keep them for late readers; 0 for none.
    pub latched_depth: usize,
    /// Bytes of samples that may wait for a client that reads slowly; what finds no room is dropped and counted.
    pub client_bytes_max: usize,
}

/// What [`View::look`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewNews {
    /// A topic is shown from now on; its type came from where this says.
    Topic {
        /// As ROS 2 shows it.
        topic: String,
        /// The type's name on the wire.
        type_name: String,
        /// Where the type came from.
        origin: String,
    },
    /// Something that clients are told of as well.
    Remark {
        /// The remark.
        text: String,
    },
    /// A client has connected.
    Joined {
        /// Where it is.
        address: SocketAddr,
    },
    /// A client has gone.
    Left {
        /// Where it was.
        address: SocketAddr,
        /// Why.
        reason: String,
        /// Samples that it was too slow for.
        dropped: u64,
    },
    /// Somebody was not let in.
    Refused {
        /// Where it was.
        address: SocketAddr,
        /// Why.
        reason: String,
    },
    /// A client reads more slowly than samples come.
    Slow {
        /// Where it is.
        address: SocketAddr,
        /// Samples that were dropped for it so far.
        dropped: u64,
        /// Bytes that wait for it.
        waiting_bytes: usize,
    },
}

impl fmt::Display for ViewNews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ViewNews::Topic { topic, type_name, origin } => write!(f, "shows {topic} ({type_name}, from {origin})"),
            ViewNews::Remark { text } => f.write_str(text),
            ViewNews::Joined { address } => write!(f, "client {address} is there"),
            ViewNews::Left { address, reason, dropped: 0 } => write!(f, "client {address} has gone: {reason}"),
            ViewNews::Left { address, reason, dropped } => {
                write!(f, "client {address} has gone: {reason}; {dropped} samples were dropped for it")
            }
            ViewNews::Refused { address, reason } => write!(f, "client {address} was not let in: {reason}"),
            ViewNews::Slow { address, dropped, waiting_bytes } => write!(
                f,
                "client {address} reads slowly: {dropped} samples were dropped for it, {} KiB wait",
                waiting_bytes / 1024
            ),
        }
    }
}

/// A view of the topics of a domain. Dropping it says goodbye to all clients.
pub struct View<'a> {
    // Readers end before those that they hand their samples to.
    topics: ViewedTopics<'a>,
    server: ViewServer,
    /// What clients were woken for last.
    seen_version: u64,
    /// When slow clients were told of last, with the counts of all.
    told_slow: Option<(Instant, Vec<(u64, u64)>)>,
}

impl<'a> View<'a> {
    /// Listens for clients. Topics are found by [`View::look`].
    ///
    /// # Errors
    /// When the address is taken or not of this host, or the system gives no thread.
    pub fn start(
        participant: &'a DomainParticipant,
        options: ViewOptions,
        types: &'a TypeSource<'a>,
    ) -> io::Result<View<'a>> {
        let begun = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let board = Switchboard::new(SwitchboardOptions {
            name: options.name,
            session_id: begun.as_millis().to_string(),
            client_bytes_max: options.client_bytes_max,
            latched_depth: options.latched_depth,
        });
        let server = ViewServer::start(options.listen, options.visitors, board)?;
        let exchange = server.exchange().clone();
        let topics = ViewedTopics::new(participant, types, options.topics, options.latched_depth, exchange);
        Ok(View { topics, server, seen_version: 0, told_slow: None })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Looks for topics that are new or gone, and for what clients want; call it every 50 ms or so. It waits for nobody.
    pub fn look(&mut self) -> Vec<ViewNews> {
        let mut news = self.server.exchange().take_news();
        news.extend(self.topics.look());
        news.extend(self.slow_clients());
        let version = self.server.exchange().board().version();
        if std::mem::replace(&mut self.seen_version, version) != version {
            self.server.exchange().wake();
        }
        news
    }

    /// The counts so far.
    pub fn summary(&self) -> ViewSummary {
        self.server.exchange().board().summary()
    }

    /// Clients for which samples were dropped since the last time, told every five seconds at most.
    fn slow_clients(&mut self) -> Vec<ViewNews> {
        let now = Instant::now();
        if self.told_slow.as_ref().is_some_and(|(at, _)| now.saturating_duration_since(*at) < SLOW_PERIOD) {
            return Vec::new();
        }
        let before = self.told_slow.take().map(|(_, counts)| counts).unwrap_or_default();
        let backlogs: Vec<(u64, SocketAddr, usize, u64)> = self.server.exchange().board().backlogs().collect();
        let has_more = |id: u64, dropped: u64| before.iter().all(|(told, count)| *told != id || *count < dropped);
        let slow = backlogs.iter().filter(|(id, _, _, dropped)| *dropped > 0 && has_more(*id, *dropped));
        let news = slow.map(|(_, address, waiting_bytes, dropped)| ViewNews::Slow {
            address: *address,
            dropped: *dropped,
            waiting_bytes: *waiting_bytes,
        });
        let news = news.collect();
        self.told_slow = Some((now, backlogs.iter().map(|(id, _, _, dropped)| (*id, *dropped)).collect()));
        news
    }
}

const SLOW_PERIOD: Duration = Duration::from_secs(5);
