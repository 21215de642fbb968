use super::*;
use crate::format::{FrameRate, Scan, VideoFormat};

fn format(pixels: PixelFormat, size: (u16, u16), scan: Scan) -> VideoFormat {
    VideoFormat::new(pixels, size, FrameRate::NTSC, scan).unwrap()
}

/// A payload with an extended sequence number of 7, the line headers and as many octets of picture.
fn payload(headers: &[LineHeader], octets: usize) -> Vec<u8> {
    let mut out = vec![0, 7];
    for (index, header) in headers.iter().enumerate() {
        let continues = if index + 1 < headers.len() { Continuation::More } else { Continuation::Last };
        let mut octets = [0; LINE_HEADER_OCTETS];
        header.write(continues, &mut octets);
        out.extend(octets);
    }
    out.extend((0..octets).map(|index| index as u8));
    out
}

fn header(length: u16, line: u16, offset: u16) -> LineHeader {
    LineHeader { length, field: Field::First, line, offset }
}

#[test]
fn what_is_written_reads_the_same() {
    let headers = [
        LineHeader { length: 5, field: Field::Second, line: 0x7fff, offset: 0x7ffe },
        LineHeader { length: 0, field: Field::First, line: 0, offset: 0 },
        LineHeader { length: 10, field: Field::First, line: 3, offset: 2 },
    ];
    let octets = payload(&headers, 17);
    assert_eq!(octets[2..8], [0, 5, 0xff, 0xff, 0xff, 0xfe], "as RFC 4175 §4.2 draws it");
    let read = VideoPayload::parse(&octets).unwrap();
    assert_eq!((read.extended_sequence, read.piece_count()), (7, 3));
    let pieces: Vec<_> = read.pieces().collect();
    assert_eq!(pieces.iter().map(|(header, _)| *header).collect::<Vec<_>>(), headers);
    assert_eq!(
        pieces.iter().map(|(_, piece)| piece.to_vec()).collect::<Vec<_>>(),
        [(0..5).collect::<Vec<u8>>(), vec![], (5..15).collect()]
    );
}

#[test]
fn lengths_beyond_the_end_are_refused() {
    #[track_caller]
    fn check(octets: &[u8], expect: &str) {
        assert_eq!(VideoPayload::parse(octets).unwrap_err().to_string(), expect);
    }
    check(&[], "the payload ends within its line headers");
    check(&payload(&[header(5, 0, 0)], 0)[..7], "the payload ends within its line headers");
    check(&payload(&[header(5, 0, 0)], 4), "the line headers tell of 5 octets and 4 follow");
    check(&payload(&[header(65_535, 0, 0); 2], 65_535), "the line headers tell of 131070 octets and 65535 follow");
    check(&payload(&[header(1, 0, 0); 17], 17), "the payload has more than 16 pieces of lines");
    assert_eq!(VideoPayload::parse(&payload(&[header(1, 0, 0); 16], 16)).unwrap().piece_count(), 16);
    let mut endless = payload(&[header(0, 0, 0); 3], 0);
    endless[2 + 2 * LINE_HEADER_OCTETS + 4] = 0x80;
    check(&endless, "the payload ends within its line headers");
}

#[test]
fn pieces_begin_and_end_between_pixel_groups() {
    let pixels = |length, offset, format| pixels_of(&header(length, 0, offset), format);
    assert_eq!(pixels(1200, 480, PixelFormat::Yuv422Bits10), Some(480));
    assert_eq!(pixels(1201, 480, PixelFormat::Yuv422Bits10), None);
    assert_eq!(pixels(1200, 481, PixelFormat::Yuv422Bits10), None);
    assert_eq!(pixels(65_535, 1, PixelFormat::Rgb8), Some(21_845));
}

