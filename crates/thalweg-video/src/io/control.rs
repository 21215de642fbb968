//! RTCP of one end: the session, the sockets that it sends by, and where to.

use std::net::SocketAddr;
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::clock;
use thalweg_transport::stream::StreamScratch;

use super::options::random_words;
use super::socket::{ControlPort, MediaArrival, MediaSocket};
use crate::rtcp::{LocalStreams, NackEntry, NtpTime, RtcpConfig, RtcpEvent, RtcpPeer, RtcpSession, WallClock};
use crate::rtp::RtpPacket;
use crate::sender::Resend;

/// The control of a stream: reports go out by every path, requests by one.
pub(super) struct Control {
    session: RtcpSession,
    /// Where reports go, for each path.
    peers: Vec<ControlPeer>,
    /// For each path, whose media came last, and the port of RTCP that it has by the rule.
    sources: Vec<Option<(u32, SocketAddr)>>,
    /// The path on which media came last.
    media_path: usize,
    scratch: StreamScratch,
    datagram: Vec<u8>,
    entries: Vec<NackEntry>,
    /// Random numbers that were taken because another participant had one of ours.
    identities: u32,
}

/// Where the reports of a path go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ControlPeer {
    /// Nobody is heard yet.
    Unknown,
    /// To where the sender of a picture has its port of RTCP by the rule.
    Guessed(SocketAddr),
    /// To where its RTCP comes from.
    Heard(SocketAddr),
    /// To where the user said.
    Told(SocketAddr),
}

impl ControlPeer {
    fn address(self) -> Option<SocketAddr> {
        match self {
            ControlPeer::Unknown => None,
            ControlPeer::Guessed(address) | ControlPeer::Heard(address) | ControlPeer::Told(address) => Some(address),
        }
    }

    /// After media came, of another source than `before` perhaps.
    fn after_media(self, before: Option<(u32, SocketAddr)>, (ssrc, control): (u32, SocketAddr)) -> ControlPeer {
        let is_another = before.is_some_and(|(other, _)| other != ssrc);
        let is_elsewhere = before.is_none_or(|(_, beside)| beside != control);
        match self {
            ControlPeer::Unknown => ControlPeer::Guessed(control),
            // Whoever was heard before the first media may be another receiver.
            ControlPeer::Heard(address) if before.is_none() && address.ip() != control.ip() => {
                ControlPeer::Guessed(control)
            }
            ControlPeer::Heard(_) | ControlPeer::Guessed(_) if is_another && is_elsewhere => {
                ControlPeer::Guessed(control)
            }
            ControlPeer::Heard(address) if is_another => ControlPeer::Guessed(address),
            other => other,
        }
    }

    /// After RTCP came from `from`; only the host that sends the picture may move a guess.
    fn hearing(self, from: SocketAddr) -> ControlPeer {
        match self {
            ControlPeer::Unknown => ControlPeer::Heard(from),
            ControlPeer::Guessed(guess) if guess.ip() == from.ip() => ControlPeer::Heard(from),
            other => other,
        }
    }
}

impl Control {
    pub(super) fn new(now: Instant, ssrc: u32, config: RtcpConfig, peers: Vec<ControlPeer>) -> Control {
        let session = RtcpSession::new(now, ssrc, wall_clock(now), config);
        Control {
            session,
            sources: vec![None; peers.len()],
            media_path: 0,
            peers,
            scratch: StreamScratch::default(),
            datagram: Vec::new(),
            entries: Vec::new(),
            identities: 0,
        }
    }

    /// The control of a sender that repeats packets as `resend` says.
    pub(super) fn repeating(mut self, resend: Resend) -> Control {
        if let Resend::Retransmission { ssrc, .. } = resend {
            self.session = self.session.with_repetitions(ssrc);
        }
        self
    }

    pub(super) fn poll_timeout(&self) -> Instant {
        self.session.poll_timeout()
    }

