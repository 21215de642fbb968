//! How long a receiver takes to its first picture: at most three frame times, wherever in a frame it joins a stream.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use thalweg_transport::clock;
use thalweg_video::format::{FrameRate, PixelFormat, Scan, VideoFormat};
use thalweg_video::io::{ReceiveReport, run_receiver, run_sender};
use thalweg_video::receiver::Repair;
use thalweg_video::sink::NullSink;

use crate::laws::{FORMS, SCANS, SMALL, check_pixels};
use crate::receiving::{exchange, free, receive_options, send_options};
use crate::sources::Numbered;
use crate::world::{World, format};

/// A tick of the time stamps, to which times of frames are rounded.
const TICK: Duration = Duration::from_nanos(11_112);

/// The frame times from the first packet that a receiver hears to its first picture, when it joins behind so many packets.
#[track_caller]
fn check(world: &mut World, missed: usize) -> f64 {
    world.attendance.missed = missed;
    world.run(6);
    let (first, begun) = (&world.shown[0], world.attendance.begun.expect("packets came"));
    check_pixels(world, first);
    assert!(first.picture.is_complete(), "behind {missed} packets something else was shown first");
    let (time, frame) = (first.at.since(begun), world.format.frame_time());
    assert!(time <= 3 * frame + TICK, "behind {missed} packets: {time:?}, a frame takes {frame:?}");
    time.as_secs_f64() / frame.as_secs_f64()
}

#[test]
fn the_first_picture_is_shown_within_three_frame_times_wherever_a_receiver_joins() {
    for form in FORMS {
        for scan in SCANS {
            for repair in [Repair::Off, Repair::by_retransmission(97)] {
                let world = || World::new(1, format(SMALL, scan), form, |config| config.repair = repair);
                let there = check(&mut world(), 0);
                assert!((there - 2.0).abs() < 0.001, "a receiver that is there first: {there} frame times");
                let packets = world().sender.plan().frame_packets();
                let joins: Vec<f64> = (1..=packets).map(|missed| check(&mut world(), missed)).collect();
                // A receiver that missed the beginning of a frame waits for the next one.
                assert!(joins[0] > 2.9, "{scan} {form:?}: {}", joins[0]);
                assert!((joins[packets - 1] - 2.0).abs() < 0.001, "{scan} {form:?}: {}", joins[packets - 1]);
            }
        }
    }
}

/// A picture with a frame time so long that a machine with other work does not come late by half of it.
fn slow() -> VideoFormat {
    VideoFormat::new(PixelFormat::Yuv422Bits10, (320, 240), FrameRate::new(5, 1).unwrap(), Scan::Progressive).unwrap()
}

fn frame_times_to_first_picture(report: &ReceiveReport) -> f64 {
    let time = report.times.first_picture.expect("pictures came");
    time.as_secs_f64() / slow().frame_time().as_secs_f64()
}

#[test]
fn a_receiver_that_is_there_first_shows_a_picture_after_two_frame_times() {
    let mut receive = receive_options(slow(), free());
    receive.receiver.playout = 2 * slow().frame_time();
    let (sent, received) = exchange(4, &mut NullSink, &receive, &send_options(receive.bind[0]));
    let times = frame_times_to_first_picture(&received);
    assert!((1.95..2.5).contains(&times), "{times} frame times");
    assert_eq!(received.receiver.frames.before_start, 0);
    assert_eq!(received.receiver.packets.received, sent.sender.packets_sent);
}

#[test]
fn a_receiver_that_joins_within_a_frame_shows_a_picture_within_three_frame_times() {
    let (format, stop) = (slow(), AtomicBool::new(false));
    let mut receive = receive_options(format, free());
    receive.receiver.playout = 2 * format.frame_time();
    receive.frames_max = 2;
    let mut send = send_options(receive.bind[0]);
    let start = clock::now() + Duration::from_millis(200);
    send.sender.start = Some(start);
    let received = std::thread::scope(|scope| {
        let sender = scope.spawn(|| run_sender(&mut Numbered::new(format, 10), &send, &stop, |_| ()).unwrap());
        // In the middle of the third frame.
        clock::sleep_until(start + 5 * format.frame_time() / 2);
        let received = run_receiver(&mut NullSink, &receive, &stop, |_| ()).unwrap();
        sender.join().unwrap();
        received
    });
    let times = frame_times_to_first_picture(&received);
    assert!((2.1..=3.0).contains(&times), "{times} frame times");
    assert_eq!(received.receiver.frames.before_start, 1, "the frame that it joined in");
}

#[test]
fn without_a_picture_no_time_is_told() {
    let mut receive = receive_options(slow(), free());
    receive.duration = Duration::from_millis(50);
    let report = run_receiver(&mut NullSink, &receive, &AtomicBool::new(false), |_| ()).unwrap();
    assert_eq!(report.times.first_picture, None);
}
