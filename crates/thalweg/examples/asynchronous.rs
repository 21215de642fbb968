//! Two topics in one task of tokio: measurements are received and answered with commands, until a time passes without any, and the
//! program ends gracefully. The API needs no runtime of its own: `recv`, `send` and the others are plain futures.

use std::time::Duration;

use thalweg::qos::{History, ReaderQos, Reliability, WriterQos};
use thalweg::{DataReader, DataWriter, DomainParticipant, Error, Topic};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

#[derive(Topic, Debug)]
struct Measurement {
    sensor: u32,
    kelvin: f64,
}

#[derive(Topic, Debug)]
struct Command {
    sensor: u32,
    open: bool,
}

/// Opens a valve where it is hot; ends once no measurement comes for a second, or when it is told to.
async fn control(
    measurements: DataReader<Measurement>,
    commands: DataWriter<Command>,
    mut end: oneshot::Receiver<()>,
) -> Result<u32, Error> {
    let mut opened = 0;
    loop {
        let sample = tokio::select! {
            _ = &mut end => break,
            // A future that loses the race takes no sample with it.
            received = timeout(Duration::from_secs(1), measurements.recv()) => match received {
                Ok(sample) => sample,
                Err(_) => break,
            },
        };
        let Measurement { sensor, kelvin } = sample.data()?;
        if kelvin > 300.0 {
            commands.send(&Command { sensor, open: true }).await?;
            opened += 1;
        }
    }
    // Nothing that was sent is lost when the writer goes.
    commands.until_acknowledged().await?;
    Ok(opened)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let participant = DomainParticipant::new(0)?;
    let measurements = participant.create_topic::<Measurement>("measurements");
    let commands = participant.create_topic::<Command>("commands");
    let reader_qos =
        ReaderQos { reliability: Reliability::RELIABLE, history: History::KeepLast(16), ..ReaderQos::default() };
    let measured = participant.create_reader(&measurements, reader_qos.clone())?;
    let sensor = participant.create_writer(&measurements, WriterQos::default())?;
    let valve = participant.create_reader(&commands, reader_qos)?;
    let commanding = participant.create_writer(&commands, WriterQos::default())?;
    sensor.until_matched(1).await;
    commanding.until_matched(1).await;

    let (end, told) = oneshot::channel();
    let controlling = tokio::spawn(control(measured, commanding, told));
    for number in 0..10 {
        sensor.send(&Measurement { sensor: number, kelvin: 296.0 + f64::from(number) }).await?;
    }
    for _ in 0..5 {
        println!("{:?}", valve.recv().await.data()?);
    }
    sleep(Duration::from_millis(10)).await;
    _ = end.send(());
    println!("{} valves opened", controlling.await.expect("the task does not panic")?);
    Ok(())
}