/// Every octet of a field lies in exactly one piece, pieces are whole groups, and no datagram is too large.
fn check_plan(plan: &PacketPlan, datagram_max: usize) {
    let format = plan.format();
    let (mut next, mut octets) = (0, 0);
    for index in 0..plan.field_packets() {
        let (shape, pieces) = plan.packet(index);
        assert!((1..=3).contains(&pieces.len()));
        for piece in pieces {
            assert_eq!(usize::from(piece.line) * format.line_octets() + piece.at as usize, next);
            let header =
                LineHeader { length: piece.length, field: Field::First, line: piece.line, offset: piece.offset };
            let pixels = pixels_of(&header, format.pixels()).expect("whole groups");
            assert!(piece.offset + pixels <= format.width());
            let group = format.pixels().group();
            assert_eq!(piece.at, u32::from(piece.offset / group.pixels * group.octets));
            next += usize::from(piece.length);
        }
        let picture: u16 = pieces.iter().map(|piece| piece.length).sum();
        assert_eq!(usize::from(shape.header_octets), 14 + 6 * pieces.len());
        assert_eq!(shape.datagram_octets, shape.header_octets + picture);
        assert!(usize::from(shape.datagram_octets) <= datagram_max);
        octets += usize::from(shape.datagram_octets);
    }
    assert_eq!(next, format.field_octets());
    assert_eq!(plan.frame_datagram_octets(), octets * usize::from(format.scan().fields()));
}

/// The packets of a frame, and the octets of picture in the first one.
#[track_caller]
fn check(format: VideoFormat, packing: Packing, mtu: usize, expect: (usize, u16)) {
    for version in [IpHeader::V4, IpHeader::V6] {
        let octets_max = version.datagram_octets(mtu);
        let plan = PacketPlan::new(format, packing, octets_max).unwrap();
        check_plan(&plan, octets_max);
        if version == IpHeader::V4 {
            let (shape, _) = plan.packet(0);
            assert_eq!((plan.frame_packets(), shape.datagram_octets - shape.header_octets), expect);
        }
        let equal = plan.equal_datagram_octets();
        assert!(packing != Packing::Equal || equal == Some(plan.datagram_octets_max()), "{equal:?}");
    }
}

#[test]
fn packets_of_high_definition_have_one_size() {
    let hd = format(PixelFormat::Yuv422Bits10, (1920, 1080), Scan::Progressive);
    for (mtu, expect) in [(1500, (4320, 1200)), (4900, (1080, 4800)), (7300, (720, 7200)), (9000, (720, 7200))] {
        check(hd, Packing::Equal, mtu, expect);
        check(hd.with_scan(Scan::Interlaced).unwrap(), Packing::Equal, mtu, expect);
    }
    check(hd, Packing::Equal, 65_535, (720, 7200));
    check(format(PixelFormat::Yuv422Bits8, (1920, 1080), Scan::Progressive), Packing::Equal, 1500, (3240, 1280));
    check(format(PixelFormat::Rgb8, (1920, 1080), Scan::SegmentedFrame), Packing::Equal, 1500, (4320, 1440));
    check(format(PixelFormat::Yuv422Bits10, (1280, 720), Scan::Progressive), Packing::Equal, 1500, (2880, 800));
    check(format(PixelFormat::Yuv422Bits10, (3840, 2160), Scan::Progressive), Packing::Equal, 1500, (17_280, 1200));
}

#[test]
fn the_paper_fills_jumbo_frames_and_blocks_keep_to_the_standard_size() {
    let hd = format(PixelFormat::Yuv422Bits10, (1920, 1080), Scan::Progressive);
    check(hd, Packing::Fill, 9000, (580, 8945));
    check(hd, Packing::Blocks, STANDARD_DATAGRAM_OCTETS + 28, (4115, 1260));
}

