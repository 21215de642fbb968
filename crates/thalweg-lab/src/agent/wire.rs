//! A connection of a controller to an agent: the handshake, then sealed messages both ways.
//!
//! Each side shows that it has the key by a tag over both sides' random numbers, first the controller, then the agent; nobody learns
//! anything from an agent whose key he has not. From key and numbers follows a key for each direction of this connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::frames::Frames;
use super::key::{AgentKey, Tag};
use super::seal::{Opener, SEAL_BYTES, Sealer};

/// Messages before both sides have proved themselves.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Greeting {
    /// The controller's first word.
    Hello { protocol: u32, version: String, nonce: Tag },
    /// The agent's answer.
    Challenge { nonce: Tag },
    /// The controller has the key.
    Proof { tag: Tag },
    /// So has the agent.
    Welcome { tag: Tag },
    /// The agent wants nothing to do with it.
    Refused(Refusal),
}

/// Why an agent refuses a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Refusal {
    /// It speaks another version, its own being this.
    Version { protocol: u32, version: String },
    /// The controller's key is not its own.
    Key,
}

/// Why two sides did not come together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stranger {
    /// The agent refused.
    Refused(Refusal),
    /// The other side does not have the key.
    WrongKey,
    /// Its first message is none of this program's.
    NoSuchProgram,
    /// It spoke another version, which it was told.
    Version(String),
    /// It went away or said nothing.
    Lost(String),
}

/// The way to the other side.
#[derive(Debug)]
pub(super) struct Outgoing {
    stream: TcpStream,
    sealer: Sealer,
}

/// The way from the other side.
#[derive(Debug)]
pub(super) struct Incoming {
    stream: TcpStream,
    frames: Frames,
    opener: Opener,
}

/// A connection whose sides know each other.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    /// For questions to the agent's clock, which take another way.
    pub(super) clock_key: AgentKey,
}

/// The agent's side: lets a controller in that has the key and speaks this version.
pub(super) fn admit(stream: TcpStream, key: &AgentKey) -> Result<Connected, Stranger> {
    let mut door = Door::new(stream)?;
    let Greeting::Hello { protocol, version, nonce: theirs } = door.hear()? else {
        return Err(Stranger::NoSuchProgram);
    };
    if (protocol, version.as_str()) != (PROTOCOL, VERSION) {
        door.say(&Greeting::Refused(Refusal::Version { protocol: PROTOCOL, version: VERSION.to_owned() }))?;
        return Err(Stranger::Version(version));
    }
    let ours = nonce()?;
    door.say(&Greeting::Challenge { nonce: ours })?;
    let Greeting::Proof { tag } = door.hear()? else { return Err(Stranger::NoSuchProgram) };
    if !key.verifies(CONTROLLER, &[&theirs, &ours], &tag) {
        door.say(&Greeting::Refused(Refusal::Key))?;
        return Err(Stranger::WrongKey);
    }
    door.say(&Greeting::Welcome { tag: key.tag(AGENT, &[&theirs, &ours]) })?;
    door.open(key, (TO_CONTROLLER, TO_AGENT), &[&theirs, &ours])
}

/// The controller's side: comes in where the agent has the key and speaks this version.
pub(super) fn greet(stream: TcpStream, key: &AgentKey) -> Result<Connected, Stranger> {
    let mut door = Door::new(stream)?;
    let ours = nonce()?;
    door.say(&Greeting::Hello { protocol: PROTOCOL, version: VERSION.to_owned(), nonce: ours })?;
    let theirs = match door.hear()? {
        Greeting::Challenge { nonce } => nonce,
        Greeting::Refused(refusal) => return Err(Stranger::Refused(refusal)),
        _ => return Err(Stranger::NoSuchProgram),
    };
    door.say(&Greeting::Proof { tag: key.tag(CONTROLLER, &[&ours, &theirs]) })?;
    match door.hear()? {
        Greeting::Welcome { tag } if key.verifies(AGENT, &[&ours, &theirs], &tag) => {}
        Greeting::Welcome { .. } => return Err(Stranger::WrongKey),
        Greeting::Refused(refusal) => return Err(Stranger::Refused(refusal)),
        _ => return Err(Stranger::NoSuchProgram),
    }
    door.open(key, (TO_AGENT, TO_CONTROLLER), &[&ours, &theirs])
}

/// A connection whose sides do not know each other yet.
struct Door {
    stream: TcpStream,
    frames: Frames,
    deadline: Instant,
}

impl Door {
    fn new(stream: TcpStream) -> Result<Door, Stranger> {
        let prepare = || {
            stream.set_nonblocking(false)?;
            stream.set_nodelay(true)?;
            stream.set_write_timeout(Some(WRITE_PATIENCE))
        };
        prepare().map_err(|error| Stranger::Lost(error.to_string()))?;
        Ok(Door { stream, frames: Frames::new(GREETING_MAX), deadline: Instant::now() + GREETING_PATIENCE })
    }

