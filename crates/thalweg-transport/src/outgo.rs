//! What the ways out have in common: which neighbours leave as one message, how long a full buffer is waited for, and what
//! became of it all.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use crate::socket::UdpSocket;
use crate::sys::poll::wait_writable;
use crate::sys::send::{Addressing, Gather};

/// What became of the datagrams of one call that sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Datagrams the kernel took; each destination counts.
    pub datagrams: usize,
    /// Datagrams lost on this side: buffers that stayed full, no route, refused.
    pub lost: usize,
    /// System calls made.
    pub calls: usize,
}

/// Neighbours to the same destinations that leave as one message, which the kernel cuts apart (GSO).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    segment_bytes: usize,
    bytes: usize,
    count: usize,
    count_max: usize,
    /// Only the last segment may be shorter.
    is_over: bool,
}

impl Run {
    /// A run that begins with a datagram of `bytes`; `cuts` tells whether the kernel may be given several.
    pub(crate) fn new(bytes: usize, cuts: bool) -> Run {
        let count_max = if cuts { SEGMENTS_MAX } else { 1 };
        Run { segment_bytes: bytes, bytes, count: 1, count_max, is_over: false }
    }

    /// Adds a datagram of `bytes` to the same destinations; false when it has to leave by another message.
    pub(crate) fn admit(&mut self, bytes: usize) -> bool {
        let fits = (1..=self.segment_bytes).contains(&bytes) && self.bytes + bytes <= MESSAGE_MAX_BYTES;
        if self.is_over || self.count >= self.count_max || !fits {
            return false;
        }
        self.bytes += bytes;
        self.count += 1;
        self.is_over = bytes < self.segment_bytes;
        true
    }

    /// Number of datagrams.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// What the kernel is to cut it into; `None` when there is nothing to cut.
    pub(crate) fn segment(&self) -> Option<u16> {
        (self.count > 1).then_some(self.segment_bytes as u16)
    }
}

/// How long one call waits in total for room in the send buffer.
#[derive(Debug)]
pub(crate) struct Patience {
    total: Duration,
    /// When it ends; set at the first wait.
    deadline: Option<Instant>,
    /// The next pause for a queue below the socket.
    pause: Duration,
    waits: usize,
}

impl Patience {
    pub(crate) fn new(total: Duration) -> Patience {
        Patience { total, deadline: None, pause: QUEUE_PAUSE, waits: 0 }
    }

    /// Waits until the kernel may take more after `error`, which [`lacks_room`]; false when patience has ended.
    pub(crate) fn wait(&mut self, error: &io::Error, socket: &impl AsFd) -> bool {
        self.waits += 1;
        let now = Instant::now();
        let deadline = *self.deadline.get_or_insert(now + self.total);
        let left = deadline.saturating_duration_since(now);
        if left.is_zero() {
            return false;
        }
        if error.raw_os_error() == Some(libc::ENOBUFS) {
            std::thread::sleep(self.pause.min(left));
            self.pause = QUEUE_PAUSE_MAX.min(self.pause * 2);
            return true;
        }
        wait_writable(socket.as_fd(), left)
    }

    /// How often it was asked to wait.
    pub(crate) fn waits(&self) -> usize {
        self.waits
    }

    /// Notes that the kernel has taken something: its queue is served, and the next pause is short again.
    pub(crate) fn note_progress(&mut self) {
        self.pause = QUEUE_PAUSE;
    }
}

/// What becomes of a message that the kernel refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is offered once more: the error was news of an earlier one.
    Again,
    /// Its datagrams were queued anew behind the others.
    Replaced,
    /// Its datagrams are lost.
    Lost,
}

