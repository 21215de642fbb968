//! Listeners: a callback for data and one for everything else that happens to a reader.

use std::sync::mpsc;
use std::time::Duration;

use thalweg::qos::{History, ReaderQos, Reliability, WriterQos};
use thalweg::status::ReaderStatus;
use thalweg::{DataReader, Delivery, DomainParticipant, Error, Topic};

#[derive(Topic, Debug)]
struct Tick {
    number: u64,
}

fn main() -> Result<(), Error> {
    let participant = DomainParticipant::new(0)?;
    let topic = participant.create_topic::<Tick>("ticks");
    let qos = ReaderQos { reliability: Reliability::RELIABLE, history: History::KeepAll, ..ReaderQos::default() };
    let on_status = |status| match status {
        ReaderStatus::SubscriptionMatched(matched) => println!("{} writers", matched.current),
        ReaderStatus::RequestedIncompatibleQos(incompatible) => {
            incompatible.mismatches.iter().for_each(|mismatch| println!("incompatible: {mismatch}"));
        }
        _ => {}
    };
    // Given at creation, a listener misses nothing; on_data and on_status of the reader replace it later.
    let reader = participant.reader_builder(&topic).qos(qos).on_status(Delivery::Thread, on_status).create()?;
    let (done, all_heard) = mpsc::channel();
    // The default thread may take its time; Delivery::Inline is for quick work where microseconds count.
    reader.on_data(Delivery::Thread, move |reader: &DataReader<Tick>| {
        for sample in reader.take(usize::MAX).iter().filter(|sample| sample.is_valid()) {
            match sample.data() {
                Ok(tick) => println!("{tick:?}"),
                Err(error) => println!("{error}"),
            }
            if sample.info().sequence.0 == 5 {
                _ = done.send(());
            }
        }
    })?;

    let writer = participant.create_writer(&topic, WriterQos { history: History::KeepAll, ..WriterQos::default() })?;
    writer.wait_for_matched(1, Duration::from_secs(5))?;
    for number in 1..=5 {
        writer.write(&Tick { number })?;
    }
    _ = all_heard.recv_timeout(Duration::from_secs(5));
    Ok(())
}
