//! A stream for which a host is to be set: its samples, and the datagrams that they become.

use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A kind of stream, with its usual figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamProfile {
    /// Uncompressed video over RTP (RFC 4175): 1080 lines, 10 bits, 4:2:2, 29.97 frames a second, paced.
    Video,
    /// Small samples of many writers, all at the same instant.
    Telemetry,
    /// Large reliable samples.
    Bulk,
    /// The video of the paper of 2006 in its packets, with what became of each of its settings.
    #[serde(rename = "paper-2006")]
    Paper2006,
}

/// How the datagrams of a sample leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Departing {
    /// Spread over the time until the next sample, in batches of [`BATCH_DATAGRAMS`].
    Paced,
    /// All at once.
    AtOnce,
}

/// The version of IP below a stream's datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamNetwork {
    /// The fourth.
    #[default]
    V4,
    /// The sixth.
    V6,
}

impl StreamNetwork {
    /// That of an address.
    pub fn of(address: IpAddr) -> StreamNetwork {
        if address.is_ipv4() { StreamNetwork::V4 } else { StreamNetwork::V6 }
    }

    /// Bytes of the headers of IP and UDP.
    pub fn header_bytes(self) -> u64 {
        match self {
            StreamNetwork::V4 => 28,
            StreamNetwork::V6 => 48,
        }
    }

    /// What every link carries without cutting (RFC 791 §3.1, RFC 8200 §5).
    fn mtu_min_bytes(self) -> u32 {
        match self {
            StreamNetwork::V4 => 576,
            StreamNetwork::V6 => 1280,
        }
    }

    /// Bytes of headers before the data of a fragment (RFC 791 §3.1, RFC 8200 §4.5).
    fn fragment_header_bytes(self) -> u64 {
        match self {
            StreamNetwork::V4 => 20,
            StreamNetwork::V6 => 48,
        }
    }
}

/// Datagrams that a paced sender hands to the kernel at a time.
pub const BATCH_DATAGRAMS: u64 = 16;

/// The stream itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdvisedStream {
    /// Its kind, which decides headers and datagrams.
    pub profile: StreamProfile,
    /// Samples a second of each writer; a frame is a sample of video.
    pub rate_hz: f64,
    /// Bytes of a serialised sample.
    pub sample_bytes: u64,
    /// Writers whose samples reach this host.
    pub writers: u32,
    /// Time within which a sample has to be there.
    pub deadline: Duration,
    /// How datagrams leave.
    pub departing: Departing,
    /// Bytes of a datagram that the writer chooses itself, beyond the MTU if it likes; `None` fits datagrams into the MTU.
    pub datagram_bytes: Option<u32>,
    /// What carries them; `HostAdvice::make` takes that of the peer where one is named.
    #[serde(default)]
    pub network: StreamNetwork,
}

/// The datagrams of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatagramPlan {
    /// Bytes of the sample in a datagram.
    pub carried_bytes: u64,
    /// Bytes of UDP payload: those and the headers of the protocol.
    pub payload_bytes: u64,
    /// Datagrams of a sample.
    pub count: u64,
    /// IP fragments of a datagram; 1 where it fits the MTU.
    pub fragments: u64,
}

/// The reason why no advice can be given for a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImpossibleStream(pub(crate) String);

impl std::fmt::Display for ImpossibleStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ImpossibleStream {}

