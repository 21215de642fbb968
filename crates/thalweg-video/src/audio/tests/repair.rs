//! Packets of sound that come again because they were asked for.

use std::time::Duration;

use thalweg_base::rng::Rng;
use thalweg_base::time::Instant;

use super::receiver::at;
use crate::audio::*;
use crate::receiver::Repair;
use crate::rtcp::{NtpTime, WallClock};
use crate::rtp::{HEADER_OCTETS, RtpPacket};
use crate::sdp::AudioEncoding;
use crate::sender::Resend;

const REPETITIONS: u8 = 99;
const OWN_STREAM: Resend = Resend::Retransmission { payload_type: REPETITIONS, ssrc: 8, first_sequence: u16::MAX };

fn format(packet_time: PacketTime) -> AudioFormat {
    AudioFormat::new(AudioEncoding::L24, 2, packet_time).unwrap()
}

fn sender(resend: Resend, packet_time: PacketTime) -> AudioSender {
    let format = format(packet_time);
    let config = AudioSenderConfig { format, payload_type: 98, ssrc: 7, sequence: 65_530, timestamp: 5, resend };
    AudioSender::new(at(0), config)
}

fn receiver(resend: Resend, packet_time: PacketTime) -> AudioReceiver {
    let repair = match resend {
        Resend::Never => Repair::Off,
        Resend::Same => Repair::Nack { reorder_window: Repair::REORDER_WINDOW, retransmission: None },
        Resend::Retransmission { payload_type, .. } => Repair::by_retransmission(payload_type),
    };
    let config = AudioReceiverConfig::new(format(packet_time), 98);
    AudioReceiver::new(AudioReceiverConfig { repair, concealment: AudioConcealment::Silence, ..config })
}

/// The next `packets` packets, each at its time.
fn send(sender: &mut AudioSender, packets: usize) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    while sent.len() < packets {
        let now = if sender.poll_timeout() < Instant::NEVER { sender.poll_timeout() } else { at(0) };
        sender.handle_samples(now, &[1 << 8; 960]);
        let mut out = Vec::new();
        if sender.poll_packet(now, &mut out) {
            sent.push(out);
        }
    }
    sent
}

fn repetitions(sender: &mut AudioSender) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut out = Vec::new();
    while sender.poll_repetition(&mut out) {
        all.push(std::mem::take(&mut out));
    }
    all
}

#[test]
fn packets_asked_for_come_again_in_their_own_stream() {
    let mut sender = sender(OWN_STREAM, PacketTime::Millisecond);
    let sent = send(&mut sender, 600);
    let number = |packet: u16| 65_530_u16.wrapping_add(packet);
    // The newest one, one across the end of the numbers, twice the same; one that is no longer kept, and one not yet sent.
    sender.handle_nack([599, 300, 300, 99, 600].map(number));
    let again = repetitions(&mut sender);
    assert_eq!((again.len(), sender.packets_resent(), sender.packets()), (2, 2, 600));
    for ((datagram, packet), sequence) in again.iter().zip([599, 300]).zip([u16::MAX, 0]) {
        let (again, original) = (RtpPacket::parse(datagram).unwrap(), RtpPacket::parse(&sent[packet]).unwrap());
        let header = again.header;
        assert_eq!((header.payload_type, header.ssrc, header.sequence), (REPETITIONS, 8, sequence));
        assert_eq!(header.timestamp, original.header.timestamp);
        assert_eq!(again.payload[..2], original.header.sequence.to_be_bytes());
        assert_eq!(&again.payload[2..], original.payload);
    }
    let wall_clock = WallClock::new(at(0), NtpTime(1 << 40));
    let octets: usize = again.iter().map(|datagram| datagram.len() - HEADER_OCTETS).sum();
    assert_eq!((sender.repeated(&wall_clock).packets, sender.repeated(&wall_clock).octets), (2, octets as u64));
    sender.set_repetitions_ssrc(77);
    assert_eq!((sender.repeated(&wall_clock).packets, sender.sent(&wall_clock).packets), (0, 600));
    sender.handle_nack([number(300)]);
    let again = repetitions(&mut sender);
    let header = RtpPacket::parse(&again[0]).unwrap().header;
    assert_eq!((header.ssrc, header.sequence), (77, 1), "it may be asked for again");
    assert_eq!(sender.repeated(&wall_clock).packets, 1);
}

#[test]
fn repetitions_in_the_stream_are_unchanged_and_none_are_sent_by_default() {
    let mut same = sender(Resend::Same, PacketTime::Millisecond);
    let sent = send(&mut same, 50);
    same.handle_nack([65_530_u16.wrapping_add(40)]);
    assert_eq!(repetitions(&mut same), [sent[40].clone()]);
    let mut never = sender(Resend::Never, PacketTime::Millisecond);
    send(&mut never, 50);
    never.handle_nack([65_530_u16.wrapping_add(40)]);
    assert!(repetitions(&mut never).is_empty());
}

