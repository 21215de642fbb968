use super::*;

#[track_caller]
fn check(pixels: &str, size: &str, rate: &str, scan: &str, expect: &str) {
    let made = || {
        let (pixels, size, rate, scan) = (pixels.parse()?, parse_size(size)?, rate.parse()?, scan.parse()?);
        VideoFormat::new(pixels, size, rate, scan)
    };
    let told = match made() {
        Ok(format) => format!("{format}: {} a line, {} a frame", format.line_octets(), format.frame_octets()),
        Err(error) => error.to_string(),
    };
    assert_eq!(told, expect);
}

#[test]
fn octets_follow_from_the_pixel_groups() {
    let rate = "30000/1001";
    check("yuv422-10", "1920x1080", rate, "psf", "1920x1080 yuv422-10 30000/1001 psf: 4800 a line, 5184000 a frame");
    check("yuv422-8", "720x576", "25", "interlaced", "720x576 yuv422-8 25 interlaced: 1440 a line, 829440 a frame");
    check("rgb8", "33x7", "120", "progressive", "33x7 rgb8 120 progressive: 99 a line, 693 a frame");
}

#[test]
fn sizes_that_do_not_divide_are_refused_with_the_remedy() {
    let rate = "50";
    let refused = "a width of 1919 pixels does not fit yuv422-10: give a multiple of 2";
    check("yuv422-10", "1919x1080", rate, "progressive", refused);
    let refused = "a height of 1081 lines is odd, and psf video needs two fields of equal height";
    check("yuv422-10", "1920x1081", rate, "psf", refused);
    check("rgb8", "0x1080", rate, "progressive", "a picture of 0x1080 is not between 1x1 and 8192x8192");
    check("rgb8", "8193x1", rate, "progressive", "a picture of 8193x1 is not between 1x1 and 8192x8192");
    check("rgb8", "8192x8192", rate, "progressive", "a frame of 201326592 octets is larger than 134217728");
    check("rgb8", "1920", rate, "progressive", "the size cannot be read; give WIDTHxHEIGHT, such as 1920x1080");
    check("nv12", "2x2", rate, "psf", "the pixel format cannot be read; give yuv422-10, yuv422-8 or rgb8");
    check("rgb8", "2x2", rate, "sideways", "the scan cannot be read; give progressive, interlaced or psf");
}

#[test]
fn rates_are_exact_and_bounded() {
    let refused = |text: &str| text.parse::<FrameRate>().unwrap_err().to_string();
    assert_eq!("60000/2002".parse::<FrameRate>().unwrap(), FrameRate::NTSC, "in lowest terms");
    assert_eq!(refused("29.97"), "the rate cannot be read; give frames a second, exactly: 25 or 30000/1001");
    for text in ["0", "25/0", "1001", "1/2", "4294967295/4294967295"] {
        assert!(refused(text).contains("give 1 to 1000 frames a second"), "{text}");
    }
    assert_eq!(refused("-1/5"), refused("x"));
}

#[test]
fn time_stamps_never_drift_from_the_rate() {
    let ticks = |rate: FrameRate, frames: u64| rate.ticks_of_halves(2 * frames);
    assert_eq!((0..4).map(|frame| ticks(FrameRate::NTSC, frame)).collect::<Vec<_>>(), [0, 3003, 6006, 9009]);
    let double: FrameRate = "60000/1001".parse().unwrap();
    assert_eq!((0..5).map(|frame| ticks(double, frame)).collect::<Vec<_>>(), [0, 1501, 3003, 4504, 6006]);
    assert_eq!(FrameRate::NTSC.ticks_of_halves(1), 1501, "the second field");
    // A day of 59.94 frames a second: 86,400 s · 60,000/1,001 frames.
    let day = 86_400 * 60_000 / 1001;
    assert_eq!(ticks(double, day), day * 1001 * 90_000 / 60_000);
    assert_eq!(double.frame_ticks(), 1502);
    assert_eq!(FrameRate::NTSC.time_of(30_000).as_secs(), 1001);
    assert_eq!(FrameRate::NTSC.frames_in(std::time::Duration::from_secs(1001)), 30_000);
    assert_eq!(
        FrameRate::NTSC.frames_in(FrameRate::NTSC.time_of(7)),
        6,
        "the nanosecond below is still the frame before"
    );
}

#[test]
fn lines_of_fields_interleave_in_the_frame() {
    let format = VideoFormat::new(PixelFormat::Yuv422Bits8, (4, 6), FrameRate::PAL, Scan::Interlaced).unwrap();
    let lines = |field| (0..format.field_height()).map(|line| format.frame_line(field, line)).collect::<Vec<_>>();
    assert_eq!((lines(Field::First), lines(Field::Second)), (vec![0, 2, 4], vec![1, 3, 5]));
    let progressive = format.with_scan(Scan::Progressive).unwrap();
    assert_eq!((progressive.field_height(), progressive.frame_line(Field::First, 5)), (6, 5));
}

#[test]
fn descriptions_name_the_formats_that_exist() {
    for format in PixelFormat::ALL {
        assert_eq!(PixelFormat::from_sampling(format.sampling(), format.depth()), Some(format));
    }
    assert_eq!(PixelFormat::from_sampling("YCbCr-4:2:2", 12), None);
    let [a, b, c, d, e] = PixelFormat::Yuv422Bits10.black().map(u64::from);
    let word = a << 32 | b << 24 | c << 16 | d << 8 | e;
    assert_eq!([30, 20, 10, 0].map(|shift| word >> shift & 1023), [512, 64, 512, 64]);
}
