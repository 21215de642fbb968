//! One publisher and one subscriber in a process.

use std::time::Duration;

use thalweg::PublisherQos;
use thalweg::qos::{History, WriterQos};
use thalweg_video::format::{Field, FrameRate, PixelFormat, Scan, VideoFormat};
use thalweg_video::receiver::Concealment;
use thalweg_video::sdp::{MediaDescription, SessionDescription};
use thalweg_video::sink::VerifySink;
use thalweg_video::source::PictureSource;
use thalweg_video::topics::{
    Checksum, FrameTime, PublicationRun, Published, PublisherConfig, SampleUnit, Spread, StatisticsRole,
    SubscriberConfig, SubscriptionRun, TopicError, TopicReliability, VideoFrame, VideoPublisher, VideoStreamStatistics,
    VideoSubscriber, list_streams, run_publisher, run_subscriber,
};

use crate::fixture::*;

const FIRST: u32 = u32::MAX - 4000;

fn time(frame: u64) -> FrameTime {
    FrameTime::now(FIRST.wrapping_add(frame as u32 * 90_000))
}

/// Twelve frames, one after the other, arrive as they were sent.
#[track_caller]
fn check(unit: SampleUnit, reliability: TopicReliability, scan: Scan, adjust: impl Fn(&mut PublisherConfig)) {
    let format = format((320, 180), scan);
    let mut config = PublisherConfig { unit, reliability, ..config(format) };
    adjust(&mut config);
    let Pair { mut publisher, mut subscriber, participants: _alive } = pair(config, |_| ());
    for frame in 0..12 {
        assert_eq!(publisher.write_frame(time(frame), &picture(format, frame)).unwrap(), Published::Frame(frame));
        let got = subscriber.next_picture(PATIENCE).unwrap().expect("a frame comes");
        assert_eq!(frame_of(got.picture.timestamp, FIRST), frame);
        assert!(got.picture.is_complete() && got.captured.is_some());
        check_picture(&got, format, FIRST);
    }
    let counters = subscriber.counters();
    let samples = 12 * u64::from(unit.samples(format));
    assert_eq!((counters.received.frames.complete, counters.received.frames.expected()), (12, 12));
    assert_eq!((counters.received.packets.expected, counters.received.packets.received), (samples, samples));
    assert_eq!((counters.damaged, counters.other_format), (0, 0));
    assert_eq!((publisher.counters().frames_sent, publisher.counters().samples_sent), (12, samples));
}

#[test]
fn frames_arrive_as_they_were_sent_in_every_unit() {
    check(SampleUnit::Frame, TopicReliability::Reliable, Scan::Progressive, |_| ());
    check(SampleUnit::Frame, TopicReliability::BestEffort, Scan::Interlaced, |_| ());
    check(SampleUnit::Slice(8), TopicReliability::Reliable, Scan::Progressive, |_| ());
    check(SampleUnit::Slice(60), TopicReliability::BestEffort, Scan::Interlaced, |_| ());
    check(SampleUnit::Slice(16), TopicReliability::Reliable, Scan::SegmentedFrame, |config| {
        config.checksum = Checksum::Off
    });
    check(SampleUnit::Slice(20), TopicReliability::BestEffort, Scan::Progressive, |config| {
        config.spread = Spread::Over(10)
    });
    check(SampleUnit::Frame, TopicReliability::Reliable, Scan::Progressive, |config| config.spread = Spread::Over(10));
}

#[test]
fn a_lent_frame_is_written_without_a_copy_and_handed_out_where_it_came() {
    let format = format((320, 180), Scan::Progressive);
    let Pair { mut publisher, mut subscriber, participants: _alive } = pair(config(format), |_| ());
    let mut held = Vec::new();
    for frame in 0..6 {
        let mut loan = publisher.lend_frame().unwrap();
        fill(loan.octets_mut(), frame);
        publisher.publish(time(frame), loan).unwrap();
        held.push(subscriber.next_picture(PATIENCE).unwrap().expect("a frame comes"));
    }
    // Pictures that the user holds stay what they are.
    held.iter().for_each(|picture| check_picture(picture, format, FIRST));
}

