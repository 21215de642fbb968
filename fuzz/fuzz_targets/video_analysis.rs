//! An analyser under any datagrams at any times, genuine ones among them: no panic, and counts that fit each other.

#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use thalweg_base::time::Instant;
use thalweg_video::analysis::StreamAnalyser;
use thalweg_video::format::{PixelFormat, Scan, VideoFormat};

fuzz_target!(|data: (u8, Vec<(u8, u32, u16, Vec<u8>)>)| {
    let (choice, datagrams) = data;
    let scan = [Scan::Progressive, Scan::Interlaced, Scan::SegmentedFrame][usize::from(choice) % 3];
    let rate = "30000/1001".parse().expect("a rate");
    let format = VideoFormat::new(PixelFormat::Yuv422Bits8, (16, 12), rate, scan).expect("a format");
    let mut analyser = StreamAnalyser::new(format, (choice & 0x80 != 0).then_some(96));
    let mut now = Instant::from_nanos(1 << 40);
    for (kind, timestamp, sequence, octets) in datagrams {
        now = now + Duration::from_micros(u64::from(kind & 0x7f) * 100);
        if kind & 0x80 == 0 {
            analyser.handle_datagram(now, &octets);
            continue;
        }
        // A valid packet with a piece of four octets.
        let mut datagram = vec![0x80, 96];
        datagram.extend(sequence.to_be_bytes());
        datagram.extend(timestamp.to_be_bytes());
        datagram.extend([0, 0, 0, kind & 1, 0, 0, 0, 4]);
        datagram.extend(octets.iter().copied().chain([0; 8]).take(2));
        datagram.extend([0, 0, 1, 2, 3, 4]);
        analyser.handle_datagram(now, &datagram);
    }
    analyser.finish();
    let analysis = analyser.analysis();
    assert!(analysis.packets_missing <= analysis.packets_expected);
    assert!(analysis.frames_irregular <= analysis.frames);
    if let Some(Ok(times)) = analysis.times {
        assert!(times.pacing.frames <= analysis.frames);
        let _ = times.pacing.kind();
    }
});
