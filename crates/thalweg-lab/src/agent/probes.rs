//! Questions to an agent's clock, in datagrams beside the connection, so that nothing that is said there delays them.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use thalweg_host::monotonic_nanos;

use super::clock::{PROBES_MIN, Probe};
use super::key::{AgentKey, TAG_BYTES};
use crate::process::Stop;

/// Asks the clock of one agent.
#[derive(Debug)]
pub(crate) struct ClockProbes {
    socket: UdpSocket,
    agent: SocketAddr,
    key: AgentKey,
    next: u64,
    probes: Vec<Probe>,
}

impl ClockProbes {
    /// Asks the agent at `agent`, which knows the connection's key.
    pub(super) fn open(agent: SocketAddr, key: AgentKey) -> io::Result<ClockProbes> {
        let any: SocketAddr =
            if agent.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
        Ok(ClockProbes { socket: UdpSocket::bind(any)?, agent, key, next: 0, probes: Vec::new() })
    }

    /// Answers so far.
    pub(crate) fn answered(&self) -> &[Probe] {
        &self.probes
    }

    /// Number of probes sent so far.
    pub(crate) fn asked(&self) -> u64 {
        self.next
    }

    /// Asks 50 times a second for a while, and longer until enough of it was answered for a comparison, or patience has run out.
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

    /// Asks once; a question that is lost is not asked again.
    ///
    /// # Errors
    /// The system refuses to send or receive.
    pub(crate) fn ask(&mut self) -> io::Result<()> {
        let number = self.next.to_be_bytes();
        self.next += 1;
        let sent_ns = monotonic_nanos();
        let tag = self.key.tag(QUESTION, &[&number]);
        match self.socket.send_to(&[&number[..], &tag].concat(), self.agent) {
            Ok(_) => {}
            // The answer to an earlier probe; that probe counts as lost.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(()),
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
                Err(error) if is_silence(&error) => return Ok(()),
                Err(error) => return Err(error),
            };
            if let Some((heard_ns, answered_ns)) = self.read(&number, &buffer[..count]) {
                self.probes.push(Probe { sent_ns, heard_ns, answered_ns, back_ns });
                return Ok(());
            }
        }
        Ok(())
    }

    /// The agent's two times in the answer to question `number`; `None` for anything else that comes.
    fn read(&self, number: &[u8; 8], answer: &[u8]) -> Option<(u64, u64)> {
        let (content, tag) = answer.split_last_chunk::<TAG_BYTES>()?;
        let (known, times) = content.split_first_chunk::<8>()?;
        let (heard, answered) = times.split_first_chunk::<8>()?;
        let is_answer = known == number && self.key.verifies(ANSWER, &[content], tag);
        is_answer.then_some((u64::from_be_bytes(*heard), u64::from_be_bytes(answered.try_into().ok()?)))
    }
}

/// The agent's side: waits a moment for a question and answers it if it comes from the controller whose key this is.
///
/// # Errors
/// The system refuses to receive.
pub(super) fn answer_one(socket: &UdpSocket, key: impl FnOnce() -> Option<AgentKey>) -> io::Result<()> {
    let mut buffer = [0; QUESTION_BYTES + 1];
    let read = socket.recv_from(&mut buffer);
    let heard_ns = monotonic_nanos();
    let (count, from) = match read {
        Ok(read) => read,
        Err(error) if is_silence(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    let Some((number, tag)) = buffer[..count].split_first_chunk::<8>() else { return Ok(()) };
    let Some(key) = key().filter(|key| key.verifies(QUESTION, &[number], tag)) else { return Ok(()) };
    let mut answer = [&number[..], &heard_ns.to_be_bytes(), &monotonic_nanos().to_be_bytes()].concat();
    let tag = key.tag(ANSWER, &[&answer]);
    answer.extend_from_slice(&tag);
    // An answer that cannot be sent is one that is lost.
    let _ = socket.send_to(&answer, from);
    Ok(())
}

fn is_silence(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), ConnectionRefused | Interrupted | TimedOut | WouldBlock)
}

const QUESTION: &str = "question";
const ANSWER: &str = "answer";
const QUESTION_BYTES: usize = 8 + TAG_BYTES;
const ANSWER_BYTES: usize = 3 * 8 + TAG_BYTES;
/// An answer that takes longer tells nothing about the clock.
const ANSWER_PATIENCE: Duration = Duration::from_millis(200);
const OFTEN: Duration = Duration::from_millis(20);
/// How long a host that stands still may go on doing so.
const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stands_still_for_a_moment_is_asked_until_enough_was_answered() {
        let agent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
        let mut probes =
            ClockProbes::open(agent.local_addr().expect("an address"), AgentKey::random().expect("chance"))
                .expect("opened");
        let key = probes.key.clone();
        let answers = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(700));
            agent.set_read_timeout(Some(Duration::from_secs(1))).expect("set");
            // Probes that waited meanwhile are answered too, too late to count.
            (0..40).for_each(|_| answer_one(&agent, || Some(key.clone())).expect("received"));
        });
        let start = Instant::now();
        probes.ask_often(Duration::from_millis(100), &Stop::default()).expect("asked");
        assert!(probes.answered().len() >= PROBES_MIN, "{} of {}", probes.answered().len(), probes.asked());
        assert!(start.elapsed() < PATIENCE && probes.asked() > probes.answered().len() as u64);
        drop(probes);
        answers.join().expect("answered");
    }
}
