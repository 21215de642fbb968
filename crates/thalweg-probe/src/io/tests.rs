//! Both ends in this process, over loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thalweg_lab_station::Stop;

use super::*;
use crate::control::{Begin, ControlMessage, EndRole, Ready};
use crate::error::ProbeError;
use crate::figures::{DatagramFigures, ProbeFigures, ProbeTripFigures, StreamFigures};
use crate::order::{Fragments, Joining, ProbeOrder, ProbeProtocol, Shape, StreamDirection, VERSION};
use crate::reports::{EndReport, SentReport};

fn order(protocol: ProbeProtocol, shape: Shape) -> ProbeOrder {
    ProbeOrder {
        version: VERSION,
        protocol,
        shape,
        size_bytes: 1_000,
        streams: 1,
        duration_ms: 300,
        joining: Joining::Both,
        fragments: Fragments::Refused,
        receive_buffer_bytes: None,
        segment_mtu_bytes: None,
    }
}

fn stream(direction: StreamDirection, rate_bit_per_s: Option<f64>) -> Shape {
    Shape::Stream { direction, rate_bit_per_s }
}

/// Runs `client` with the address of a server.
fn with_server<Outcome>(client: impl FnOnce(SocketAddr) -> Outcome) -> Outcome {
    let options = ProbeServerOptions { bind: "127.0.0.1:0".parse().unwrap(), data_port: 0, repeat: Repeat::Always };
    let server = ProbeServer::bind(options).unwrap();
    let (address, stop) = (server.local_address().unwrap(), Stop::default());
    std::thread::scope(|scope| {
        let served = scope.spawn(|| server.serve(&stop, |line| println!("{line}")));
        // A client that panics must not leave the server running.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| client(address)));
        stop.request();
        served.join().unwrap().unwrap();
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn ask(server: SocketAddr, order: ProbeOrder) -> Result<ProbeFigures, ProbeError> {
    measure(&ClientOptions { server }, order, &Stop::default(), &mut |_| ())
}

fn stream_figures(order: ProbeOrder) -> StreamFigures {
    match with_server(|server| ask(server, order)).unwrap() {
        ProbeFigures::Stream(figures) => *figures,
        other => panic!("{other:?}"),
    }
}

fn trip_figures(order: ProbeOrder) -> ProbeTripFigures {
    match with_server(|server| ask(server, order)).unwrap() {
        ProbeFigures::RoundTrips(figures) => *figures,
        other => panic!("{other:?}"),
    }
}

/// The law of datagrams, and that an open loop offers exactly what was asked for.
#[track_caller]
fn check_datagrams(order: ProbeOrder, expect: u64) {
    let figures = stream_figures(order);
    let DatagramFigures { offered, received, lost, .. } = figures.datagrams.unwrap();
    assert_eq!((offered, received + lost), (expect, expect));
    let got = figures.receiver.received.unwrap();
    assert_eq!((got.bytes, got.duplicates, got.foreign), (received * u64::from(figures.size_bytes), 0, 0));
    assert_eq!(lost, 0, "loopback loses nothing at this rate: {:?}", figures.receiver.layers);
}

#[test]
fn an_open_loop_offers_what_was_asked_for_both_ways() {
    for direction in [StreamDirection::ToServer, StreamDirection::ToClient] {
        check_datagrams(order(ProbeProtocol::Udp, stream(direction, Some(8e6))), 300);
        let three = ProbeOrder { streams: 3, ..order(ProbeProtocol::Udp, stream(direction, Some(24e6))) };
        check_datagrams(three.clone(), 900);
        check_datagrams(ProbeOrder { joining: Joining::Neither, ..three }, 900);
    }
}

#[test]
fn a_closed_loop_counts_everything_it_sent() {
    for joining in [Joining::Both, Joining::Neither] {
        let figures = stream_figures(ProbeOrder {
            joining,
            ..order(ProbeProtocol::Udp, stream(StreamDirection::ToServer, None))
        });
        let DatagramFigures { offered, received, lost, .. } = figures.datagrams.unwrap();
        assert_eq!(received + lost, offered);
        assert!(offered > 1_000, "{offered}");
        let sent = figures.sender.sent.unwrap();
        assert_eq!(sent.segmented_messages > 0, joining == Joining::Both, "GSO is used where it was asked for");
        assert_eq!(figures.receiver.received.unwrap().joined_messages > 0, joining == Joining::Both);
    }
}

#[test]
fn tcp_moves_all_bytes_both_ways() {
    for direction in [StreamDirection::ToServer, StreamDirection::ToClient] {
        let closed =
            ProbeOrder { size_bytes: 65_536, streams: 2, ..order(ProbeProtocol::Tcp, stream(direction, None)) };
        let figures = stream_figures(closed);
        assert!(figures.goodput_mbit_per_s > 10.0 && figures.datagrams.is_none(), "{figures:?}");
        assert!(figures.sender.sent.unwrap().retransmitted_segments.is_some());
        let open = stream_figures(order(ProbeProtocol::Tcp, stream(direction, Some(8e6))));
        assert_eq!(open.sender.sent.unwrap().bytes, 300_000);
        assert_eq!(open.receiver.received.unwrap().bytes, 300_000);
    }
}

#[test]
fn round_trips_are_measured_and_counted_by_both_ends() {
    for (protocol, size_bytes) in
        [(ProbeProtocol::Udp, 16), (ProbeProtocol::Udp, 30_000), (ProbeProtocol::Tcp, 1), (ProbeProtocol::Tcp, 300_000)]
    {
        let asked = ProbeOrder { size_bytes, streams: 2, ..order(protocol, Shape::RoundTrips) };
        let figures = trip_figures(asked);
        let all: u64 = figures.client.sent.as_ref().unwrap().offered.iter().sum();
        let answered: u64 = figures.server.received.as_ref().unwrap().received.iter().sum();
        assert_eq!((all, figures.lost), (answered, 0), "{protocol:?} {size_bytes}");
        // A round trip is a call that sends and one that receives, at both ends.
        let calls = [figures.client.sent.as_ref().unwrap().calls, figures.server.received.as_ref().unwrap().calls];
        assert!(calls[0] >= 2 * all && calls[1] >= all, "{calls:?} for {all}");
        assert_eq!(figures.round_trips, all - 2 * super::round_trips::WARM_UP.min(all / 2), "{figures:?}");
        assert!(
            0.0 < figures.min_us && figures.min_us <= figures.p50_us.unwrap() && figures.p50_us <= Some(figures.max_us)
        );
    }
}

#[test]
fn a_small_receive_buffer_is_granted_and_its_losses_are_named() {
    let small = ProbeOrder {
        receive_buffer_bytes: Some(4_096),
        joining: Joining::Neither,
        ..order(ProbeProtocol::Udp, stream(StreamDirection::ToServer, None))
    };
    let figures = stream_figures(small);
    let got = figures.receiver.received.unwrap();
    assert_eq!(got.receive_buffer_asked_bytes, 4_096);
    assert!((4_096..65_536).contains(&got.receive_buffer_granted_bytes), "{}", got.receive_buffer_granted_bytes);
    let lost = figures.datagrams.unwrap().lost;
    assert!(lost > 0);
    // Without joining a message is a datagram, and nothing else loses any on loopback; other tests' sockets are of this process too.
    assert!(figures.receiver.socket_drops >= lost - figures.datagrams.unwrap().lost_at_sender);
}

/// Stands between client and server: passes the conversation on with its own port in place of the server's, and drops every `n`-th
/// datagram; the port to connect to and the datagrams dropped so far.
fn lossy_relay(server: SocketAddr, n: u64) -> (SocketAddr, Arc<AtomicU64>) {
    let (door, relay) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let (address, dropped) = (door.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
    let count = Arc::clone(&dropped);
    std::thread::spawn(move || {
        let (client, _) = door.accept().unwrap();
        let server_stream = TcpStream::connect(server).unwrap();
        let (mut to_client, mut to_server) = (client.try_clone().unwrap(), server_stream.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut BufReader::new(client), &mut to_server));
        for line in BufReader::new(server_stream).lines().map_while(Result::ok) {
            let mut message = ControlMessage::from_line(line.as_bytes()).unwrap();
            if let ControlMessage::Ready(Ready { ports, .. }) = &mut message {
                let there =
                    SocketAddr::new(server.ip(), std::mem::replace(&mut ports[0], relay.local_addr().unwrap().port()));
                let (relay, count) = (relay.try_clone().unwrap(), Arc::clone(&count));
                std::thread::spawn(move || {
                    let mut bytes = [0; 2_048];
                    for number in 1.. {
                        let Ok((length, _)) = relay.recv_from(&mut bytes) else { return };
                        if number % n == 0 {
                            count.fetch_add(1, Ordering::Relaxed);
                        } else {
                            relay.send_to(&bytes[..length], there).unwrap();
                        }
                    }
                });
            }
            if to_client.write_all(&message.to_line()).is_err() {
                return;
            }
        }
    });
    (address, dropped)
}

#[test]
fn every_hundredth_datagram_that_a_relay_drops_is_counted() {
    let asked =
        ProbeOrder { duration_ms: 1_000, ..order(ProbeProtocol::Udp, stream(StreamDirection::ToServer, Some(16e6))) };
    with_server(|server| {
        let (relay, dropped) = lossy_relay(server, 100);
        let ProbeFigures::Stream(figures) = ask(relay, asked).unwrap() else { panic!("a stream was asked for") };
        let datagrams = figures.datagrams.unwrap();
        assert_eq!(dropped.load(Ordering::Relaxed), 20);
        assert_eq!((datagrams.offered, datagrams.received, datagrams.lost), (2_000, 1_980, 20));
        assert_eq!(datagrams.lost_percent, 1.0);
        let missing: u64 = figures.windows.iter().map(|window| window.missing).sum();
        // The last one of all is behind the highest number that arrived.
        assert!((18..=20).contains(&missing), "{missing}");
    });
}

/// The port that a server sends to after knocks with these tokens, the port of the last of them, and the port that was named.
fn port_after(tokens: &[u32]) -> (u16, u16, u16) {
    use super::links::{hear_knocks, knock, link_datagrams, open_datagram_sockets};
    let asked = order(ProbeProtocol::Udp, stream(StreamDirection::ToClient, None));
    let here: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let open = || open_datagram_sockets(&asked, here, 0).unwrap();
    let mut links = link_datagrams(open(), here, &[9], 5);
    let server_port = links[0].socket.local_address().port();
    let mut knocking = 0;
    for token in tokens {
        let translated = link_datagrams(open(), here, &[server_port], *token);
        knocking = translated[0].socket.local_address().port();
        knock(&translated);
    }
    hear_knocks(&mut links).unwrap();
    (links[0].peer.port(), knocking, 9)
}

#[test]
fn a_server_sends_to_the_port_that_a_knock_comes_from() {
    let (port, knocking, _) = port_after(&[5]);
    assert_eq!(port, knocking);
    let (port, _, named) = port_after(&[6]);
    assert_eq!(port, named, "a stranger's knock changes nothing");
    let (port, _, named) = port_after(&[]);
    assert_eq!(port, named);
}

#[test]
fn what_does_not_fit_is_refused_with_what_does() {
    let asked = ProbeOrder { size_bytes: 65_508, ..order(ProbeProtocol::Udp, stream(StreamDirection::ToServer, None)) };
    let told = with_server(|server| ask(server, asked)).unwrap_err().to_string();
    assert!(told.contains("65507 B for UDP"), "{told}");
}

#[test]
fn nobody_there_and_somebody_else_are_told_apart() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let told = ask(closed, order(ProbeProtocol::Udp, Shape::RoundTrips)).unwrap_err().to_string();
    assert!(told.contains("start `thalweg perf serve` there"), "{told}");
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    std::thread::spawn(move || other.accept().unwrap().0.write_all(b"SSH-2.0-OpenSSH\r\n").unwrap());
    let told = ask(address, order(ProbeProtocol::Udp, Shape::RoundTrips)).unwrap_err().to_string();
    assert!(told.contains("is it `thalweg perf serve`?"), "{told}");
}

#[test]
fn a_server_outlives_strangers_and_measures_one_at_a_time() {
    with_server(|server| {
        let mut stranger = TcpStream::connect(server).unwrap();
        stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        stranger.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(r#"{"failed":"#), "{answer}");
        drop(TcpStream::connect(server).unwrap());
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                ask(
                    server,
                    ProbeOrder {
                        duration_ms: 1_500,
                        ..order(ProbeProtocol::Tcp, stream(StreamDirection::ToServer, Some(1e6)))
                    },
                )
            });
            std::thread::sleep(Duration::from_millis(500));
            let told = ask(server, order(ProbeProtocol::Udp, Shape::RoundTrips)).unwrap_err().to_string();
            assert!(told.contains("another measurement is under way"), "{told}");
            first.join().unwrap().unwrap();
        });
        ask(server, order(ProbeProtocol::Udp, Shape::RoundTrips)).unwrap();
    });
}

