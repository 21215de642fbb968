//! A background transfer: 20 MB leave at 10 MB/s, then faster, while a message of high priority is sent a hundred times a second.

use std::time::{Duration, Instant};

use thalweg::flow_controller::FlowControllerSettings;
use thalweg::qos::{History, Method, ReaderQos, Reliability, Transmission, WriterQos};
use thalweg::{DomainParticipant, Error, Topic};

#[derive(Topic)]
struct Tile {
    number: u32,
    pixels: Vec<u8>,
}

#[derive(Topic)]
struct Alarm {
    number: u32,
}

const TILES: u32 = 640;
const TILE_BYTES: usize = 32 * 1024;

fn main() -> Result<(), Error> {
    let (here, there) = (DomainParticipant::new(0)?, DomainParticipant::new(0)?);
    let keep_all = History::KeepAll;
    let reader_qos = ReaderQos { reliability: Reliability::RELIABLE, history: keep_all, ..ReaderQos::default() };
    let tiles = there.create_reader(&there.create_topic::<Tile>("map tiles"), reader_qos.clone())?;
    let alarms = there.create_reader(&there.create_topic::<Alarm>("alarms"), reader_qos)?;

    let link = here.create_flow_controller("link", FlowControllerSettings::bytes_per_second(10_000_000))?;
    let transmission = Transmission::by(Method::asynchronous("link"));
    let tile_qos = WriterQos { history: keep_all, transmission, ..WriterQos::default() };
    let tile_writer = here.create_writer(&here.create_topic::<Tile>("map tiles"), tile_qos)?;
    let alarm_qos = WriterQos { transport_priority: 10, ..WriterQos::default() };
    let alarm_writer = here.create_writer(&here.create_topic::<Alarm>("alarms"), alarm_qos)?;
    tile_writer.wait_for_matched(1, Duration::from_secs(5))?;
    alarm_writer.wait_for_matched(1, Duration::from_secs(5))?;

    let start = Instant::now();
    for number in 0..TILES {
        tile_writer.write(&Tile { number, pixels: vec![0; TILE_BYTES] })?;
    }
    println!("20 MB written in {:.1?}, now they travel", start.elapsed());

    let (mut arrived, mut slowest, mut hurried) = (0, Duration::ZERO, false);
    for number in 0.. {
        let sent = Instant::now();
        alarm_writer.write(&Alarm { number })?;
        if alarms.wait(Duration::from_secs(5)) && !alarms.take(1).is_empty() {
            slowest = slowest.max(sent.elapsed());
        }
        arrived += tiles.take(usize::MAX).iter().filter(|sample| sample.is_valid()).count();
        if number % 20 == 0 {
            println!("{:6.1?}  {arrived:3} of {TILES} tiles  {}", start.elapsed(), link.counters()?);
        }
        if arrived >= TILES as usize || start.elapsed() > Duration::from_secs(20) {
            break;
        }
        if !hurried && start.elapsed() > Duration::from_secs(1) {
            println!("the link is free: 40 MB/s from now on");
            link.set(FlowControllerSettings::bytes_per_second(40_000_000))?;
            hurried = true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    println!("{arrived} tiles in {:.2?}; no alarm took longer than {slowest:.1?}", start.elapsed());
    Ok(())
}
