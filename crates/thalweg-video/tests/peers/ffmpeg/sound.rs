//! Sound to and from FFmpeg's `pcm_s24be`.

use std::fs;
use std::time::Duration;

use thalweg_video::audio::PacketTime;

use super::ffmpeg;
use crate::network::{file_fills, ports, wait_for_listener};
use crate::pictures::file;
use crate::sound;

const CHANNELS: [u8; 2] = [2, 8];

#[test]
fn ffmpeg_reads_sound_by_our_description() {
    for channels in CHANNELS {
        let port = ports();
        let format = sound::format(channels, PacketTime::Millisecond);
        let [session, output] = ["sdp", "raw"].map(|end| file(&format!("ffmpeg-sound-{port}.{end}")));
        fs::write(&session, sound::description(format, port).to_text()).expect("the folder of tests can be written");
        let receiving = ffmpeg(&format!(
            "-protocol_whitelist file,udp,rtp -analyzeduration 100000 -i {} -c copy -flush_packets 1 -f s24be {}",
            session.display(),
            output.display()
        ));
        wait_for_listener(port);
        let sent = sound::samples(channels);
        sound::send(format, &sent, port);
        file_fills(&output, 3 * sent.len() as u64, Duration::from_secs(10));
        receiving.kill();
        let found = sound::read(&fs::read(&output).expect("FFmpeg wrote a file"));
        assert!(sound::check(&found, &sent, channels).is_sorted());
    }
}

#[test]
fn sound_of_ffmpeg_reaches_us() {
    for channels in CHANNELS {
        let port = ports();
        let sent = sound::samples(channels);
        let input = file(&format!("ffmpeg-sound-{port}.raw"));
        fs::write(&input, sound::octets(&sent)).expect("the folder of tests can be written");
        let receiver = sound::receive(sound::format(channels, PacketTime::Millisecond), port);
        let sending = ffmpeg(&format!(
            "-re -f s24be -ar 48000 -ac {channels} -i {} -c:a pcm_s24be -payload_type 97 -f rtp rtp://127.0.0.1:{port}?pkt_size=1472",
            input.display()
        ));
        let found = receiver.join().expect("the receiver ends");
        assert!(sound::check(&found, &sent, channels).is_sorted());
        sending.finish().well();
    }
}
