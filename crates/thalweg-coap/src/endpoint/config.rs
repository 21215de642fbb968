//! Settings of an endpoint.

use std::time::Duration;

/// Times and bounds of an endpoint. The defaults are those of RFC 7252 §4.8 where it names one.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Times of the message layer.
    pub times: Times,
    /// Bounds of what peers can make this endpoint hold.
    pub limits: EndpointLimits,
    /// Settings of observation.
    pub observe: ObserveConfig,
    /// Requests under way to one peer at a time (NSTART); further ones wait. Default 1.
    pub nstart: u16,
    /// Repetitions of a confirmable message (MAX_RETRANSMIT). Default 4.
    pub retransmit_max: u8,
    /// Blocks have 2^(exponent + 4) bytes, 0 to 6. Default 6: 1024 bytes.
    pub block_exponent: u8,
    /// Largest ratio of a response to its request for a peer that has not proved its address, with the headers
    /// of IP and UDP. Above it the peer gets a small block and an Echo value that proves the address when it comes back
    /// (RFC 9175 §2.4). 0 switches this off. Default 3.
    pub amplification_max: u16,
    /// Whether requests that name another server (Proxy-Uri, Proxy-Scheme) reach the driver. Default no: they are answered
    /// 5.05.
    pub proxying: bool,
    /// Whether requests with a critical option that is not understood but safe to forward reach the driver, which asks
    /// [`Endpoint::unread_option`](super::Endpoint::unread_option) and answers 4.02 unless it passes them on (RFC 7252
    /// §5.7.1). Default no: they are answered 4.02, but for those that name another server under `proxying`.
    pub forwarding: bool,
    /// Bytes a second of non-confirmable requests to a peer that does not answer (PROBING_RATE), at least 1. Default 1.
    pub probing_rate: u32,
    /// Bytes that may go to a peer before it has answered the first of them. Default 4096, chosen by us: the bytes under
    /// way to a peer that gets 400 requests of 100 bytes a second and answers after 0.1 s.
    pub probing_burst: u32,
}

/// Times of the message layer (RFC 7252 §4.8).
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// First pause before a repetition (ACK_TIMEOUT); up to half as much again is added at random. Default 2 s.
    pub ack_timeout: Duration,
    /// Time of a handler after which its request is acknowledged separately (PROCESSING_DELAY). Default 1 s: half of
    /// the shortest pause of a client.
    pub processing_delay: Duration,
    /// When a request without answer fails (MAX_TRANSMIT_WAIT). Default 93 s.
    pub transmit_wait: Duration,
    /// Time in which a duplicate of a confirmable message can arrive (EXCHANGE_LIFETIME), and time limit of a handler: after it no
    /// client waits any more. Default 247 s. For a duplicate of a non-confirmable one the time is NON_LIFETIME: 145 s with these defaults.
    pub exchange_lifetime: Duration,
    /// Time for which a message ID is not used again for the same peer. Default 247 s; a shorter one allows more requests a
    /// second (65,536 in this time) where the network holds no datagram that long.
    pub message_id_lifetime: Duration,
    /// Responses to multicast requests are spread over this time (DEFAULT_LEISURE). Default 5 s.
    pub leisure: Duration,
}

impl Times {
    /// From a request to the last moment at which its client repeats it (MAX_TRANSMIT_SPAN, RFC 7252 §4.8.2). Default 45 s.
    pub(super) fn repetitions_end(&self, retransmit_max: u8) -> Duration {
        self.ack_timeout * ((1 << retransmit_max.min(16)) - 1) * 3 / 2
    }

    /// Time after which the ID of a non-confirmable message may come back (NON_LIFETIME, RFC 7252 §4.8.2). Default 145 s: one passage
    /// of the network instead of the two of EXCHANGE_LIFETIME, and no PROCESSING_DELAY, which is ACK_TIMEOUT there.
    pub(super) fn non_lifetime(&self, retransmit_max: u8) -> Duration {
        let repetitions = self.repetitions_end(retransmit_max);
        let passages = self.exchange_lifetime.saturating_sub(repetitions + self.ack_timeout);
        (repetitions + passages / 2).min(self.exchange_lifetime)
    }
}

