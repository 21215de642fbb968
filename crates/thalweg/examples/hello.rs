//! The smallest program: one thread publishes, another one receives. Start it twice, and both hear each other.

use std::time::Duration;

use thalweg::qos::{History, ReaderQos, Reliability, WriterQos};
use thalweg::{DomainParticipant, Error, Topic};

#[derive(Topic, Debug)]
struct Greeting {
    number: u32,
    text: String,
}

fn main() -> Result<(), Error> {
    let participant = DomainParticipant::new(0)?;
    let topic = participant.create_topic::<Greeting>("greetings");
    let reader_qos =
        ReaderQos { reliability: Reliability::RELIABLE, history: History::KeepLast(16), ..ReaderQos::default() };
    let reader = participant.create_reader(&topic, reader_qos)?;
    let writer = participant.create_writer(&topic, WriterQos::default())?;
    writer.wait_for_matched(1, Duration::from_secs(5))?;

    let receiving = std::thread::spawn(move || -> Result<(), Error> {
        let mut heard = 0;
        while heard < 5 && reader.wait(Duration::from_secs(5)) {
            for sample in reader.take(16).iter().filter(|sample| sample.is_valid()) {
                println!("heard {:?}", sample.data()?);
                heard += 1;
            }
        }
        Ok(())
    });
    for number in 1..=5 {
        writer.write(&Greeting { number, text: format!("hello from process {}", std::process::id()) })?;
    }
    writer.wait_for_acknowledgments(Duration::from_secs(5))?;
    receiving.join().expect("the receiving thread does not panic")
}