    fn say(&mut self, greeting: &Greeting) -> Result<(), Stranger> {
        let content = serde_json::to_vec(greeting).map_err(|error| Stranger::Lost(error.to_string()))?;
        let frame = Frames::pack(&content, GREETING_MAX).ok_or(Stranger::NoSuchProgram)?;
        self.stream.write_all(&frame).map_err(|error| Stranger::Lost(error.to_string()))
    }

    fn hear(&mut self) -> Result<Greeting, Stranger> {
        loop {
            if let Some(frame) = self.frames.take().map_err(|_| Stranger::NoSuchProgram)? {
                return serde_json::from_slice(&frame).map_err(|_| Stranger::NoSuchProgram);
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            match receive(&mut self.stream, &mut self.frames, left) {
                Ok(true) => {}
                Ok(false) if left.is_zero() => {
                    return Err(Stranger::Lost(format!("it said nothing for {GREETING_PATIENCE:?}")));
                }
                Ok(false) => {}
                Err(reason) => return Err(Stranger::Lost(reason)),
            }
        }
    }

    fn open(mut self, key: &AgentKey, (out, back): (&str, &str), nonces: &[&[u8]]) -> Result<Connected, Stranger> {
        self.frames.allow(MESSAGE_MAX);
        let stream = self.stream.try_clone().map_err(|error| Stranger::Lost(error.to_string()))?;
        Ok(Connected {
            outgoing: Outgoing { stream, sealer: Sealer::new(key.derive(out, nonces)) },
            incoming: Incoming {
                stream: self.stream,
                frames: self.frames,
                opener: Opener::new(key.derive(back, nonces)),
            },
            clock_key: key.derive(CLOCK, nonces),
        })
    }
}

impl Outgoing {
    /// Says something to the other side.
    ///
    /// # Errors
    /// It is gone, or takes nothing for a long time.
    pub(super) fn say(&mut self, message: &impl Serialize) -> Result<(), String> {
        let content = serde_json::to_vec(message).map_err(|error| error.to_string())?;
        let frame = Frames::pack(&self.sealer.seal(&content), MESSAGE_MAX)
            .ok_or_else(|| format!("a message of {} bytes is longer than the {MESSAGE_MAX} allowed", content.len()))?;
        self.stream.write_all(&frame).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => format!("it took nothing for {WRITE_PATIENCE:?}"),
            _ => error.to_string(),
        })
    }

    /// Ends the connection in both directions.
    pub(super) fn close(&self) {
        // One that is closed already stays closed.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Incoming {
    /// The other side's next message, if one comes within `patience`.
    ///
    /// # Errors
    /// It is gone, or an attacker on the path forges or repeats messages.
    pub(super) fn hear<T: DeserializeOwned>(&mut self, patience: Duration) -> Result<Option<T>, String> {
        loop {
            if let Some(frame) = self.frames.take().map_err(|error| error.to_string())? {
                let content = self.opener.open(&frame).map_err(|error| error.to_string())?;
                let message = serde_json::from_slice(&content);
                return message.map(Some).map_err(|error| format!("a message is not understood: {error}"));
            }
            if !receive(&mut self.stream, &mut self.frames, patience)? {
                return Ok(None);
            }
        }
    }
}

/// Reads available bytes, waiting up to `patience` for them; `false` when nothing came.
fn receive(stream: &mut TcpStream, frames: &mut Frames, patience: Duration) -> Result<bool, String> {
    let mut buffer = [0; READ_BYTES];
    let patience = patience.max(Duration::from_millis(1));
    let read = stream.set_read_timeout(Some(patience)).and_then(|()| stream.read(&mut buffer));
    match read {
        Ok(0) => Err("it closed the connection".to_owned()),
        Ok(count) => {
            frames.add(&buffer[..count]);
            Ok(true)
        }
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(false),
            _ => Err(error.to_string()),
        },
    }
}

fn nonce() -> Result<Tag, Stranger> {
    thalweg_transport::entropy::key().map_err(|error| Stranger::Lost(error.to_string()))
}

/// Changes with each message.
pub(super) const PROTOCOL: u32 = 2;
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Longest message before both sides know each other.
const GREETING_MAX: usize = 1024;
/// Longest message after that, seal included.
pub(super) const MESSAGE_MAX: usize = (4 << 20) + SEAL_BYTES;
const READ_BYTES: usize = 16 << 10;
const GREETING_PATIENCE: Duration = Duration::from_secs(5);
const WRITE_PATIENCE: Duration = Duration::from_secs(10);
const CONTROLLER: &str = "thalweg lab 1: controller";
const AGENT: &str = "thalweg lab 1: agent";
const TO_AGENT: &str = "thalweg lab 1: to agent";
const TO_CONTROLLER: &str = "thalweg lab 1: to controller";
const CLOCK: &str = "thalweg lab 1: clock";
