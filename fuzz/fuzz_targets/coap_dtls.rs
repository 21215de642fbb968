#![no_main]
//! Datagrams of strangers to a server of DTLS, among those of a client that has a session: its session goes on. By keys with
//! DTLS 1.2 and by certificates with DTLS 1.3; some datagrams are changed hellos, without a cookie and with one.

use std::path::Path;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use thalweg_base::time::Instant;
use thalweg_coap::credentials::{Credentials, OwnCertificate, PresharedKey, Trust};
use thalweg_coap::dtls::{ClientSession, ClockOrigin, SessionLimits, SessionState, Sessions};
use thalweg_coap::endpoint::{CoapOutbox, Peer};

/// Credentials of the server, and those of its clients.
type CredentialPair = (Credentials, Credentials);

fn keyed() -> CredentialPair {
    let key = || PresharedKey { identity: b"a".to_vec(), key: b"secret".to_vec().into() };
    let credentials = || Credentials { keys: [key()].into_iter().collect(), ..Credentials::default() };
    (credentials(), credentials())
}

fn certified() -> CredentialPair {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/thalweg-coap/testdata");
    let of = |name: &str| {
        let own = OwnCertificate::load(&folder.join(format!("{name}.pem")), &folder.join(format!("{name}-key.pem")));
        let trust = Trust::load(&folder.join("authority.pem")).expect("an authority");
        Credentials { certificate: Some(own.expect("a certificate")), trust: Some(trust), ..Credentials::default() }
    };
    (of("server"), of("client"))
}

/// The datagrams of a client before it has a cookie, and those with it; the server keeps nothing of it.
fn hellos(server: &mut Sessions, credentials: &Credentials, origin: ClockOrigin, now: Instant) -> [Vec<Vec<u8>>; 2] {
    let from = Peer::from(([127, 0, 0, 1], 3));
    let mut client = ClientSession::connect(credentials, "server", origin, now).expect("credentials");
    let first = client.take_outgoing();
    let mut outbox = CoapOutbox::default();
    first.iter().for_each(|bytes| server.handle_datagram(now, from, bytes));
    server.poll_transmit(&mut outbox);
    outbox.iter().for_each(|one| client.handle_datagram(now, one.bytes));
    [first, client.take_outgoing()]
}

/// A genuine datagram with each place of `changes` changed.
fn changed(genuine: &[Vec<u8>], changes: &[u8]) -> Vec<u8> {
    let mut bytes = genuine.first().cloned().unwrap_or_default();
    for change in changes.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len().max(1);
        if let Some(byte) = bytes.get_mut(place) {
            *byte ^= change[2];
        }
    }
    bytes
}

fuzz_target!(|input: (bool, Vec<(u8, Vec<u8>)>)| {
    static ORIGIN: OnceLock<ClockOrigin> = OnceLock::new();
    static ENDS: OnceLock<[CredentialPair; 2]> = OnceLock::new();
    let (is_certified, datagrams) = input;
    let now = Instant::from_nanos(1 << 40);
    let origin = *ORIGIN.get_or_init(|| ClockOrigin::at(now));
    let (own, others) = &ENDS.get_or_init(|| [keyed(), certified()])[usize::from(is_certified)];
    let limits = SessionLimits { handshakes_max: 2, ..SessionLimits::default() };
    let mut server = Sessions::new(own, limits, [1, 2], origin).expect("credentials");
    let [without_cookie, with_cookie] = hellos(&mut server, others, origin, now);
    let mut client = ClientSession::connect(others, "server", origin, now).expect("credentials");
    let [here, there] = [1, 2].map(|port| Peer::from(([127, 0, 0, 1], port)));
    let mut outbox = CoapOutbox::default();
    for _ in 0..100 {
        if *client.state() != SessionState::Handshake {
            break;
        }
        client.take_outgoing().iter().for_each(|bytes| server.handle_datagram(now, here, bytes));
        server.poll_transmit(&mut outbox);
        outbox.iter().for_each(|one| client.handle_datagram(now, one.bytes));
    }
    assert_eq!(*client.state(), SessionState::Established);
    assert_eq!(client.is_dtls13(), is_certified);
    client.send(now, b"first");
    client.take_outgoing().iter().for_each(|bytes| server.handle_datagram(now, here, bytes));
    for (kind, bytes) in &datagrams {
        match kind % 4 {
            0 => server.handle_datagram(now, here, bytes),
            1 => server.handle_datagram(now, there, bytes),
            2 => server.handle_datagram(now, there, &changed(&without_cookie, bytes)),
            // The cookie is good for the address that it was given to.
            _ => server.handle_datagram(now, Peer::from(([127, 0, 0, 1], 3)), &changed(&with_cookie, bytes)),
        }
        assert!(server.plain().is_empty(), "nobody else has a session");
        assert!(server.counts().handshakes <= 2);
        server.poll_transmit(&mut outbox);
    }
    client.send(now, b"second");
    client.take_outgoing().iter().for_each(|bytes| server.handle_datagram(now, here, bytes));
    assert_eq!(server.plain().len(), 1);
});
