use std::time::Duration;

use thalweg_base::time::Instant;

use crate::audio::*;
use crate::rtcp::{MediaClock, NtpTime, WallClock};
use crate::rtp::RtpHeader;
use crate::sdp::AudioEncoding;

const FIRST: u32 = u32::MAX - 100;

pub(super) fn at(micros: u64) -> Instant {
    Instant::from_nanos(1_000_000_000 + micros * 1000)
}

fn receiver_with(concealment: AudioConcealment) -> AudioReceiver {
    let format = AudioFormat::new(AudioEncoding::L16, 1, PacketTime::Millisecond).unwrap();
    AudioReceiver::new(AudioReceiverConfig { concealment, ..AudioReceiverConfig::new(format, 97) })
}

/// A packet of 48 equal samples: number `index`, with the value `index + 1` in the upper 16 bits.
fn packet(ssrc: u32, index: u32) -> Vec<u8> {
    let header = RtpHeader {
        marker: false,
        payload_type: 97,
        sequence: (65_530 + index) as u16,
        timestamp: FIRST.wrapping_add(index * 48),
        ssrc,
    };
    let mut out = header.to_octets().to_vec();
    out.extend((0..48).flat_map(|_| ((index + 1) as u16).to_be_bytes()));
    out
}

/// Plays until `now`, and returns the value of each block with its concealed samples.
fn play(receiver: &mut AudioReceiver, now: Instant) -> Vec<(i32, u64)> {
    let mut blocks = Vec::new();
    while receiver.poll_timeout() <= now {
        let mut samples = Vec::new();
        let due = receiver.poll_timeout();
        let Some(block) = receiver.poll_block(due, &mut samples) else { continue };
        assert!(samples.iter().all(|sample| *sample == samples[0]) && samples.len() == 48, "{samples:?}");
        blocks.push((samples[0] >> 8, block.concealed));
    }
    blocks
}

#[test]
fn packets_are_played_in_order_after_the_delay() {
    let mut receiver = receiver_with(AudioConcealment::Silence);
    for (index, micros) in [(0, 0), (2, 2000), (1, 2100), (4, 4000), (3, 4100), (3, 4101)] {
        receiver.handle_datagram(at(micros), &packet(1, index)).unwrap();
    }
    assert_eq!(receiver.poll_timeout(), at(20_000));
    assert_eq!(receiver.poll_block(at(19_999), &mut Vec::new()), None);
    let mut samples = Vec::new();
    let block = receiver.poll_block(at(20_000), &mut samples).unwrap();
    assert_eq!(block, AudioBlock { timestamp: FIRST, due: at(20_000), frames: 48, concealed: 0 });
    assert_eq!(play(&mut receiver, at(24_000)), [(2, 0), (3, 0), (4, 0), (5, 0)]);
    let counters = receiver.counters();
    assert_eq!((counters.packets, counters.frames_placed, counters.frames_duplicate), (6, 240, 48));
    let received = receiver.received().unwrap();
    assert_eq!((received.ssrc, received.highest_sequence, received.expected, received.received), (1, 65_534, 5, 5));
}

#[test]
fn gaps_are_filled_with_silence_or_with_repetition_for_ten_milliseconds() {
    for (concealment, value) in [(AudioConcealment::Silence, 0), (AudioConcealment::Repeat, 2)] {
        let mut receiver = receiver_with(concealment);
        for index in [0, 1, 14, 15] {
            receiver.handle_datagram(at(u64::from(index) * 1000), &packet(1, index)).unwrap();
        }
        let blocks = play(&mut receiver, at(35_000));
        let mut expected = vec![(1, 0), (2, 0)];
        expected.extend([(value, 48); 10]);
        expected.extend([(0, 48), (0, 48), (15, 0), (16, 0)]);
        assert_eq!(blocks, expected);
        assert_eq!(receiver.counters().frames_concealed, 12 * 48);
    }
    let mut receiver = receiver_with(AudioConcealment::Repeat);
    for index in [0, 8, 16] {
        receiver.handle_datagram(at(u64::from(index) * 1000), &packet(1, index)).unwrap();
    }
    let values: Vec<i32> = play(&mut receiver, at(36_000)).into_iter().map(|(value, _)| value).collect();
    assert_eq!(values, [[1; 8], [9; 8]].concat().into_iter().chain([17]).collect::<Vec<_>>(), "each gap counts anew");
}

