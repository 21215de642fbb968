//! Coherent sets for readers that come late.

use std::time::Duration;

use thalweg::DataWriter;
use thalweg::qos::{AccessScope, History, Presentation, ReaderQos, WriterQos};

use crate::fixture::*;

const COHERENT: Presentation = Presentation { access_scope: AccessScope::Topic, coherent: true, ordered: true };

fn write_set(writer: &DataWriter<Shape>, colors: &[&str], x: i32) {
    writer.begin_coherent_changes().unwrap();
    colors.iter().for_each(|color| _ = writer.write(&Shape::new(color, x)).unwrap());
    writer.end_coherent_changes().unwrap();
}

/// What a reader that comes now takes.
fn taken_late(domain: u32, name: &str, count: usize) -> Vec<(String, i32)> {
    let there = participant(domain);
    let qos = ReaderQos { presentation: COHERENT, ..late_reader() };
    let reader = there.create_reader(&there.create_topic::<Shape>(name), qos).unwrap();
    let mut samples = take(&reader, count);
    std::thread::sleep(Duration::from_millis(200));
    samples.extend(reader.take(usize::MAX));
    samples.iter().map(|sample| sample.data().unwrap()).map(|shape| (shape.color.clone(), shape.x)).collect()
}

#[test]
fn a_late_reader_gets_each_set_of_which_everything_is_there() {
    let (domain, name) = (domain(), unique("late_sets"));
    let here = participant(domain);
    let qos = WriterQos { presentation: COHERENT, history: History::KeepLast(1), ..late_writer() };
    let writer = here.create_writer(&here.create_topic::<Shape>(&name), qos).unwrap();
    write_set(&writer, &["A", "B"], 1);
    write_set(&writer, &["C", "D"], 2);
    write_set(&writer, &["E"], 3);
    write_set(&writer, &["B"], 4);
    let expected = [("C", 2), ("D", 2), ("E", 3), ("B", 4)].map(|(color, x)| (color.to_owned(), x));
    assert_eq!(taken_late(domain, &name, 4), expected, "A lacks its B");
}
