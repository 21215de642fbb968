//! Any line as the header of a YUV4MPEG2 file, and any octets as its first picture: no panic, what is written again reads the same, and
//! packing changes no sample.

#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_video::format::{Scan, VideoFormat};
use thalweg_video::y4m;

fuzz_target!(|file: &[u8]| {
    let end = file.iter().position(|octet| *octet == b'\n').unwrap_or(file.len());
    let (line, rest) = file.split_at(end);
    let Ok(format) = y4m::read_header(line) else { return };
    let written = y4m::header(format).expect("it was read from such a file");
    assert_eq!(y4m::read_header(written.trim_end().as_bytes()), Ok(format));
    assert_ne!(format.scan(), Scan::SegmentedFrame);
    if y4m::planar_octets(format) <= PLANES_MAX {
        check(format, rest);
    }
});

/// Packs planes made of `octets` again and again.
fn check(format: VideoFormat, octets: &[u8]) {
    let planes: Vec<u8> = octets.iter().copied().chain([0]).cycle().take(y4m::planar_octets(format)).collect();
    let mut frame = vec![0; format.frame_octets()];
    let is_sound = format.pixels().depth() == 8 || planes.chunks(2).all(|sample| sample[1] < 4);
    assert_eq!(y4m::pack(format, &planes, &mut frame).is_ok(), is_sound);
    if is_sound {
        let mut again = vec![1; planes.len()];
        y4m::unpack(format, &frame, &mut again).expect("it was packed");
        assert!(again == planes, "a sample changed");
    }
}

/// Octets of a picture that is packed: larger ones show nothing new and take long.
const PLANES_MAX: usize = 1 << 16;
