use thalweg::TopicType;
use thalweg::cdr::{self, Representation};
use thalweg_base::rng::Rng;

use super::wire::{FrameWords, SliceField, SliceWords};
use super::*;
use crate::format::{FrameRate, PixelFormat, Scan, VideoFormat};

fn format() -> VideoFormat {
    VideoFormat::new(PixelFormat::Yuv422Bits10, (1920, 1080), FrameRate::NTSC, Scan::Interlaced).unwrap()
}

fn frame(octets: usize) -> VideoFrame {
    VideoFrame {
        stream: 0x0102_0304,
        source: 0x0506_0708,
        frame: 0x1122_3344_5566_7788,
        captured: 0x99aa_bbcc_ddee_ff00,
        timestamp: 0xdead_beef,
        crc32c: 0x0c0f_fee0,
        format: format().into(),
        field: 0,
        flags: 1,
        octets: (0..octets).map(|index| index as u8).collect(),
    }
}

fn slice(octets: usize, flags: u8) -> VideoSlice {
    let VideoFrame { stream, source, frame, captured, timestamp, crc32c, format, octets, .. } = frame(octets);
    let crc32c = if flags & 1 == 1 { crc32c } else { 0 };
    let number = 0x1020_3040_5060_7080;
    let (field, first_line, lines) = (2, 0x0203, 0x0405);
    VideoSlice {
        stream,
        source,
        frame,
        number,
        captured,
        timestamp,
        crc32c,
        format,
        field,
        flags,
        first_line,
        lines,
        octets,
    }
}

#[test]
fn heads_are_the_bytes_of_the_derived_types_in_both_representations() {
    for octets in 0..9 {
        let sample = frame(octets);
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            let mut encoded = Vec::new();
            cdr::encode(&sample, representation, &mut encoded).unwrap();
            let (words, range) = FrameWords::parse(&encoded).unwrap();
            assert_eq!(encoded[range], sample.octets);
            assert_eq!((words.stream, words.source, words.frame), (sample.stream, sample.source, sample.frame));
            assert_eq!((words.captured, words.timestamp), (sample.captured, sample.timestamp));
            assert_eq!((words.checksum, words.format), (Some(sample.crc32c), sample.format));
            let mut written = Vec::new();
            words.append_head(octets, &mut written);
            written.extend_from_slice(&sample.octets);
            assert_eq!(cdr::decode::<VideoFrame>(&written).unwrap(), sample);
            if representation == Representation::Xcdr1 {
                assert_eq!(written, encoded);
            }
        }
        for flags in 0..4 {
            let sample = slice(octets, flags);
            let mut encoded = Vec::new();
            cdr::encode(&sample, Representation::Xcdr1, &mut encoded).unwrap();
            let (words, range) = SliceWords::parse(&encoded).unwrap();
            assert_eq!(encoded[range], sample.octets);
            assert_eq!((words.number, words.field, words.is_last), (sample.number, SliceField::Second, flags & 2 != 0));
            assert_eq!((words.first_line, words.lines), (sample.first_line, sample.lines));
            let mut written = Vec::new();
            words.append_head(octets, &mut written);
            written.extend_from_slice(&sample.octets);
            assert_eq!(written, encoded, "flags {flags}");
        }
    }
}

#[test]
fn big_endian_samples_of_other_vendors_are_read() {
    // An encapsulation of CDR_BE, stream 7 of source 9, frame 1, taken at 2, time stamp 3, without a checksum; 720x576
    // RGB at 25/1; two octets.
    let hex = "00000000 00000007 00000009 0000000000000001 0000000000000002 00000003 00000000 \
               00000019 00000001 02d0 0240 03 00 00 00 00000002 abcd";
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let bytes: Vec<u8> =
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect();
    let (words, range) = FrameWords::parse(&bytes).unwrap();
    assert_eq!((words.stream, words.source, words.frame, words.captured), (7, 9, 1, 2));
    assert_eq!((words.timestamp, words.checksum), (3, None));
    assert_eq!(VideoFormat::try_from(words.format).unwrap().to_string(), "720x576 rgb8 25 progressive");
    assert_eq!(bytes[range], [0xab, 0xcd]);
}

