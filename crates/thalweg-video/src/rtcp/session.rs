//! One participant of an RTP session: when it reports, what it learns from the reports of others, and how it leaves.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use thalweg_base::time::Instant;

use super::clock::{WallClock, compact_nanos, to_compact};
use super::event::{LocalStreams, RtcpConfig, RtcpCounters, RtcpEvent};
use super::identity::{Conflicts, Encounter, Identity};
use super::losses::{LossHistory, ReceivedStream};
use super::packet::{Dlrr, NackEntry, ReportBlock, RtcpPacket, SDES_CNAME, SDES_TOOL, XrBlock};
use super::peers::{PeerTable, RtcpPeer, Speaker};
use super::read::{RtcpError, RtcpPackets, SdesItem};
use super::write::CompoundWriter;

/// How many events wait for [`RtcpSession::poll_event`]; later ones are counted and dropped.
const EVENTS_MAX: usize = 256;

/// How many of our reports are remembered to compute round-trip times from answers: at one a second, peers may answer one that
/// is a quarter of a minute old. GStreamer answers each 5 s.
const REPORTS_REMEMBERED_MAX: usize = 16;

/// The shortest time between reports.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Reported streams and answered reference times in one compound, so that it fits a datagram of 1,472 octets with the longest
/// names and a farewell.
const BLOCKS_MAX: usize = 16;
/// Octets that such a datagram has left.
const SPARE_OCTETS: usize = 68;
/// Octets of a sender report without blocks, and of a number in a BYE: what repetitions add, beside their name.
const REPETITIONS_OCTETS: usize = 28 + 4;
/// The longest canonical name that is written (RFC 3550 §6.5).
const NAME_OCTETS_MAX: usize = 255;

/// Why a number is left.
const COLLISION: &str = "SSRC collision";

/// Canonical names that are looked at in a datagram: as many as a description holds.
const NAMES_MAX: usize = 31;

/// The state machine of one participant.
///
/// The driver gives datagrams to [`RtcpSession::handle_datagram`], fetches events, calls [`RtcpSession::poll_report`] at
/// [`RtcpSession::poll_timeout`], and ends with [`RtcpSession::create_bye`].
#[derive(Clone, Debug)]
pub struct RtcpSession {
    config: RtcpConfig,
    identity: Identity,
    /// Of repetitions that have a stream of their own.
    repetitions: Option<Identity>,
    conflicts: Conflicts,
    wall_clock: WallClock,
    next_report: Instant,
    reports: ReportLog,
    losses: LossHistory,
    peers: PeerTable,
    events: VecDeque<RtcpEvent>,
    counters: RtcpCounters,
}

impl RtcpSession {
    /// A participant with a random `ssrc`.
    pub fn new(now: Instant, ssrc: u32, wall_clock: WallClock, mut config: RtcpConfig) -> RtcpSession {
        config.interval = config.interval.max(INTERVAL_MIN);
        RtcpSession {
            identity: Identity::new(ssrc),
            repetitions: None,
            conflicts: Conflicts::default(),
            wall_clock,
            next_report: now + config.first_report,
            reports: ReportLog::default(),
            losses: LossHistory::default(),
            peers: PeerTable::default(),
            events: VecDeque::new(),
            counters: RtcpCounters::default(),
            config,
        }
    }

    /// The same participant, whose repetitions have a stream of their own under the random `ssrc` (RFC 4588 §5.2).
    pub fn with_repetitions(mut self, ssrc: u32) -> RtcpSession {
        self.repetitions = Some(Identity::new(ssrc));
        self
    }

