//! The receiving end: one socket and one thread, which hands samples over and says how much it has taken.

use std::fs::File;
use std::io::{self, IoSliceMut, Read};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use peer_protocol::{Interface, OctetArrival, PeerProfile, PeerSetup, SampleReader, SampleSink, Wait};

use crate::datagram::{FAREWELL, Header, PART_MAX, WELCOME, charge};
use crate::sockets::Sockets;
use crate::system;

/// How often a reader knocks until it is let in.
const KNOCK_PERIOD: Duration = Duration::from_millis(20);

pub struct Reader {
    socket: Arc<UdpSocket>,
    flags: Arc<Flags>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Flags {
    is_matched: AtomicBool,
    is_over: AtomicBool,
}

impl Reader {
    /// Knocks at the writer's door and hands what arrives to `sink`.
    pub fn open(
        door: SocketAddr,
        (setup, interface): (&PeerSetup, &Interface),
        best_effort: bool,
        sink: impl SampleSink<Sockets>,
    ) -> io::Result<Reader> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        system::set_multicast(&socket, interface, system::Multicast::Send)?;
        // The kernel counts up to a quarter of the buffer as used for a while after it was read.
        let window = system::set_buffers(&socket)? / 4 * 3;
        let intake = Intake::new(setup, &socket)?;
        let (socket, flags) = (Arc::new(socket), Arc::new(Flags::default()));
        let told = if best_effort { u64::MAX } else { window };
        let mut course = Course {
            socket: Arc::clone(&socket),
            flags: Arc::clone(&flags),
            sink,
            taken: 0,
            told: 0,
            step: window / 4,
            untold: 0,
        };
        let is_busy = setup.wait == Wait::Busy;
        let thread = std::thread::spawn(move || {
            if let Err(error) = course.meet(door, told, is_busy).and_then(|()| course.run(intake)) {
                eprintln!("reader: {error}");
            }
            course.flags.is_matched.store(false, Ordering::Relaxed);
            // A writer that is gone needs no farewell.
            let _ = course.socket.send(&FAREWELL);
        });
        Ok(Reader { socket, flags, thread: Some(thread) })
    }
}

