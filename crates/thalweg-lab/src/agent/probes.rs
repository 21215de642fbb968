//! Questions to an agent's clock, in datagrams on the measured link, which take a part of the time that a message through `ssh` takes.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thalweg_host::monotonic_nanos;

use super::clock::{PROBES_MIN, Probe};
use crate::process::Stop;

/// 256 random bits for one run, which the controller tells the agent through `ssh`: questions and answers prove that they come from one
/// of the two.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct ClockSecret([u8; 32]);

impl ClockSecret {
    pub(super) fn random() -> io::Result<ClockSecret> {
        thalweg_transport::entropy::key().map(ClockSecret)
    }

    /// The proof of `content`. All contents of a role are of one length, so that nobody can extend one.
    fn tag(&self, role: &[u8; ROLE_BYTES], content: &[u8]) -> [u8; TAG_BYTES] {
        Sha256::new().chain_update(self.0).chain_update(role).chain_update(content).finalize().into()
    }

    /// Whether `tag` is that of `content`; takes as long for every wrong one.
    fn verifies(&self, role: &[u8; ROLE_BYTES], content: &[u8], tag: &[u8; TAG_BYTES]) -> bool {
        self.tag(role, content).iter().zip(tag).fold(0, |wrong, (a, b)| wrong | (a ^ b)) == 0
    }
}

impl fmt::Debug for ClockSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClockSecret(…)")
    }
}

/// Asks the clock of one agent.
#[derive(Debug)]
pub(crate) struct ClockProbes {
    socket: UdpSocket,
    secret: ClockSecret,
    next: u64,
    probes: Vec<Probe>,
}

impl ClockProbes {
    /// Asks the agent that answers at `agent` and knows the secret.
    pub(super) fn open(agent: SocketAddr, secret: ClockSecret) -> io::Result<ClockProbes> {
        Ok(ClockProbes { socket: socket_to(agent)?, secret, next: 0, probes: Vec::new() })
    }

    /// Answers so far.
    pub(crate) fn answered(&self) -> &[Probe] {
        &self.probes
    }

    /// Number of probes sent so far.
    pub(crate) fn asked(&self) -> u64 {
        self.next
    }

