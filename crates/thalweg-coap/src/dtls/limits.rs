//! Bounds and numbers of a server's sessions.

use std::time::Duration;

/// Bounds of what clients can make a server hold, chosen by its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Sessions; the one that was silent longest makes room. Default 16,384, as many as peers of an endpoint.
    pub sessions_max: usize,
    /// Sessions of one host (an IPv4 address, or 64 bits of an IPv6 one); its own that was silent longest makes room. Default
    /// 4,096: a quarter, so that no single host takes the places of others.
    pub sessions_per_host_max: usize,
    /// Handshakes under way, all of clients that proved their addresses; the oldest makes room. Default 1,024: at 100 µs each
    /// they are done in 0.1 s.
    pub handshakes_max: usize,
    /// The same of one host; its own oldest makes room. Default 256, a quarter.
    pub handshakes_per_host_max: usize,
    /// First messages of DTLS 1.3 that are kept of addresses without proof, of 2 KiB at most each, a quarter of them for one
    /// host; the oldest makes room. A client needs its own only if its second message differs in more than cookie and padding,
    /// such as in a key share that it was asked for. Default 128.
    pub unproved_max: usize,
    /// The longest silence of a session. Default 1 h.
    pub idle_max: Duration,
    /// The longest handshake. Default 20 s: a client with four repetitions on a slow network.
    pub handshake_max: Duration,
}

impl Default for SessionLimits {
    fn default() -> SessionLimits {
        SessionLimits {
            sessions_max: 16_384,
            sessions_per_host_max: 4096,
            handshakes_max: 1024,
            handshakes_per_host_max: 256,
            unproved_max: 128,
            idle_max: Duration::from_secs(3600),
            handshake_max: Duration::from_secs(20),
        }
    }
}

/// Numbers about sessions: the first ones since the server began, the last two at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// First messages of clients, which were asked for a cookie.
    pub challenged: u64,
    /// Handshakes that were completed.
    pub established: u64,
    /// Handshakes that failed: no common cipher suite, a wrong key, a certificate that is not believed, or silence.
    pub failed: u64,
    /// Sessions and handshakes that made room for others.
    pub evicted: u64,
    /// Datagrams that belong to no session, or could not be read.
    pub unreadable: u64,
    /// Sessions.
    pub sessions: usize,
    /// Handshakes under way.
    pub handshakes: usize,
}