    /// Takes in a datagram from the RTCP address `from`; returns at once what it taught by [`RtcpSession::poll_event`].
    ///
    /// # Errors
    /// That of a datagram that is no RTCP. Malformed packets within a sound datagram are counted and skipped.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Result<(), RtcpError> {
        self.counters.datagrams += 1;
        let packets = RtcpPackets::parse(datagram).inspect_err(|_| self.counters.malformed += 1)?;
        let names = Names::collect(packets.clone());
        if self.own_sources().any(|ssrc| names.of(ssrc) == Some(self.config.cname.as_str())) {
            self.counters.looped += 1;
            return Ok(());
        }
        for packet in packets {
            match packet {
                Ok(packet) => self.handle_packet(now, from, &names, packet),
                Err(_) => self.counters.malformed += 1,
            }
        }
        Ok(())
    }

    /// Notes that RTP packets of `ssrc` come from `from`, so that a collision shows before the other one reports.
    pub fn handle_rtp_source(&mut self, ssrc: u32, from: SocketAddr) {
        self.note_use(ssrc, from);
    }

    /// Notes that the media of `ssrc` that is taken comes from the host of `from`, whose reports then count for it though somebody else
    /// was heard under it before.
    pub fn handle_media_source(&mut self, ssrc: u32, from: SocketAddr) {
        self.peers.note_media(ssrc, from.ip());
    }

    /// Sets what the wall clock shows; of use when it was stepped. Round-trip times do not depend on it.
    pub fn set_wall_clock(&mut self, wall_clock: WallClock) {
        self.wall_clock = wall_clock;
    }

    /// Appends the report that is due to `out`, and forgets silent peers; returns whether there is one.
    ///
    /// A report is a sender report, if this end has sent since the report before the last one, or else a receiver report; then
    /// the description, and an extended report with our reference time or answers to those of others.
    pub fn poll_report(&mut self, now: Instant, local: &LocalStreams<'_>, out: &mut Vec<u8>) -> bool {
        self.expire_peers(now);
        if now < self.next_report {
            return false;
        }
        // A late driver does not make up for the reports that it missed.
        self.next_report = (self.next_report + self.config.interval).max(now + self.config.interval / 2);
        self.write_report(now, local, out);
        true
    }

    /// Appends a report beside those that are due to `out`; these stay due.
    ///
    /// A single host may be told at once that somebody takes part (RFC 3550 §6.2).
    pub fn create_early_report(&mut self, now: Instant, local: &LocalStreams<'_>, out: &mut Vec<u8>) {
        self.write_report(now, local, out);
    }

    /// Appends a request for packets of the stream `media` to `out`, as a full compound (RFC 4585 §3.1).
    pub fn create_nack(&self, media: u32, entries: &[NackEntry], out: &mut Vec<u8>) {
        let mut writer = CompoundWriter::new(out);
        writer.receiver_report(self.identity.ssrc, &[]);
        writer.description(self.identity.ssrc, &[(SDES_CNAME, &self.config.cname)]);
        writer.nack(self.identity.ssrc, media, entries);
    }

    /// Appends the last report and a BYE to `out`; the session reports no more.
    pub fn create_bye(&mut self, now: Instant, local: &LocalStreams<'_>, reason: &str, out: &mut Vec<u8>) {
        self.write_report(now, local, out);
        CompoundWriter::new(out).bye(&self.own_sources().collect::<Vec<u32>>(), reason);
        self.next_report = Instant::NEVER;
    }

    /// Appends a BYE for our SSRC to `out` and goes on under the random `ssrc`, which the RTP sender must use as well.
    ///
    /// The answer to [`RtcpEvent::Collision`].
    pub fn create_new_identity(&mut self, now: Instant, ssrc: u32, out: &mut Vec<u8>) {
        let before = std::mem::replace(&mut self.identity, Identity::new(ssrc)).ssrc;
        let mut writer = CompoundWriter::new(out);
        writer.receiver_report(before, &[]);
        writer.description(before, &[(SDES_CNAME, &self.config.cname)]);
        writer.bye(&[before], COLLISION);
        self.reports = ReportLog { repetitions: self.reports.repetitions, ..ReportLog::default() };
        self.next_report = now;
    }

    /// Appends a BYE for the SSRC of our repetitions to `out` and goes on repeating under the random `ssrc`, which the RTP sender must
    /// use as well; our own SSRC stays. Receivers find them by the payload type and the canonical name, which stay too.
    ///
    /// The answer to [`RtcpEvent::RepetitionsCollision`]; nothing without repetitions.
    pub fn create_new_repetitions(&mut self, now: Instant, ssrc: u32, out: &mut Vec<u8>) {
        let Some(before) = self.repetitions.map(|repetitions| repetitions.ssrc) else { return };
        self.repetitions = Some(Identity::new(ssrc));
        let name: &[(u8, &str)] = &[(SDES_CNAME, &self.config.cname)];
        let mut writer = CompoundWriter::new(out);
        writer.receiver_report(self.identity.ssrc, &[]);
        writer.descriptions(&[(self.identity.ssrc, name), (before, name)]);
        writer.bye(&[before], COLLISION);
        self.reports.repetitions = [0; 2];
        self.next_report = now;
    }

    /// The next thing that the session learned.
    pub fn poll_event(&mut self) -> Option<RtcpEvent> {
        self.events.pop_front()
    }

    /// What [`RtcpSession::poll_event`] will give, the oldest first.
    pub fn events(&self) -> impl ExactSizeIterator<Item = &RtcpEvent> {
        self.events.iter()
    }

    /// When to call [`RtcpSession::poll_report`]; [`Instant::NEVER`] after the BYE when no peers are left.
    pub fn poll_timeout(&self) -> Instant {
        self.next_report.min(self.peers.next_expiry(self.config.peer_timeout, self.config.interval))
    }

    /// How it reports.
    pub fn config(&self) -> &RtcpConfig {
        &self.config
    }

    /// Our SSRC.
    pub fn ssrc(&self) -> u32 {
        self.identity.ssrc
    }

    /// Whether we or a participant that takes part have this SSRC: a new one has to be another (RFC 3550 §8.1).
    pub fn is_used(&self, ssrc: u32) -> bool {
        self.is_own(ssrc) || self.peer(ssrc).is_some()
    }

    /// The other participants that take part.
    pub fn peers(&self) -> impl Iterator<Item = &RtcpPeer> {
        self.peers.active()
    }

    /// The participant with an SSRC.
    pub fn peer(&self, ssrc: u32) -> Option<&RtcpPeer> {
        self.peers.active().find(|peer| peer.ssrc == ssrc)
    }

    /// What was counted.
    pub fn counters(&self) -> RtcpCounters {
        self.counters
    }

    fn handle_packet(&mut self, now: Instant, from: SocketAddr, names: &Names, packet: RtcpPacket<'_>) {
        match packet {
            RtcpPacket::SenderReport { ssrc, info, reports } => {
                let Some(peer) = self.speaker(now, from, ssrc, names) else { return };
                peer.sender_report = Some((info, now));
                self.push(RtcpEvent::SenderReport { ssrc, info });
                self.handle_reports(now, ssrc, reports);
            }
            RtcpPacket::ReceiverReport { ssrc, reports } => {
                if self.speaker(now, from, ssrc, names).is_some() {
                    self.handle_reports(now, ssrc, reports);
                }
            }
            RtcpPacket::SourceDescription(items) => {
                for SdesItem { ssrc, text, .. } in items.filter(|item| item.kind == SDES_CNAME) {
                    let Some(peer) = self.speaker(now, from, ssrc, names) else { continue };
                    peer.cname.get_or_insert_with(|| String::from_utf8_lossy(text).into_owned());
                }
            }
            RtcpPacket::Bye { sources, reason } => {
                let reason = String::from_utf8_lossy(reason.unwrap_or_default()).into_owned();
                for ssrc in sources {
                    if self.peers.mark_left(now, ssrc, from) {
                        self.push(RtcpEvent::Left { ssrc, reason: reason.clone() });
                    }
                }
            }
            RtcpPacket::ExtendedReport { ssrc, blocks } => {
                let own = self.identity.ssrc;
                for block in blocks {
                    let Some(peer) = self.speaker(now, from, ssrc, names) else { return };
                    match block {
                        XrBlock::ReferenceTime(ntp) => peer.handle_reference(now, ntp.compact()),
                        XrBlock::Delays(delays) => {
                            for delay in delays.filter(|delay| delay.ssrc == own && delay.last_report != 0) {
                                self.measure_round_trip(now, ssrc, delay.last_report, delay.delay_since_last);
                            }
                        }
                        XrBlock::Other { .. } => {}
                    }
                }
            }
            RtcpPacket::Nack { sender, media, entries } => {
                if self.speaker(now, from, sender, names).is_some() && media == self.identity.ssrc {
                    self.push(RtcpEvent::Nack { arrived: now, from: sender, entries: entries.collect() });
                }
            }
            RtcpPacket::Other { .. } => {}
        }
    }

    /// The peer that a packet speaks for; none if it is us, unknown beyond the bound, in conflict or gone.
    fn speaker(&mut self, now: Instant, from: SocketAddr, ssrc: u32, names: &Names) -> Option<&mut RtcpPeer> {
        if self.is_own(ssrc) {
            self.note_use(ssrc, from);
            return None;
        }
        match self.peers.hear(now, ssrc, from, names.of(ssrc)) {
            Speaker::Known(peer) => Some(peer),
            Speaker::New(peer, displaced) => {
                if let Some(ssrc) = displaced {
                    push(&mut self.events, &mut self.counters, RtcpEvent::TimedOut { ssrc });
                }
                push(&mut self.events, &mut self.counters, RtcpEvent::Joined { ssrc });
                Some(peer)
            }
            Speaker::Conflict(is_first) => {
                self.counters.ignored += 1;
                if is_first {
                    push(&mut self.events, &mut self.counters, RtcpEvent::Conflict { ssrc, from });
                }
                None
            }
            Speaker::Ignored => {
                self.counters.ignored += 1;
                None
            }
        }
    }

    fn handle_reports(&mut self, now: Instant, from: u32, reports: impl Iterator<Item = ReportBlock>) {
        let own = self.identity.ssrc;
        for block in reports.filter(|block| block.ssrc == own) {
            if let Some(peer) = self.peers.find(from) {
                peer.report = Some(block);
            }
            self.push(RtcpEvent::Report { from, block });
            if block.last_sender_report != 0 {
                self.measure_round_trip(now, from, block.last_sender_report, block.delay_since_last);
            }
        }
    }

    /// Computes A − LSR − DLSR (RFC 3550 §6.4.1) on the monotonic clock, so that steps of the wall clock do not show.
    fn measure_round_trip(&mut self, now: Instant, ssrc: u32, compact: u32, delay: u32) {
        let passed = self.reports.sent_at(compact).map(|sent| now.since(sent));
        let waited = Duration::from_nanos(compact_nanos(delay));
        // On a short path, rounding to 1/65,536 s can make the delay the longer one.
        let rounding = Duration::from_micros(31);
        let Some(passed) = passed.filter(|passed| waited <= *passed + rounding) else {
            self.counters.implausible += 1;
            return;
        };
        let round_trip = passed.saturating_sub(waited);
        if let Some(peer) = self.peers.find(ssrc) {
            peer.round_trip = Some(round_trip);
        }
        self.push(RtcpEvent::RoundTrip { ssrc, round_trip });
    }

    /// Our SSRC, and that of repetitions with a stream of their own.
    fn own_sources(&self) -> impl Iterator<Item = u32> + use<> {
        [Some(self.identity), self.repetitions].into_iter().flatten().map(|identity| identity.ssrc)
    }

    fn is_own(&self, ssrc: u32) -> bool {
        self.own_sources().any(|own| own == ssrc)
    }

    /// Notes that an SSRC is used at `from`, which matters if it is one of ours.
    fn note_use(&mut self, ssrc: u32, from: SocketAddr) {
        let (identity, event) = match &mut self.repetitions {
            _ if ssrc == self.identity.ssrc => (&mut self.identity, RtcpEvent::Collision { from }),
            Some(own) if ssrc == own.ssrc => (own, RtcpEvent::RepetitionsCollision { from }),
            _ => return,
        };
        match self.conflicts.meet(identity, from) {
            Encounter::Collision => self.push(event),
            Encounter::Known => {}
            Encounter::Loop => self.counters.looped += 1,
        }
    }

    fn expire_peers(&mut self, now: Instant) {
        let (events, counters) = (&mut self.events, &mut self.counters);
        self.peers.expire(now, self.config.peer_timeout, self.config.interval, |ssrc| {
            push(events, counters, RtcpEvent::TimedOut { ssrc });
        });
    }

    fn write_report(&mut self, now: Instant, local: &LocalStreams<'_>, out: &mut Vec<u8>) {
        let ntp = self.wall_clock.ntp(now);
        let blocks_max = if self.repetitions.is_some() { self.blocks_beside_repetitions() } else { BLOCKS_MAX };
        let received = &local.received[..local.received.len().min(blocks_max)];
        let blocks: Vec<ReportBlock> = received.iter().map(|stream| self.report_block(now, stream)).collect();
        self.losses.record(received);
        let ReportLog { packets, repetitions, .. } = &mut self.reports;
        let sending = local.sent.filter(|sent| note_packets(packets, sent.packets));
        let repeated = self.repetitions.zip(local.repetitions);
        let repeating = repeated.filter(|(_, sent)| note_packets(repetitions, sent.packets));
        self.reports.record(now, ntp.compact());
        let mut writer = CompoundWriter::new(out);
        match sending {
            Some(sent) => writer.sender_report(self.identity.ssrc, &sent.info(ntp), &blocks),
            None => writer.receiver_report(self.identity.ssrc, &blocks),
        }
        if let Some((repetitions, sent)) = repeating {
            writer.sender_report(repetitions.ssrc, &sent.info(ntp), &[]);
        }
        let items = [(SDES_CNAME, self.config.cname.as_str()), (SDES_TOOL, self.config.tool.as_str())];
        let count = if self.config.tool.is_empty() { 1 } else { 2 };
        let own = [(self.identity.ssrc, &items[..count])];
        let sources = own.into_iter().chain(self.repetitions.map(|repetitions| (repetitions.ssrc, &items[..1])));
        writer.descriptions(&sources.collect::<Vec<_>>());
        // A sender learns its round trips from receiver reports.
        let reference = sending.is_none().then_some(ntp);
        writer.extended_report(self.identity.ssrc, reference, &self.peers.take_answers(now, blocks_max));
        self.counters.reports_sent += 1;
    }

    /// As [`BLOCKS_MAX`], where the canonical name comes a second time.
    fn blocks_beside_repetitions(&self) -> usize {
        // SSRC, kind, length, and one to four zero octets behind the name.
        let description = (4 + 2 + self.config.cname.len().min(NAME_OCTETS_MAX) + 1).next_multiple_of(4);
        let missing = (REPETITIONS_OCTETS + description).saturating_sub(SPARE_OCTETS);
        BLOCKS_MAX - missing.div_ceil(ReportBlock::OCTETS + Dlrr::OCTETS)
    }

    fn report_block(&self, now: Instant, stream: &ReceivedStream) -> ReportBlock {
        let last = self.peer(stream.ssrc).and_then(|peer| peer.sender_report);
        ReportBlock {
            ssrc: stream.ssrc,
            fraction_lost: self.losses.fraction_lost(stream),
            cumulative_lost: stream.cumulative_lost(),
            highest_sequence: stream.highest_sequence,
            jitter: stream.jitter,
            last_sender_report: last.map_or(0, |(info, _)| info.ntp.compact()),
            delay_since_last: last.map_or(0, |(_, arrival)| to_compact(now.since(arrival))),
        }
    }

    fn push(&mut self, event: RtcpEvent) {
        push(&mut self.events, &mut self.counters, event);
    }
}

