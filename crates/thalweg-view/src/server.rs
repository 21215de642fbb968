//! The sockets of all clients, on one thread.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token, Waker};

use crate::socket::{ClientSocket, Heard};
use crate::switchboard::Switchboard;
use crate::view::ViewNews;
use crate::visitors::Visitors;

/// What the threads of a view have in common.
pub struct Exchange {
    board: Mutex<Switchboard>,
    news: Mutex<Vec<ViewNews>>,
    waker: Waker,
    /// The server was woken and has not looked yet.
    is_rung: AtomicBool,
    is_over: AtomicBool,
}

impl Exchange {
    /// The switchboard, held for as short as possible: the thread that receives samples waits for it.
    pub fn board(&self) -> MutexGuard<'_, Switchboard> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the server look at the switchboard.
    pub fn wake(&self) {
        if !self.is_rung.swap(true, Ordering::AcqRel) {
            // It looks once a second anyway.
            let _ = self.waker.wake();
        }
    }

    /// What there is to tell the user since the last call.
    pub fn take_news(&self) -> Vec<ViewNews> {
        std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn tell(&self, news: ViewNews) {
        let mut waiting = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever connects again and again fills no memory.
        if waiting.len() < NEWS_MAX {
            waiting.push(news);
        }
    }
}

/// Serves clients until it is dropped.
pub struct ViewServer {
    address: SocketAddr,
    exchange: Arc<Exchange>,
    thread: Option<JoinHandle<()>>,
}

impl ViewServer {
    /// Listens at `address`; port 0 lets the system choose.
    ///
    /// # Errors
    /// When the address is taken or not of this host, or the system gives no thread.
    pub fn start(address: SocketAddr, visitors: Visitors, board: Switchboard) -> io::Result<ViewServer> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let mut listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let exchange = Arc::new(Exchange {
            board: Mutex::new(board),
            news: Mutex::default(),
            waker,
            is_rung: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        });
        let service = Service {
            poll,
            listener,
            visitors: Arc::new(visitors),
            exchange: Arc::clone(&exchange),
            links: BTreeMap::new(),
            next: FIRST,
            is_behind: false,
        };
        let thread = std::thread::Builder::new().name("view".to_owned()).spawn(move || service.run())?;
        Ok(ViewServer { address, exchange, thread: Some(thread) })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn exchange(&self) -> &Arc<Exchange> {
        &self.exchange
    }
}

impl Drop for ViewServer {
    fn drop(&mut self) {
        self.exchange.is_over.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        if self.exchange.waker.wake().is_ok() {
            // A panic there has been reported there.
            let _ = thread.join();
        }
    }
}

/// What the thread has.
struct Service {
    poll: Poll,
    listener: TcpListener,
    visitors: Arc<Visitors>,
    exchange: Arc<Exchange>,
    /// By tokens, which grow: the oldest first.
    links: BTreeMap<usize, Link>,
    next: usize,
    /// Clients wait that were not accepted yet; nobody tells of them again.
    is_behind: bool,
}

/// One connection.
struct Link {
    socket: ClientSocket,
    address: SocketAddr,
    /// Its number in the switchboard, once the handshake is over.
    client: Option<u64>,
    opened: Instant,
    /// When it last said or took anything.
    alive: Instant,
    pinged: Instant,
    is_readable: bool,
    is_writable: bool,
}

impl Service {
    fn run(mut self) {
        let mut events = Events::with_capacity(LINKS_MAX);
        let mut has_more = false;
        while !self.exchange.is_over.load(Ordering::Acquire) {
            let patience = if has_more { Duration::ZERO } else { TICK };
            let patience = if self.is_behind { patience.min(PAUSE) } else { patience };
            if self.poll.poll(&mut events, Some(patience)).is_err() {
                // A signal, most likely: the next wait may do.
                std::thread::sleep(PAUSE);
                continue;
            }
            self.exchange.is_rung.store(false, Ordering::Release);
            let mut is_asked = self.is_behind;
            for event in &events {
                match event.token() {
                    LISTENER => is_asked = true,
                    token => self.mark(token, event.is_readable() || event.is_error(), event.is_writable()),
                }
            }
            if is_asked {
                self.accept();
            }
            has_more = self.serve_all();
        }
        for link in self.links.values_mut() {
            // Whoever does not take the goodbye now does without: nobody waits for a client.
            link.socket.close();
            let _ = link.socket.flush();
        }
    }

    fn mark(&mut self, token: Token, is_readable: bool, is_writable: bool) {
        if let Some(link) = self.links.get_mut(&token.0) {
            link.is_readable |= is_readable;
            link.is_writable |= is_writable;
        }
    }