#[test]
fn a_publisher_ahead_of_its_path_passes_frames_over_and_those_written_arrive() {
    for unit in [SampleUnit::Frame, SampleUnit::Slice(45)] {
        let format = format((320, 180), Scan::Progressive);
        // Three frame times of use: three frames may be on their way, each of which takes a second.
        let slow =
            PublisherConfig { unit, spread: Spread::Over(100), lifespan: 3 * format.frame_time(), ..config(format) };
        let Pair { mut publisher, mut subscriber, participants: _alive } = pair(slow, |_| ());
        let write = |frame| publisher.write_frame(time(frame), &picture(format, frame)).unwrap();
        let told: Vec<Published> = (0..8).map(write).collect();
        assert_eq!(told[..3], [Published::Frame(0), Published::Frame(1), Published::Frame(2)], "{unit:?}");
        assert!(told.contains(&Published::PassedOver), "{unit:?}: {told:?}");
        let written = told.iter().filter(|told| **told != Published::PassedOver).count() as u64;
        for _ in 0..written {
            check_picture(&subscriber.next_picture(PATIENCE).unwrap().expect("what was written"), format, FIRST);
        }
        let counters = publisher.counters();
        assert_eq!((counters.frames_sent, counters.frames_passed_over), (written, 8 - written));
        assert_eq!(subscriber.counters().received.frames.lost, 0, "frames passed over take no number");
    }
}

#[test]
fn lines_are_sent_before_the_rest_of_their_frame_is_there() {
    let format = format((320, 180), Scan::Interlaced);
    let unit = SampleUnit::Slice(40);
    let Pair { mut publisher, mut subscriber, participants: _alive } =
        pair(PublisherConfig { unit, ..config(format) }, |_| ());
    let whole = picture(format, 0);
    let lines = |field: Field, first: u16| -> Vec<u8> {
        let line = |line: u16| whole.chunks(format.line_octets()).nth(format.frame_line(field, line).into()).unwrap();
        (first..(first + 40).min(90)).flat_map(line).copied().collect()
    };
    let started = time(0);
    assert!(matches!(
        publisher.write_slice(started, Field::Second, 0, &lines(Field::Second, 0)),
        Err(TopicError::SliceOrder { .. })
    ));
    assert!(matches!(
        publisher.write_slice(started, Field::First, 0, &whole[..format.line_octets()]),
        Err(TopicError::Octets { .. })
    ));
    for field in [Field::First, Field::Second] {
        for first in [0, 40, 80] {
            assert!(subscriber.next_picture(Duration::from_millis(5)).unwrap().is_none(), "the frame is not complete");
            publisher.write_slice(started, field, first, &lines(field, first)).unwrap();
        }
    }
    let got = subscriber.next_picture(PATIENCE).unwrap().expect("the frame is complete");
    check_picture(&got, format, FIRST);
    assert!(publisher.lend_frame().is_err(), "frames and slices do not mix");
}

#[test]
fn a_frame_that_is_given_up_is_concealed_with_the_one_before() {
    let format = format((320, 180), Scan::Progressive);
    let unit = SampleUnit::Slice(60);
    let Pair { mut publisher, mut subscriber, participants: _alive } =
        pair(PublisherConfig { unit, ..config(format) }, |config| {
            config.concealment = Concealment::Previous;
        });
    publisher.write_frame(time(0), &picture(format, 0)).unwrap();
    subscriber.next_picture(PATIENCE).unwrap().expect("a whole frame");
    let sixty = 60 * format.line_octets();
    publisher.write_slice(time(1), Field::First, 0, &picture(format, 1)[..sixty]).unwrap();
    publisher.write_frame(time(2), &picture(format, 2)).unwrap();
    let concealed = subscriber.next_picture(PATIENCE).unwrap().expect("a part of a frame");
    assert_eq!((frame_of(concealed.picture.timestamp, FIRST), concealed.picture.concealed_lines.count()), (1, 120));
    assert!(concealed.picture.octets[..sixty] == picture(format, 1)[..sixty]);
    assert!(concealed.picture.octets[sixty..] == picture(format, 0)[sixty..]);
    check_picture(&subscriber.next_picture(PATIENCE).unwrap().expect("a whole frame"), format, FIRST);
    assert_eq!(publisher.counters().frames_broken, 1);
}

