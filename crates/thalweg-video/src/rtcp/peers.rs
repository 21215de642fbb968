//! The other participants of a session: what each said last, and who speaks for which SSRC.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use thalweg_base::time::Instant;

use super::clock::MediaClock;
use super::packet::{Dlrr, ReportBlock, SenderInfo};

/// How many participants a session remembers; reports of others are counted and not kept. When there are more, a host that has
/// fewer than another takes the place of that one's participant that was silent for the longest time.
///
/// Chosen by us: video of a gigabit a second goes to one receiver, or to a few by multicast.
pub const PEERS_MAX: usize = 64;

/// How many hosts are remembered whose media came: a sender's on two paths, and those of the sender before it.
const MEDIA_HOSTS_MAX: usize = 4;

/// Another participant, named by its SSRC.
#[derive(Clone, Debug)]
pub struct RtcpPeer {
    /// Its SSRC.
    pub ssrc: u32,
    /// Where its RTCP comes from.
    pub address: SocketAddr,
    /// Its canonical name, once it told it; octets that are not UTF-8 are replaced.
    pub cname: Option<String>,
    /// When its last packet came.
    pub last_heard: Instant,
    /// Its last sender report, and when that came.
    pub sender_report: Option<(SenderInfo, Instant)>,
    /// Its last report block about our stream.
    pub report: Option<ReportBlock>,
    /// The last time to it and back that its reports gave.
    pub round_trip: Option<Duration>,
    pub(super) reference: Option<Reference>,
    pub(super) presence: Presence,
    /// Whether a conflict about this SSRC has been told.
    pub(super) in_conflict: bool,
}

/// A reference time of a peer that may wait for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    compact: u32,
    arrival: Instant,
    is_answered: bool,
}

/// Whether a peer takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Active,
    /// It said BYE; remembered so that a late packet does not bring it back (RFC 3550 §6.3.4).
    Left(Instant),
}

impl RtcpPeer {
    fn new(now: Instant, ssrc: u32, address: SocketAddr) -> RtcpPeer {
        RtcpPeer {
            ssrc,
            address,
            cname: None,
            last_heard: now,
            sender_report: None,
            report: None,
            round_trip: None,
            reference: None,
            presence: Presence::Active,
            in_conflict: false,
        }
    }

    /// How the time stamps of its stream map to its wall clock, from its last sender report; none without one, and none from a
    /// sender without a clock.
    pub fn media_clock(&self, rate_hz: u32) -> Option<MediaClock> {
        let (info, _) = self.sender_report.filter(|(info, _)| info.ntp.0 != 0)?;
        MediaClock::new(info.ntp, info.rtp, rate_hz)
    }

    pub(super) fn handle_reference(&mut self, now: Instant, compact: u32) {
        self.reference = Some(Reference { compact, arrival: now, is_answered: false });
    }
}

