use thalweg_base::rng::Rng;

use super::*;

#[track_caller]
fn check(line: &str, expect: &str) {
    let got = read_header(line.as_bytes()).map_or_else(|error| error.to_string(), |format| format.to_string());
    assert!(got.contains(expect), "{line}: {got}");
}

#[test]
fn headers_of_other_programs_are_read() {
    // FFmpeg 5.1, x264 and mjpegtools.
    check(
        "YUV4MPEG2 W1920 H1080 F30000:1001 Ip A1:1 C422p10 XYSCSS=422P10",
        "1920x1080 yuv422-10 30000/1001 progressive",
    );
    check("YUV4MPEG2 W720 H576 F25:1 It A16:15 C422 XYSCSS=422 XCOLORRANGE=LIMITED", "720x576 yuv422-8 25 interlaced");
    check("YUV4MPEG2 C422 H2 W4", "4x2 yuv422-8 25 progressive");
    check("YUV4MPEG2  W4 H2 F60000:1001 I? C422 ", "4x2 yuv422-8 60000/1001 progressive");
}

#[test]
fn what_would_need_conversion_is_refused_with_a_remedy() {
    check("YUV4MPEG2 W4 H2 F25:1", "\"420jpeg\" are not sent as they are: convert them to 4:2:2");
    check("YUV4MPEG2 W4 H2 C444p10", "\"444p10\" are not sent");
    check("YUV4MPEG2 W4 H2 C422p12", "\"422p12\" are not sent");
    check("YUV4MPEG2 W4 H2 C422 XCOLORRANGE=FULL", "such as by `ffmpeg -i IN -vf scale=out_range=tv");
    check("YUV4MPEG2 W4 H2 XCOLORRANGE=FULL C422p10", "full range (XCOLORRANGE=FULL) are not sent");
    check("YUV4MPEG2 W4 H2 Ib C422", "the bottom field first");
    check("YUV4MPEG2 W4 H2 Im C422", "changes");
}

#[test]
fn what_is_no_header_is_refused() {
    check("", "no YUV4MPEG2 file");
    check("YUV4MPEG2W4 H2", "no YUV4MPEG2 file");
    check("YUV4MPEG2 H2 C422", "no width");
    check("YUV4MPEG2 W4 C422", "no height");
    check("YUV4MPEG2 W4 Hx C422", "\"Hx\"");
    check("YUV4MPEG2 W65536 H2 C422", "\"W65536\"");
    check("YUV4MPEG2 W4 H2 F25 C422", "\"F25\"");
    check("YUV4MPEG2 W4 H2 F0:0 C422", "0/0");
    check("YUV4MPEG2 W5 H2 C422", "multiple of 2");
    check("YUV4MPEG2 W4 H3 It C422", "odd");
    check("YUV4MPEG2 W4 H2 Ix C422", "\"Ix\"");
    check("YUV4MPEG2 é W4 H2 C422", "4x2");
    assert_eq!(read_header(&[0xff; 30]), Err(Y4mError::Magic));
}

#[test]
fn a_header_is_read_as_it_was_written() {
    for scan in [Scan::Progressive, Scan::Interlaced] {
        for pixels in [PixelFormat::Yuv422Bits8, PixelFormat::Yuv422Bits10] {
            let format = VideoFormat::new(pixels, (1920, 1080), FrameRate::NTSC, scan).unwrap();
            let line = header(format).unwrap();
            assert_eq!(read_header(line.trim_end_matches('\n').as_bytes()), Ok(format));
        }
    }
    let format = VideoFormat::new(PixelFormat::Rgb8, (4, 2), FrameRate::PAL, Scan::Progressive).unwrap();
    assert_eq!(header(format), Err(Y4mError::Rgb));
    let segmented = VideoFormat::new(PixelFormat::Yuv422Bits8, (4, 2), FrameRate::PAL, Scan::SegmentedFrame).unwrap();
    assert!(header(segmented).unwrap().contains(" Ip "));
}

