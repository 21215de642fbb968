//! The pictures that both sides of a test know.

use std::fs;
use std::path::{Path, PathBuf};

use thalweg_video::format::{FrameRate, PixelFormat, Scan, VideoFormat};
use thalweg_video::picture::TestPicture;
use thalweg_video::y4m;

/// A format with `rate` whole frames a second.
#[track_caller]
pub fn format(pixels: PixelFormat, size: (u16, u16), rate: u32, scan: Scan) -> VideoFormat {
    VideoFormat::new(pixels, size, FrameRate::new(rate, 1).expect("a rate"), scan).expect("a format")
}

/// The first test pictures of a format: what a picture source sends.
pub struct Pictures {
    pub format: VideoFormat,
    pub frames: Vec<Vec<u8>>,
}

impl Pictures {
    pub fn new(format: VideoFormat, count: u32) -> Pictures {
        let picture = TestPicture::new(format).expect("the picture is wide enough");
        let draw = |number| {
            let mut frame = vec![0; format.frame_octets()];
            picture.draw(number, &mut frame);
            frame
        };
        Pictures { format, frames: (0..count).map(draw).collect() }
    }

    /// Writes them one behind the other, as they lie in packets.
    pub fn write_raw(&self, name: &str) -> PathBuf {
        let path = file(name);
        fs::write(&path, self.frames.concat()).expect("the folder of tests can be written");
        path
    }

    /// Writes them as a YUV4MPEG2 file.
    pub fn write_y4m(&self, name: &str) -> PathBuf {
        let mut octets = y4m::header(self.format).expect("the format has such files").into_bytes();
        let mut planes = vec![0; y4m::planar_octets(self.format)];
        for frame in &self.frames {
            y4m::unpack(self.format, frame, &mut planes).expect("the format has such files");
            octets.extend_from_slice(y4m::FRAME_LINE);
            octets.extend_from_slice(&planes);
        }
        let path = file(name);
        fs::write(&path, octets).expect("the folder of tests can be written");
        path
    }

    /// Fails unless `found` are `count` of these pictures in their order; a sender on a busy machine drops whole ones.
    #[track_caller]
    pub fn check(&self, found: &[Vec<u8>], count: u64) {
        let mut next = 0;
        for (place, frame) in found.iter().enumerate() {
            match self.frames[next..].iter().position(|own| own == frame) {
                Some(passed_over) => next += passed_over + 1,
                None => panic!("frame {place} is none of those from {next} on: {}", self.difference(next, frame)),
            }
        }
        assert_eq!(found.len() as u64, count, "frames");
        assert!(count > 0, "no frame at all");
    }

    /// Where a frame first differs from the one with this number.
    fn difference(&self, number: usize, frame: &[u8]) -> String {
        let Some(own) = self.frames.get(number) else { return format!("there are {} only", self.frames.len()) };
        if own.len() != frame.len() {
            return format!("{} octets instead of {}", frame.len(), own.len());
        }
        let differing = own.iter().zip(frame).filter(|(own, found)| own != found).count();
        let first = own.iter().zip(frame).position(|(own, found)| own != found).unwrap_or_default();
        let (line, octet) = (first / self.format.line_octets(), first % self.format.line_octets());
        format!("{differing} octets differ, the first one in line {line} at octet {octet}")
    }
}

/// Whole frames of a file as [`Pictures::write_raw`] writes it.
#[track_caller]
pub fn read_raw(path: &Path, format: VideoFormat) -> Vec<Vec<u8>> {
    let octets = fs::read(path).expect("the program wrote a file");
    assert!(octets.len().is_multiple_of(format.frame_octets()), "{} octets are no whole frames", octets.len());
    octets.chunks_exact(format.frame_octets()).map(<[u8]>::to_vec).collect()
}

/// A file of this name in the folder of tests, of which nothing is left from an earlier run.
pub fn file(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    path
}