#[test]
fn a_late_joiner_gets_the_description_and_a_list_has_every_stream() {
    let domain = domain();
    let (here, there) = (participant(domain), participant(domain));
    let format = format((320, 180), Scan::SegmentedFrame);
    let unit = SampleUnit::Slice(16);
    let gate = PublisherConfig { name: "gate".into(), unit, ..config(format) };
    let mut publisher = VideoPublisher::new(&here, gate).unwrap();
    let _other = VideoPublisher::new(&here, PublisherConfig { stream: 9, ..config(format) }).unwrap();
    // Long before anybody listens.
    publisher.write_frame(time(0), &picture(format, 0)).unwrap();
    let subscriber = VideoSubscriber::open(&there, SubscriberConfig::new(STREAM), PATIENCE).unwrap();
    let told = subscriber.description();
    assert_eq!((told.name.as_str(), told.slice_lines, told.is_reliable), ("gate", 16, true));
    assert_eq!((subscriber.format(), told.source), (format, publisher.source()));
    let session = SessionDescription::parse(told.sdp.as_bytes()).unwrap();
    let MediaDescription::Video(video) = &session.streams[0].media else { panic!("raw video: {}", told.sdp) };
    assert_eq!(video.to_format(FrameRate::PAL).unwrap(), format);
    let streams = list_streams(&there, Duration::from_secs(2)).unwrap();
    assert_eq!(streams.iter().map(|stream| stream.stream).collect::<Vec<_>>(), [STREAM, 9]);
}

#[test]
fn what_does_not_fit_is_refused_with_the_reason() {
    let domain = domain();
    let (here, there) = (participant(domain), participant(domain));
    let offered = format((320, 180), Scan::Progressive);
    let best_effort = PublisherConfig { reliability: TopicReliability::BestEffort, ..config(offered) };
    let _publisher = VideoPublisher::new(&here, best_effort).unwrap();
    let check = |config: SubscriberConfig, patience: Duration, expect: &str| {
        let told = VideoSubscriber::open(&there, config, patience).expect_err(expect).to_string();
        assert!(told.contains(expect), "{told}");
    };
    let expected = Some(format((1280, 720), Scan::Progressive));
    check(
        SubscriberConfig { expected, ..SubscriberConfig::new(STREAM) },
        PATIENCE,
        "stream 7 is 320x180 yuv422-10 1 progressive, and 1280x720 yuv422-10 1 progressive was asked for",
    );
    let reliability = Some(TopicReliability::Reliable);
    check(SubscriberConfig { reliability, ..SubscriberConfig::new(STREAM) }, PATIENCE, "is offered BEST_EFFORT");
    check(SubscriberConfig::new(8), Duration::from_secs(1), "nobody described stream 8 within 1s; there are [7]");
    let thin = PublisherConfig { unit: SampleUnit::Slice(4), stream: 8, ..config(offered) };
    assert!(matches!(VideoPublisher::new(&here, thin), Err(TopicError::SliceLines { lines: 4, .. })));
}

#[test]
fn a_stream_that_goes_on_in_another_format_is_refused() {
    let (small, large) = (format((320, 180), Scan::Progressive), format((640, 360), Scan::Progressive));
    let Pair { mut publisher, mut subscriber, participants } = pair(config(small), |_| ());
    publisher.write_frame(time(0), &picture(small, 0)).unwrap();
    subscriber.next_picture(PATIENCE).unwrap().expect("a frame");
    drop(publisher);
    let mut publisher = VideoPublisher::new(&participants.0, config(large)).unwrap();
    publisher.wait_for_subscribers(1, PATIENCE).unwrap();
    let told = (0..200).find_map(|frame| {
        publisher.write_frame(time(frame), &picture(large, frame)).unwrap();
        subscriber.next_picture(Duration::from_millis(100)).map(|picture| assert!(picture.is_none())).err()
    });
    let told = told.expect("the other format is noticed").to_string();
    assert!(told.contains("stream 7 is 640x360"), "{told}");
    assert!(subscriber.counters().other_format > 0);
}