    pub(super) fn poll_event(&mut self) -> Option<RtcpEvent> {
        self.session.poll_event()
    }

    /// Takes in a datagram that came on a path. What cannot be read is counted by the session. Returns who has left by it, of several the
    /// one whose media came: packets behind it may be the same sender's under another number.
    pub(super) fn handle_datagram(
        &mut self,
        now: Instant,
        path: usize,
        from: SocketAddr,
        datagram: &[u8],
    ) -> Option<u32> {
        let before = self.session.events().len();
        self.session.handle_datagram(now, from, datagram).ok()?;
        if let Some(peer) = self.peers.get_mut(path) {
            *peer = peer.hearing(from);
        }
        let left = self.session.events().skip(before).filter_map(|event| match event {
            RtcpEvent::Left { ssrc, .. } => Some(*ssrc),
            _ => None,
        });
        // A sender's repetitions leave with it.
        left.max_by_key(|ssrc| self.sources.iter().flatten().any(|(source, _)| source == ssrc))
    }

    /// Notes whose RTP comes on a path, and which port of RTCP its sender has by the rule: reports go there until its own come. The
    /// sender may be another one than before, which is no longer there to hear them.
    pub(super) fn handle_media_source(&mut self, path: usize, ssrc: u32, control: SocketAddr) {
        let (Some(peer), Some(source)) = (self.peers.get_mut(path), self.sources.get_mut(path)) else { return };
        let before = source.replace((ssrc, control));
        *peer = peer.after_media(before, (ssrc, control));
        self.media_path = path;
        self.session.handle_media_source(ssrc, control);
    }

    /// Notes whose media came. Until the sender reports, its port of RTCP is taken to be the one beside that of its packets.
    pub(super) fn note_source(&mut self, port: ControlPort, ssrc: Option<u32>, arrival: &MediaArrival<'_>) {
        let Some(ssrc) = ssrc else { return };
        self.session.handle_rtp_source(ssrc, arrival.message.source);
        let rule = if port == ControlPort::Multiplexed { ControlPort::Multiplexed } else { ControlPort::Next };
        if let Ok(address) = rule.beside(arrival.message.source) {
            self.handle_media_source(arrival.path, ssrc, address);
        }
    }

    /// Whether a sender whose last packet came at `heard` is gone without a farewell: neither packets nor reports of it came for
    /// [`RtcpConfig::peer_timeout`] (RFC 3550 §6.3.5).
    pub(super) fn is_silent(&self, now: Instant, ssrc: u32, heard: Instant) -> bool {
        now.since(heard) >= self.session.config().peer_timeout && self.peer(ssrc).is_none()
    }

    /// The participant with an SSRC.
    pub(super) fn peer(&self, ssrc: u32) -> Option<&RtcpPeer> {
        self.session.peer(ssrc)
    }

    /// Notes an RTP packet that came to a sender: one under a number of ours is another participant's, or comes back to us.
    pub(super) fn handle_media(&mut self, from: SocketAddr, datagram: &[u8]) {
        if let Ok(packet) = RtpPacket::parse(datagram) {
            self.session.handle_rtp_source(packet.header.ssrc, from);
        }
    }

    /// Leaves under our number, which another participant has as well, and goes on under a random one; returns that. `None` when this has
    /// happened too often, or no random number can be had.
    pub(super) fn take_new_identity(&mut self, now: Instant, paths: &[MediaSocket]) -> Option<u32> {
        let ssrc = self.take_number()?;
        self.datagram.clear();
        self.session.create_new_identity(now, ssrc, &mut self.datagram);
        self.send_by(paths);
        Some(ssrc)
    }

    /// As [`Control::take_new_identity`] for the stream of repetitions alone.
    pub(super) fn take_new_repetitions(&mut self, now: Instant, paths: &[MediaSocket]) -> Option<u32> {
        let ssrc = self.take_number()?;
        self.datagram.clear();
        self.session.create_new_repetitions(now, ssrc, &mut self.datagram);
        self.send_by(paths);
        Some(ssrc)
    }