/// What came of looking up the speaker of a packet.
#[derive(Debug)]
pub(super) enum Speaker<'a> {
    /// A peer heard before.
    Known(&'a mut RtcpPeer),
    /// A peer heard for the first time, and the SSRC of the active one that gave its place to it, the same where somebody else had it.
    New(&'a mut RtcpPeer, Option<u32>),
    /// Another participant has this SSRC already; true when this is told for the first time.
    Conflict(bool),
    /// It has left, or the table is full.
    Ignored,
}

/// The participants, at most [`PEERS_MAX`].
#[derive(Clone, Debug, Default)]
pub(super) struct PeerTable {
    peers: Vec<RtcpPeer>,
    /// Whose media came from which host, the newest last.
    media: Vec<(u32, IpAddr)>,
}

impl PeerTable {
    /// Notes that media of `ssrc` comes from `host`.
    pub(super) fn note_media(&mut self, ssrc: u32, host: IpAddr) {
        if self.media.last() == Some(&(ssrc, host)) {
            return;
        }
        self.media.retain(|known| *known != (ssrc, host));
        if self.media.len() == MEDIA_HOSTS_MAX {
            self.media.remove(0);
        }
        self.media.push((ssrc, host));
    }

    fn sends_media(&self, ssrc: u32, host: IpAddr) -> bool {
        self.media.contains(&(ssrc, host))
    }

    pub(super) fn active(&self) -> impl Iterator<Item = &RtcpPeer> {
        self.peers.iter().filter(|peer| peer.presence == Presence::Active)
    }

    pub(super) fn find(&mut self, ssrc: u32) -> Option<&mut RtcpPeer> {
        self.peers.iter_mut().find(|peer| peer.ssrc == ssrc && peer.presence == Presence::Active)
    }

    /// The peer with an SSRC from which a packet came at `now`, with the canonical name in the same datagram.
    ///
    /// The first address speaks for an SSRC, unless the media comes from the host of another one: who was only earlier must not shut out
    /// the sender's reports. A peer that keeps its canonical name may move (RFC 3550 §8.2).
    pub(super) fn hear(&mut self, now: Instant, ssrc: u32, from: SocketAddr, cname: Option<&str>) -> Speaker<'_> {
        let Some(index) = self.peers.iter().position(|peer| peer.ssrc == ssrc) else {
            let mut displaced = None;
            if self.peers.len() >= PEERS_MAX {
                let Some(index) = self.displaceable(from.ip()) else { return Speaker::Ignored };
                let peer = self.peers.swap_remove(index);
                displaced = (peer.presence == Presence::Active).then_some(peer.ssrc);
            }
            self.peers.push(RtcpPeer::new(now, ssrc, from));
            return self.peers.last_mut().map_or(Speaker::Ignored, |peer| Speaker::New(peer, displaced));
        };
        let is_usurped = !self.sends_media(ssrc, self.peers[index].address.ip()) && self.sends_media(ssrc, from.ip());
        let peer = &mut self.peers[index];
        if is_usurped {
            let was_active = peer.presence == Presence::Active;
            *peer = RtcpPeer::new(now, ssrc, from);
            return Speaker::New(peer, was_active.then_some(ssrc));
        }
        if peer.presence != Presence::Active {
            return Speaker::Ignored;
        }
        let has_same_name = cname.is_some() && cname == peer.cname.as_deref();
        let has_other_name = cname.is_some() && peer.cname.is_some() && !has_same_name;
        if has_other_name || (peer.address != from && !has_same_name) {
            return Speaker::Conflict(!std::mem::replace(&mut peer.in_conflict, true));
        }
        (peer.last_heard, peer.address) = (now, from);
        Speaker::Known(peer)
    }

    /// The peer that gives its place to one of the host `from`: of the host with the most, if that has two more than `from`, the
    /// one that was silent for the longest time.
    fn displaceable(&self, from: IpAddr) -> Option<usize> {
        let count = |host: IpAddr| self.peers.iter().filter(|peer| peer.address.ip() == host).count();
        let most = self.peers.iter().map(|peer| peer.address.ip()).max_by_key(|host| count(*host))?;
        if count(most) <= count(from) + 1 {
            return None;
        }
        let peers = self.peers.iter().enumerate().filter(|(_, peer)| peer.address.ip() == most);
        peers.min_by_key(|(_, peer)| peer.last_heard).map(|(index, _)| index)
    }

    /// Marks a peer as gone if it is known and the farewell comes from its address.
    pub(super) fn mark_left(&mut self, now: Instant, ssrc: u32, from: SocketAddr) -> bool {
        let speaks =
            |peer: &&mut RtcpPeer| peer.ssrc == ssrc && peer.address == from && peer.presence == Presence::Active;
        match self.peers.iter_mut().find(speaks) {
            Some(peer) => {
                peer.presence = Presence::Left(now);
                true
            }
            None => false,
        }
    }

    /// Removes peers that were silent for `silence`, calling `gone` with each, and those that left `memory` ago.
    pub(super) fn expire(&mut self, now: Instant, silence: Duration, memory: Duration, mut gone: impl FnMut(u32)) {
        self.peers.retain(|peer| match peer.presence {
            Presence::Left(at) => now < at + memory,
            Presence::Active if now >= peer.last_heard + silence => {
                gone(peer.ssrc);
                false
            }
            Presence::Active => true,
        });
    }

    /// When [`PeerTable::expire`] has something to do.
    pub(super) fn next_expiry(&self, silence: Duration, memory: Duration) -> Instant {
        let expiry = |peer: &RtcpPeer| match peer.presence {
            Presence::Left(at) => at + memory,
            Presence::Active => peer.last_heard + silence,
        };
        self.peers.iter().map(expiry).min().unwrap_or(Instant::NEVER)
    }

    /// Answers to reference times that have none yet, at most `limit`; the others wait for the next report.
    pub(super) fn take_answers(&mut self, now: Instant, limit: usize) -> Vec<Dlrr> {
        let mut answers = Vec::new();
        for peer in self.peers.iter_mut().filter(|peer| peer.presence == Presence::Active) {
            let Some(reference) = peer.reference.as_mut().filter(|reference| !reference.is_answered) else { continue };
            if answers.len() == limit {
                break;
            }
            reference.is_answered = true;
            let delay_since_last = super::clock::to_compact(now.since(reference.arrival));
            answers.push(Dlrr { ssrc: peer.ssrc, last_report: reference.compact, delay_since_last });
        }
        answers
    }
}