#[test]
fn a_stop_ends_a_measurement_at_both_ends() {
    with_server(|server| {
        let stop = Stop::default();
        let asked = ProbeOrder {
            duration_ms: 60_000,
            ..order(ProbeProtocol::Udp, stream(StreamDirection::ToServer, Some(1e6)))
        };
        let outcome = std::thread::scope(|scope| {
            let client = scope.spawn(|| measure(&ClientOptions { server }, asked, &stop, &mut |_| ()));
            std::thread::sleep(Duration::from_millis(300));
            stop.request();
            client.join().unwrap()
        });
        assert!(matches!(outcome, Err(ProbeError::Interrupted)), "{outcome:?}");
        // The server is free for the next one at once, or says that it is not yet.
        let free = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            ask(server, order(ProbeProtocol::Tcp, Shape::RoundTrips)).is_ok()
        });
        assert!(free);
    });
}

#[test]
fn a_client_that_leaves_its_connections_open_does_not_keep_the_server() {
    use super::channel::ControlChannel;
    with_server(|server| {
        let asked = order(ProbeProtocol::Tcp, Shape::RoundTrips);
        let control = TcpStream::connect(server).unwrap();
        let mut channel = ControlChannel::new(control, EndRole::Client, &Stop::default()).unwrap();
        channel.say(&ControlMessage::Order(asked.clone())).unwrap();
        let ControlMessage::Ready(Ready { token, ports }) = channel.hear().unwrap() else { panic!("not ready") };
        let connections = super::tcp::connect(&asked, SocketAddr::new(server.ip(), ports[0]), token).unwrap();
        channel.say(&ControlMessage::Begin(Begin { ports: Vec::new() })).unwrap();
        assert_eq!(channel.hear().unwrap(), ControlMessage::Begun);
        let sent = Some(SentReport { offered: vec![0], ..SentReport::default() });
        channel.say(&ControlMessage::Ended(EndReport { sent, ..EndReport::default() })).unwrap();
        drop(channel);
        let free = (0..5).any(|_| ask(server, order(ProbeProtocol::Tcp, Shape::RoundTrips)).is_ok());
        assert!(free);
        drop(connections);
    });
}

#[test]
fn the_stream_that_failed_tells_why_and_not_those_that_it_stopped() {
    let workers = super::workers::Workers::start(vec![1, 2, 3], |number, stop| {
        if number == 3 {
            return Err::<(), _>(ProbeError::Failed("no room".to_owned()));
        }
        while !stop.is_requested() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Err(ProbeError::Interrupted)
    });
    assert_eq!(workers.finish().unwrap_err().to_string(), "no room");
}