fn push(events: &mut VecDeque<RtcpEvent>, counters: &mut RtcpCounters, event: RtcpEvent) {
    if events.len() < EVENTS_MAX {
        events.push_back(event);
    } else {
        counters.events_dropped += 1;
    }
}

/// The reports sent last, by the middle of their NTP times.
#[derive(Clone, Debug, Default)]
struct ReportLog {
    sent: VecDeque<(u32, Instant)>,
    /// Packets sent at the last report and at the one before it.
    packets: [u64; 2],
    /// The same of repetitions with a stream of their own.
    repetitions: [u64; 2],
}

/// Takes the packets of a stream sent until a report; returns whether some were sent since the report before the last one, so that its
/// source counts as a sender (RFC 3550 §6.4).
fn note_packets(reported: &mut [u64; 2], packets: u64) -> bool {
    let is_sender = packets > reported[1];
    *reported = [packets, reported[0]];
    is_sender
}

impl ReportLog {
    fn record(&mut self, now: Instant, compact: u32) {
        if self.sent.len() == REPORTS_REMEMBERED_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back((compact, now));
    }

    fn sent_at(&self, compact: u32) -> Option<Instant> {
        self.sent.iter().rev().find(|(sent, _)| *sent == compact).map(|(_, at)| *at)
    }
}

/// The canonical names in a datagram.
struct Names(Vec<(u32, String)>);

impl Names {
    /// The first [`NAMES_MAX`] of them.
    fn collect(packets: RtcpPackets<'_>) -> Names {
        let descriptions = packets.filter_map(|packet| match packet {
            Ok(RtcpPacket::SourceDescription(items)) => Some(items),
            _ => None,
        });
        let names = descriptions.flatten().filter(|item| item.kind == SDES_CNAME);
        Names(names.take(NAMES_MAX).map(|item| (item.ssrc, String::from_utf8_lossy(item.text).into_owned())).collect())
    }

    fn of(&self, ssrc: u32) -> Option<&str> {
        self.0.iter().find(|(named, _)| *named == ssrc).map(|(_, name)| name.as_str())
    }
}
