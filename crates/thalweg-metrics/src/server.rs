//! The exposition over HTTP, for what scrapes it: one request a connection, all connections on one thread.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token, Waker};

use crate::connection::{Connection, Progress};

/// Answers `GET /metrics` until it is dropped. A client that sends or reads slowly holds up nobody and has two seconds; of more than
/// 64 clients at a time, the one that has been there longest is ended.
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// What the thread has.
struct Service<R> {
    poll: Poll,
    listener: TcpListener,
    read: R,
    /// The last exposition, and when it was asked for.
    told: Option<(Instant, String)>,
    /// The oldest first, with their tokens, which grow.
    connections: VecDeque<(Token, Connection)>,
    next: usize,
    /// Clients wait that were not accepted yet; nobody tells of them again.
    is_behind: bool,
}

impl MetricsServer {
    /// Listens at `address`; port 0 lets the system choose. `read` gives the exposition, `None` while there is nothing to tell; it is
    /// called ten times a second at most, on the thread that `spawn` starts, such as [`MetricsServer::spawn`].
    ///
    /// # Errors
    /// When the address is taken or not of this host, or the system gives no thread.
    pub fn start(
        address: SocketAddr,
        read: impl Fn() -> Option<String> + Send + 'static,
        spawn: impl FnOnce(Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>>,
    ) -> io::Result<MetricsServer> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let mut listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_over);
        let service =
            Service { poll, listener, read, told: None, connections: VecDeque::new(), next: FIRST, is_behind: false };
        let thread = spawn(Box::new(move || service.run(&stop)))?;
        Ok(MetricsServer { address, is_over, waker, thread: Some(thread) })
    }

    /// A thread of its own.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn spawn(run: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name("metrics".to_owned()).spawn(run)
    }

    /// Lets it serve until the process ends.
    pub fn detach(mut self) {
        self.thread = None;
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.is_over.store(true, Ordering::Release);
        if self.waker.wake().is_ok() {
            // A panic there has been reported there.
            let _ = thread.join();
        }
    }
}

impl<R: Fn() -> Option<String>> Service<R> {
    fn run(mut self, is_over: &AtomicBool) {
        let mut events = Events::with_capacity(CONNECTIONS_MAX);
        while !is_over.load(Ordering::Acquire) {
            let first = self.connections.front().map(|(_, oldest)| oldest.until());
            let patience = first.map(|until| until.saturating_duration_since(Instant::now()));
            let patience = if self.is_behind { Some(PAUSE) } else { patience };
            if self.poll.poll(&mut events, patience).is_err() {
                // A signal, most likely: the next wait may do.
                std::thread::sleep(PAUSE);
                continue;
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept(),
                    token => self.advance(token),
                }
            }
            if self.is_behind {
                self.accept();
            }
            let now = Instant::now();
            while self.connections.front().is_some_and(|(_, oldest)| oldest.until() <= now) {
                self.connections.pop_front();
            }
        }
    }

    fn accept(&mut self) {
        self.is_behind = false;
        for _ in 0..CONNECTIONS_MAX {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {
                    continue;
                }
                Err(_) => {
                    // Out of descriptors, most likely; the next one may do.
                    self.is_behind = true;
                    return;
                }
            };
            let token = Token(self.next);
            self.next += 1;
            if self.poll.registry().register(&mut stream, token, Interest::READABLE | Interest::WRITABLE).is_err() {
                continue;
            }
            if self.connections.len() == CONNECTIONS_MAX {
                self.connections.pop_front();
            }
            self.connections.push_back((token, Connection::new(stream, Instant::now() + PATIENCE)));
            // The request of an honest client is there already, and is answered before the next one may take its place.
            self.advance(token);
        }
        // Those that are here come first for a moment.
        self.is_behind = true;
    }

    /// Does what a connection is ready for.
    fn advance(&mut self, token: Token) {
        let Ok(place) = self.connections.binary_search_by_key(&token, |(token, _)| *token) else { return };
        let Some((_, connection)) = self.connections.get_mut(place) else { return };
        let (told, read) = (&mut self.told, &self.read);
        let mut exposition = || {
            let now = Instant::now();
            if told.as_ref().is_none_or(|(asked, _)| now.saturating_duration_since(*asked) >= FRESH) {
                *told = read().map(|text| (now, text));
            }
            told.as_ref().map(|(_, text)| text.clone())
        };
        match connection.advance(&mut exposition) {
            Ok(Progress::Waits) => {}
            // Clients that go away in between are no failure of this server.
            Ok(Progress::Over) | Err(_) => drop(self.connections.remove(place)),
        }
    }
}

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);
const FIRST: usize = 2;
/// Time for one connection.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time for which an exposition is told again, chosen by us: a flood of requests asks whoever counts no more often than this.
const FRESH: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(10);
/// Connections at a time, chosen by us: several times the scrapers of a process, and memory for so many expositions.
const CONNECTIONS_MAX: usize = 64;