/// Bounds of memory, chosen by the driver of the endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointLimits {
    /// Peers that are remembered; the one that was silent longest makes room. Default 16,384, about 1 KiB each.
    pub peers_max: usize,
    /// Message IDs remembered for each peer, to tell duplicates. Default 64.
    pub duplicates_max: usize,
    /// Bytes for answers that are kept for repeated requests, three quarters of them for POST and PATCH, which must not run twice.
    /// Where these are taken by answers that are still needed, further ones are refused before they run. Default 16 MiB.
    pub answer_bytes_max: usize,
    /// Requests that handlers work on. Default 65,536; above it 5.03 is answered. Notifications come on top, one for each
    /// observer.
    pub exchanges_max: usize,
    /// The same for one peer; above it 4.29 is answered. Default 1024.
    pub exchanges_per_peer_max: usize,
    /// Own requests that wait for an answer or their turn. Default 65,536.
    pub requests_max: usize,
    /// Bytes of one body, in both directions. Default 2 MiB.
    pub body_bytes_max: usize,
    /// Bytes of the requests that handlers work on or that wait for them; above it 5.03 is answered. Bodies that came in blocks
    /// get three quarters of it. Default 32 MiB.
    pub handler_bytes_max: usize,
    /// Bytes of all bodies that are being received or fetched block by block. Default 32 MiB.
    pub transfer_bytes_max: usize,
    /// Bytes of responses kept by this endpoint as a client; 0 switches the cache off. Default 1 MiB.
    pub cache_bytes_max: usize,
}

/// Settings of observation (RFC 7641).
#[derive(Clone, Debug, PartialEq)]
pub struct ObserveConfig {
    /// Clients times resources that are notified. Default 16,384. At most half of [`EndpointLimits::peers_max`] peers observe, and a
    /// sixteenth of it from addresses that are not proved. Where the places are taken, a proved address takes that of an
    /// unproved one or of the host with most registrations; who gets none gets a plain answer.
    pub observers_max: usize,
    /// After this time without a confirmed notification the latest state is sent as a confirmable one, so that each
    /// observer ends at the latest state and those that are gone are found. Default 5 s.
    pub confirm_after: Duration,
    /// The longest time without a confirmable notification to an observer of a resource that does not change. Default 24 h.
    pub confirm_interval: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            times: Times::default(),
            limits: EndpointLimits::default(),
            observe: ObserveConfig::default(),
            nstart: 1,
            retransmit_max: 4,
            block_exponent: 6,
            amplification_max: 3,
            proxying: false,
            forwarding: false,
            probing_rate: 1,
            probing_burst: 4096,
        }
    }
}

impl Default for Times {
    fn default() -> Times {
        Times {
            ack_timeout: Duration::from_secs(2),
            processing_delay: Duration::from_secs(1),
            transmit_wait: Duration::from_secs(93),
            exchange_lifetime: Duration::from_secs(247),
            message_id_lifetime: Duration::from_secs(247),
            leisure: Duration::from_secs(5),
        }
    }
}

impl Default for EndpointLimits {
    fn default() -> EndpointLimits {
        EndpointLimits {
            peers_max: 16_384,
            duplicates_max: 64,
            answer_bytes_max: 16 << 20,
            exchanges_max: 65_536,
            exchanges_per_peer_max: 1024,
            requests_max: 65_536,
            body_bytes_max: 2 << 20,
            handler_bytes_max: 32 << 20,
            transfer_bytes_max: 32 << 20,
            cache_bytes_max: 1 << 20,
        }
    }
}

impl Default for ObserveConfig {
    fn default() -> ObserveConfig {
        ObserveConfig {
            observers_max: 16_384,
            confirm_after: Duration::from_secs(5),
            confirm_interval: Duration::from_secs(24 * 3600),
        }
    }
}
