//! The sending end: a connected socket for each reader, and no more under way than the reader's socket buffer holds.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use peer_protocol::{Fault, Interface, OctetArrival, OctetSample, PeerProfile, SampleWriter, WriteError};

use crate::datagram::{FAREWELL, Header, WELCOME, charge, part_length};
use crate::sockets::Sockets;
use crate::system;

/// How long a reader may keep the writer waiting.
const PATIENCE: Duration = Duration::from_secs(10);

pub struct Writer {
    shared: Arc<Shared>,
    /// Whether each sample leaves at once.
    is_hurried: bool,
}

struct Shared {
    state: Mutex<State>,
    /// Where readers ask to be taken in.
    door: UdpSocket,
}

struct State {
    links: Vec<Link>,
    outbox: Outbox,
}

impl Writer {
    /// Takes in readers that knock at `address` on the interface, from now on.
    pub fn open(
        address: SocketAddr,
        group: Ipv4Addr,
        interface: &Interface,
        (profile, is_hurried): (PeerProfile, bool),
    ) -> io::Result<Writer> {
        let door = UdpSocket::bind(address)?;
        system::set_multicast(&door, interface, system::Multicast::Receive(group))?;
        let listening = door.try_clone()?;
        let state = Mutex::new(State { links: Vec::new(), outbox: Outbox::new(profile) });
        let shared = Arc::new(Shared { state, door });
        let weak = Arc::downgrade(&shared);
        std::thread::spawn(move || receive_readers(&listening, &weak));
        Ok(Writer { shared, is_hurried })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers at the door until the writer is gone.
fn receive_readers(door: &UdpSocket, shared: &Weak<Shared>) {
    let mut window = [0; 8];
    while let Ok((length, reader)) = door.recv_from(&mut window) {
        let Some(shared) = shared.upgrade() else { return };
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let known = state.links.iter().any(|link| link.reader == reader);
        if known || length != window.len() {
            continue;
        }
        match Link::new(reader, u64::from_le_bytes(window)) {
            Ok(link) => state.links.push(link),
            Err(error) => eprintln!("reader at {reader}: {error}"),
        }
    }
}

impl Writer {
    fn put(&self, number: u64, bytes: &[u8]) -> Result<(), WriteError> {
        let mut state = self.lock();
        let written = state.write(number, bytes);
        let sent = written.and_then(|()| if self.is_hurried { state.flush() } else { Ok(()) });
        sent.map_err(|error| WriteError::Failed(error.to_string()))
    }
}

impl SampleWriter<Sockets> for Writer {
    fn write(&mut self, sample: &OctetSample) -> Result<(), WriteError> {
        self.put(sample.number, &sample.bytes)
    }

    fn send_back(&mut self, arrival: OctetArrival<'_>) -> Result<(), WriteError> {
        self.put(arrival.number, arrival.bytes)
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.lock().flush().map_err(Fault::here)
    }

    fn matched(&self) -> usize {
        let mut state = self.lock();
        state.links.iter_mut().for_each(Link::hear_what_is_there);
        state.links.iter().filter(|link| !link.is_gone).count()
    }

    /// Nothing is acknowledged: what was sent lies in the reader's socket, which has room for it.
    fn wait_for_acknowledgements(&mut self, _patience: Duration) -> Result<bool, Fault> {
        self.flush().map(|()| true)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for link in &state.links {
            // A reader that is gone needs no farewell.
            let _ = system::set_segment(&link.socket, 0).and_then(|()| link.socket.send(&FAREWELL));
        }
        system::shut_down(&self.door);
    }
}

impl State {
    fn write(&mut self, number: u64, bytes: &[u8]) -> io::Result<()> {
        if self.outbox.takes(bytes.len()) {
            let window = self.links.iter().map(|link| link.window).min().unwrap_or(u64::MAX);
            if !self.outbox.has_room(bytes.len(), window) {
                self.flush()?;
            }
            self.outbox.push(number, bytes);
            return Ok(());
        }
        self.flush()?;
        let total = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let length = part_length(bytes.len()).max(1);
        let mut offset = 0;
        loop {
            let part = &bytes[offset..bytes.len().min(offset + length)];
            let header = Header { number, total, offset: offset as u32 }.on_wire();
            for link in &mut self.links {
                link.send(&header, part)?;
            }
            offset += part.len();
            if offset == bytes.len() {
                return Ok(());
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        for link in &mut self.links {
            self.outbox.send(link)?;
        }
        self.outbox.clear();
        Ok(())
    }
}

/// Small samples of equal length that wait to leave together.
struct Outbox {
    way: Way,
    bytes: Vec<u8>,
    count: usize,
    /// Bytes of each datagram.
    length: usize,
    count_max: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    OneByOne,
    /// By `sendmmsg`.
    OneCall,
    /// As one send that the kernel cuts.
    Segmented,
}

impl Outbox {
    /// The longest bytes of a sample that shares a call with others.
    const SAMPLE_MAX: usize = 16_000;
    /// What one segmented send may carry.
    const BYTES_MAX: usize = 65_000;
    /// Segments of one send, since Linux 6.9 and before.
    const SEGMENTS: usize = 128;
    const SEGMENTS_ONCE: usize = 64;

    fn new(profile: PeerProfile) -> Outbox {
        let (way, count_max) = match profile {
            PeerProfile::Default => (Way::OneByOne, 1),
            PeerProfile::Tuned => (Way::OneCall, Outbox::SEGMENTS_ONCE),
            PeerProfile::Batch => (Way::Segmented, Outbox::SEGMENTS),
        };
        Outbox { way, bytes: Vec::with_capacity(Outbox::BYTES_MAX), count: 0, length: 0, count_max }
    }

    fn takes(&self, bytes: usize) -> bool {
        self.way != Way::OneByOne && bytes <= Outbox::SAMPLE_MAX
    }

    fn has_room(&self, bytes: usize, window: u64) -> bool {
        let length = Header::LENGTH + bytes;
        let charges = charge(length) * (self.count as u64 + 1);
        let fits = self.bytes.len() + length <= Outbox::BYTES_MAX && charges <= window / 4;
        self.count == 0 || fits && self.count < self.count_max && length == self.length
    }

    fn push(&mut self, number: u64, bytes: &[u8]) {
        self.length = Header::LENGTH + bytes.len();
        let header = Header { number, total: bytes.len() as u32, offset: 0 };
        self.bytes.extend_from_slice(&header.on_wire());
        self.bytes.extend_from_slice(bytes);
        self.count += 1;
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }

    fn send(&mut self, link: &mut Link) -> io::Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        link.claim(charge(self.length) * self.count as u64)?;
        if self.way == Way::OneCall {
            return system::send_several(&link.socket, &self.bytes, self.length);
        }
        link.set_segment(self.length)?;
        let mut rest = self.bytes.as_slice();
        while !rest.is_empty() {
            let now = rest.len().min(self.count_max * self.length);
            match link.socket.send(&rest[..now]) {
                Ok(_) => rest = &rest[now..],
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) && self.count_max > Outbox::SEGMENTS_ONCE => {
                    self.count_max = Outbox::SEGMENTS_ONCE;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The way to one reader.
struct Link {
    socket: UdpSocket,
    /// The same socket, for vectored writes.
    file: File,
    reader: SocketAddr,
    /// How much may be under way, in the unit of [`charge`].
    window: u64,
    sent: u64,
    /// How much of it the reader took out of its socket.
    taken: u64,
    /// What the kernel cuts sends into; 0 for none.
    segment: usize,
    is_gone: bool,
}

impl Link {
    fn new(reader: SocketAddr, window: u64) -> io::Result<Link> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect(reader)?;
        system::set_buffers(&socket)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.send(&WELCOME)?;
        let file = File::from(OwnedFd::from(socket.try_clone()?));
        Ok(Link { socket, file, reader, window, sent: 0, taken: 0, segment: 0, is_gone: false })
    }

    fn set_segment(&mut self, bytes: usize) -> io::Result<()> {
        if self.segment != bytes {
            system::set_segment(&self.socket, bytes)?;
            self.segment = bytes;
        }
        Ok(())
    }

    fn send(&mut self, header: &[u8], part: &[u8]) -> io::Result<()> {
        self.claim(charge(header.len() + part.len()))?;
        self.set_segment(0)?;
        (&self.file).write_vectored(&[IoSlice::new(header), IoSlice::new(part)]).map(drop)
    }

    /// Waits until so much more may be under way.
    fn claim(&mut self, charge: u64) -> io::Result<()> {
        while self.sent + charge > self.window.saturating_add(self.taken) {
            let mut word = [0; 8];
            let length = self.socket.recv(&mut word).map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock => io::Error::other("the reader took nothing for 10 s: datagrams are lost"),
                _ => error,
            })?;
            self.hear(&word[..length]);
            if self.is_gone {
                return Err(io::Error::other("the reader left"));
            }
        }
        self.sent += charge;
        Ok(())
    }

    fn hear_what_is_there(&mut self) {
        let mut word = [0; 8];
        loop {
            match system::receive_now(&self.socket, &mut word) {
                Ok(length) => self.hear(&word[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return self.is_gone = true,
            }
        }
    }

    /// What the reader says: how much it has taken, or that it leaves.
    fn hear(&mut self, word: &[u8]) {
        match word.first_chunk() {
            Some(taken) => self.taken = self.taken.max(u64::from_le_bytes(*taken)),
            None => self.is_gone |= word == FAREWELL,
        }
    }
}