#[test]
fn late_packets_are_counted_and_not_played() {
    let mut receiver = receiver_with(AudioConcealment::Silence);
    receiver.handle_datagram(at(0), &packet(1, 0)).unwrap();
    receiver.handle_datagram(at(2000), &packet(1, 2)).unwrap();
    assert_eq!(play(&mut receiver, at(21_500)), [(1, 0), (0, 48)]);
    receiver.handle_datagram(at(21_500), &packet(1, 1)).unwrap();
    assert_eq!(play(&mut receiver, at(22_000)), [(3, 0)]);
    assert_eq!(receiver.counters().frames_late, 48);
}

#[test]
fn copies_by_a_second_path_show_no_jitter() {
    let mut receiver = receiver_with(AudioConcealment::Silence);
    for index in 0..505_u32 {
        // The second path takes 5 ms longer.
        let newest = (index < 500).then_some(index);
        for sent in [newest, index.checked_sub(5)].into_iter().flatten() {
            receiver.handle_datagram(at(u64::from(index) * 1000), &packet(1, sent)).unwrap();
        }
    }
    let received = receiver.received().unwrap();
    assert_eq!((received.received, received.jitter), (500, 0));
    assert_eq!(receiver.counters().frames_duplicate, 500 * 48);
}

#[test]
fn packets_of_other_times_are_taken_and_cut_to_blocks() {
    let mut receiver = receiver_with(AudioConcealment::Silence);
    for index in 0..16u32 {
        let header =
            RtpHeader { payload_type: 97, sequence: index as u16, timestamp: 1000 + index * 6, ssrc: 1, marker: false };
        let payload: Vec<u8> = (0..6).flat_map(|_| 9u16.to_be_bytes()).collect();
        receiver.handle_datagram(at(u64::from(index) * 125), &[&header.to_octets()[..], &payload].concat()).unwrap();
    }
    assert_eq!(play(&mut receiver, at(21_000)), [(9, 0), (9, 0)]);
}

#[test]
fn what_is_no_audio_of_the_stream_is_told_or_counted() {
    let mut receiver = receiver_with(AudioConcealment::Silence);
    receiver.handle_datagram(at(0), &packet(1, 0)).unwrap();
    receiver.handle_datagram(at(1), &packet(2, 1)).unwrap();
    let mut other = packet(1, 1);
    other[1] = 96;
    receiver.handle_datagram(at(2), &other).unwrap();
    let error = receiver.handle_datagram(at(3), &packet(1, 1)[..15]).unwrap_err();
    assert_eq!(error.to_string(), "3 octets of audio are no multiple of the 2 of all channels");
    assert!(receiver.handle_datagram(at(4), &packet(1, 1)[..12]).is_err(), "no samples");
    assert!(receiver.handle_datagram(at(5), b"hello").is_err());
    let counters = receiver.counters();
    assert_eq!((counters.packets, counters.packets_foreign, counters.packets_malformed), (1, 2, 3));
}

#[test]
fn another_sender_takes_over_after_a_second_of_silence() {
    let mut receiver = receiver_with(AudioConcealment::Silence);
    receiver.handle_datagram(at(0), &packet(1, 0)).unwrap();
    receiver.handle_datagram(at(999_000), &packet(2, 999)).unwrap();
    assert_eq!(receiver.counters().packets_foreign, 1);
    play(&mut receiver, at(1_500_000));
    assert_eq!(receiver.poll_timeout(), Instant::NEVER, "nothing plays");
    receiver.handle_datagram(at(2_000_000), &packet(2, 5)).unwrap();
    assert_eq!(play(&mut receiver, at(2_020_000)), [(6, 0)]);
    assert_eq!((receiver.received().unwrap().ssrc, receiver.counters().starts), (2, 2));
}

#[test]
fn a_stream_that_pauses_goes_on_with_its_next_packet() {
    let mut receiver = receiver_with(AudioConcealment::Silence);
    receiver.handle_datagram(at(0), &packet(1, 0)).unwrap();
    let blocks = play(&mut receiver, at(5_000_000));
    assert_eq!((blocks[0], blocks[1]), ((1, 0), (0, 48)));
    assert!(blocks.len() < 1100, "it stops after a second");
    receiver.handle_datagram(at(6_000_000), &packet(1, 6000)).unwrap();
    assert_eq!(play(&mut receiver, at(6_020_000)), [(6001, 0)]);
}

