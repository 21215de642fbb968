//! The publishing side.

use std::time::{Duration, Instant};

use thalweg::{DataWriter, Delivery, DomainParticipant, ErrorKind, Publisher, PublisherQos};

use super::canvas::Moving;
use super::options::{FinalState, ShapesOptions};
use super::{Shape, creation, news, qos};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_line};

/// How long the last samples wait for their acknowledgement.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long an end of instances is there to be read, by subscribers at their usual period, before the writer leaves: another end.
const END_SHOWN: Duration = Duration::from_millis(400);

pub fn run(options: &ShapesOptions, participant: &DomainParticipant, interrupt: &Interrupt) -> Result<(), Failure> {
    let qos = PublisherQos { presentation: qos::presentation(options), ..PublisherQos::default() };
    let publisher = participant.create_publisher(qos);
    let writers = create(options, participant, &publisher)?;
    let colors = options.colors();
    let mut moving = Moving::new(u64::from(std::process::id()), options);
    let iterations = options.num_iterations.unwrap_or(u64::MAX);
    let set = options.coherent_sample_count;
    for iteration in 0..iterations {
        if interrupt.came() {
            break;
        }
        moving.step(options);
        if set > 0 && iteration % set == 0 {
            print_line("Started Coherent Set")?;
            publisher.begin_coherent_changes().map_err(Failure::from_cause)?;
        }
        write(options, &writers, &colors, &moving)?;
        if set > 0 && iteration % set == set - 1 {
            publisher.end_coherent_changes().map_err(Failure::from_cause)?;
            print_line("Finished Coherent Set")?;
        }
        interrupt.wait_until(Instant::now() + options.write_period());
    }
    end(options, &writers, &colors, interrupt)
}

fn create(
    options: &ShapesOptions,
    participant: &DomainParticipant,
    publisher: &Publisher,
) -> Result<Vec<DataWriter<Shape>>, Failure> {
    let topics = options.topics();
    for name in &topics {
        print_line(format_args!("Create topic: {name}"))?;
    }
    let color = options.color.as_deref().unwrap_or("BLUE");
    let mut writers = Vec::new();
    for name in topics {
        // In front of the first news of it.
        print_line(format_args!("Create writer for topic: {name} color: {color}"))?;
        let topic = participant.create_topic::<Shape>(&name);
        let builder = publisher.writer_builder(&topic).qos(qos::writer(options));
        let builder = builder.on_status(Delivery::Thread, move |status| news::of_writer(&name, &status));
        writers.push(builder.create().map_err(creation)?);
    }
    Ok(writers)
}

fn write(
    options: &ShapesOptions,
    writers: &[DataWriter<Shape>],
    colors: &[String],
    moving: &Moving,
) -> Result<(), Failure> {
    for writer in writers {
        for color in colors {
            let shape = Shape {
                color: color.clone(),
                x: moving.x,
                y: moving.y,
                shapesize: moving.size,
                additional_payload_size: vec![255; options.additional_payload_size],
            };
            writer.write(&shape).map_err(Failure::from_cause)?;
            if options.prints_written {
                print_line(line(writer.topic_name(), &shape))?;
            }
        }
    }
    Ok(())
}

/// A sample as the suite reads it.
pub fn line(topic: &str, shape: &Shape) -> String {
    let Shape { color, x, y, shapesize, additional_payload_size } = shape;
    let last = additional_payload_size.last().map(|byte| format!(" {{{byte}}}")).unwrap_or_default();
    format!("{topic:<10} {color:<10} {x:03} {y:03} [{shapesize}]{last}")
}

fn end(
    options: &ShapesOptions,
    writers: &[DataWriter<Shape>],
    colors: &[String],
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    for writer in writers {
        for color in colors {
            let shape = Shape { color: color.clone(), ..Shape::default() };
            let ended = match options.final_instance_state {
                None => continue,
                Some(FinalState::Unregister) => writer.unregister(&shape),
                Some(FinalState::Dispose) => writer.dispose(&shape),
            };
            match ended {
                // The user may have interrupted it before its first sample.
                Err(error) if error.kind() == ErrorKind::PreconditionNotMet => {}
                ended => _ = ended.map_err(Failure::from_cause)?,
            }
        }
    }
    for writer in writers {
        // Readers that do not answer miss the end.
        _ = writer.wait_for_acknowledgments(LAST_WORDS);
    }
    if options.final_instance_state.is_some() {
        interrupt.wait_until(Instant::now() + END_SHOWN);
    }
    Ok(())
}
