//! What keeps a writer and a reader apart is told in few words, however much a peer announces.

use super::*;
use crate::types::Keyed;

/// Compares a writer and a reader of one topic whose types have these names.
fn compared((writer, writer_type): (&WriterQos, &str), (reader, reader_type): (&ReaderQos, &str)) -> MatchResult {
    let offer = Offer { topic_name: "T", type_name: writer_type, keyed: Keyed::No, describes_type: false, qos: writer };
    let request = Request {
        topic_name: "T",
        type_name: reader_type,
        keyed: Keyed::No,
        forces_type_validation: false,
        qos: reader,
    };
    match_endpoints(&offer, &request)
}

#[test]
fn of_thousands_of_representations_the_first_ones_are_told() {
    let data_representation = (3..30_003).map(Representation::Other).collect::<Vec<_>>();
    let reader = ReaderQos { data_representation, ..ReaderQos::default() };
    let result = compared((&WriterQos::default(), "Y"), (&reader, "Y"));
    let MatchResult::Incompatible(mismatches) = &result else { panic!("{result}") };
    assert_eq!(mismatches.len(), 1);
    let first: Vec<String> = (3..11).map(|id| format!("representation {id}")).collect();
    assert_eq!(mismatches[0].requested, format!("{} and 29992 more", first.join(", ")));
    assert!(mismatches[0].requested.len() < 1_000);
}

#[test]
fn of_many_partitions_the_first_ones_are_told() {
    let partition = |count: usize| (0..count).map(|number| format!("p{number}")).collect::<Vec<_>>();
    let told = |count: usize| {
        let writer = WriterQos { partition: partition(count), ..WriterQos::default() };
        compared((&writer, "Y"), (&ReaderQos::default(), "Y")).to_string()
    };
    let first = "no partition fits: the writer is in \"p0\", \"p1\", \"p2\", \"p3\", \"p4\", \"p5\", \"p6\", \"p7\"";
    assert_eq!(told(8), format!("{first}, the reader in the default one"));
    assert_eq!(told(PARTITIONS_MAX), format!("{first} and 56 more, the reader in the default one"));
}

#[test]
fn of_a_long_name_of_a_type_the_beginning_is_told() {
    let (writer, reader) = (WriterQos::default(), ReaderQos::default());
    let (whole, long) = ("ä".repeat(256), "ä".repeat(30_000));
    let result = compared((&writer, long.as_str()), (&reader, whole.as_str()));
    let offered = format!("{whole}…");
    assert_eq!(result, MatchResult::DifferentType { offered, requested: whole });
    assert!(result.to_string().len() < 2_000);
}