    /// A random number that nobody has.
    fn take_number(&mut self) -> Option<u32> {
        if self.identities == IDENTITIES_MAX {
            return None;
        }
        let ssrc = random_words().ok()?.into_iter().find(|ssrc| !self.session.is_used(*ssrc))?;
        self.identities += 1;
        Some(ssrc)
    }

    /// Whether the report of some time is due, and the counts for it are to be had.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.session.poll_timeout() <= now
    }

    /// Sends the report that is due.
    pub(super) fn send_report(&mut self, now: Instant, paths: &[MediaSocket], local: &LocalStreams<'_>) {
        // The wall clock may have been set since.
        self.session.set_wall_clock(wall_clock(now));
        self.datagram.clear();
        if self.session.poll_report(now, local, &mut self.datagram) {
            self.send_by(paths);
        }
    }

    /// Reports to single hosts before the first packet leaves, so that their addresses are resolved by then: of what waits for that
    /// the kernel keeps some 200 kB (`unres_qlen_bytes`), and drops the oldest.
    pub(super) fn send_early_report(&mut self, now: Instant, paths: &[MediaSocket], local: &LocalStreams<'_>) {
        let is_single = |peer: &ControlPeer| peer.address().is_some_and(|to| !to.ip().is_multicast());
        if !self.peers.iter().any(is_single) {
            return;
        }
        self.datagram.clear();
        self.session.create_early_report(now, local, &mut self.datagram);
        for path in 0..paths.len() {
            if self.peers.get(path).is_some_and(is_single) {
                self.send_on(paths, path);
            }
        }
    }

    /// Asks for packets of the stream `media`, by one path: a repetition of it would be another request.
    pub(super) fn send_nack(&mut self, paths: &[MediaSocket], media: u32, entries: impl Iterator<Item = NackEntry>) {
        self.datagram.clear();
        self.entries.clear();
        self.entries.extend(entries);
        self.session.create_nack(media, &self.entries, &mut self.datagram);
        self.send_on(paths, self.request_path());
    }

    /// The path on which media came last, since another one may be cut, or else the first one on which somebody is known.
    fn request_path(&self) -> usize {
        let is_known = |path: &usize| self.peers.get(*path).is_some_and(|peer| peer.address().is_some());
        [self.media_path].into_iter().chain(0..self.peers.len()).find(is_known).unwrap_or_default()
    }

    /// Sends the last report and leaves.
    pub(super) fn send_bye(&mut self, now: Instant, paths: &[MediaSocket], local: &LocalStreams<'_>, reason: &str) {
        self.datagram.clear();
        self.session.create_bye(now, local, reason, &mut self.datagram);
        self.send_by(paths);
    }

    /// Sends what was written by these paths, as far as somebody is known there.
    fn send_by(&mut self, paths: &[MediaSocket]) {
        (0..paths.len()).for_each(|path| self.send_on(paths, path));
    }

    /// Sends what was written by the path at this place, if somebody is known there.
    fn send_on(&mut self, paths: &[MediaSocket], path: usize) {
        let Control { peers, scratch, datagram, .. } = self;
        let to = peers.get(path).and_then(|peer| peer.address());
        let (Some(socket), Some(to)) = (paths.get(path), to) else { return };
        let mut burst = socket.control().burst(scratch, to);
        burst.push([&datagram[..]]);
        // The next one makes up for one that the system did not take.
        burst.send(CONTROL_PATIENCE);
    }
}

/// The wall clock at this moment.
pub(super) fn wall_clock(now: Instant) -> WallClock {
    WallClock::new(now, NtpTime::from_unix(clock::wall_clock().to_unix()))
}

