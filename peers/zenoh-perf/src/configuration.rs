//! Zenoh's settings.

use peer_protocol::{PeerProfile, PeerSetup, ProcessEnd};
use zenoh::Config;

/// One TCP connection from each subscriber to each publisher, found without multicast.
/// Shared memory is not built in.
pub fn configuration(setup: &PeerSetup, end: &ProcessEnd) -> Result<Config, String> {
    let addresses = |publishers: &[u32]| {
        let address = |publisher: &u32| {
            let host = setup.publishers.get(*publisher as usize);
            let host = host.ok_or_else(|| format!("publisher {publisher} has no address"))?;
            Ok(format!("\"tcp/{host}:{}\"", port(setup.domain, *publisher)?))
        };
        let addresses: Result<Vec<String>, String> = publishers.iter().map(address).collect();
        Ok::<_, String>(format!("[{}]", addresses?.join(", ")))
    };
    let (listen, connect) = match end {
        ProcessEnd::Publisher(index) => (addresses(&[*index])?, "[]".to_owned()),
        ProcessEnd::Subscriber(publishers) => ("[]".to_owned(), addresses(publishers)?),
    };
    let mut settings = vec![
        ("mode", "\"peer\""),
        ("listen/endpoints", listen.as_str()),
        ("connect/endpoints", connect.as_str()),
        ("connect/timeout_ms", "-1"),
        ("connect/retry", "{ period_init_ms: 50, period_max_ms: 200, period_increase_factor: 2 }"),
        ("scouting/multicast/enabled", "false"),
        ("scouting/gossip/enabled", "false"),
    ];
    if setup.profile != PeerProfile::Default {
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

/// Below the ports that systems hand out; domains that differ by 64 share theirs.
fn port(domain: u32, publisher: u32) -> Result<u16, String> {
    const FIRST: u32 = 24_000;
    const PUBLISHERS: u32 = 128;
    let port = FIRST + domain % 64 * PUBLISHERS + publisher;
    let port = u16::try_from(port).ok().filter(|_| publisher < PUBLISHERS);
    port.ok_or_else(|| format!("publisher {publisher} is one too many: there are ports for {PUBLISHERS}"))
}
