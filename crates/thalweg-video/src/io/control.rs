//! RTCP of one end: the session, the sockets that it sends by, and where to.

use std::net::SocketAddr;
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::clock;
use thalweg_transport::stream::StreamScratch;

use super::socket::MediaSocket;
use crate::rtcp::{LocalStreams, NtpTime, RtcpConfig, RtcpEvent, RtcpSession, WallClock};

/// The control of a stream: reports go out by every path.
pub(super) struct Control {
    session: RtcpSession,
    /// Where reports go, for each path.
    peers: Vec<SocketAddr>,
    scratch: StreamScratch,
    datagram: Vec<u8>,
}

impl Control {
    pub(super) fn new(now: Instant, ssrc: u32, config: RtcpConfig, peers: Vec<SocketAddr>) -> Control {
        let session = RtcpSession::new(now, ssrc, wall_clock(now), config);
        Control { session, peers, scratch: StreamScratch::default(), datagram: Vec::new() }
    }

    pub(super) fn poll_timeout(&self) -> Instant {
        self.session.poll_timeout()
    }

    pub(super) fn poll_event(&mut self) -> Option<RtcpEvent> {
        self.session.poll_event()
    }

    /// Takes in a datagram. What cannot be read is counted by the session.
    pub(super) fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        let _ = self.session.handle_datagram(now, from, datagram);
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

    /// Sends the last report and leaves.
    pub(super) fn send_bye(&mut self, now: Instant, paths: &[MediaSocket], local: &LocalStreams<'_>, reason: &str) {
        self.datagram.clear();
        self.session.create_bye(now, local, reason, &mut self.datagram);
        self.send_by(paths);
    }

    /// Sends what was written by these paths.
    fn send_by(&mut self, paths: &[MediaSocket]) {
        let Control { peers, scratch, datagram, .. } = self;
        for (path, peer) in paths.iter().zip(peers) {
            let mut burst = path.control().burst(scratch, *peer);
            burst.push([&datagram[..]]);
            burst.send(CONTROL_PATIENCE);
        }
    }
}

fn wall_clock(now: Instant) -> WallClock {
    WallClock::new(now, NtpTime::from_unix(clock::wall_clock().to_unix()))
}

/// How long a report waits for room: it must not delay a picture's packets for longer than a batch of them takes.
const CONTROL_PATIENCE: Duration = Duration::from_micros(100);