    /// Asks 50 times a second, some questions in a row each time, for a while, and longer until enough of it was answered for a comparison, or patience has run out.
    ///
    /// # Errors
    /// The system refuses to send or receive.
    pub(crate) fn ask_often(&mut self, span: Duration, stop: &Stop) -> io::Result<()> {
        let enough = self.probes.len() + PROBES_MIN;
        let start = Instant::now();
        let mut next = start;
        let is_over =
            |answered: usize| start.elapsed() >= span && (answered >= enough || start.elapsed() >= span + PATIENCE);
        while !is_over(self.probes.len()) && !stop.is_requested() {
            self.ask()?;
            next += OFTEN;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }

    /// Asks some times in a row: the first question wakes both programs, and the next ones take a part of its time.
    ///
    /// # Errors
    /// The system refuses to send or receive.
    pub(crate) fn ask(&mut self) -> io::Result<()> {
        for _ in 0..IN_A_ROW {
            if !self.ask_once()? {
                break;
            }
        }
        Ok(())
    }

    /// Returns whether there was an answer; a question that is lost is not asked again.
    fn ask_once(&mut self) -> io::Result<bool> {
        let number = self.next.to_be_bytes();
        self.next += 1;
        let question = [&number[..], &self.secret.tag(QUESTION, &number)].concat();
        let sent_ns = monotonic_nanos();
        match self.socket.send(&question) {
            Ok(_) => {}
            // The answer to an earlier probe; that probe counts as lost.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(false),
            Err(error) => return Err(error),
        }
        let deadline = Instant::now() + ANSWER_PATIENCE;
        let mut buffer = [0; ANSWER_BYTES + 1];
        while let Some(left) = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            self.socket.set_read_timeout(Some(left))?;
            let read = self.socket.recv(&mut buffer);
            let back_ns = monotonic_nanos();
            let count = match read {
                Ok(count) => count,
                Err(error) if is_silence(&error) => return Ok(false),
                Err(error) => return Err(error),
            };
            if let Some((heard_ns, answered_ns)) = self.read(&number, &buffer[..count]) {
                self.probes.push(Probe { sent_ns, heard_ns, answered_ns, back_ns });
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The agent's two times in the answer to question `number`; `None` for anything else that comes.
    fn read(&self, number: &[u8; 8], answer: &[u8]) -> Option<(u64, u64)> {
        let (content, tag) = answer.split_last_chunk::<TAG_BYTES>()?;
        let (known, times) = content.split_first_chunk::<8>()?;
        let (heard, answered) = times.split_first_chunk::<8>()?;
        let answered: &[u8; 8] = answered.try_into().ok()?;
        let is_answer = known == number && self.secret.verifies(ANSWER, content, tag);
        is_answer.then_some((u64::from_be_bytes(*heard), u64::from_be_bytes(*answered)))
    }
}

/// A socket for one other address alone.
pub(crate) fn socket_to(other: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = if other.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(other)?;
    Ok(socket)
}

/// The agent's side: a thread that answers questions until this is dropped.
#[derive(Debug)]
pub(super) struct ClockAnswers {
    is_over: Arc<AtomicBool>,
}

impl ClockAnswers {
    /// Answers at `at`, on a free port, which is returned, whoever knows the secret.
    ///
    /// # Errors
    /// This machine has no such address.
    pub(super) fn open(at: IpAddr, secret: ClockSecret) -> io::Result<(ClockAnswers, u16)> {
        let socket = UdpSocket::bind((at, 0))?;
        socket.set_read_timeout(Some(LOOK_PERIOD))?;
        let port = socket.local_addr()?.port();
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        std::thread::spawn(move || {
            let mut last = None;
            while !flag.load(Ordering::Relaxed) {
                // A socket that fails answers nothing, which the controller tells.
                if answer_one(&socket, &secret, &mut last).is_err() {
                    return;
                }
            }
        });
        Ok((ClockAnswers { is_over }, port))
    }
}

impl Drop for ClockAnswers {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Waits a moment for a question and answers it if its asker knows the secret and its number is above the `last` one: a question that is
/// heard twice is answered once.
///
/// # Errors
/// The system refuses to receive.
fn answer_one(socket: &UdpSocket, secret: &ClockSecret, last: &mut Option<u64>) -> io::Result<()> {
    let mut buffer = [0; QUESTION_BYTES + 1];
    let read = socket.recv_from(&mut buffer);
    let heard_ns = monotonic_nanos();
    let (count, from) = match read {
        Ok(read) => read,
        Err(error) if is_silence(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    let Some((number, tag)) = buffer[..count].split_first_chunk::<8>() else { return Ok(()) };
    let Ok(tag) = tag.try_into() else { return Ok(()) };
    let asked = u64::from_be_bytes(*number);
    if last.is_some_and(|last| asked <= last) || !secret.verifies(QUESTION, number, tag) {
        return Ok(());
    }
    *last = Some(asked);
    let mut answer = [&number[..], &heard_ns.to_be_bytes(), &monotonic_nanos().to_be_bytes()].concat();
    let tag = secret.tag(ANSWER, &answer);
    answer.extend_from_slice(&tag);
    // An answer that cannot be sent is one that is lost.
    let _ = socket.send_to(&answer, from);
    Ok(())
}

fn is_silence(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), ConnectionRefused | Interrupted | TimedOut | WouldBlock)
}

const QUESTION: &[u8; ROLE_BYTES] = b"ask";
const ANSWER: &[u8; ROLE_BYTES] = b"say";
const ROLE_BYTES: usize = 3;
const TAG_BYTES: usize = 32;
const QUESTION_BYTES: usize = 8 + TAG_BYTES;
const ANSWER_BYTES: usize = 3 * 8 + TAG_BYTES;
/// An answer that takes longer tells nothing about the clock.
const ANSWER_PATIENCE: Duration = Duration::from_millis(200);
const LOOK_PERIOD: Duration = Duration::from_millis(200);
/// More make the shortest round trip hardly shorter.
const IN_A_ROW: usize = 4;
const OFTEN: Duration = Duration::from_millis(20);
/// How long a host that stands still may go on doing so.
const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn secret() -> ClockSecret {
        ClockSecret::random().expect("chance")
    }

    #[test]
    fn who_stands_still_for_a_moment_is_asked_until_enough_was_answered() {
        let (agent, secret) = (UdpSocket::bind((HERE, 0)).expect("bound"), secret());
        let mut probes = ClockProbes::open(agent.local_addr().expect("an address"), secret.clone()).expect("opened");
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        let answers = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(700));
            agent.set_read_timeout(Some(Duration::from_millis(20))).expect("set");
            // Probes that waited meanwhile are answered too, too late to count.
            let mut last = None;
            while !flag.load(Ordering::Relaxed) {
                answer_one(&agent, &secret, &mut last).expect("received");
            }
        });
        let start = Instant::now();
        probes.ask_often(Duration::from_millis(100), &Stop::default()).expect("asked");
        assert!(probes.answered().len() >= PROBES_MIN, "{} of {}", probes.answered().len(), probes.asked());
        assert!(start.elapsed() < PATIENCE && probes.asked() > probes.answered().len() as u64);
        is_over.store(true, Ordering::Relaxed);
        answers.join().expect("answered");
    }

