//! A session description, alone or in an announcement: what is read can be written and reads the same, and the text does not
//! change any more; a directory of announcements keeps its bound.

#![no_main]

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use thalweg_base::time::Instant;
use thalweg_video::audio::AudioFormat;
use thalweg_video::format::FrameRate;
use thalweg_video::sap::{DIRECTORY_MAX, SapDirectory, SapPacket};
use thalweg_video::sdp::{MediaDescription, SDP_OCTETS_MAX, SessionDescription};

fuzz_target!(|bytes: &[u8]| {
    check_description(bytes);
    check_announcements(bytes);
});

fn check_description(bytes: &[u8]) {
    let mut first = match SessionDescription::parse(bytes) {
        Ok(description) => description,
        Err(error) => {
            let _ = error.to_string();
            return;
        }
    };
    for stream in &mut first.streams {
        match &stream.media {
            MediaDescription::Video(video) => drop(video.to_format(FrameRate::PAL)),
            MediaDescription::Audio(audio) => drop(AudioFormat::from_description(audio)),
        }
        for path in &mut stream.paths {
            // Multicast is written with a time to live.
            let ip = path.destination.ip();
            path.ttl = (ip.is_ipv4() && ip.is_multicast()).then(|| path.ttl.unwrap_or(64));
        }
    }
    if first.name.trim().is_empty() {
        first.name = "-".to_owned();
    }
    let text = first.to_text();
    if text.len() > SDP_OCTETS_MAX {
        // What the session says once is written for each stream.
        return;
    }
    let second = SessionDescription::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(second, first, "{text}");
    assert_eq!(second.to_text(), text);
}

/// Each step is a length and a wait, and a datagram of that length.
fn check_announcements(mut bytes: &[u8]) {
    let mut directory = SapDirectory::default();
    let mut now = Instant::from_nanos(1);
    while let [length, wait, rest @ ..] = bytes {
        let (datagram, rest) = rest.split_at(rest.len().min(usize::from(*length) * 4));
        bytes = rest;
        now += Duration::from_secs(u64::from(*wait) * 10);
        if let Ok(packet) = SapPacket::parse(datagram) {
            let mut out = Vec::new();
            packet.write(&mut out);
            assert_eq!(SapPacket::parse(&out), Ok(packet));
        }
        let _ = directory.handle_datagram(now, IpAddr::V4(Ipv4Addr::LOCALHOST), datagram);
        while directory.poll_expired(now).is_some() {}
        assert!(directory.len() <= DIRECTORY_MAX && directory.poll_timeout() > now);
    }
}
