use std::time::Duration;

use super::*;
use crate::conformance::PacingKind;
use crate::format::{FrameRate, PixelFormat, Scan, VideoFormat};

const HEAD: &str = "v=0\r\no=- 7 1 IN IP4 192.0.2.1\r\ns=Camera 1\r\nt=0 0\r\n";
const SIZE: &str = "sampling=YCbCr-4:2:2; width=1920; height=1080; depth=10";
const STUDIO: &str = "exactframerate=30000/1001; colorimetry=BT709; PM=2110GPM; SSN=ST2110-20:2017";

/// A description of one stream of raw video with these parameters.
fn video_text(parameters: &str) -> String {
    format!(
        "{HEAD}m=video 5004 RTP/AVP 96\r\nc=IN IP4 239.1.2.3/32\r\na=rtpmap:96 raw/90000\r\na=fmtp:96 {parameters}\r\n"
    )
}

#[track_caller]
fn parse(text: &str) -> SessionDescription {
    SessionDescription::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[track_caller]
fn video(text: &str) -> VideoDescription {
    match parse(text).streams.remove(0).media {
        MediaDescription::Video(video) => video,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(text: &str, reason: &str) {
    let error = SessionDescription::parse(text.as_bytes()).expect_err(text).to_string();
    assert!(error.contains(reason), "{error:?} should tell {reason:?}");
}

#[track_caller]
fn check_parameters(parameters: &str, reason: &str) {
    refused(&video_text(parameters), reason);
}

#[test]
fn a_studio_stream_is_read_with_all_its_keys() {
    // In the form of the example in ST 2110-20: every key ends with a semicolon.
    let keys = "sampling=YCbCr-4:2:2; width=1280; height=720; exactframerate=60000/1001; depth=10; TCS=HLG; \
                colorimetry=BT2100; RANGE=FULL; PM=2110BPM; SSN=ST2110-20:2022; TP=2110TPNL; TROFF=37; CMAX=4; \
                MAXUDP=8960; PAR=12:11; x-unknown=1; ";
    let video = video(&video_text(keys));
    assert_eq!((video.sampling, video.depth), (ColorSampling::YCbCr422, SampleDepth::Bits(10)));
    assert_eq!((video.width, video.height, video.scan), (1280, 720, Scan::Progressive));
    assert_eq!(video.rate, FrameRate::new(60_000, 1001).ok());
    assert_eq!((video.colorimetry, video.transfer), (Colorimetry::Bt2100, TransferCharacteristics::Hlg));
    assert_eq!((video.range, video.pixel_aspect), (QuantizationRange::Full, (12, 11)));
    let studio = StudioParameters {
        packing: PackingMode::Block,
        standard: "ST2110-20:2022".to_owned(),
        pacing: Some(PacingKind::NarrowLinear),
        offset_micros: Some(37),
        burst_packets_max: Some(4),
        udp_octets_max: 8960,
    };
    assert_eq!(video.studio, Some(studio));
}

#[test]
fn a_description_by_rfc_4175_needs_less() {
    let plain = video(&video_text("sampling=RGB; width=640; height=480; depth=8"));
    assert_eq!((plain.rate, plain.colorimetry, plain.studio), (None, Colorimetry::Unspecified, None));
    // As GStreamer writes it.
    let older =
        video(&video_text("sampling=YCbCr-4:2:2;depth=8;width=1920;height=1080;colorimetry=BT709-2;interlace=true"));
    assert_eq!((older.colorimetry, older.scan), (Colorimetry::Bt709, Scan::Interlaced));
    let segmented = video(&video_text(&format!("{SIZE}; interlace; segmented")));
    assert_eq!(segmented.scan, Scan::SegmentedFrame);
}

#[test]
fn rates_in_decimals_stand_for_exact_ones() {
    let rate = |decimals: &str| {
        let text = video_text(SIZE) + &format!("a=framerate:{decimals}\r\n");
        video(&text).rate.map(|rate| (rate.numerator(), rate.denominator()))
    };
    for (decimals, exact) in [
        ("25", (25, 1)),
        ("25.000", (25, 1)),
        ("29.97", (30_000, 1001)),
        ("29.970030", (30_000, 1001)),
        ("59.94", (60_000, 1001)),
        ("23.98", (24_000, 1001)),
        ("23.976", (24_000, 1001)),
        ("12.5", (25, 2)),
    ] {
        assert_eq!(rate(decimals), Some(exact), "{decimals}");
    }
    refused(&(video_text(SIZE) + "a=framerate:0\r\n"), "framerate is \"0\"");
}

#[test]
fn missing_keys_are_named() {
    check_parameters("width=1920; height=1080; depth=10", "stream 1 (video, port 5004): sampling is missing");
    check_parameters("sampling=RGB; height=1080; depth=8", "width is missing");
    check_parameters("sampling=RGB; width=1920; depth=8", "height is missing");
    check_parameters("sampling=RGB; width=1920; height=1080", "depth is missing");
    for key in STUDIO.split("; ") {
        let (name, _) = key.split_once('=').unwrap();
        let without = STUDIO.replace(key, "").replace("; ;", ";");
        check_parameters(&format!("{SIZE}; {without}; TP=2110TPW"), &format!("{name} is missing"));
    }
    refused(&video_text(SIZE).replace("c=IN IP4 239.1.2.3/32\r\n", ""), "c= is missing");
}

#[test]
fn contradictions_are_shown() {
    check_parameters(&format!("{SIZE}; width=1280"), "\"width=1920\" contradicts \"width=1280\"");
    check_parameters(&format!("{SIZE}; segmented"), "\"segmented\" contradicts \"no interlace\"");
    check_parameters("sampling=RGB; width=8; height=5; depth=8; interlace", "\"interlace\" contradicts \"height=5\"");
    assert!(SessionDescription::parse(video_text(&format!("{SIZE}; width=1920")).as_bytes()).is_ok(), "said twice");
}

#[test]
fn values_out_of_range_are_refused_with_what_was_expected() {
    let with = |key: &str, value: &str| {
        let before = SIZE.split("; ").find(|part| part.starts_with(&format!("{key}="))).unwrap();
        SIZE.replace(before, &format!("{key}={value}"))
    };
    check_parameters(&with("width", "0"), "width is \"0\" and should be a number of pixels from 1 to 32767");
    check_parameters(&with("width", "32768"), "width is \"32768\"");
    check_parameters(&with("height", "+9"), "height is \"+9\"");
    check_parameters(&with("height", ""), "height is \"\"");
    check_parameters(&with("depth", "9"), "depth is \"9\" and should be 8, 10, 12, 16 or 16f");
    check_parameters(&with("sampling", "YUV"), "sampling is \"YUV\"");
    let studio = |from: &str, to: &str| format!("{SIZE}; {}", STUDIO.replace(from, to));
    check_parameters(&studio("30000/1001", "29.97"), "exactframerate is \"29.97\"");
    check_parameters(&studio("30000/1001", "30/0"), "exactframerate is \"30/0\"");
    check_parameters(&studio("2110GPM", "GPM"), "PM is \"GPM\"");
    check_parameters(&studio("ST2110-20:2017", "4175"), "SSN is \"4175\"");
    check_parameters(&studio("BT709", "BT.709"), "colorimetry is \"BT.709\"");
    check_parameters(&format!("{SIZE}; {STUDIO}; TP=fast"), "TP is \"fast\"");
    check_parameters(&format!("{SIZE}; {STUDIO}; MAXUDP=9000"), "MAXUDP is \"9000\"");
    check_parameters(&format!("{SIZE}; {STUDIO}; TCS=GAMMA"), "TCS is \"GAMMA\"");
    check_parameters(&format!("{SIZE}; {STUDIO}; RANGE=WIDE"), "RANGE is \"WIDE\"");
    check_parameters(&format!("{SIZE}; PAR=1:0"), "PAR is \"1:0\"");
    refused(&video_text(SIZE).replace("raw/90000", "raw/48000"), "rtpmap is \"raw/48000\"");
    refused(&video_text(SIZE).replace("RTP/AVP", "RTP/SAVP"), "encryption is not supported");
    refused(&video_text(SIZE).replace("239.1.2.3/32", "camera.example"), "c= is \"camera.example\"");
}

#[test]
fn linear_audio_is_read() {
    let text = format!(
        "{HEAD}c=IN IP4 239.1.2.4/16\r\nm=audio 5006 RTP/AVP 97\r\na=rtpmap:97 L24/48000/8\r\n\
         a=fmtp:97 channel-order=SMPTE2110.(51,ST)\r\na=ptime:0.125\r\n"
    );
    let stream = parse(&text).streams.remove(0);
    let audio = AudioDescription {
        encoding: AudioEncoding::L24,
        rate_hz: 48_000,
        channels: 8,
        packet_time: Some(Duration::from_micros(125)),
        channel_order: Some("SMPTE2110.(51,ST)".to_owned()),
    };
    assert_eq!(stream.media, MediaDescription::Audio(audio));
    assert_eq!(stream.paths[0].ttl, Some(16), "from the session");
    refused(&text.replace("48000/8", "48000/0"), "1 to 64 channels");
    refused(&text.replace("48000/8", "0"), "rtpmap is \"L24/0\"");
    refused(&text.replace("0.125", "fast"), "ptime is \"fast\"");
    let mono = parse(&text.replace("/8", "").replace("L24", "L16")).streams.remove(0).media;
    assert!(matches!(
        mono,
        MediaDescription::Audio(AudioDescription { channels: 1, encoding: AudioEncoding::L16, .. })
    ));
}

#[test]
fn requests_and_retransmission_are_read() {
    let feedback = "a=rtcp-fb:* nack\r\na=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96;rtx-time=200\r\n";
    let text = video_text(SIZE).replace("RTP/AVP 96", "RTP/AVPF 96 97") + feedback;
    let stream = parse(&text).streams.remove(0);
    assert!(stream.accepts_nack);
    let kept_for = Some(Duration::from_millis(200));
    assert_eq!(stream.retransmission, Some(Retransmission { payload_type: 97, kept_for }));
    refused(&text.replace("apt=96;", ""), "apt is missing");
    refused(&text.replace("rtx/90000", "rtx/48000"), "contradicts \"a rate of 90000\"");
    assert_eq!(parse(&text.replace("apt=96", "apt=98")).streams[0].retransmission, None);
    assert!(!parse(&text.replace("* nack", "* nack pli")).streams[0].accepts_nack, "pli asks for pictures");
}

#[test]
fn addresses_ports_and_clocks_are_read() {
    let text = video_text(SIZE)
        + "a=source-filter: incl IN IP4 239.1.2.3 192.0.2.10 192.0.2.11\r\na=rtcp:6005\r\n\
           a=ts-refclk:ptp=IEEE1588-2008:39-A7-94-FF-FE-07-CB-D0:37\r\na=ts-refclk:localmac=7C-E9-D3-1B-9A-AF\r\n\
           a=mediaclk:direct=0\r\n";
    let stream = parse(&text).streams.remove(0);
    let path = &stream.paths[0];
    assert_eq!((path.destination.to_string().as_str(), path.ttl), ("239.1.2.3:5004", Some(32)));
    assert_eq!(path.sources.iter().map(ToString::to_string).collect::<Vec<_>>(), ["192.0.2.10", "192.0.2.11"]);
    assert_eq!(path.rtcp_port, 6005);
    assert_eq!(parse(&(text.clone() + "a=rtcp-mux\r\n")).streams[0].paths[0].rtcp_port, 5004);
    let last = video_text(SIZE).replace("m=video 5004", "m=video 65535");
    refused(&last, "m= is \"65535\" and should be a port with one above it for RTCP, or rtcp-mux");
    assert_eq!(parse(&(last + "a=rtcp-mux\r\n")).streams[0].paths[0].rtcp_port, 65_535);
    let grandmaster = Some("39-A7-94-FF-FE-07-CB-D0".to_owned());
    let ptp = ReferenceClock::Ptp { version: "IEEE1588-2008".to_owned(), grandmaster, domain: Some(37) };
    assert_eq!(stream.reference_clocks, [ptp, ReferenceClock::LocalMac("7C-E9-D3-1B-9A-AF".to_owned())]);
    assert_eq!(stream.media_clock, Some(MediaClockSource::Direct(0)));
}

#[test]
fn every_source_that_a_filter_admits_is_read_once() {
    let filter = |sources: std::ops::Range<u16>| {
        let sources: String = sources.map(|host| format!(" 192.0.{}.{}", host / 250, host % 250)).collect();
        format!("a=source-filter: incl IN IP4 239.1.2.3{sources}\r\n")
    };
    let text = video_text(SIZE) + &filter(0..40) + &filter(30..300);
    let stream = parse(&text).streams.remove(0);
    assert_eq!(stream.paths[0].sources.len(), 300);
    let again = SessionDescription { streams: vec![stream], ..parse(&text) };
    assert_eq!(parse(&again.to_text()), again, "and written");
}

/// Two media with the same video on two paths.
fn two_paths() -> String {
    let leg = |port: u16, mid: &str| {
        format!(
            "m=video {port} RTP/AVP 96\r\nc=IN IP4 239.1.2.{}/32\r\na=rtpmap:96 raw/90000\r\na=fmtp:96 {SIZE}; {STUDIO}\r\na=mid:{mid}\r\n",
            port % 250
        )
    };
    format!("{HEAD}a=group:DUP first second\r\n{}{}", leg(5000, "first"), leg(5010, "second"))
}

#[test]
fn two_paths_are_one_stream() {
    let session = parse(&two_paths());
    assert_eq!(session.streams.len(), 1);
    let ports: Vec<u16> = session.streams[0].paths.iter().map(|path| path.destination.port()).collect();
    assert_eq!(ports, [5000, 5010]);
    refused(&two_paths().replacen("width=1920", "width=1280", 1), "contradicts \"media that differ\"");
    refused(&two_paths().replace("DUP first second", "DUP first third"), "contradicts \"no mid:third\"");
    assert_eq!(parse(&two_paths().replace("DUP", "LS")).streams.len(), 2, "other groups mean something else");
    let third = two_paths().replace("DUP first second", "DUP first second third")
        + &format!(
            "m=video 5020 RTP/AVP 96\r\nc=IN IP4 239.1.2.9/32\r\na=rtpmap:96 raw/90000\r\na=fmtp:96 {SIZE}; {STUDIO}\r\na=mid:third\r\n"
        );
    refused(&third, "more than 2 paths of one stream");
}

#[test]
fn media_of_other_kinds_are_passed_over() {
    let others = "m=video 5008 RTP/AVP 98\r\na=rtpmap:98 H264/90000\r\nm=application 5010 UDP/DTLS/SCTP webrtc-datachannel\r\n\
                  m=video 5012 RTP/AVP 100\r\na=rtpmap:100 smpte291/90000\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 raw/90000\r\n";
    assert_eq!(parse(&(video_text(SIZE) + others)).streams.len(), 1);
    refused(&format!("{HEAD}{others}"), "no stream of raw video or linear audio");
}

#[test]
fn what_is_not_a_description_is_refused() {
    refused("", "No version line");
    refused("hello", "");
    refused(&video_text(SIZE).replace("o=- 7 ", "o=- seven "), "o= is \"seven\"");
    refused(&(video_text(SIZE) + &"a=x\r\n".repeat(4000)), "octets, of which at most 16384 are read");
    refused(&(HEAD.to_owned() + &"m=video 5004 RTP/AVP 96\r\n".repeat(17)), "more than 16 media");
    let keys: String = (0..65).map(|index| format!("k{index}=1; ")).collect();
    check_parameters(&keys, "more than 64 keys");
}

/// Streams with every part that can be written.
fn examples() -> Vec<StreamDescription> {
    let format =
        VideoFormat::new(PixelFormat::Yuv422Bits10, (1920, 1080), FrameRate::NTSC, Scan::SegmentedFrame).unwrap();
    let plain = VideoDescription::from_format(&format);
    let mut studio = VideoDescription { scan: Scan::Progressive, rate: Some(FrameRate::PAL), ..plain.clone() };
    (studio.range, studio.pixel_aspect) = (QuantizationRange::FullProtect, (12, 11));
    let promises = StudioParameters {
        pacing: Some(PacingKind::Wide),
        offset_micros: Some(1274),
        burst_packets_max: Some(16),
        udp_octets_max: 8960,
        ..StudioParameters::new(PackingMode::General)
    };
    studio.studio = Some(promises);
    let audio = AudioDescription {
        encoding: AudioEncoding::L24,
        rate_hz: 48_000,
        channels: 2,
        packet_time: Some(Duration::from_micros(125)),
        channel_order: Some("SMPTE2110.(ST)".to_owned()),
    };
    let mut path = StreamPath::new("239.1.2.3:5004".parse().unwrap());
    (path.ttl, path.sources, path.rtcp_port) = (Some(9), vec!["192.0.2.7".parse().unwrap()], 7007);
    let mut other = StreamPath::new("[ff3e::17]:5004".parse().unwrap());
    other.rtcp_port = 5004;
    let stream = |media, paths| StreamDescription {
        media,
        payload_type: 96,
        paths,
        accepts_nack: false,
        retransmission: None,
        reference_clocks: Vec::new(),
        media_clock: None,
    };
    let mut first = stream(MediaDescription::Video(plain), vec![StreamPath::new("192.0.2.1:5000".parse().unwrap())]);
    first.accepts_nack = true;
    first.retransmission = Some(Retransmission { payload_type: 99, kept_for: Some(Duration::from_millis(70)) });
    let mut second = stream(MediaDescription::Video(studio), vec![path, other]);
    let traceable = ReferenceClock::Ptp { version: "IEEE1588-2019".to_owned(), grandmaster: None, domain: None };
    second.reference_clocks = vec![traceable, ReferenceClock::Other("ntp=/traceable/".to_owned())];
    second.media_clock = Some(MediaClockSource::Direct(5));
    let mut third = stream(MediaDescription::Audio(audio), vec![StreamPath::new("[::1]:6000".parse().unwrap())]);
    third.media_clock = Some(MediaClockSource::Sender);
    vec![first, second, third]
}

#[test]
fn what_is_written_is_read() {
    let origin = "192.0.2.1".to_owned();
    let session =
        SessionDescription { name: "Küche 1".to_owned(), id: u64::MAX, version: 3, origin, streams: examples() };
    let text = session.to_text();
    assert_eq!(parse(&text), session, "{text}");
}

#[test]
fn the_text_is_what_receivers_expect() {
    let origin = "192.0.2.1".to_owned();
    let mut session = SessionDescription { name: String::new(), id: 1, version: 2, origin, streams: examples() };
    session.streams.truncate(1);
    let expect = "v=0\r\no=- 1 2 IN IP4 192.0.2.1\r\ns=-\r\nt=0 0\r\nm=video 5000 RTP/AVPF 96 99\r\nc=IN IP4 192.0.2.1\r\n\
                  a=rtpmap:96 raw/90000\r\n\
                  a=fmtp:96 sampling=YCbCr-4:2:2; width=1920; height=1080; depth=10; exactframerate=30000/1001; \
                  colorimetry=BT709-2; interlace; segmented\r\n\
                  a=rtpmap:99 rtx/90000\r\na=fmtp:99 apt=96; rtx-time=70\r\na=rtcp-fb:96 nack\r\n";
    assert_eq!(session.to_text(), expect);
    session.name = "line\r\na=injected".to_owned();
    assert!(!session.to_text().contains("\r\na=injected"));
}

#[test]
fn rgb_has_the_full_range_and_ycbcr_the_narrow_one() {
    let [deep, shallow, rgb] = PixelFormat::ALL.map(|pixels| {
        let format = VideoFormat::new(pixels, (1280, 720), FrameRate::PAL, Scan::Progressive).unwrap();
        let plain = VideoDescription::from_format(&format);
        assert!(!plain.parameters().contains("RANGE"), "a key of ST 2110 alone: {}", plain.parameters());
        plain.with_studio(StudioParameters::new(PackingMode::General)).parameters()
    });
    assert!(rgb.contains("sampling=RGB;") && rgb.contains("; RANGE=FULL"), "{rgb}");
    assert!(!deep.contains("RANGE") && !shallow.contains("RANGE"), "{deep} {shallow}");
}

#[test]
fn a_description_leads_to_the_format_and_back() {
    for pixels in PixelFormat::ALL {
        let format = VideoFormat::new(pixels, (1280, 720), FrameRate::PAL, Scan::Interlaced).unwrap();
        assert_eq!(VideoDescription::from_format(&format).to_format(FrameRate::NTSC), Ok(format));
    }
    let described = video(&video_text(SIZE));
    assert_eq!(described.to_format(FrameRate::NTSC).unwrap().rate(), FrameRate::NTSC, "it tells no rate");
    let deep = video(&video_text(&SIZE.replace("depth=10", "depth=12")));
    assert!(deep.to_format(FrameRate::NTSC).unwrap_err().to_string().contains("YCbCr-4:2:2 with 10 or 8 bits"));
}