#[test]
fn one_stray_packet_changes_nothing_and_two_that_follow_begin_anew() {
    let mut receiver = receiver_with(AudioConcealment::Silence);
    receiver.handle_datagram(at(0), &packet(1, 0)).unwrap();
    receiver.handle_datagram(at(500), &packet(1, 1_000_000)).unwrap();
    receiver.handle_datagram(at(1000), &packet(1, 1)).unwrap();
    assert_eq!(play(&mut receiver, at(20_000)), [(1, 0)]);
    assert_eq!((receiver.counters().packets_astray, receiver.counters().starts), (1, 1));
    receiver.handle_datagram(at(21_000), &packet(1, 2_000_000)).unwrap();
    receiver.handle_datagram(at(22_000), &packet(1, 2_000_001)).unwrap();
    receiver.handle_datagram(at(23_000), &packet(1, 2_000_002)).unwrap();
    let value = |index: u32| i32::from((index + 1) as u16 as i16);
    assert_eq!(play(&mut receiver, at(43_000)), [(value(2_000_001), 0), (value(2_000_002), 0)]);
    let counters = receiver.counters();
    assert_eq!((counters.packets_astray, counters.starts, counters.frames_skipped), (2, 2, 48));
}

#[test]
fn a_late_player_passes_over_what_should_have_been_played() {
    let mut receiver = receiver_with(AudioConcealment::Silence);
    for index in 0..300 {
        receiver.handle_datagram(at(u64::from(index) * 1000), &packet(1, index)).unwrap();
    }
    let mut samples = Vec::new();
    // Blocks 0 to 79 are due by now; 60 ms are made up for, 200 ms are not.
    let block = receiver.poll_block(at(80_000), &mut samples).unwrap();
    assert_eq!((block.timestamp, samples[0] >> 8), (FIRST, 1));
    samples.clear();
    let block = receiver.poll_block(at(220_000), &mut samples).unwrap();
    assert_eq!((block.due, samples[0] >> 8), (at(220_000), 201));
    assert_eq!(receiver.counters().frames_skipped, 199 * 48);
}

/// The times of a sender whose audio began at `at(0)`, and of a picture that is shown `after` its capture.
fn picture(after: Duration) -> (WallClock, MediaClock) {
    let ntp = NtpTime::from_unix(Duration::from_secs(1_800_000_000));
    (WallClock::new(at(0) + after, ntp), MediaClock::new(ntp, FIRST, 48_000).unwrap())
}

#[test]
fn sound_follows_its_picture() {
    let mut receiver = receiver_with(AudioConcealment::Silence);
    assert_eq!(receiver.picture_offset_millis(), None);
    for index in 0..100 {
        receiver.handle_datagram(at(u64::from(index) * 1000), &packet(1, index)).unwrap();
    }
    // The picture is shown 66.7 ms after its capture, and the sound would be 20 ms after its arrival.
    let (presentation, clock) = picture(Duration::from_micros(66_700));
    receiver.set_picture(presentation, clock);
    assert_eq!(receiver.picture_offset_millis(), Some(-46.7));
    assert_eq!(receiver.poll_block(at(20_000), &mut Vec::new()), None);
    assert_eq!((receiver.picture_offset_millis(), receiver.poll_timeout()), (Some(0.0), at(66_700)));
    assert_eq!(play(&mut receiver, at(68_700)), [(1, 0), (2, 0), (3, 0)]);
    // A small difference is followed slowly.
    let (presentation, clock) = picture(Duration::from_micros(66_800));
    receiver.set_picture(presentation, clock);
    assert_eq!(receiver.poll_block(at(69_000), &mut Vec::new()), None);
    let offset = receiver.picture_offset_millis().unwrap();
    assert!((-0.1..-0.09).contains(&offset), "{offset}");
    assert_eq!(receiver.steps(), 1);
}

#[test]
fn sound_waits_for_a_picture_that_is_shown_eight_seconds_later() {
    let format = AudioFormat::new(AudioEncoding::L16, 1, PacketTime::Millisecond).unwrap();
    let config = AudioReceiverConfig { delay: Duration::from_secs(6), ..AudioReceiverConfig::new(format, 97) };
    let mut receiver = AudioReceiver::new(config);
    let mut played = Vec::new();
    for index in 0..30_000 {
        let now = at(u64::from(index) * 1000);
        if index == 8000 {
            let (presentation, clock) = picture(Duration::from_secs(8));
            receiver.set_picture(presentation, clock);
        }
        receiver.handle_datagram(now, &packet(1, index)).unwrap();
        played.extend(play(&mut receiver, now));
    }
    played.extend(play(&mut receiver, at(29_999_500)));
    let counters = receiver.counters();
    assert_eq!((counters.frames_skipped, counters.starts, receiver.steps()), (0, 1, 1), "{counters:?}");
    assert_eq!(receiver.picture_offset_millis(), Some(0.0));
    let whole: Vec<(i32, u64)> = (0..22_000).map(|index| (index + 1, 0)).collect();
    assert!(played == whole, "{} blocks, {counters:?}", played.len());
}