#[test]
fn any_bytes_are_read_or_refused() {
    let mut rng = Rng::new(1);
    let mut whole = Vec::new();
    cdr::encode(&slice(40, 3), Representation::Xcdr1, &mut whole).unwrap();
    for length in 0..whole.len() {
        assert_eq!(SliceWords::parse(&whole[..length]), None, "{length} bytes of {}", whole.len());
    }
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + rng.below(8) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.next_u64() as u8;
        }
        bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize);
        if let Some((_, range)) = SliceWords::parse(&bytes) {
            assert!(range.end <= bytes.len());
        }
        if let Some((words, range)) = FrameWords::parse(&bytes) {
            assert!(range.end <= bytes.len());
            _ = VideoFormat::try_from(words.format);
        }
    }
}

#[test]
fn format_words_are_a_format_or_say_why_not() {
    for pixels in PixelFormat::ALL {
        for scan in [Scan::Progressive, Scan::Interlaced, Scan::SegmentedFrame] {
            let format = VideoFormat::new(pixels, (720, 486), FrameRate::NTSC, scan).unwrap();
            assert_eq!(VideoFormat::try_from(FormatWords::from(format)).unwrap(), format);
        }
    }
    let words = FormatWords::from(format());
    let check = |words: FormatWords, expect: &str| {
        let told = VideoFormat::try_from(words).unwrap_err().to_string();
        assert!(told.contains(expect), "{told}");
    };
    check(FormatWords { pixels: 4, ..words }, "pixels 4 of the stream's format is not known");
    check(FormatWords { scan: 3, ..words }, "scan 3");
    check(FormatWords { width: 1921, ..words }, "a multiple of 2");
    check(FormatWords { rate_denominator: 0, ..words }, "a rate of 30000/0 is refused");
}

#[test]
fn a_description_by_rfc_4175_has_no_keys_of_st_2110() {
    for pixels in PixelFormat::ALL {
        let format = VideoFormat::new(pixels, (720, 486), FrameRate::NTSC, Scan::Interlaced).unwrap();
        let text = description::describe(&PublisherConfig::new(1, format), 7).unwrap().sdp;
        for key in ["RANGE=", "TCS=", "PAR=", "PM=", "SSN="] {
            assert!(!text.contains(key), "{key} in {text}");
        }
    }
}

#[test]
fn units_count_their_samples_and_refuse_slices_that_do_not_fit() {
    let progressive = format().with_scan(Scan::Progressive).unwrap();
    assert_eq!(SampleUnit::Frame.samples(format()), 1);
    assert_eq!(SampleUnit::Slice(8).samples(progressive), 135);
    assert_eq!(SampleUnit::Slice(60).samples(progressive), 18);
    // 540 lines of a field are 67 slices of eight and one of four.
    assert_eq!(SampleUnit::Slice(8).samples(format()), 136);
    for (lines, fits) in [(7, false), (8, true), (60, true), (61, false)] {
        assert_eq!(SampleUnit::Slice(lines).check(format()).is_ok(), fits, "{lines} lines");
    }
    let small = VideoFormat::new(PixelFormat::Rgb8, (8, 10), FrameRate::PAL, Scan::Progressive).unwrap();
    assert!(SampleUnit::Slice(11).check(small).is_err());
}

#[test]
fn the_wire_names_of_the_types_stay() {
    assert_eq!(
        [
            VideoFrame::TYPE_NAME,
            VideoSlice::TYPE_NAME,
            VideoStreamDescription::TYPE_NAME,
            VideoStreamStatistics::TYPE_NAME
        ],
        [
            "thalweg::video::VideoFrame",
            "thalweg::video::VideoSlice",
            "thalweg::video::StreamDescription",
            "thalweg::video::StreamStatistics"
        ]
    );
}

#[test]
fn writers_hold_the_frames_that_are_of_use_and_one() {
    let frame = format().frame_time();
    for (halves, expect) in
        [(0, None), (1, Some(2)), (2, Some(2)), (3, Some(3)), (4, Some(3)), (16, Some(9)), (17, None)]
    {
        assert_eq!(qos::frames_kept(format(), frame * halves / 2).ok(), expect, "{halves} halves of a frame time");
    }
}