impl StreamProfile {
    /// All of them, with their names.
    pub const ALL: [(&'static str, StreamProfile); 4] = [
        ("video", StreamProfile::Video),
        ("telemetry", StreamProfile::Telemetry),
        ("bulk", StreamProfile::Bulk),
        ("paper-2006", StreamProfile::Paper2006),
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        StreamProfile::ALL.iter().find(|(_, profile)| *profile == self).map_or("", |(name, _)| name)
    }

    /// The usual stream of this kind.
    pub fn stream(self) -> AdvisedStream {
        let stream = |rate_hz, sample_bytes, writers, deadline_us, departing| AdvisedStream {
            profile: self,
            rate_hz,
            sample_bytes,
            writers,
            deadline: Duration::from_micros(deadline_us),
            departing,
            datagram_bytes: None,
            network: StreamNetwork::V4,
        };
        match self {
            // 1920 · 1080 · 2.5 bytes; two frame buffers make the deadline two frames.
            StreamProfile::Video => stream(30_000.0 / 1001.0, 5_184_000, 1, 66_733, Departing::Paced),
            StreamProfile::Telemetry => stream(1000.0, 256, 10, 5_000, Departing::AtOnce),
            StreamProfile::Bulk => stream(50.0, 1 << 20, 1, 1_000_000, Departing::AtOnce),
            StreamProfile::Paper2006 => {
                let video = StreamProfile::Video.stream();
                AdvisedStream { profile: self, datagram_bytes: Some(PAPER_DATAGRAM_BYTES), ..video }
            }
        }
    }

    /// Bytes of the protocol's headers in a datagram: RTP with one line of RFC 4175, or RTPS with DATA_FRAG.
    fn header_bytes(self) -> u64 {
        match self {
            StreamProfile::Video | StreamProfile::Paper2006 => 20,
            StreamProfile::Telemetry | StreamProfile::Bulk => 56,
        }
    }

    /// Whether a lost datagram is sent again until it is there, within a window.
    pub fn is_acknowledged(self) -> bool {
        matches!(self, StreamProfile::Telemetry | StreamProfile::Bulk)
    }
}

impl AdvisedStream {
    /// Checks that the figures make a stream.
    ///
    /// # Errors
    /// A figure is zero, not a number, or beyond what any host carries; the text says which and what is allowed.
    pub fn check(&self) -> Result<(), ImpossibleStream> {
        let refuse = |what: &str| Err(ImpossibleStream(what.to_owned()));
        if !self.rate_hz.is_finite() || !(0.001..=10_000_000.0).contains(&self.rate_hz) {
            return refuse("the rate has to be from 0.001 to 10,000,000 samples a second");
        }
        if !(1..=1 << 32).contains(&self.sample_bytes) {
            return refuse("the size has to be from 1 byte to 4 GiB");
        }
        if !(1..=100_000).contains(&self.writers) {
            return refuse("there have to be 1 to 100,000 writers");
        }
        if self.deadline.is_zero() || self.deadline > Duration::from_secs(3600) {
            return refuse("the deadline has to be more than nothing and at most an hour");
        }
        let least = self.profile.header_bytes() + 1;
        if self.datagram_bytes.is_some_and(|bytes| !(least..=65_507).contains(&u64::from(bytes))) {
            return Err(ImpossibleStream(format!("a datagram has to be from {least} to 65,507 bytes")));
        }
        if self.bits_per_second() > MOST_BITS_PER_SECOND {
            return refuse("all writers together send more than 10 Tbit/s, which no host receives");
        }
        Ok(())
    }

    /// The datagrams of a sample where an IP packet has at most `mtu_bytes`.
    pub fn datagrams(&self, mtu_bytes: u32) -> DatagramPlan {
        let header = self.profile.header_bytes();
        let packet = u64::from(mtu_bytes.max(self.network.mtu_min_bytes()));
        let fitting = packet - self.network.header_bytes();
        let payload = match (self.datagram_bytes, self.profile) {
            (Some(bytes), _) => u64::from(bytes),
            // A second line of RFC 4175 in the same datagram adds six bytes.
            (None, StreamProfile::Video) if fitting >= 7226 => 7226,
            (None, StreamProfile::Video) if fitting >= 1220 => 1220,
            (None, _) => fitting,
        };
        let carried = match (self.datagram_bytes, payload) {
            (None, 7226) if self.profile == StreamProfile::Video => 7200,
            _ => payload.saturating_sub(header).max(1),
        };
        let carried = carried.min(self.sample_bytes);
        let payload = if carried == self.sample_bytes { carried + header } else { payload };
        // A fragment carries a multiple of eight bytes behind its headers; UDP's is in the first.
        let piece = (packet - self.network.fragment_header_bytes()) & !7;
        let fragments = if payload <= fitting { 1 } else { (payload + 8).div_ceil(piece) };
        DatagramPlan {
            carried_bytes: carried,
            payload_bytes: payload,
            count: self.sample_bytes.div_ceil(carried),
            fragments,
        }
    }

