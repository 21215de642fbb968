//! The conversation over a TCP connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_lab_station::Stop;
use thalweg_transport::clock;

use crate::control::{ControlMessage, Conversation, EndRole};
use crate::error::ProbeError;

/// One end of the conversation.
pub(super) struct ControlChannel {
    stream: TcpStream,
    conversation: Conversation,
    stop: Stop,
}

impl ControlChannel {
    pub(super) fn new(stream: TcpStream, role: EndRole, stop: &Stop) -> Result<ControlChannel, ProbeError> {
        let prepare = || -> std::io::Result<()> {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(LOOK_PERIOD))?;
            stream.set_write_timeout(Some(WRITE_PATIENCE))
        };
        prepare().map_err(ProbeError::system("preparing the control connection"))?;
        let conversation = Conversation::new(role, clock::now());
        Ok(ControlChannel { stream, conversation, stop: stop.clone() })
    }

    /// The two addresses, this end's first. An IPv4 address that an IPv6 socket wraps is unwrapped.
    pub(super) fn addresses(&self) -> Result<(SocketAddr, SocketAddr), ProbeError> {
        let both = self.stream.local_addr().and_then(|here| Ok((here, self.stream.peer_addr()?)));
        let (here, there) = both.map_err(ProbeError::system("asking for the addresses of the control connection"))?;
        Ok((unwrapped(here), unwrapped(there)))
    }

    pub(super) fn say(&mut self, message: &ControlMessage) -> Result<(), ProbeError> {
        let line = self.conversation.create_message(clock::now(), message)?;
        self.stream.write_all(&line).map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => ProbeError::Left,
            _ => ProbeError::System { what: "talking to the other end", error },
        })
    }

    /// Tells the other end why this one gives up; it may be gone.
    pub(super) fn give_up(&mut self, error: &ProbeError) {
        if !self.conversation.is_over() {
            let _ = self.say(&ControlMessage::Failed { reason: error.to_string() });
        }
    }

    /// The next message of the other end; `None` when `until` came first.
    pub(super) fn hear_until(&mut self, until: Instant) -> Result<Option<ControlMessage>, ProbeError> {
        let mut bytes = [0; 4096];
        loop {
            let now = clock::now();
            if let Some(message) = self.conversation.poll_message(now)? {
                return Ok(Some(message));
            }
            self.conversation.handle_timeout(now)?;
            if self.stop.is_requested() {
                return Err(ProbeError::Interrupted);
            }
            if now >= until {
                return Ok(None);
            }
            let patience = until.since(now).clamp(Duration::from_millis(1), LOOK_PERIOD);
            let heard = self.stream.set_read_timeout(Some(patience)).and_then(|()| self.stream.read(&mut bytes));
            match heard {
                Ok(0) => return Err(ProbeError::Left),
                Ok(count) => self.conversation.handle_bytes(&bytes[..count])?,
                Err(error) if is_pause(error.kind()) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Err(ProbeError::Left),
                Err(error) => return Err(ProbeError::System { what: "hearing the other end", error }),
            }
        }
    }

    /// The next message of the other end, as long as that may take.
    pub(super) fn hear(&mut self) -> Result<ControlMessage, ProbeError> {
        let until = Instant::NEVER;
        self.hear_until(until)?.ok_or(ProbeError::Left)
    }
}

/// Whether a read or a write that has a time-out found nothing to do.
pub(super) fn is_pause(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn unwrapped(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip if ip == address.ip() => address,
        ip => SocketAddr::new(ip, address.port()),
    }
}

/// How often a wait looks whether a stop was requested.
pub(super) const LOOK_PERIOD: Duration = Duration::from_millis(50);
/// What a line of the conversation may wait for the other end to read.
const WRITE_PATIENCE: Duration = Duration::from_secs(5);
