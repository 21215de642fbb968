//! A client's DTLS session with one server.

use thalweg_base::time::Instant;

use super::association::{ClientSide, ClockOrigin, DtlsAssociation, DtlsStep, RECORD_MAX};
use super::{DtlsError, SessionLimits};
use crate::credentials::{Credentials, Trust};

/// One session; datagrams to the server go in plain and come out protected, and the other way round.
pub struct ClientSession {
    association: DtlsAssociation,
    check: Option<(Trust, String)>,
    state: SessionState,
    due: Instant,
    /// Datagrams that wait for the end of the handshake.
    waiting: Vec<Vec<u8>>,
    plain: Vec<Vec<u8>>,
    outgoing: Vec<Vec<u8>>,
    buffer: Box<[u8; RECORD_MAX]>,
}

/// How far a session is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// The handshake is under way.
    Handshake,
    /// It can be used.
    Established,
    /// The server ended it.
    Closed,
    /// There is none, and why.
    Failed(DtlsError),
}

impl ClientSession {
    /// Begins a session with the server that the client calls `host`.
    ///
    /// # Errors
    /// When the credentials are not one pre-shared key, or a certificate and those to believe.
    pub fn connect(
        credentials: &Credentials,
        host: &str,
        origin: ClockOrigin,
        now: Instant,
    ) -> Result<ClientSession, DtlsError> {
        let timeout = SessionLimits::default().handshake_max;
        let side = ClientSide::new(&credentials.keys, credentials.certificate.as_ref(), timeout)?;
        let check = match (&credentials.trust, credentials.keys.is_empty()) {
            (Some(trust), true) => Some((trust.clone(), host.to_owned())),
            (None, true) => return Err(DtlsError("a client with certificates needs those to believe".to_owned())),
            (_, false) => None,
        };
        let association = DtlsAssociation::connect(&side, origin, now)?;
        let mut session = ClientSession {
            association,
            check,
            state: SessionState::Handshake,
            due: now,
            waiting: Vec::new(),
            plain: Vec::new(),
            outgoing: Vec::new(),
            buffer: Box::new([0; RECORD_MAX]),
        };
        session.pump();
        Ok(session)
    }

    /// How far it is.
    pub fn state(&self) -> &SessionState {
        &self.state
    }

    /// Whether it can be used, now or after the handshake.
    pub fn is_alive(&self) -> bool {
        matches!(self.state, SessionState::Handshake | SessionState::Established)
    }

    /// Takes a datagram of the server.
    pub fn handle_datagram(&mut self, now: Instant, bytes: &[u8]) {
        if self.is_alive() {
            let handled = self.association.handle(now, bytes);
            self.go_on(handled);
        }
    }

    /// Repeats what was lost.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.is_alive() && self.due <= now {
            let handled = self.association.handle_timeout(now);
            self.go_on(handled);
        }
    }

    /// When [`ClientSession::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.is_alive().then_some(self.due)
    }

    /// Sends a datagram, now or after the handshake.
    pub fn send(&mut self, now: Instant, bytes: &[u8]) {
        match self.state {
            SessionState::Handshake if self.waiting.len() < WAITING_MAX => self.waiting.push(bytes.to_vec()),
            SessionState::Established => {
                let sent = self.association.handle_timeout(now).and_then(|()| self.association.send(bytes));
                self.go_on(sent);
            }
            // A repetition follows, or the request fails.
            _ => {}
        }
    }

    /// Ends the session.
    pub fn close(&mut self) {
        if self.state == SessionState::Established {
            self.association.close();
            self.pump();
            self.state = SessionState::Closed;
        }
    }

    /// Datagrams for the network.
    pub fn take_outgoing(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.outgoing)
    }

    /// Datagrams of the server, in plain.
    pub fn take_plain(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.plain)
    }

    /// Whether DTLS 1.3 was agreed on.
    pub fn is_dtls13(&self) -> bool {
        self.association.is_dtls13()
    }

    fn go_on(&mut self, handled: Result<(), DtlsError>) {
        match handled {
            Ok(()) => self.pump(),
            Err(error) => self.state = SessionState::Failed(error),
        }
    }

    fn pump(&mut self) {
        loop {
            match self.association.poll(&mut self.buffer) {
                DtlsStep::Send(bytes) => self.outgoing.push(bytes.to_vec()),
                DtlsStep::Plain(bytes) if self.state == SessionState::Established => self.plain.push(bytes.to_vec()),
                DtlsStep::Plain(_) | DtlsStep::Nothing => {}
                DtlsStep::Certificate(der) => {
                    let checked = self.check.as_ref().map(|(trust, host)| trust.check_server(der, host));
                    if let Some(Err(error)) = checked {
                        self.state = SessionState::Failed(DtlsError(error.to_string()));
                        return;
                    }
                }
                DtlsStep::Connected => {
                    self.state = SessionState::Established;
                    for bytes in std::mem::take(&mut self.waiting) {
                        if let Err(error) = self.association.send(&bytes) {
                            self.state = SessionState::Failed(error);
                        }
                    }
                }
                DtlsStep::Closed => {
                    self.state = SessionState::Closed;
                    return;
                }
                DtlsStep::Idle(until) => {
                    self.due = until;
                    return;
                }
            }
        }
    }
}

/// Datagrams of a client that wait for its handshake: repetitions follow for more.
const WAITING_MAX: usize = 64;