    #[test]
    fn one_with_the_secret_is_answered_once_and_nobody_else() {
        let secret = secret();
        let (clock, port) = ClockAnswers::open(HERE, secret.clone()).expect("opened");
        let stranger = socket_to((HERE, port).into()).expect("bound");
        stranger.set_read_timeout(Some(Duration::from_millis(200))).expect("set");
        let is_answered = |question: &[u8]| {
            stranger.send(question).expect("sent");
            stranger.recv(&mut [0; 99]).is_ok()
        };
        let question = |secret: &ClockSecret, number: u64| {
            [&number.to_be_bytes()[..], &secret.tag(QUESTION, &number.to_be_bytes())].concat()
        };
        let first = question(&secret, 7);
        let other = ClockSecret::random().expect("chance");
        for wrong in [&[0; QUESTION_BYTES][..], b"", &first[..39], &[&first[..], &[0]].concat(), &question(&other, 9)] {
            assert!(!is_answered(wrong), "an answer to {wrong:?}");
        }
        assert!(is_answered(&first), "the secret is right");
        assert!(!is_answered(&first) && !is_answered(&question(&secret, 6)), "a question that was heard before");
        assert!(is_answered(&question(&secret, 8)));
        drop(clock);
        std::thread::sleep(2 * LOOK_PERIOD);
        assert!(stranger.send(&question(&secret, 9)).is_err() || stranger.recv(&mut [0; 99]).is_err());
    }

    #[test]
    fn an_answer_of_somebody_else_or_to_another_question_does_not_count() {
        let (agent, secret) = (UdpSocket::bind((HERE, 0)).expect("bound"), secret());
        let probes = ClockProbes::open(agent.local_addr().expect("an address"), secret.clone()).expect("opened");
        let number = 3_u64.to_be_bytes();
        let content = [number, 5_u64.to_be_bytes(), 6_u64.to_be_bytes()].concat();
        let answer = [&content[..], &secret.tag(ANSWER, &content)].concat();
        assert_eq!(probes.read(&number, &answer), Some((5, 6)));
        assert_eq!(probes.read(&4_u64.to_be_bytes(), &answer), None);
        for place in [8, 16, 24, 55] {
            let mut altered = answer.clone();
            altered[place] ^= 1;
            assert_eq!(probes.read(&number, &altered), None, "altered at {place}");
        }
        let asked = [&content[..], &secret.tag(QUESTION, &content)].concat();
        assert_eq!(probes.read(&number, &asked), None, "a question is no answer");
        assert_eq!(probes.read(&number, &answer[..55]), None);
    }
}