    fn accept(&mut self) {
        self.is_behind = false;
        for _ in 0..LINKS_MAX {
            let (mut stream, address) = match self.listener.accept() {
                Ok(accepted) => accepted,
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
            if !self.make_room() {
                self.exchange.tell(ViewNews::Refused { address, reason: format!("there are {LINKS_MAX} clients") });
                continue;
            }
            let token = Token(self.next);
            self.next += 1;
            if self.poll.registry().register(&mut stream, token, Interest::READABLE | Interest::WRITABLE).is_err() {
                continue;
            }
            let now = Instant::now();
            let link = Link {
                socket: ClientSocket::accept(stream, Arc::clone(&self.visitors)),
                address,
                client: None,
                opened: now,
                alive: now,
                pinged: now,
                is_readable: true,
                is_writable: true,
            };
            self.links.insert(token.0, link);
        }
        // Those that are here come first for a moment.
        self.is_behind = true;
    }

    /// Ends the oldest connection that has not said what it wants, if there is no room; returns whether there is any.
    fn make_room(&mut self) -> bool {
        if self.links.len() < LINKS_MAX {
            return true;
        }
        let undecided = self.links.iter().find(|(_, link)| link.client.is_none()).map(|(token, _)| *token);
        undecided.is_some_and(|token| self.links.remove(&token).is_some())
    }

    /// Gives each connection its turn; returns whether one could go on at once.
    fn serve_all(&mut self) -> bool {
        let (now, mut has_more, mut over) = (Instant::now(), false, Vec::new());
        for (token, link) in &mut self.links {
            match link.serve(now, &self.exchange) {
                Ok(may_go_on) => has_more |= may_go_on,
                Err(reason) => over.push((*token, reason)),
            }
        }
        for (token, reason) in over {
            let Some(mut link) = self.links.remove(&token) else { continue };
            let _ = self.poll.registry().deregister(link.socket.stream());
            let news = match link.client {
                Some(client) => {
                    let dropped = self.exchange.board().delete_client(client);
                    ViewNews::Left { address: link.address, reason: reason.to_string(), dropped }
                }
                None => ViewNews::Refused { address: link.address, reason: reason.to_string() },
            };
            self.exchange.tell(news);
        }
        has_more
    }
}

impl Link {
    /// Hears the client and sends what there is for it. Returns whether it could go on at once.
    ///
    /// # Errors
    /// Why the connection is over.
    fn serve(&mut self, now: Instant, exchange: &Exchange) -> io::Result<bool> {
        self.hear(now, exchange)?;
        if self.client.is_none() && now.saturating_duration_since(self.opened) >= HANDSHAKE_PATIENCE {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it did not finish the handshake in time"));
        }
        if now.saturating_duration_since(self.alive) >= SILENCE_MAX {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it neither answered nor took anything for too long"));
        }
        if self.client.is_some() && now.saturating_duration_since(self.pinged) >= PING_PERIOD {
            self.socket.ping();
            self.pinged = now;
        }
        let has_more = self.send(now, exchange)?;
        if self.socket.is_closing() && self.socket.is_empty() {
            let reason = self.socket.refusal().unwrap_or("it said goodbye").to_owned();
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, reason));
        }
        let may_read = self.is_readable && self.socket.wants_input();
        Ok(has_more || may_read)
    }

    fn hear(&mut self, now: Instant, exchange: &Exchange) -> io::Result<()> {
        let mut heard = Vec::new();
        for _ in 0..READS_MAX {
            if !self.is_readable || !self.socket.wants_input() {
                break;
            }
            match self.socket.read(&mut heard)? {
                Some(_) => self.alive = now,
                None => self.is_readable = false,
            }
        }
        for message in heard {
            if let Heard::Entered = message {
                self.client = Some(exchange.board().create_client(self.address));
                exchange.tell(ViewNews::Joined { address: self.address });
            }
            let Some(client) = self.client else { continue };
            match message {
                Heard::Entered => {}
                Heard::Text(text) => exchange.board().handle_text(client, &text),
                Heard::Binary => exchange.board().handle_binary(client),
            }
        }
        Ok(())
    }

    /// Sends until the socket takes no more, nothing is there, or it is the turn of others; returns whether the latter.
    fn send(&mut self, now: Instant, exchange: &Exchange) -> io::Result<bool> {
        for _ in 0..FRAMES_MAX {
            if !self.is_writable {
                return Ok(false);
            }
            let (written, takes_more) = self.socket.flush()?;
            if written > 0 {
                self.alive = now;
            }
            self.is_writable = takes_more;
            if !self.socket.is_empty() {
                return Ok(takes_more);
            }
            let client = self.client.filter(|_| !self.socket.is_closing());
            let Some(outgoing) = client.and_then(|client| exchange.board().poll_outgoing(now, client)) else {
                return Ok(false);
            };
            self.socket.send(outgoing);
        }
        Ok(true)
    }
}

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);
const FIRST: usize = 2;
/// Clients at a time, chosen by us: several times those who look at one robot.
pub const LINKS_MAX: usize = 32;
/// Reads and frames of one client before others have their turn.
const READS_MAX: usize = 16;
const FRAMES_MAX: usize = 256;
/// Longest time between two looks at what is due.
const TICK: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(5);
const PING_PERIOD: Duration = Duration::from_secs(20);
/// Silence of a client after which it counts as gone: it answers pings, or at least takes bytes.
const SILENCE_MAX: Duration = Duration::from_secs(90);
/// News that wait for the user.
const NEWS_MAX: usize = 256;
