//! A sender that finds its number with another and takes a new one.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use thalweg_video::format::Scan;
use thalweg_video::io::{ControlPort, MediaOptions, MediaSocket};
use thalweg_video::rtcp::{CompoundWriter, SDES_CNAME};

use crate::receiving::{Checking, exchange, receive_options, send_options};
use crate::sources::small;

/// A free address of this host, with a free port above it.
fn free_pair() -> SocketAddr {
    let options = MediaOptions { control: ControlPort::Next, ..MediaOptions::default() };
    MediaSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap().media().local_address()
}

/// On a port of its own RTCP is read after packets that came behind it.
#[test]
fn a_receiver_follows_a_sender_that_takes_another_number() {
    let format = small(Scan::Progressive);
    for control in [ControlPort::Multiplexed, ControlPort::Next] {
        let mut receive = receive_options(format, free_pair());
        let mut send = send_options(receive.bind[0]);
        (receive.control, send.control, send.from) = (control, control, vec![free_pair()]);
        let (mut sink, own) = (Checking::new(format), control.beside(send.from[0]).unwrap());
        let mut colliding = Vec::new();
        let mut writer = CompoundWriter::new(&mut colliding);
        writer.receiver_report(send.sender.ssrc, &[]);
        writer.description(send.sender.ssrc, &[(SDES_CNAME, "another")]);
        let (sent, received) = std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(350));
                UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&colliding, own).unwrap();
            });
            exchange(40, &mut sink, &receive, &send)
        });
        let (packets, frames) = (received.receiver.packets, received.receiver.frames);
        assert_eq!((packets.received, packets.lost), (sent.sender.packets_sent, 0), "{control:?}: {packets:?}");
        assert_eq!((frames.complete + frames.concealed, frames.discarded), (sent.sender.frames_sent, 0), "{frames:?}");
        // Only a machine that stalls makes packets late.
        assert!(frames.concealed == 0 || packets.late > 0, "{frames:?} {packets:?}");
        assert_ne!(sent.peer.map(|peer| peer.ssrc), None, "the receiver reports of the new number");
    }
}