#[test]
fn damaged_and_foreign_samples_are_counted_and_not_shown() {
    let format = format((320, 180), Scan::Progressive);
    let Pair { mut publisher, mut subscriber, participants } = pair(config(format), |_| ());
    publisher.write_frame(time(0), &picture(format, 0)).unwrap();
    subscriber.next_picture(PATIENCE).unwrap().expect("a frame");
    let partition = vec![format!("stream {STREAM}")];
    let there = participants.0.create_publisher(PublisherQos { partition, ..PublisherQos::default() });
    let qos = WriterQos { history: History::KeepAll, ..WriterQos::default() };
    let forger = there.create_writer(&participants.0.create_topic::<VideoFrame>("video/frames"), qos).unwrap();
    forger.wait_for_matched(1, PATIENCE).unwrap();
    let octets = picture(format, 30);
    let good = VideoFrame {
        stream: STREAM,
        source: publisher.source(),
        frame: 1,
        // A second later, so that none of them is late.
        timestamp: time(30).timestamp,
        crc32c: crc32c::crc32c(&octets),
        format: format.into(),
        flags: 1,
        octets,
        ..VideoFrame::default()
    };
    let mut damaged = good.clone();
    damaged.octets[70_000] ^= 0x10;
    // One octet short, of another sender, with a field, of another stream, cut off; and the good one at last.
    let short = VideoFrame { octets: good.octets[1..].to_vec(), flags: 0, ..good.clone() };
    let foreign = VideoFrame { source: good.source ^ 1, ..good.clone() };
    let field = VideoFrame { field: 1, ..good.clone() };
    let other = VideoFrame { stream: STREAM + 1, ..good.clone() };
    for sample in [&damaged, &short, &foreign, &field, &other] {
        forger.write(sample).unwrap();
        assert!(subscriber.next_picture(Duration::from_millis(50)).unwrap().is_none());
    }
    let mut bytes = Vec::new();
    thalweg::cdr::encode(&good, thalweg::cdr::Representation::Xcdr1, &mut bytes).unwrap();
    forger.write_serialized(&bytes[..60]).unwrap();
    forger.write(&good).unwrap();
    check_picture(&subscriber.next_picture(PATIENCE).unwrap().expect("the good one"), format, FIRST);
    let counters = subscriber.counters();
    let refused = counters.received.refused;
    assert_eq!((counters.damaged, refused.outside, refused.foreign, refused.malformed), (1, 1, 2, 2));
    assert_eq!(counters.received.frames.complete, 2);
}

#[test]
fn statistics_of_both_ends_are_a_topic() {
    let format = format((320, 180), Scan::Progressive);
    let Pair { mut publisher, mut subscriber, participants } = pair(config(format), |_| ());
    for frame in 0..3 {
        publisher.write_frame(time(frame), &picture(format, frame)).unwrap();
        subscriber.next_picture(PATIENCE).unwrap().expect("a frame");
    }
    publisher.publish_statistics(0.1, 0.05).unwrap();
    subscriber.publish_statistics(0.1, 0.02).unwrap();
    let topic = participants.0.create_topic::<VideoStreamStatistics>("video/statistics");
    let qos = thalweg::qos::ReaderQos {
        reliability: thalweg::qos::Reliability::RELIABLE,
        durability: thalweg::qos::Durability::TransientLocal,
        ..thalweg::qos::ReaderQos::default()
    };
    let reader = participants.0.create_reader(&topic, qos).unwrap();
    let mut told = Vec::new();
    while told.len() < 2 {
        assert!(reader.wait(PATIENCE), "{told:?}");
        told.extend(reader.take(9).iter().map(|sample| sample.data().unwrap()));
    }
    for statistics in told {
        assert_eq!((statistics.frames.complete, statistics.samples.received), (3, 3), "{statistics:?}");
        let expect = if statistics.role == StatisticsRole::Sender { 0.05 } else { 0.02 };
        assert_eq!((statistics.stream, statistics.cpu_seconds), (STREAM, expect));
    }
}

#[test]
fn a_run_of_each_end_moves_a_source_to_a_sink() {
    let rate = FrameRate::new(20, 1).unwrap();
    let format = VideoFormat::new(PixelFormat::Yuv422Bits10, (320, 180), rate, Scan::Progressive).unwrap();
    for unit in [SampleUnit::Frame, SampleUnit::Slice(30)] {
        let lifespan = 8 * format.frame_time();
        let Pair { mut publisher, mut subscriber, participants: _alive } =
            pair(PublisherConfig { unit, lifespan, ..config(format) }, |_| ());
        let mut source = PictureSource::new(format).unwrap();
        let mut sink = VerifySink::new(format).unwrap();
        let publish = PublicationRun { frames: Some(10), ..PublicationRun::default() };
        let (taken, late) = std::thread::scope(|scope| {
            let sent = scope.spawn(|| run_publisher(&mut publisher, &mut source, publish).unwrap());
            let taken = run_subscriber(&mut subscriber, &mut sink, SubscriptionRun::default()).unwrap();
            (taken, sent.join().unwrap())
        });
        assert_eq!(late + publisher.counters().frames_sent + publisher.counters().frames_passed_over, 10);
        let summary = sink.summary();
        assert_eq!((taken, summary.frames), (publisher.counters().frames_sent, taken), "{unit:?}");
        assert_eq!((summary.proved, summary.out_of_order), (taken, 0), "{unit:?}: {summary:?}");
    }
}