#[test]
fn the_form_of_pixels_is_read_as_it_was_written() {
    let format = format(PixelFormat::Yuv422Bits8);
    for aspect in [(1, 1), (12, 11), (1, u16::MAX)] {
        let line = header_with_aspect(format, aspect).unwrap();
        assert_eq!(read_pixel_aspect(line.trim_end_matches('\n').as_bytes()), Ok(aspect));
        assert_eq!(read_header(line.trim_end_matches('\n').as_bytes()), Ok(format));
    }
    let read = |words: &str| read_pixel_aspect(format!("YUV4MPEG2 W4 H2 {words} C422").as_bytes());
    assert_eq!([read("Ip"), read("A0:0"), read("A1:0"), read("A128:128")], [(); 4].map(|()| Ok((1, 1))));
    assert_eq!((read("A200000:100000"), read("A4:3 A16:15")), (Ok((2, 1)), Ok((16, 15))));
    for word in ["A", "A4", "A4:", "A4:3:2", "A-4:3", "A65536:1", "A1:4294967296"] {
        assert_eq!(read(word), Err(Y4mError::Word(word.to_owned())));
    }
}

#[test]
fn frame_lines_may_have_parameters() {
    let lines: [&[u8]; 5] = [b"FRAME", b"FRAME Ip", b"FRAMES", b"FRAM", b""];
    assert_eq!(lines.map(is_frame_line), [true, true, false, false, false]);
}

fn format(pixels: PixelFormat) -> VideoFormat {
    VideoFormat::new(pixels, (4, 2), FrameRate::PAL, Scan::Progressive).unwrap()
}

#[test]
fn samples_lie_where_rfc_4175_puts_them() {
    let format8 = format(PixelFormat::Yuv422Bits8);
    // Luma 0 to 7, blue 10 to 13, red 20 to 23: Cb Y0 Cr Y1 of each pair.
    let planes = [0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 20, 21, 22, 23];
    let mut frame = [0; 16];
    pack(format8, &planes, &mut frame).unwrap();
    assert_eq!(frame, [10, 0, 20, 1, 11, 2, 21, 3, 12, 4, 22, 5, 13, 6, 23, 7]);

    let format10 = format(PixelFormat::Yuv422Bits10);
    let mut planes = vec![0; planar_octets(format10)];
    // The first pair: Y0 = 0b0000000001, Y1 = 0b1000000000, Cb = 0b1111111111, Cr = 0b0101010101.
    planes[..4].copy_from_slice(&[0x01, 0x00, 0x00, 0x02]);
    planes[16..18].copy_from_slice(&[0xff, 0x03]);
    planes[24..26].copy_from_slice(&[0x55, 0x01]);
    let mut frame = [0; 20];
    pack(format10, &planes, &mut frame).unwrap();
    assert_eq!(frame[..5], [0b1111_1111, 0b1100_0000, 0b0001_0101, 0b0101_0110, 0b0000_0000]);
}

#[test]
fn packing_and_taking_apart_change_nothing() {
    let mut rng = Rng::new(7);
    for pixels in [PixelFormat::Yuv422Bits8, PixelFormat::Yuv422Bits10] {
        let format = VideoFormat::new(pixels, (16, 6), FrameRate::PAL, Scan::Progressive).unwrap();
        let mut frame: Vec<u8> = (0..format.frame_octets()).map(|_| rng.next_u64() as u8).collect();
        let mut planes = vec![0; planar_octets(format)];
        unpack(format, &frame, &mut planes).unwrap();
        let before = std::mem::replace(&mut frame, vec![0; format.frame_octets()]);
        pack(format, &planes, &mut frame).unwrap();
        assert_eq!(frame, before, "{format}");
    }
}

#[test]
fn a_sample_of_eleven_bits_is_refused() {
    let format = format(PixelFormat::Yuv422Bits10);
    let mut planes = vec![0; planar_octets(format)];
    planes[27] = 0x04;
    assert_eq!(pack(format, &planes, &mut [0; 20]), Err(Y4mError::Sample(1024)));
}
