//! The subscribing side.

use std::time::Instant;

use thalweg::filter::Filter;
use thalweg::{
    DataReader, DataReaderBuilder, Delivery, DomainParticipant, InstanceState, ReadFilter, Sample, Subscriber,
    SubscriberQos,
};

use super::options::ShapesOptions;
use super::publish::line;
use super::{Shape, creation, news, qos};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_line};

pub fn run(options: &ShapesOptions, participant: &DomainParticipant, interrupt: &Interrupt) -> Result<(), Failure> {
    let qos = SubscriberQos { presentation: qos::presentation(options), ..SubscriberQos::default() };
    let subscriber = participant.create_subscriber(qos);
    let readers = create(options, participant, &subscriber)?;
    for iteration in 0..options.num_iterations.unwrap_or(u64::MAX) {
        if interrupt.came() {
            break;
        }
        if options.coherent {
            print_line(format_args!("Reading coherent sets, iteration {iteration}"))?;
        }
        if options.ordered {
            print_line(format_args!("Reading with ordered access, iteration {iteration}"))?;
        }
        subscriber.begin_access();
        let read = readers.iter().try_for_each(|reader| read(options, reader));
        subscriber.end_access().map_err(Failure::from_cause)?;
        read?;
        interrupt.wait_until(Instant::now() + options.read_period());
    }
    Ok(())
}

fn create(
    options: &ShapesOptions,
    participant: &DomainParticipant,
    subscriber: &Subscriber,
) -> Result<Vec<DataReader<Shape>>, Failure> {
    let topics = options.topics();
    for name in &topics {
        print_line(format_args!("Create topic: {name}"))?;
    }
    let mut readers = Vec::new();
    for name in topics {
        let shown = if options.filter().is_some() { format!("{name}_filtered") } else { name.clone() };
        print_line(format_args!("Create reader for topic: {shown}"))?;
        let topic = participant.create_topic::<Shape>(&name);
        let builder = subscriber.reader_builder(&topic).qos(qos::reader(options));
        let builder = builder.on_status(Delivery::Thread, move |status| news::of_reader(&name, &status));
        let builder = match options.filter() {
            None => builder,
            Some(expression) => filtered(builder, &expression)?,
        };
        readers.push(builder.create().map_err(creation)?);
    }
    Ok(readers)
}

fn filtered(builder: DataReaderBuilder<Shape>, expression: &str) -> Result<DataReaderBuilder<Shape>, Failure> {
    let filter = Filter::parse(expression, &[""; 0]).map_err(|error| error.to_string());
    filter.and_then(|filter| builder.filter(filter).map_err(|error| error.to_string())).map_err(|error| {
        _ = print_line("failed to create content filtered topic");
        Failure::Usage(error)
    })
}

fn read(options: &ShapesOptions, reader: &DataReader<Shape>) -> Result<(), Failure> {
    let mut samples = Vec::new();
    if options.take_read {
        fetch(options, reader, &ReadFilter::ALL, &mut samples);
        return print(reader.topic_name(), &samples);
    }
    let mut last = None;
    while let Some(instance) = reader.next_instance(last) {
        samples.clear();
        fetch(options, reader, &ReadFilter::instance(instance), &mut samples);
        print(reader.topic_name(), &samples)?;
        last = Some(instance);
    }
    Ok(())
}

fn fetch(options: &ShapesOptions, reader: &DataReader<Shape>, filter: &ReadFilter, into: &mut Vec<Sample<Shape>>) {
    if options.reads {
        reader.read_into(usize::MAX, filter, into);
    } else {
        reader.take_into(usize::MAX, filter, into);
    }
}

fn print(topic: &str, samples: &[Sample<Shape>]) -> Result<(), Failure> {
    for sample in samples {
        if sample.is_valid() {
            print_line(line(topic, &sample.data().map_err(Failure::from_cause)?))?;
            continue;
        }
        let state = match sample.info().instance_state {
            InstanceState::NotAliveNoWriters => "NOT_ALIVE_NO_WRITERS_INSTANCE_STATE",
            InstanceState::NotAliveDisposed => "NOT_ALIVE_DISPOSED_INSTANCE_STATE",
            InstanceState::Alive => continue,
        };
        let color = sample.key().map(|key| key.color).unwrap_or_default();
        print_line(format_args!("{topic:<10} {color:<10} {state}"))?;
    }
    Ok(())
}