impl SampleReader for Reader {
    fn matched(&self) -> usize {
        usize::from(self.flags.is_matched.load(Ordering::Relaxed))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.flags.is_over.store(true, Ordering::Relaxed);
        system::shut_down(&self.socket);
        // A panic in the thread has been printed where it happened.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// By what call datagrams come out of the socket.
enum Intake {
    /// One by one, samples that travel in parts joined in place.
    Whole { file: File, bytes: Vec<u8> },
    /// Several by one call.
    Several(system::Slots),
    /// As the kernel joined them.
    Joined(Vec<u8>),
}

impl Intake {
    fn new(setup: &PeerSetup, socket: &UdpSocket) -> io::Result<Intake> {
        if setup.profile == PeerProfile::Default || setup.octets_max() > PART_MAX {
            let file = File::from(OwnedFd::from(socket.try_clone()?));
            return Ok(Intake::Whole { file, bytes: vec![0; setup.octets_max()] });
        }
        if setup.profile == PeerProfile::Tuned {
            return Ok(Intake::Several(system::Slots::new(Header::LENGTH + setup.octets_max())));
        }
        system::join_segments(socket)?;
        Ok(Intake::Joined(vec![0; 1 << 16]))
    }
}

/// What the receiving thread goes by.
struct Course<S> {
    socket: Arc<UdpSocket>,
    flags: Arc<Flags>,
    sink: S,
    /// What was taken out of the socket, in the unit of [`charge`], and how much of it the writer knows.
    taken: u64,
    told: u64,
    /// After how much more the writer is told.
    step: u64,
    /// Samples since `SampleSink::taken`.
    untold: u32,
}

impl<S: SampleSink<Sockets>> Course<S> {
    /// Knocks until the writer answers, from the socket that will send.
    fn meet(&mut self, door: SocketAddr, window: u64, is_busy: bool) -> io::Result<()> {
        self.socket.set_read_timeout(Some(KNOCK_PERIOD))?;
        let mut word = [0; 8];
        while !self.is_over() {
            self.socket.send_to(&window.to_le_bytes(), door)?;
            let Ok((length, writer)) = self.socket.recv_from(&mut word) else { continue };
            if word[..length] == WELCOME {
                self.socket.connect(writer)?;
                // A wait with an end costs a timer each time.
                self.socket.set_read_timeout(None)?;
                self.socket.set_nonblocking(is_busy)?;
                self.flags.is_matched.store(true, Ordering::Relaxed);
                return Ok(());
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.flags.is_over.load(Ordering::Relaxed)
    }

    fn run(&mut self, mut intake: Intake) -> io::Result<()> {
        let mut assembly = Assembly::default();
        while !self.is_over() {
            let received = match &mut intake {
                Intake::Whole { file, bytes } => self.take_part(file, bytes, &mut assembly),
                Intake::Several(slots) => self.take_several(slots),
                Intake::Joined(buffer) => self.take_joined(buffer),
            };
            match received {
                Ok(true) => (),
                Ok(false) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::hint::spin_loop(),
                // The writer's process ended without a farewell.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// One datagram; false at the end.
    fn take_part(&mut self, file: &File, bytes: &mut [u8], assembly: &mut Assembly) -> io::Result<bool> {
        // Larger samples are worth a look at the clock each.
        const OFTEN: u32 = 16;
        const LARGE: usize = 4096;
        let mut header = [0; Header::LENGTH];
        let (start, room) = (assembly.filled, IoSliceMut::new(&mut bytes[assembly.filled..]));
        let received = (&*file).read_vectored(&mut [IoSliceMut::new(&mut header), room])?;
        let Some(length) = received.checked_sub(Header::LENGTH) else { return Ok(false) };
        let header = Header::from_wire(&header);
        if header.offset == 0 && start > 0 {
            // The rest of the sample before got lost.
            bytes.copy_within(start..start + length, 0);
        }
        if let Some((number, total)) = assembly.add(header, length) {
            self.sink.take(OctetArrival { number, bytes: &bytes[..total] });
            self.untold += 1;
            if self.untold >= OFTEN || total >= LARGE {
                self.untold = 0;
                self.sink.taken();
            }
        }
        self.tell(charge(received))?;
        Ok(true)
    }

    fn take_several(&mut self, slots: &mut system::Slots) -> io::Result<bool> {
        let socket = Arc::clone(&self.socket);
        let mut charges = 0;
        let mut goes_on = true;
        for datagram in slots.receive(&socket)? {
            charges += charge(datagram.len());
            goes_on &= self.hand_over(datagram);
        }
        self.sink.taken();
        self.tell(charges)?;
        Ok(goes_on)
    }

    fn take_joined(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        let (received, length) = system::receive_joined(&self.socket, buffer)?;
        let mut goes_on = received > 0;
        for datagram in buffer[..received].chunks(length) {
            goes_on &= self.hand_over(datagram);
        }
        self.sink.taken();
        self.tell(charge(length) * received.div_ceil(length) as u64)?;
        Ok(goes_on)
    }

    /// A datagram that holds a whole sample; false at the end.
    fn hand_over(&mut self, datagram: &[u8]) -> bool {
        let Some((header, bytes)) = datagram.split_first_chunk() else { return false };
        let header = Header::from_wire(header);
        if header.total as usize == bytes.len() {
            self.sink.take(OctetArrival { number: header.number, bytes });
        }
        true
    }

    fn tell(&mut self, charges: u64) -> io::Result<()> {
        self.taken += charges;
        if self.taken - self.told < self.step {
            return Ok(());
        }
        self.told = self.taken;
        self.socket.send(&self.taken.to_le_bytes()).map(drop)
    }
}

/// How much of a sample is there.
#[derive(Default)]
struct Assembly {
    number: u64,
    filled: usize,
}

impl Assembly {
    /// Adds a part; number and length of the sample that is whole with it. A part that does not follow is dropped with
    /// what it should have followed, unless it begins a sample.
    fn add(&mut self, part: Header, length: usize) -> Option<(u64, usize)> {
        let follows = part.offset as usize == self.filled && (self.filled == 0 || part.number == self.number);
        if !follows && part.offset > 0 {
            self.filled = 0;
            return None;
        }
        self.number = part.number;
        let (filled, total) = (part.offset as usize + length, part.total as usize);
        self.filled = if filled < total { filled } else { 0 };
        (filled == total).then_some((part.number, total))
    }
}

#[cfg(test)]
mod tests {
    use super::{Assembly, Header};

    /// Adds parts of ten bytes of samples of twenty; the numbers of those that came whole.
    #[track_caller]
    fn check(parts: &[(u64, u32)], whole: &[u64]) {
        let mut assembly = Assembly::default();
        let mut add = |(number, offset)| assembly.add(Header { number, total: 20, offset }, 10);
        let numbers: Vec<u64> = parts.iter().filter_map(|part| add(*part)).map(|(number, _)| number).collect();
        assert_eq!(numbers, whole, "{parts:?}");
    }

    #[test]
    fn a_sample_is_whole_with_all_its_parts_in_order() {
        check(&[(0, 0), (0, 10), (1, 0), (1, 10)], &[0, 1]);
        check(&[(0, 0), (1, 0), (1, 10)], &[1]);
        check(&[(0, 10), (1, 0), (1, 10)], &[1]);
        check(&[(0, 0), (1, 10), (2, 0), (2, 10)], &[2]);
    }
}