/// How often numbers are changed in a run: a second collision is hardly chance, and whoever forges them cannot have it go on for ever.
const IDENTITIES_MAX: u32 = 8;
/// How long a report waits for room: it must not delay a picture's packets for longer than a batch of them takes.
const CONTROL_PATIENCE: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::rtcp::CompoundWriter;
    use crate::rtp::RtpHeader;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    /// Where reports go after the source of a picture was seen and then these were heard.
    fn after(first: ControlPeer, source: Option<&str>, heard: &[&str]) -> Option<SocketAddr> {
        let now = clock::now();
        let mut control = Control::new(now, 1, RtcpConfig::new("a"), vec![first]);
        source.iter().for_each(|source| control.handle_media_source(0, 7, address(source)));
        let mut datagram = Vec::new();
        CompoundWriter::new(&mut datagram).receiver_report(7, &[]);
        for from in heard {
            control.handle_datagram(now, 0, address(from), &datagram);
            control.handle_datagram(now, 0, address("192.0.2.9:9"), b"no RTCP");
        }
        control.peers[0].address()
    }

    #[test]
    fn reports_go_to_where_those_of_the_sender_come_from() {
        let unknown = ControlPeer::Unknown;
        assert_eq!(after(unknown, None, &[]), None);
        assert_eq!(after(unknown, Some("192.0.2.1:5005"), &[]), Some(address("192.0.2.1:5005")));
        assert_eq!(after(unknown, None, &["192.0.2.1:6000", "192.0.2.2:1"]), Some(address("192.0.2.1:6000")));
        assert_eq!(after(unknown, Some("192.0.2.1:5005"), &["192.0.2.1:6000"]), Some(address("192.0.2.1:6000")));
    }

    #[test]
    fn they_follow_a_sender_that_starts_again() {
        let now = clock::now();
        let mut control = Control::new(now, 1, RtcpConfig::new("a"), vec![ControlPeer::Unknown]);
        let mut datagram = Vec::new();
        CompoundWriter::new(&mut datagram).receiver_report(7, &[]);
        let hear = |control: &mut Control, from| {
            control.handle_datagram(now, 0, address(from), &datagram);
            control.peers[0].address()
        };
        // Another receiver of the group reports before the first packet.
        hear(&mut control, "192.0.2.5:5005");
        control.handle_media_source(0, 7, address("192.0.2.1:5005"));
        assert_eq!(hear(&mut control, "192.0.2.1:6000"), Some(address("192.0.2.1:6000")));
        control.handle_media_source(0, 7, address("192.0.2.1:5005"));
        assert_eq!(control.peers[0].address(), Some(address("192.0.2.1:6000")), "it is the same");
        control.handle_media_source(0, 8, address("192.0.2.1:5005"));
        assert_eq!(control.peers[0].address(), Some(address("192.0.2.1:6000")), "it only has another number");
        control.handle_media_source(0, 9, address("192.0.2.1:7005"));
        assert_eq!(control.peers[0].address(), Some(address("192.0.2.1:7005")), "it has other ports");
        assert_eq!(hear(&mut control, "192.0.2.1:8000"), Some(address("192.0.2.1:8000")));
    }

    #[test]
    fn of_a_sender_that_leaves_with_its_repetitions_the_picture_counts() {
        let now = clock::now();
        let from = address("192.0.2.1:5005");
        for sources in [[7, 8], [8, 7]] {
            let mut control = Control::new(now, 1, RtcpConfig::new("a"), vec![ControlPeer::Unknown]);
            control.handle_media_source(0, 7, from);
            let (mut hello, mut bye) = (Vec::new(), Vec::new());
            sources.iter().for_each(|source| CompoundWriter::new(&mut hello).receiver_report(*source, &[]));
            assert_eq!(control.handle_datagram(now, 0, from, &hello), None);
            CompoundWriter::new(&mut bye).receiver_report(7, &[]);
            CompoundWriter::new(&mut bye).bye(&sources, "");
            assert_eq!(control.handle_datagram(now, 0, from, &bye), Some(7), "{sources:?}");
        }
    }

    #[test]
    fn requests_go_by_the_path_on_which_packets_come() {
        let from = address("192.0.2.1:5005");
        let mut control = Control::new(clock::now(), 1, RtcpConfig::new("a"), vec![ControlPeer::Unknown; 2]);
        assert_eq!(control.request_path(), 0, "nobody is known");
        for path in [1, 0, 1] {
            control.handle_media_source(path, 7, from);
            assert_eq!(control.request_path(), path);
        }
        let peers = vec![ControlPeer::Unknown, ControlPeer::Told(from)];
        let control = Control::new(clock::now(), 1, RtcpConfig::new("a"), peers);
        assert_eq!(control.request_path(), 1, "where somebody is known");
    }

    #[test]
    fn numbers_are_not_changed_for_ever() {
        let now = clock::now();
        let resend = Resend::Retransmission { payload_type: 97, ssrc: 2, first_sequence: 0 };
        let mut control = Control::new(now, 1, RtcpConfig::new("a"), vec![ControlPeer::Unknown]).repeating(resend);
        let mut numbers = BTreeSet::from([1, 2]);
        for change in 0..IDENTITIES_MAX {
            let taken = match change % 2 {
                0 => control.take_new_identity(now, &[]),
                _ => control.take_new_repetitions(now, &[]),
            };
            assert!(taken.is_some_and(|ssrc| numbers.insert(ssrc)), "{change}: {taken:?} of {numbers:?}");
        }
        assert_eq!((control.take_new_identity(now, &[]), control.take_new_repetitions(now, &[])), (None, None));
    }

    #[test]
    fn a_packet_of_somebody_else_under_a_number_of_a_sender_is_a_collision() {
        let (now, from) = (clock::now(), address("192.0.2.7:5004"));
        let resend = Resend::Retransmission { payload_type: 97, ssrc: 2, first_sequence: 0 };
        let mut control = Control::new(now, 1, RtcpConfig::new("a"), vec![ControlPeer::Unknown]).repeating(resend);
        let hear = |control: &mut Control, ssrc| {
            let header = RtpHeader { payload_type: 96, ssrc, ..RtpHeader::default() };
            control.handle_media(from, &header.to_octets());
            control.poll_event()
        };
        control.handle_media(from, b"no RTP");
        assert_eq!(hear(&mut control, 3), None);
        assert_eq!(hear(&mut control, 2), Some(RtcpEvent::RepetitionsCollision { from }));
    }

    #[test]
    fn a_sender_is_gone_once_neither_its_packets_nor_its_reports_come() {
        let (now, from) = (clock::now(), address("192.0.2.1:5005"));
        let mut control = Control::new(now, 1, RtcpConfig::new("a"), vec![ControlPeer::Unknown]);
        let after = |seconds| now + Duration::from_secs(seconds);
        assert!(!control.is_silent(after(24), 7, now) && control.is_silent(after(25), 7, now), "it never reported");
        let mut report = Vec::new();
        CompoundWriter::new(&mut report).receiver_report(7, &[]);
        control.handle_datagram(after(20), 0, from, &report);
        control.send_report(after(44), &[], &LocalStreams::default());
        assert!(!control.is_silent(after(44), 7, now), "it pauses and reports");
        control.send_report(after(45), &[], &LocalStreams::default());
        assert!(control.is_silent(after(45), 7, now) && !control.is_silent(after(45), 7, after(30)));
    }

    #[test]
    fn nobody_else_moves_them() {
        let unknown = ControlPeer::Unknown;
        assert_eq!(after(unknown, Some("192.0.2.1:5005"), &["192.0.2.2:6000"]), Some(address("192.0.2.1:5005")));
        let told = ControlPeer::Told(address("192.0.2.3:7"));
        assert_eq!(after(told, Some("192.0.2.1:5005"), &["192.0.2.1:6000"]), Some(address("192.0.2.3:7")));
    }
}
