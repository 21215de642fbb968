#![no_main]
//! Datagrams of strangers to a server of DTLS, among those of a client that has a session: its session goes on.

use std::cell::OnceCell;

use libfuzzer_sys::fuzz_target;
use thalweg_base::time::Instant;
use thalweg_coap::credentials::{Credentials, PresharedKey};
use thalweg_coap::dtls::{ClientSession, ClockOrigin, SessionLimits, SessionState, Sessions};
use thalweg_coap::endpoint::{CoapOutbox, Peer};

fuzz_target!(|datagrams: Vec<(bool, Vec<u8>)>| {
    thread_local!(static ORIGIN: OnceCell<ClockOrigin> = const { OnceCell::new() });
    let now = Instant::from_nanos(1 << 40);
    let origin = ORIGIN.with(|origin| *origin.get_or_init(|| ClockOrigin::at(now)));
    let key = PresharedKey { identity: b"a".to_vec(), key: b"secret".to_vec().into() };
    let credentials = Credentials { keys: [key].into_iter().collect(), ..Credentials::default() };
    let limits = SessionLimits { handshakes_max: 2, ..SessionLimits::default() };
    let mut server = Sessions::new(&credentials, limits, [1, 2], origin).expect("a key");
    let mut client = ClientSession::connect(&credentials, "server", origin, now).expect("a key");
    let [here, there] = [1, 2].map(|port| Peer::from(([127, 0, 0, 1], port)));
    let mut outbox = CoapOutbox::default();
    while *client.state() == SessionState::Handshake {
        client.take_outgoing().iter().for_each(|bytes| server.handle_datagram(now, here, bytes));
        server.poll_transmit(&mut outbox);
        outbox.iter().for_each(|one| client.handle_datagram(now, one.bytes));
    }
    client.send(now, b"first");
    client.take_outgoing().iter().for_each(|bytes| server.handle_datagram(now, here, bytes));
    for (is_from_client, bytes) in &datagrams {
        server.handle_datagram(now, if *is_from_client { here } else { there }, bytes);
        assert!(server.plain().is_empty(), "nobody else has the key");
        assert!(server.counts().handshakes <= 2);
    }
    client.send(now, b"second");
    client.take_outgoing().iter().for_each(|bytes| server.handle_datagram(now, here, bytes));
    assert_eq!(server.plain().len(), 1);
});