#[test]
fn repetitions_in_the_stream_count_in_its_reports_and_those_of_another_stream_do_not() {
    let wall_clock = WallClock::new(at(0), NtpTime(1 << 40));
    for (resend, count) in [(Resend::Same, 1), (OWN_STREAM, 0)] {
        let mut sender = sender(resend, PacketTime::Millisecond);
        let sent = send(&mut sender, 50);
        let payload = (sent[40].len() - HEADER_OCTETS) as u64;
        for before in [50, 0] {
            sender.handle_nack([65_530_u16.wrapping_add(40)]);
            assert_eq!(repetitions(&mut sender).len(), 1);
            let (told, packets) = (sender.sent(&wall_clock), before + count);
            assert_eq!((told.packets, told.octets), (packets, packets * payload), "{resend:?}");
            sender.set_ssrc(9);
            assert_eq!(sender.sent(&wall_clock).packets, 0, "{resend:?}");
        }
    }
}

#[test]
fn repetitions_add_at_most_a_tenth_and_end_when_the_stream_pauses() {
    let mut sender = sender(OWN_STREAM, PacketTime::EighthMillisecond);
    let mut again = 0;
    for _ in 0..100 {
        send(&mut sender, 100);
        // A receiver that asks for everything all the time.
        let newest = 65_530_u16.wrapping_add((sender.packets() - 1) as u16);
        sender.handle_nack((0..100).map(|back| newest.wrapping_sub(back)));
        again += repetitions(&mut sender).len();
    }
    assert!((1000..=1032).contains(&again), "{again} for 10,000 packets");
    for _ in 0..100 {
        let newest = 65_530_u16.wrapping_add((sender.packets() - 1) as u16);
        sender.handle_nack((0..100).map(|back| newest.wrapping_sub(back)));
        again += repetitions(&mut sender).len();
    }
    assert!(again <= 1032, "{again} without a new packet");
}

/// Gives a hundred packets but those in `lost` to a receiver, one each millisecond, and answers its requests after `round_trip`, which
/// reports have told if it is long. Returns the receiver, and when it asked for which packets.
fn exchange(resend: Resend, lost: &[u16], round_trip: Duration) -> (AudioReceiver, Vec<(u64, Vec<u16>)>) {
    let (mut sender, mut receiver) =
        (sender(resend, PacketTime::Millisecond), receiver(resend, PacketTime::Millisecond));
    if round_trip > Duration::from_millis(20) {
        receiver.handle_round_trip(round_trip);
    }
    let sent = send(&mut sender, 100);
    let (mut asked, mut answers) = (Vec::new(), Vec::<(Instant, Vec<u8>)>::new());
    for micros in (0..130_000).step_by(250) {
        let now = at(micros);
        for (_, answer) in answers.extract_if(.., |(due, _)| *due <= now) {
            receiver.handle_datagram(now, &answer).unwrap();
        }
        let packet = usize::try_from(micros / 1000).unwrap();
        if micros.is_multiple_of(1000) && packet < sent.len() && !lost.contains(&(packet as u16)) {
            receiver.handle_datagram(now, &sent[packet]).unwrap();
        }
        while let Some(items) = receiver.poll_nack(now) {
            let numbers: Vec<u16> = items.iter().flat_map(|item| item.sequences()).collect();
            sender.handle_nack(numbers.iter().copied());
            asked.push((micros, numbers.iter().map(|number| number.wrapping_sub(65_530)).collect()));
            answers.extend(repetitions(&mut sender).into_iter().map(|answer| (now + round_trip, answer)));
        }
        assert!(receiver.nack_timeout() > now);
        while receiver.poll_timeout() <= now {
            receiver.poll_block(now, &mut Vec::new());
        }
    }
    (receiver, asked)
}

#[test]
fn what_is_lost_is_asked_for_and_played_in_its_time() {
    for resend in [OWN_STREAM, Resend::Same] {
        let (receiver, asked) = exchange(resend, &[10, 40, 41, 42], Duration::from_millis(2));
        let (counters, requests) = (receiver.counters(), receiver.requests());
        assert_eq!(asked, [(11_500, vec![10]), (43_500, vec![40, 41, 42])], "when they have not only been overtaken");
        assert_eq!((receiver.packets(), receiver.recovered()), ((100, 96), 4));
        assert_eq!((requests.lists, requests.requests, requests.given_up), (2, 4, 0));
        assert_eq!((counters.frames_placed, counters.frames_late), (100 * 48, 0), "{counters:?}");
        let is_own = resend == OWN_STREAM;
        let reported = receiver.received().unwrap();
        assert_eq!(reported.received, if is_own { 96 } else { 100 }, "a stream of its own has reports of its own");
        assert_eq!((requests.repetitions, requests.needless), (if is_own { 4 } else { 0 }, 0));
        assert_eq!(counters.packets, if is_own { 96 } else { 100 });
    }
}

