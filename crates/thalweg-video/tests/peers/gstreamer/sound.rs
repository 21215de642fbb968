//! Sound to and from `rtpL24depay` and `rtpL24pay`.

use std::fs;
use std::time::Duration;

use thalweg_video::audio::PacketTime;

use super::launch;
use crate::network::{file_fills, ports, wait_for_listener};
use crate::pictures::file;
use crate::sound;

const CHANNELS: [u8; 3] = [1, 2, 8];

/// GStreamer orders more than two channels by its table of loudspeakers.
#[track_caller]
fn check(found: &[i32], sent: &[i32], channels: u8) {
    let order = sound::check(found, sent, channels);
    assert!(channels > 2 || order.is_sorted(), "the order {order:?}");
}

#[test]
fn our_sound_reaches_gstreamer() {
    for (channels, time) in
        CHANNELS.into_iter().zip([PacketTime::Millisecond, PacketTime::EighthMillisecond, PacketTime::Millisecond])
    {
        let port = ports();
        let output = file(&format!("sound-{port}.raw"));
        let pipeline = launch(&format!(
            "udpsrc address=127.0.0.1 port={port} buffer-size=16777216 \
             caps=application/x-rtp,media=audio,clock-rate=48000,encoding-name=L24,channels={channels},payload=97 ! \
             rtpL24depay ! filesink location={} buffer-mode=unbuffered sync=false",
            output.display()
        ));
        wait_for_listener(port);
        let sent = sound::samples(channels);
        sound::send(sound::format(channels, time), &sent, port);
        file_fills(&output, 3 * sent.len() as u64, Duration::from_secs(10));
        pipeline.kill();
        check(&sound::read(&fs::read(&output).expect("GStreamer wrote a file")), &sent, channels);
    }
}

#[test]
fn sound_of_gstreamer_reaches_us() {
    for channels in CHANNELS {
        let port = ports();
        let sent = sound::samples(channels);
        let input = file(&format!("sound-{port}.raw"));
        fs::write(&input, sound::octets(&sent)).expect("the folder of tests can be written");
        let receiver = sound::receive(sound::format(channels, PacketTime::Millisecond), port);
        let pipeline = launch(&format!(
            "filesrc location={} ! rawaudioparse format=pcm pcm-format=s24be sample-rate=48000 num-channels={channels} ! \
             rtpL24pay pt=97 min-ptime=1000000 max-ptime=1000000 ! udpsink host=127.0.0.1 port={port}",
            input.display()
        ));
        check(&receiver.join().expect("the receiver ends"), &sent, channels);
        pipeline.finish().well();
    }
}