    /// Bits a second of all writers together, without headers.
    pub fn bits_per_second(&self) -> f64 {
        self.rate_hz * self.sample_bytes as f64 * 8.0 * f64::from(self.writers)
    }

    /// IP packets a second of all writers together.
    pub fn packets_per_second(&self, mtu_bytes: u32) -> f64 {
        let plan = self.datagrams(mtu_bytes);
        self.rate_hz * (plan.count * plan.fragments) as f64 * f64::from(self.writers)
    }
}

/// 8,945 bytes make about 580 packets a frame, one each 57.8 µs (§1.1 of the paper's digest).
const PAPER_DATAGRAM_BYTES: u32 = 8945;
const MOST_BITS_PER_SECOND: f64 = 1e13;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(profile: StreamProfile, mtu: u32, expect: (u64, u64, u64)) {
        let plan = profile.stream().datagrams(mtu);
        assert_eq!((plan.payload_bytes, plan.count, plan.fragments), expect, "{profile:?} at {mtu}");
    }

    #[test]
    fn samples_become_the_datagrams_that_the_senders_make() {
        check(StreamProfile::Video, 1500, (1220, 4320, 1));
        check(StreamProfile::Video, 9000, (7226, 720, 1));
        check(StreamProfile::Paper2006, 9000, (8945, 581, 1));
        check(StreamProfile::Paper2006, 1500, (8945, 581, 7));
        check(StreamProfile::Telemetry, 1500, (312, 1, 1));
        check(StreamProfile::Bulk, 1500, (1472, 741, 1));
        check(StreamProfile::Video, 0, (548, 9819, 1));
    }

    #[test]
    fn headers_of_the_sixth_version_of_ip_leave_less_room() {
        let plan = |profile: StreamProfile, mtu| {
            let stream = AdvisedStream { network: StreamNetwork::V6, ..profile.stream() };
            let plan = stream.datagrams(mtu);
            (plan.payload_bytes, plan.count, plan.fragments)
        };
        assert_eq!(plan(StreamProfile::Bulk, 1500), (1452, 752, 1));
        assert_eq!(plan(StreamProfile::Bulk, 0), (1232, 892, 1));
        // 8,953 bytes in pieces of 1,448.
        assert_eq!(plan(StreamProfile::Paper2006, 1500), (8945, 581, 7));
        // 8,972 bytes fit behind the fourth's headers, 8,952 behind the sixth's.
        let cut = |network| {
            let stream = AdvisedStream { network, datagram_bytes: Some(8960), ..StreamProfile::Bulk.stream() };
            stream.datagrams(9000).fragments
        };
        assert_eq!((cut(StreamNetwork::V4), cut(StreamNetwork::V6)), (1, 2));
    }

    #[test]
    fn an_impossible_stream_is_refused_with_what_is_allowed() {
        let refuse = |change: fn(&mut AdvisedStream), words: &str| {
            let mut stream = StreamProfile::Bulk.stream();
            change(&mut stream);
            let refusal = stream.check().expect_err(words).to_string();
            assert!(refusal.contains(words), "{refusal}");
        };
        refuse(|stream| stream.rate_hz = f64::NAN, "rate");
        refuse(|stream| stream.sample_bytes = 0, "size");
        refuse(|stream| stream.writers = 0, "writers");
        refuse(|stream| stream.deadline = Duration::ZERO, "deadline");
        refuse(|stream| stream.datagram_bytes = Some(40), "57 to 65,507");
        refuse(|stream| stream.rate_hz = 1e7, "10 Tbit/s");
        for (name, profile) in StreamProfile::ALL {
            profile.stream().check().expect(name);
        }
    }
}
