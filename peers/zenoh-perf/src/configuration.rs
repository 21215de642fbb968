//! Zenoh's settings.

use peer_protocol::{End, Profile, Setup};
use zenoh::Config;

/// One TCP connection over the loopback interface from each subscriber to the publisher, found without multicast.
/// Shared memory is not built in.
pub fn configuration(setup: &Setup) -> Result<Config, String> {
    let address = format!("[\"tcp/127.0.0.1:{}\"]", port(setup.domain)?);
    let (listen, connect) = match setup.end {
        End::Publisher => (address.as_str(), "[]"),
        End::Subscriber => ("[]", address.as_str()),
    };
    let mut settings = vec![
        ("mode", "\"peer\""),
        ("listen/endpoints", listen),
        ("connect/endpoints", connect),
        ("connect/timeout_ms", "-1"),
        ("connect/retry", "{ period_init_ms: 50, period_max_ms: 200, period_increase_factor: 2 }"),
        ("scouting/multicast/enabled", "false"),
        ("scouting/gossip/enabled", "false"),
    ];
    if setup.profile != Profile::Default {
        settings.extend_from_slice(TUNED);
    }
    let mut config = Config::default();
    for (name, value) in settings {
        config.insert_json5(name, value).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(config)
}

/// Room for sixteen batches of 64 KiB, the most that Zenoh allows, and a receive buffer to match.
const TUNED: &[(&str, &str)] = &[
    ("transport/link/tx/queue/size/data", "16"),
    ("transport/link/rx/buffer_size", "1048576"),
    ("transport/link/tcp", "{ so_sndbuf: 4194304, so_rcvbuf: 4194304 }"),
];

/// Below the ports that systems hand out.
fn port(domain: u32) -> Result<u16, String> {
    const FIRST: u32 = 17_000;
    u16::try_from(FIRST + domain).ok().filter(|_| domain <= 1000).ok_or_else(|| "the domain is above 1000".to_owned())
}