#[test]
fn what_could_not_come_in_time_is_not_asked_for() {
    // Sound is played 20 ms after it came, and answers take 30 ms: one request a second finds out whether they still do.
    let (receiver, asked) = exchange(OWN_STREAM, &[10, 60], Duration::from_millis(30));
    let asked_for = |packet| asked.iter().filter(|(_, numbers)| numbers.contains(&packet)).count();
    assert_eq!((asked_for(10), asked_for(60)), (1, 0), "{asked:?}");
    let (counters, requests) = (receiver.counters(), receiver.requests());
    assert_eq!((counters.frames_late, requests.given_up), (48, 1), "{counters:?} {requests:?}");
    let (receiver, asked) = exchange(Resend::Never, &[10, 60], Duration::from_millis(2));
    assert_eq!((asked.len(), receiver.packets()), (0, (100, 98)));
}

#[test]
fn what_is_no_repetition_of_the_stream_places_nothing() {
    let (mut sender, mut receiver) =
        (sender(OWN_STREAM, PacketTime::Millisecond), receiver(OWN_STREAM, PacketTime::Millisecond));
    let sent = send(&mut sender, 40);
    sender.handle_nack([5, 6].map(|packet| 65_530_u16.wrapping_add(packet)));
    let again = repetitions(&mut sender);
    receiver.handle_datagram(at(0), &again[0]).unwrap();
    assert_eq!(receiver.counters().packets_astray, 1, "no stream yet");
    for (packet, datagram) in sent.iter().enumerate().take(10).filter(|(packet, _)| *packet != 5) {
        receiver.handle_datagram(at(packet as u64 * 1000), datagram).unwrap();
    }
    let placed = receiver.counters().frames_placed;
    let mut later = again[0].clone();
    // A time that the stream has not come to.
    later[4..8].copy_from_slice(&(5_u32 + 20 * 48).to_be_bytes());
    receiver.handle_datagram(at(9000), &later).unwrap();
    assert_eq!((receiver.counters().frames_placed, receiver.counters().packets_astray), (placed, 2));
    receiver.handle_datagram(at(9000), &again[1]).unwrap();
    assert_eq!((receiver.counters().frames_placed, receiver.requests().needless), (placed, 1), "it is there already");
    assert!(receiver.handle_datagram(at(9000), &again[0][..HEADER_OCTETS + 1]).is_err(), "half a number");
    assert!(receiver.handle_datagram(at(9000), &again[0][..HEADER_OCTETS + 2 + 5]).is_err(), "half a sample");
    receiver.handle_datagram(at(9000), &again[0]).unwrap();
    assert_eq!((receiver.counters().frames_placed, receiver.recovered()), (placed + 48, 1));
}

#[test]
fn five_percent_of_losses_are_hardly_heard() {
    for seed in 0..8 {
        let rng = &mut Rng::new(seed);
        let time = [PacketTime::Millisecond, PacketTime::EighthMillisecond][seed as usize % 2];
        let (mut sender, mut receiver) = (sender(OWN_STREAM, time), receiver(OWN_STREAM, time));
        let (mut network, mut lost) = (Vec::<(Instant, Vec<u8>)>::new(), 0);
        for step in 0..8 * 3000_u64 {
            let now = at(step * 125);
            sender.handle_samples(now, &[1 << 8; 12]);
            let mut out = Vec::new();
            while sender.poll_packet(now, &mut out) || sender.poll_repetition(&mut out) {
                let datagram = std::mem::take(&mut out);
                // The first packet says what time it is.
                match step > 80 && rng.chance(0.05) {
                    true => lost += 1,
                    false => network.push((now + Duration::from_micros(500), datagram)),
                }
            }
            for (_, datagram) in network.extract_if(.., |(due, _)| *due <= now) {
                receiver.handle_datagram(now, &datagram).unwrap();
            }
            while let Some(items) = receiver.poll_nack(now) {
                let numbers: Vec<u16> = items.iter().flat_map(|item| item.sequences()).collect();
                if !rng.chance(0.05) {
                    sender.handle_nack(numbers);
                }
            }
            while receiver.poll_timeout() <= now {
                receiver.poll_block(now, &mut Vec::new());
            }
        }
        let (counters, (expected, received)) = (receiver.counters(), receiver.packets());
        let never = expected - received - receiver.recovered();
        assert!(lost > expected / 40, "seed {seed}: {lost} of {expected}");
        // Those sent last may still come.
        assert!(never * 500 <= expected, "seed {seed}: {never} of {expected} never came, {:?}", receiver.requests());
        assert!(counters.frames_concealed * 300 <= counters.frames_played, "seed {seed}: {counters:?}");
    }
}