#[test]
fn a_picture_from_another_time_does_not_silence_the_sound() {
    let (_, clock) = picture(Duration::ZERO);
    for shown in [at(0) - Duration::from_millis(100), at(0) + Duration::from_secs(3600)] {
        let mut receiver = receiver_with(AudioConcealment::Silence);
        receiver.set_picture(WallClock::new(shown, clock.ntp), clock);
        for index in 0..100 {
            receiver.handle_datagram(at(u64::from(index) * 1000), &packet(1, index)).unwrap();
        }
        assert_eq!(play(&mut receiver, at(30_000)), (0..11).map(|index| (index + 1, 0)).collect::<Vec<_>>());
        assert!(receiver.picture_offset_millis().is_some() && receiver.steps() == 0, "it is told");
    }
}

#[test]
fn a_report_half_a_wrap_away_moves_the_sound_once() {
    let mut receiver = receiver_with(AudioConcealment::Silence);
    receiver.handle_datagram(at(0), &packet(1, 0)).unwrap();
    let ntp = NtpTime::from_unix(Duration::from_secs(1_800_000_000));
    // From the third packet on, time stamps are nearer to the report the other way round.
    let clock = MediaClock::new(ntp, FIRST.wrapping_sub((1 << 31) - 100), 48_000).unwrap();
    receiver.set_picture(WallClock::new(at(66_700), clock.ntp_of(FIRST)), clock);
    for index in 1..50 {
        receiver.handle_datagram(at(u64::from(index) * 1000), &packet(1, index)).unwrap();
    }
    assert_eq!(play(&mut receiver, at(115_700)), (0..50).map(|index| (index + 1, 0)).collect::<Vec<_>>());
    assert_eq!(receiver.steps(), 1);
}

#[test]
fn sound_that_steps_back_to_its_picture_passes_over_samples() {
    let mut receiver = receiver_with(AudioConcealment::Silence);
    for index in 0..100 {
        receiver.handle_datagram(at(u64::from(index) * 1000), &packet(1, index)).unwrap();
    }
    assert_eq!(play(&mut receiver, at(30_000)).len(), 11);
    let (presentation, clock) = picture(Duration::from_millis(5));
    receiver.set_picture(presentation, clock);
    let mut samples = Vec::new();
    receiver.poll_block(at(31_000), &mut samples).unwrap();
    assert_eq!((samples[0] >> 8, receiver.counters().frames_skipped), (27, 15 * 48));
}

#[test]
fn the_offset_can_be_told_without_following() {
    let format = AudioFormat::new(AudioEncoding::L16, 1, PacketTime::Millisecond).unwrap();
    let config = AudioReceiverConfig { sync: PictureSync::Measure, ..AudioReceiverConfig::new(format, 97) };
    let mut receiver = AudioReceiver::new(config);
    let (presentation, clock) = picture(Duration::from_millis(5));
    receiver.set_picture(presentation, clock);
    for index in 0..100 {
        receiver.handle_datagram(at(u64::from(index) * 1000), &packet(1, index)).unwrap();
    }
    assert_eq!(play(&mut receiver, at(30_000)).len(), 11);
    assert_eq!((receiver.picture_offset_millis(), receiver.steps()), (Some(15.0), 0));
}

#[test]
fn a_packet_a_second_of_another_source_does_not_keep_out_a_stream() {
    // Before the stream begins, and in a pause of it.
    for pause in [0, 500] {
        let mut receiver = receiver_with(AudioConcealment::Silence);
        for index in 0..pause {
            receiver.handle_datagram(at(u64::from(index) * 1000), &packet(1, index)).unwrap();
            play(&mut receiver, at(u64::from(index) * 1000));
        }
        let mut heard = 0;
        for index in pause + 1500..pause + 4500 {
            let now = at(u64::from(index) * 1000);
            if index % 900 == 0 || index == pause + 1500 {
                receiver.handle_datagram(now, &packet(666, 30_000)).unwrap();
            }
            receiver.handle_datagram(now, &packet(1, index)).unwrap();
            heard += play(&mut receiver, now).iter().filter(|(value, _)| *value != 0 && *value != 30_001).count();
        }
        assert!(heard >= 2950, "{heard} of 3000 blocks after {pause}");
        assert_eq!(receiver.received().unwrap().ssrc, 1);
    }
}