#[test]
fn any_size_is_cut_without_gaps() {
    let mut formats = 0;
    for (width, height) in [(2, 2), (34, 6), (1366, 768), (854, 480), (8192, 2), (720, 486), (1998, 1080)] {
        for pixels in PixelFormat::ALL {
            let format = format(pixels, (width, height), Scan::Interlaced);
            for octets in [25, 200, 576, 1452, 7000, 8972, 65_507] {
                for packing in [Packing::Equal, Packing::Blocks, Packing::Fill] {
                    match PacketPlan::new(format, packing, octets) {
                        Ok(plan) => check_plan(&plan, octets),
                        Err(error) => {
                            let blocks = packing == Packing::Blocks && octets < 206;
                            assert!(blocks || octets == 25, "{format} {packing:?} {octets}: {error}");
                        }
                    }
                    formats += 1;
                }
            }
        }
    }
    assert_eq!(formats, 7 * 3 * 7 * 3);
}

#[test]
fn blocks_stay_within_the_datagram_where_they_touch_three_lines() {
    for width in [360, 500, 604, 1000] {
        let format = format(PixelFormat::Yuv422Bits8, (width, 40), Scan::Progressive);
        for octets in 206..3000 {
            check_plan(&PacketPlan::new(format, Packing::Blocks, octets).unwrap(), octets);
        }
    }
}

#[test]
fn the_largest_pictures_are_cut() {
    for pixels in PixelFormat::ALL {
        let format = format(pixels, (8192, 4320), Scan::Progressive);
        for packing in [Packing::Equal, Packing::Blocks, Packing::Fill] {
            let plan = PacketPlan::new(format, packing, 1452).unwrap();
            check_plan(&plan, 1452);
            assert!(plan.frame_packets() <= PACKETS_MAX);
        }
    }
}

#[test]
fn an_awkward_width_costs_no_crowd_of_small_packets() {
    // 4,098 octets a line have no divisor between 6 and 683 groups of 3 octets that fits 1,452.
    let awkward = format(PixelFormat::Rgb8, (1366, 768), Scan::Progressive);
    let plan = PacketPlan::new(awkward, Packing::Equal, 1452).unwrap();
    assert_eq!(plan.field_packets(), 3 * 768);
    let sizes: Vec<u16> = (0..3).map(|index| plan.packet(index).0.datagram_octets).collect();
    assert_eq!(sizes, [1388, 1388, 1382], "only the last part of a line is shorter");
}

#[test]
fn datagrams_too_small_for_a_picture_are_refused() {
    let hd = format(PixelFormat::Yuv422Bits10, (1920, 1080), Scan::Progressive);
    let refused = |packing, octets| PacketPlan::new(hd, packing, octets).unwrap_err().to_string();
    assert_eq!(refused(Packing::Equal, 24), "datagrams of 24 octets hold no picture: give 25 or more");
    assert_eq!(refused(Packing::Fill, 0), "datagrams of 0 octets hold no picture: give 25 or more");
    assert_eq!(refused(Packing::Blocks, 205), "datagrams of 205 octets hold no picture: give 206 or more");
    assert!(refused(Packing::Fill, 25).contains("more than 131072"));
}

#[test]
fn narrow_pictures_have_fewer_blocks_a_packet_and_a_plan_tells_what_it_is() {
    #[track_caller]
    fn check_blocks(size: (u16, u16), octets_max: usize, octets: u16) {
        let plan =
            PacketPlan::new(format(PixelFormat::Yuv422Bits10, size, Scan::Progressive), Packing::Blocks, octets_max);
        let plan = plan.unwrap();
        check_plan(&plan, octets_max);
        let picture = |index| plan.packet(index).1.iter().map(|piece| piece.length).sum::<u16>();
        assert_eq!((plan.packing(), picture(0)), (Packing::Blocks, octets));
        assert!((0..plan.field_packets() - 1).all(|index| picture(index) == octets), "but the last one");
    }
    check_blocks((320, 240), 1470, 1260);
    check_blocks((160, 120), 1470, 900);
    check_blocks((72, 40), 1470, 540);
    let tiny = format(PixelFormat::Yuv422Bits10, (34, 20), Scan::Progressive);
    let plan = PacketPlan::new(tiny, Packing::Blocks, 1472).unwrap();
    assert_eq!(plan.packing(), Packing::Fill, "a block of 180 octets touches four lines of 85");
}