/// Hands all messages of `gather`, which bring their addresses, to the kernel. A message that it refuses for another reason than
/// room goes to `judge`, with its index and the number of such refusals in a row.
pub(crate) fn transmit_all(
    gather: &mut Gather<'_, '_>,
    socket: &UdpSocket,
    patience: &mut Patience,
    mut judge: impl FnMut(&mut Gather<'_, '_>, usize, u32, &io::Error) -> Verdict,
) -> Sent {
    let (mut sent, mut next, mut attempts) = (Sent::default(), 0, 0);
    let datagrams = |gather: &Gather<'_, '_>, index| gather.message(index).map_or(0, |message| message.datagrams.len());
    while next < gather.len() {
        sent.calls += 1;
        let end = gather.len().min(next + MESSAGES_MAX);
        match gather.transmit(socket.as_fd(), next..end, Addressing::Each) {
            Ok(count) => {
                let taken = next..next + count.max(1);
                sent.datagrams += taken.clone().map(|index| datagrams(gather, index)).sum::<usize>();
                patience.note_progress();
                (next, attempts) = (taken.end, 0);
            }
            Err(error) if lacks_room(&error) && patience.wait(&error, socket) => {}
            // The first of the batch is the one that was refused: unreachable, too large, no room, or nobody to cut it.
            Err(error) => {
                attempts += 1;
                let verdict = judge(gather, next, attempts, &error);
                if verdict == Verdict::Again {
                    continue;
                }
                sent.lost += if verdict == Verdict::Lost { datagrams(gather, next) } else { 0 };
                (next, attempts) = (next + 1, 0);
            }
        }
    }
    sent
}

/// Whether a datagram was refused because the socket's buffer or a queue below it is full.
pub(crate) fn lacks_room(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS))
}

/// Datagrams that Linux cuts from one message at most (`UDP_MAX_SEGMENTS` before 6.9, when it became 128).
const SEGMENTS_MAX: usize = 64;
/// Bytes of UDP payload in one message, and thus of all its segments together: 65,535 less the headers of IPv4.
pub(crate) const MESSAGE_MAX_BYTES: usize = 65_507;
/// Messages that one system call takes: far below the kernel's 1,024, at which the gain has long levelled off.
pub(crate) const MESSAGES_MAX: usize = 64;
/// First pause before a datagram is offered again to a queue that has just dropped it; the kernel does not tell when there
/// is room below the socket. Each further one is twice as long: a queue that had no room for so long holds work for longer.
const QUEUE_PAUSE: Duration = Duration::from_micros(200);
/// The longest pause: a fraction of the 12 ms that a datagram of 1,500 bytes takes at 1 Mbit/s.
const QUEUE_PAUSE_MAX: Duration = Duration::from_micros(3200);

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of datagrams with these lengths leave as the first message.
    fn run(lengths: &[usize]) -> usize {
        let mut run = Run::new(lengths[0], true);
        1 + lengths[1..].iter().take_while(|bytes| run.admit(**bytes)).count()
    }

    #[test]
    fn a_run_is_of_equal_datagrams_and_a_shorter_last_one_within_the_limits_of_the_kernel() {
        assert_eq!([run(&[20, 20, 20]), run(&[20, 20, 7, 7]), run(&[20, 21]), run(&[20, 0])], [3, 3, 1, 1]);
        assert_eq!([run(&[100; 200]), run(&[9000; 10]), run(&[65_507, 1])], [64, 7, 1]);
        let mut whole = Run::new(20, false);
        assert!(!whole.admit(20) && whole.segment().is_none());
    }

    #[test]
    fn patience_ends_in_total_and_not_anew_with_each_wait() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut patience = Patience::new(Duration::from_millis(2));
        let full = io::Error::from_raw_os_error(libc::ENOBUFS);
        assert!(lacks_room(&full) && !lacks_room(&io::Error::from_raw_os_error(libc::EPERM)));
        let waits = (0..1000).take_while(|_| patience.wait(&full, &socket)).count();
        assert!((1..=11).contains(&waits), "{waits}");
    }

    #[test]
    fn a_full_queue_is_asked_ever_more_rarely_until_it_takes_something() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut patience = Patience::new(Duration::from_millis(100));
        let full = io::Error::from_raw_os_error(libc::ENOBUFS);
        let waits = (0..1000).take_while(|_| patience.wait(&full, &socket)).count();
        assert!((5..=36).contains(&waits), "{waits}");
        patience.note_progress();
        assert_eq!(patience.pause, QUEUE_PAUSE);
    }
}
